package main

import (
	"os"
	"runtime"
	"testing"
)

func TestResident(t *testing.T) {
	mb, known, err := resident(os.Getpid())
	if err != nil || known != (runtime.GOOS == "linux") {
		t.Fatalf("known %v, %v", known, err)
	}
	if known && (mb < 1 || mb > 10_000) {
		t.Errorf("this process has %f MB", mb)
	}
	if _, known, err := resident(-1); known || err != nil {
		t.Errorf("of no process: known %v, %v", known, err)
	}
}
