// Package egressd is the root of the module: it holds no code, only the test
// that keeps the packages below it on their floors. The program is
// cmd/egressd; README.md says what it does.
package egressd
