//go:build !race && linux

package netns

const raced = false
