//go:build !linux

package main

import "github.com/rogpeppe/go-internal/testscript"

func mayMount() bool { return false }

func tmpfs(ts *testscript.TestScript, neg bool, args []string) {
	ts.Fatalf("tmpfs is for Linux: put [linux] before it")
}

func fifo(ts *testscript.TestScript, neg bool, args []string) {
	ts.Fatalf("fifo is for Linux: put [linux] before it")
}

// mortal is for Linux.
func mortal() {}
