package main

import "errors"

// layDown refuses: no thread of a process of macOS can lay root's rights down
// by itself.
func layDown(int, int) error {
	return errors.New("as root, file tools on macOS would act as root: run egressd as a user")
}
