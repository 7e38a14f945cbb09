//go:build race && linux

package netns

// The race detector waits a second at the end of every process.
const raced = true
