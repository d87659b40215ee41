package folders

import (
	"os"
	"path/filepath"
	"testing"

	"dure/agent/query"
	"dure/internal/safety/trust"
)

// A folder is trusted as the user has seen it, and not as it may be by then.
func TestTrustIsForWhatWasSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := filepath.Join(dir, ".dure", "settings.json")
	write := func(text string) {
		if err := os.MkdirAll(filepath.Dir(settings), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x := New(Config{Store: trust.In(t.TempDir()), Workdir: dir, Left: func() []string { return nil }})
	write("{}")
	seen, err := x.look(t.Context(), query.LookAtFolder{})
	if err != nil || !seen.State.Ask() || len(seen.Files) != 1 || seen.Brings["settings"] != 1 {
		t.Fatalf("%+v, %v", seen, err)
	}
	change := func(do string) bool {
		t.Helper()
		changed, err := x.change(t.Context(), query.ChangeTrust{Dir: seen.Path, Do: do, By: "test", Files: seen.Files})
		return changed && err == nil
	}
	write(`{"hooks": {}}`)
	if change(query.TrustFolder) || x.Trusts(seen.Path) && seen.Path != dir {
		t.Error("what nobody has seen is trusted")
	}
	for _, do := range []string{"", "Trust"} {
		if change(do) {
			t.Errorf("%q does something", do)
		}
	}
	write("{}")
	if !change(query.TrustFolder) {
		t.Error("what was seen cannot be trusted")
	}
	if now, err := x.Look(dir); err != nil || !now.State.Trusted {
		t.Errorf("%+v, %v", now, err)
	}
	if !x.Covers(settings, []byte("{}")) || x.Covers(settings, []byte("{ }")) {
		t.Error("another content counts than what was trusted")
	}
	write("{ }")
	if now, err := x.Look(dir); err != nil || len(now.Stale()) != 1 {
		t.Errorf("%+v, %v", now, err)
	}
	if !change(query.RevokeFolder) || change(query.RevokeFolder) {
		t.Error("trust is revoked once")
	}
	if !change(query.NeverTrust) {
		t.Error("it cannot be refused")
	}
	if list, err := x.list(t.Context(), query.ListTrust{}); err != nil || len(list) != 1 || !list[0].Never {
		t.Errorf("%+v, %v", list, err)
	}
}
