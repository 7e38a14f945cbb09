//go:build !race

package rules_test

const slow = 1
