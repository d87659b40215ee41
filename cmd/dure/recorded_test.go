package main

import (
	"bytes"
	"cmp"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// TestRecorded reads sessions that another build of the program recorded: this build shows,
// verifies, replays and exports each of them as that one does, and continues each one that
// it continues. See ".ci/long recorded", which records them.
func TestRecorded(t *testing.T) {
	t.Parallel()
	recorder := os.Getenv("DURE_RECORDER")
	if recorder == "" {
		prooftest.Lacking(t, "recorder", "DURE_RECORDER names no program of another commit; .ci/long recorded builds one")
	}
	recorded := os.Getenv("DURE_RECORDED")
	current, err := exec.LookPath("dure")
	if err != nil {
		t.Fatal(err)
	}
	logs, continued := 0, new(atomic.Int64)
	t.Cleanup(func() {
		if t.Logf("%d sessions, of which %d were continued", logs, continued.Load()); !t.Failed() && 2*continued.Load() < int64(logs) {
			t.Error("most sessions can be continued")
		}
	})
	err = filepath.WalkDir(recorded, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "sessions" {
			return err
		}
		if found, _ := filepath.Glob(filepath.Join(path, "*", "*", "log.000001.jsonl")); len(found) > 0 { // the pattern is valid
			logs += len(found)
			t.Run(path, func(t *testing.T) {
				t.Parallel()
				for _, log := range found {
					old, now := editionOf(t, recorder, path), editionOf(t, current, path)
					if old.compare(t, now, filepath.Base(filepath.Dir(log))) {
						continued.Add(1)
					}
				}
			})
		}
		return fs.SkipDir
	})
	if err != nil || logs == 0 {
		t.Fatalf("%d sessions below %s: %v", logs, recorded, err)
	}
}

// edition is a build of the program, with a home of recorded sessions.
type edition struct {
	program, home string
	model         *script.Server
}

func editionOf(t *testing.T, program, sessions string) edition {
	t.Helper()
	m, err := script.NewServer(script.Script{Replies: []script.Reply{{Text: "I go on."}}}, script.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return edition{program: program, home: filepath.Dir(sessions), model: m}
}

// compare runs both builds on a session, and reports whether it could be continued, which is
// done to copies.
func (e edition) compare(t *testing.T, now edition, session string) (continued bool) {
	t.Helper()
	for _, args := range [][]string{{"show", session, "--json"}, {"verify", session, "--json"}, {"replay", "--verify", session, "--json"}, {"export", session}} {
		want, code := e.run(args...)
		if got, c := now.run(args...); got != want || c != code {
			t.Errorf("dure %s exits %d, before %d:\n%s\nbefore:\n%s", strings.Join(args, " "), c, code, got, want)
		}
	}
	for _, b := range []*edition{&e, &now} {
		home := filepath.Join(t.TempDir(), "home")
		if err := os.CopyFS(home, os.DirFS(b.home)); err != nil {
			t.Fatal(err)
		}
		b.home = home
	}
	goOn := []string{"-p", "--resume", session, "go on"}
	want, code := e.run(goOn...)
	got, c := now.run(goOn...)
	continued = strings.Contains(got, "I go on.")
	if c != code || continued != strings.Contains(want, "I go on.") {
		t.Errorf("going on with %s exits %d, before %d:\n%s\nbefore:\n%s", session, c, code, got, want)
	}
	if out, c := now.run("verify", session); code == 0 && c != 0 {
		t.Errorf("%s, gone on with, is damaged: exit code %d\n%s", session, c, out)
	}
	return continued
}

// run returns what a command prints, and its exit code.
func (e edition) run(args ...string) (string, int) {
	cmd := exec.Command(e.program, args...)
	cmd.Dir = filepath.Dir(e.home)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "DURE_HOME=" + e.home, "LANG=C.UTF-8",
		"ANTHROPIC_BASE_URL=" + e.model.URL(), "ANTHROPIC_API_KEY=scripted", "DURE_MODEL=script",
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return err.Error(), -1
	}
	return out.String(), cmp.Or(cmd.ProcessState.ExitCode(), 0)
}
