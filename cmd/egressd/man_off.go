//go:build !man

package main

import "github.com/spf13/cobra"

// forPackagers is nothing here: see man.go.
func forPackagers() []*cobra.Command { return nil }
