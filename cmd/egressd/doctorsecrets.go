package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/egressd/egressd/ca"
)

// examineCA makes an authority and a leaf as a session does.
func examineCA() finding {
	roots, err := hostRoots()
	var issuer *ca.Issuer
	if err == nil {
		issuer, err = ca.New(ca.Config{})
	}
	if err == nil {
		_, err = issuer.Leaf("api.example.test")
	}
	if err != nil {
		return bad("CA", err, "install the package ca-certificates")
	}
	return good("CA", fmt.Sprintf("an authority for the session can be made; this host trusts %s", count(roots.Len(), "root")))
}

// examineSecrets closes this process as a session does, and names the programs
// that sources of secrets would find.
func examineSecrets() finding {
	d, err := findDirs()
	if err == nil {
		err = harden()
	}
	cwd, wd := os.Getwd()
	if err = errors.Join(err, wd); err != nil {
		return bad("secrets", err, "")
	}
	programs := newHostPrograms(cwd, nil, d.home)
	var there []string
	for _, name := range []string{"gh", "databricks", "aws", "vault"} {
		if at, err := programs.find(name); err == nil {
			there = append(there, at)
		}
	}
	found := "egressd leaves no core dump and shows its memory to nobody"
	if len(there) > 0 {
		found += "; sources can run " + strings.Join(there, ", ")
	}
	return good("secrets", found)
}
