package host

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
)

// rig is a session "s" in a folder with files, beside which there are others.
type rig struct {
	*Extension
	home, work string
	place      *Place
	points     plug.Points
	called     []agent.Invocation
	opened     []agent.Open
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{home: t.TempDir(), place: &Place{Catalog: catalog.New(catalog.Config{})}}
	r.work = filepath.Join(r.home, "work")
	if err := os.MkdirAll(filepath.Join(r.work, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"work/a.txt": "what it says", "work/secret.txt": "hidden", "other.txt": "not for it"} {
		if err := os.WriteFile(filepath.Join(r.home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link.txt": filepath.Join(r.home, "other.txt"), "alias.txt": "secret.txt", "away": r.home} {
		if err := os.Symlink(to, filepath.Join(r.work, name)); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if r.place.Workspace, err = workspace.New(workspace.Config{Root: r.work}); err != nil {
		t.Fatal(err)
	}
	r.place.Tracker = r.place.Workspace.NewTracker(nil)
	r.Extension = New(Config{
		Denies: func(_ string, paths ...string) bool {
			return slices.ContainsFunc(paths, func(p string) bool { return filepath.Base(p) == "secret.txt" })
		},
		Reach: func(session string) agent.Reach {
			return agent.Reach{Invoke: func(_ context.Context, i agent.Invocation) (agent.Result, error) {
				r.called = append(r.called, i)
				return agent.OK("done"), nil
			}}
		},
		Open: func(_ context.Context, o agent.Open) (agent.SessionInfo, error) {
			r.opened = append(r.opened, o)
			return agent.SessionInfo{ID: "lent"}, nil
		},
	})
	if r.points, err = r.In(r.place).Attach(t.Context(), &plug.Session{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	return r
}

// Files are read inside of the folders of a session, where no rule denies it, whatever leads
// there.
func TestReadFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f, err := r.ReadFile("s", "a.txt", 6)
	if err != nil || string(f.Data) != "what i" || !f.Cut || !filepath.IsAbs(f.Path) {
		t.Errorf("%+v, %v", f, err)
	}
	for _, path := range []string{"secret.txt", "alias.txt", "link.txt", filepath.Join(r.home, "other.txt"), "../other.txt", "/etc/hosts", ".", "", "none.txt", "a.txt\x00", "/dev/zero"} {
		if f, err := r.ReadFile("s", path, 0); err == nil {
			t.Errorf("%q was read: %+v", path, f)
		}
	}
	if _, err := r.ReadFile("nobody", "a.txt", 0); err == nil {
		t.Error("a file of a session was read that is not open")
	}
}

// A file counts as seen if it is as it was then.
func TestSawFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := filepath.Join(r.place.Workspace.Root(), "a.txt")
	seen := func() error {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return r.place.Tracker.Check(path, workspace.StateOf(info, []byte("what it says")))
	}
	if err := r.SawFile("s", "a.txt", time.UnixMilli(1)); err == nil || seen() == nil {
		t.Errorf("a file counts as seen that has changed since: %v", err)
	}
	if err := r.SawFile("s", "a.txt", time.Now().Add(time.Minute)); err != nil || seen() != nil {
		t.Errorf("%v, %v", err, seen())
	}
}

// Folders below those of a session are its own, and no others.
func TestBelow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.Below("s", "sub"); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"", ".", "..", "a.txt", "none", r.home, "away", "/"} {
		if err := r.Below("s", path); err == nil {
			t.Errorf("%q is a folder of the session", path)
		}
	}
}

// A session that is closed is not known any more, and a tool that there is not is not called.
func TestSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if _, err := r.CallTool(t.Context(), "s", "nobody", nil); err == nil {
		t.Error("a tool was called that there is not")
	}
	n := 3000
	if err := r.SetThinking("s", &n); err != nil {
		t.Error(err)
	}
	if tokens, ok := r.points.Thinks(); !ok || tokens != n {
		t.Errorf("it thinks for %d, %v", tokens, ok)
	}
	r.points.Close()
	for name, err := range map[string]error{
		"thinking": r.SetThinking("s", nil), "below": r.Below("s", "sub"), "a file": r.SawFile("s", "a.txt", time.Now()),
	} {
		if p := agent.ProblemOf(err); p == nil || !strings.Contains(p.Message, "not open") {
			t.Errorf("%s of a closed session: %v", name, err)
		}
	}
}

// What can change something runs alone, in a session that waits for nobody who is not there.
func TestLend(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l, err := r.Lend(t.Context(), "lent", true)
	if err != nil || l.ID() != "lent" {
		t.Fatalf("%+v, %v", l, err)
	}
	if o := r.opened[0]; !o.Lend || !o.Approver || !o.Ready || o.Title != "lent" {
		t.Errorf("%+v", o)
	}
	l.alone <- struct{}{} // a call runs that changes something
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Call(ctx, "1", "mcp:x", agent.Spec{Name: "write", Class: agent.Unsafe}, []byte(`{}`)); err == nil {
		t.Error("it ran beside another one")
	}
	if _, err := l.Call(ctx, "2", "mcp:x", agent.Spec{Name: "read", Class: agent.Read}, []byte(`{}`)); err != nil {
		t.Error(err)
	}
	if len(r.called) != 1 || r.called[0].ID != "2" || r.called[0].Origin != "mcp:x" || !json.Valid(r.called[0].Input) {
		t.Errorf("%+v", r.called)
	}
}
