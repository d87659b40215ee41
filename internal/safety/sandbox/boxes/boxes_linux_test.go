package boxes_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/prooftest"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/sandbox/boxes"
)

// config is that of a program in a workspace, with the home of its user beside that.
func config(t *testing.T) boxes.Config {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := boxes.Config{
		Home: filepath.Join(dir, "home", ".dure"), Data: filepath.Join(dir, "home", ".local"), UserHome: filepath.Join(dir, "home"), Workdir: filepath.Join(dir, "work"),
		Temp: t.TempDir, Logger: slog.New(slog.DiscardHandler), Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home")},
		Plugins:   func(string) (reads, writes []string) { return nil, nil },
		Protected: func(string, string, []string) []string { return nil },
		Where:     "sandbox.mode", Env: func() []string { return []string{"PATH=" + os.Getenv("PATH")} },
		Grant:   func(agent.Effects) sandbox.Grant { return sandbox.Grant{} },
		Refused: func(list []sandbox.Denial) string { return strings.Repeat("x", len(list)) },
	}
	c.Here = func() (string, func(string) agent.Effects, error) {
		return c.Workdir, func(string) agent.Effects { return agent.Effects{Unreadable: "test"} }, nil
	}
	for _, sub := range []string{c.Home, c.Data, c.Workdir} {
		if err := os.MkdirAll(sub, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// A diagnosis says how far commands are confined: less with each mechanism that is taken away,
// and not at all where that was chosen.
func TestFindings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mechanisms  []string
		off, bypass bool
		want        string
	}{
		{[]string{"bwrap", "namespaces", "landlock"}, false, false, "ok sandbox.full"},
		{[]string{"namespaces", "landlock"}, false, true, "ok sandbox.full"},
		{[]string{"landlock"}, false, false, "warn sandbox.reduced"},
		{[]string{}, false, false, "warn sandbox.none"},
		{[]string{}, false, true, "warn sandbox.bypass"},
		{nil, true, false, "warn sandbox.off"},
	} {
		c := config(t)
		c.Mechanisms, c.Off, c.Bypass = tt.mechanisms, tt.off, tt.bypass
		list := boxes.New(c).Findings(t.Context())
		if len(list) != 1 || list[0].State+" "+list[0].Code != tt.want {
			if len(tt.mechanisms) > 0 && !prooftest.Required("sandbox") {
				t.Logf("with %v this machine confines otherwise: %+v", tt.mechanisms, list)
				continue
			}
			t.Errorf("with %v: %+v, want %s", tt.mechanisms, list, tt.want)
		}
	}
}

// What a person runs is confined as commands of a session are: it writes in the workspace and in
// folders of the settings, and sees of what is hidden only what the settings let it see.
func TestRunConfined(t *testing.T) {
	t.Parallel()
	c := config(t)
	c.Write, c.DenyRead = []string{filepath.Join(c.UserHome, "more")}, []string{filepath.Join(c.Workdir, "private")}
	c.Extra, c.AllowRead = []string{c.UserHome}, []string{filepath.Join(c.DenyRead[0], "plain")}
	for _, dir := range []string{c.Write[0], c.DenyRead[0], filepath.Join(c.UserHome, ".ssh")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{filepath.Join(c.UserHome, ".ssh", "id"), filepath.Join(c.Home, "key"), filepath.Join(c.DenyRead[0], "key"), c.AllowRead[0]} {
		if err := os.WriteFile(path, []byte("SEEN "+filepath.Base(path)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x := boxes.New(c)
	if f := x.Findings(t.Context()); len(f) != 1 || f[0].Code != "sandbox.full" {
		prooftest.Lacking(t, "sandbox", f)
	}
	run := func(argv ...string) (query.ConfinedRun, string, error) {
		t.Helper()
		var out, failed bytes.Buffer
		q := query.RunConfined{Argv: argv, Out: &out, Err: &failed}
		for _, a := range x.Answers() {
			if reflect.TypeOf(a.Query) == reflect.TypeOf(q) {
				got, err := a.Do(context.WithoutCancel(t.Context()), q)
				return got.(query.ConfinedRun), out.String() + failed.String(), err
			}
		}
		t.Fatal("nobody answers it")
		return query.ConfinedRun{}, "", nil
	}
	const script = `cat "$1/.ssh/id" "$1/.dure/key" private/key private/plain
echo x > made; echo x > "$1/more/made"; echo x > "$1/../made"
exit 3`
	got, out, err := run("sh", "-c", script, "sh", c.UserHome)
	if err != nil || got.Code != 3 || strings.Contains(out, "SEEN id") || strings.Contains(out, "SEEN key") || !strings.Contains(out, "SEEN plain") {
		t.Errorf("%+v, %v: %s", got, err, out)
	}
	for path, want := range map[string]bool{filepath.Join(c.Workdir, "made"): true, filepath.Join(c.Write[0], "made"): true, filepath.Join(filepath.Dir(c.UserHome), "made"): false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, argv := range [][]string{nil, {"no-such-program-anywhere"}} {
		if _, _, err := run(argv...); agent.ProblemOf(err) == nil || agent.ProblemOf(err).Code != agent.ProblemUsage {
			t.Errorf("%q: %v", argv, err)
		}
	}
}
