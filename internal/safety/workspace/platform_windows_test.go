package workspace

import "testing"

func makePipe(t *testing.T, _ string) {
	t.Helper()
	t.Fatal("there are no named pipes in folders")
}
