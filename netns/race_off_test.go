//go:build !race

package netns

const raced = false
