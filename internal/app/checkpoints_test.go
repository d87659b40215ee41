//go:build unix

package app_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/safety/sandbox"
)

// looks is what a folder holds, a line an entry, but for .git and what stands there
// while commands are confined.
func looks(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		var info os.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil // what the confinement of the last command has held there is just being removed
		}
		if err != nil || d.Name() == ".git" {
			return err
		}
		if sandbox.IsHold(info.Mode()) {
			return nil
		}
		rel, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&b, "%s %s", info.Mode(), rel)
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", data)
		case info.Mode()&os.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			b.WriteString(" -> " + to)
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What calls have done to files is put back: edits, commands, deletions of what git
// has never seen. What the user has changed since stays.
func TestRewindFiles(t *testing.T) {
	t.Parallel()
	steps := says(
		calls(tool("Write", fields{"file_path": "a.txt", "content": "one\n"})),
		calls(tool("Bash", fields{"command": "echo two >> a.txt && mkdir -p d && mv old.txt d/new.txt && rm gone.bin && ln -s a.txt link && chmod 755 run.sh"})),
		script.Reply{Text: "Done."},
		calls(tool("Bash", fields{"command": "rm -r d; echo three > c.txt; ls"})),
	)
	for i := range steps.Replies {
		for j := range steps.Replies[i].Calls {
			steps.Replies[i].Calls[j].ID = fmt.Sprintf("c%d_%d", i, j)
		}
	}
	w := newWorld(t, steps, script.Options{})
	w.write("old.txt", "old\n")
	w.write("gone.bin", "\x00\x01")
	w.write("run.sh", "echo\n")
	w.write("mine.txt", "mine\n")
	k := w.talk(app.Flags{Skip: true}, agent.Open{})
	before := looks(t, w.work)
	start := k.Info.Head
	if end := k.turn("Change it."); end.Reason != agent.EndDone {
		t.Fatalf("the turn ended: %+v", end)
	}
	middle, between := looks(t, w.work), last(k)
	k.turn("And on.")
	end := looks(t, w.work)
	if before == middle || middle == end {
		t.Fatalf("nothing was changed:\n%s", end)
	}
	taken := all[agent.CheckpointTaken](k.seen)
	if len(taken) < 3 {
		t.Errorf("the log has the checkpoints %+v", taken)
	}

	rewind := func(to int64, r agent.Rewind) agent.FilesRewound {
		r.To, r.Files = to, true
		k.send(r)
		return body[agent.FilesRewound](k)
	}
	rewind(between, agent.Rewind{})
	if got := looks(t, w.work); got != middle {
		t.Errorf("after one turn the workspace has\n%s\nwant\n%s", got, middle)
	}
	rewind(start, agent.Rewind{})
	if got := looks(t, w.work); got != before {
		t.Errorf("at the start the workspace has\n%s\nwant\n%s", got, before)
	}
	rewind(between, agent.Rewind{})
	w.write("a.txt", "the user's own\n")
	if done := rewind(start, agent.Rewind{}); done.Leaves != 1 || w.read("a.txt") != "the user's own\n" {
		t.Errorf("the user's change: %+v, %q", done, w.read("a.txt"))
	}
	if done := rewind(start, agent.Rewind{Force: []string{"a.txt"}}); done.Leaves != 0 {
		t.Errorf("by force: %+v", done)
	}
	if got := looks(t, w.work); got != before {
		t.Errorf("by force the workspace has\n%s\nwant\n%s", got, before)
	}
	k.sound()
}

// A fork keeps what it does to files by itself, and goes back no further than to its
// beginning.
func TestRewindFilesOfAFork(t *testing.T) {
	t.Parallel()
	write := func(id, text string) script.Reply {
		return script.Reply{Calls: []script.Call{{ID: id, Tool: "Write", Input: input(fields{"file_path": id + ".txt", "content": text})}}}
	}
	w := newWorld(t, says(write("a", "one\n"), script.Reply{Text: "Done."}, write("b", "two\n")), script.Options{})
	k := w.talk(app.Flags{Skip: true}, agent.Open{})
	start := k.Info.Head
	k.turn("Write a.")
	id := k.Info.ID
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := w.talk(app.Flags{Skip: true}, agent.Open{Fork: id})
	f.turn("Write b.")
	f.send(agent.Rewind{To: start, Files: true})
	if done := body[agent.FilesRewound](f); done.Files != 1 || w.read("a.txt") != "one\n" || w.read("b.txt") != "" {
		t.Errorf("%+v, a.txt has %q, b.txt %q", done, w.read("a.txt"), w.read("b.txt"))
	}
	f.sound()
}

// The task list goes back with the conversation.
func TestRewindTasks(t *testing.T) {
	t.Parallel()
	list := func(id, what string) script.Reply {
		return script.Reply{Calls: []script.Call{{ID: id, Tool: "TodoWrite", Input: input(fields{"todos": []fields{{"content": what, "status": "pending"}}})}}}
	}
	w := newWorld(t, says(list("t1", "first"), script.Reply{Text: "Done."}, list("t2", "second")), script.Options{})
	k := w.talk(app.Flags{Skip: true}, agent.Open{})
	k.turn("One.")
	to := last(k)
	k.turn("Two.")
	k.send(agent.Rewind{To: to, Conversation: true})
	body[agent.ConversationRewound](k)
	k.turn("Three.") // the scripted model has as many answers behind it as after the first turn
	results := all[agent.CallFinished](k.seen)
	if old := string(results[len(results)-1].Result.Output); len(results) != 3 || !strings.Contains(old, `"oldTodos":[{"content":"first"`) {
		t.Errorf("%d results, the last one %s", len(results), old)
	}
}

// last is the number of the newest event that was seen.
func last(k *talk) (seq int64) {
	for _, e := range k.seen {
		seq = max(seq, e.Seq)
	}
	return seq
}

// Calls that change nothing cost nothing, and without checkpoints nothing is kept.
func TestNoCheckpoints(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]string{"only read": `{}`, "switched off": `{"checkpoints":false}`} {
		t.Run(name, func(t *testing.T) {
			command := "cat x.txt | wc -l; ls -la"
			if name == "switched off" {
				command = "rm x.txt"
			}
			w := newWorld(t, says(calls(tool("Bash", fields{"command": command})), calls(tool("Read", fields{"file_path": "x.txt"}))), script.Options{})
			w.write("x.txt", "x\n")
			k := w.talk(app.Flags{Skip: true, Settings: settings}, agent.Open{})
			k.turn("Look.")
			if taken := all[agent.CheckpointTaken](k.seen); len(taken) != 0 {
				t.Errorf("the log has %+v", taken)
			}
			if _, err := os.Stat(filepath.Join(w.home, "dure", "checkpoints")); err == nil {
				t.Error("a store was made")
			}
			err := k.Send(t.Context(), agent.Rewind{To: 1, Files: true})
			if (err != nil) != (name == "switched off") {
				t.Errorf("rewinding: %v", err)
			}
		})
	}
}
