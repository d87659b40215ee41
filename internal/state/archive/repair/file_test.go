package repair

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The long bodies of a session log lie beside it.
func TestCheckLogWithBlobs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	body := `{"input":"i1","text":"` + strings.Repeat("long ", 10_000) + `"}`
	sha := fmt.Sprintf("%x", sha256.Sum256([]byte(body)))
	log := filepath.Join(dir, "log.jsonl")
	line := fmt.Sprintf(`{"v":1,"seq":1,"ep":1,"ts":"2026-01-01T00:00:00Z","k":"input.added","id":"e1","b":{"sha256":%q,"size":%d}}`+"\n", sha, len(body))
	check := func() (load string, kept int) {
		t.Helper()
		r, err := CheckFile(log, "")
		if err != nil {
			t.Fatal(err)
		}
		return r.Load, len(r.Recovered)
	}
	blob := filepath.Join(dir, "blobs", sha)
	for _, err := range []error{os.Mkdir(filepath.Dir(blob), 0o700), os.WriteFile(log, []byte(line), 0o600), os.WriteFile(blob, []byte(body), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if load, kept := check(); load != "ok" || kept != 1 {
		t.Errorf("with its blob: %s, %d kept", load, kept)
	}
	if err := os.WriteFile(blob, []byte(strings.ToUpper(body)), 0o600); err != nil {
		t.Fatal(err)
	}
	if load, kept := check(); load != "refused" || kept != 0 {
		t.Errorf("with another blob: %s, %d kept", load, kept)
	}
}
