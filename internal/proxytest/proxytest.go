// Package proxytest is a fake internet and a set of trusting clients, for tests
// only. Everything listens on loopback and nothing leaves the machine.
//
//   - CA mints certificates, good ones and ones with a flaw, and writes itself to
//     a PEM file.
//   - Resolver answers names from a table, in answer sets, one for each lookup.
//   - Origin is a server made of raw bytes. It reads requests with a strict
//     parser of its own, records every byte that reached it, and answers from a
//     script. It is not net/http, so that it sees what net/http would hide.
//   - Site is a server made of net/http, for end-to-end tests: HTTP/1.1 and
//     HTTP/2, echo, event streams, WebSocket, gRPC, slow and very long answers.
//   - S3 verifies signatures as AWS does, and keeps objects.
//   - Vault holds secrets as HashiCorp Vault does; Databricks is
//     workspaces and their login.
//   - Peer is a client made of raw bytes, Frames the same for HTTP/2; Trust
//     makes ones of net/http, through a proxy or captured.
//   - Table stands in for the DNS stub's table of names, and Captured for the
//     listener that reports the address a client dialled.
//   - Namespaced runs a test in namespaces of its own with the file system
//     read-only, since a test of a sandbox must assume that the sandbox fails.
//
// It imports nothing of the module, so that every package may use it.
package proxytest
