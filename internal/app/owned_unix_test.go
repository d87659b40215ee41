//go:build unix

package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// What is kept of all users of a server is not for a session of one of them, whatever rules
// say and whoever says yes: by its path, around corners, behind a link, by a name in the
// prompt, and for agents. What lies beside it is, and so is all for whoever runs the server.
func TestOwnedSessionsReadNoOthers(t *testing.T) {
	t.Parallel()
	const canary = "Canary of ann sings."
	var reads []script.Call
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		switch {
		case strings.Contains(r.Last, "Sing"):
			return script.Reply{Text: canary, Stop: agent.StopEnd}
		case strings.Contains(r.Last, "Read all."):
			return calls(reads...)
		case strings.Contains(r.Last, "Have it read."):
			return calls(tool("Agent", fields{"description": "reads", "prompt": "Read all."}))
		}
		return script.Reply{Text: "Done.", Stop: agent.StopEnd}
	}})
	how := options(w.work, w.home, w.model.URL(), app.Flags{Allow: []string{"Read", "Grep", "Glob", "Read(//**)", "Edit(//**)", "Agent"}})
	how.Environ = append(how.Environ, "DURE_HOME="+filepath.Join(w.work, "state")) // in the workspace: nothing asks
	a := w.program(how)
	ann := w.talkTo(a, agent.Open{})
	ann.turn("Sing.")
	if err := ann.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(a.Config().Data, "sessions", "*", ann.Info.ID, "*"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%q %v", logs, err)
	}
	dir, log := filepath.Dir(logs[0]), ""
	for _, path := range logs {
		if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), canary) {
			log = path
		}
	}
	tree, users := filepath.Join(a.Config().Data, "worktrees", "own", "f.txt"), filepath.Join(w.work, "state", "serve-users.json")
	link, around := filepath.Join(w.work, "link"), w.work+"/../"+strings.TrimPrefix(log, filepath.Dir(w.work)+"/")
	for _, err := range []error{os.MkdirAll(filepath.Dir(tree), 0o700), os.WriteFile(tree, []byte("of the tree\n"), 0o600), os.WriteFile(users, []byte("Canary of ann sings.\n"), 0o600), os.Symlink(a.Config().Data, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	linked := filepath.Join(link, strings.TrimPrefix(log, a.Config().Data))
	reads = []script.Call{
		tool("Read", fields{"file_path": log}), tool("Read", fields{"file_path": around}), tool("Read", fields{"file_path": linked}),
		tool("Grep", fields{"pattern": "Canary", "path": dir, "output_mode": "content"}),
		tool("Grep", fields{"pattern": "Canary", "path": a.Config().Data, "output_mode": "content"}),
		tool("Read", fields{"file_path": users}), tool("Write", fields{"file_path": filepath.Join(dir, "new.txt"), "content": "x"}),
		tool("Read", fields{"file_path": tree}),
	}
	bob := w.talkTo(a, agent.Open{Owned: true})
	bob.send(agent.Change{Tags: &[]string{"user:bob"}})
	check := func(who string, o agent.Open, owned bool) {
		t.Helper()
		for _, text := range []string{"Read all.", "Have it read.", "See @" + log + "\nand @" + linked} {
			k := w.talkTo(a, o)
			before := len(w.model.Requests())
			if end := k.answer(text, func(agent.ApprovalAsked) agent.Resolve { return yes() }); end.Reason != agent.EndDone {
				t.Fatalf("%s, %q: it ended %s\n%s", who, text, end.Reason, names(k.seen))
			}
			if err := k.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			said := ""
			for _, r := range w.model.Requests()[before:] {
				said += string(r.Body)
			}
			if strings.Contains(said, canary) == owned {
				t.Errorf("%s, %q: another session was read: %v\n%s", who, text, !owned, said)
			}
			if !strings.HasPrefix(text, "See") && !strings.Contains(said, "of the tree") {
				t.Errorf("%s, %q: a work tree was not read\n%s", who, text, said)
			}
		}
		if !owned {
			return
		}
		if _, err := os.Stat(filepath.Join(dir, "new.txt")); err == nil {
			t.Errorf("%s: the log's folder was written to", who)
		}
	}
	if err := bob.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("whom the server says", agent.Open{Owned: true, Approver: true}, true)
	check("whom the tag names", agent.Open{Session: bob.Info.ID, Approver: true}, true)
	check("whoever runs the server", agent.Open{Approver: true}, false)
}
