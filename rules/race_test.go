//go:build race

package rules_test

// slow is how much longer the race detector may make a test take.
const slow = 12
