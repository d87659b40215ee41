package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// A hold that was taken away and made anew by another box is that one's: who lets go
// of the old one leaves it.
func TestHoldMadeAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".agents")
	old, err := makeHold(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	anew, err := makeHold(path)
	if err != nil {
		t.Fatal(err)
	}
	removeHold(path, old)
	if !isHold(path) {
		t.Error("the hold of somebody else is gone")
	}
	removeHold(path, anew)
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the hold stands: %v", err)
	}
}
