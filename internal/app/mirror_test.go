//go:build unix

package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

const mirroredID = "6f1c2a52-0a6e-4c39-9c57-0d7d3f5d3a11"

// mirrors are the files in which programs for agent sessions look for conversations, by
// their paths below the folder of all.
func (w *world) mirrors() map[string]string {
	w.t.Helper()
	files := map[string]string{}
	root := filepath.Join(w.home, ".claude", "projects")
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		files[name] = string(data)
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return files
}

// hosted is a program that a host drives.
func (w *world) hosted(f app.Flags) app.Options {
	f.Hosted, f.Trust = true, true
	return w.inProcesses(f)
}

// leave closes the session: what is mirrored of it is whole then.
func (k *talk) leave() {
	k.t.Helper()
	if err := k.Close(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
}

// What a host drives is written where its packages look, unasked: the session, and each of its
// agents beside it, whether it works in this process, in one of its own or in a work tree.
// The secrets that tools find are not, as in the log.
func TestMirrorOfAHost(t *testing.T) {
	t.Parallel()
	const secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	kinds := map[string]string{"a1": "", "a2": "process", "a3": "worktree"}
	var list []script.Call
	for _, id := range []string{"a1", "a2", "a3"} {
		in := fields{"prompt": "Write it to " + id, "description": "write " + id}
		if kinds[id] != "" {
			in["isolation"] = kinds[id]
		}
		list = append(list, hand(id, in))
	}
	w := newWorld(t, script.Script{}, handing(func(r script.Request) script.Reply {
		return doing("Bash", fields{"command": "cat key.txt"})(r)
	}, list...))
	w.write("key.txt", "token = "+secret+"\n")
	w.repository()
	k := w.talkWith(w.hosted(app.Flags{Mode: "bypassPermissions", Skip: true}), agent.Open{New: mirroredID})
	if end := k.turn(whole); end.Reason != agent.EndDone {
		t.Fatal(end, names(k.seen))
	}
	k.leave()
	files := w.mirrors()
	main, folder := "", ""
	for name := range files {
		if filepath.Base(name) == mirroredID+".jsonl" {
			main, folder = files[name], filepath.Dir(name)
		}
	}
	if !strings.Contains(main, `"type":"assistant"`) || !strings.Contains(main, "All done.") || !strings.Contains(main, `"gitBranch":"main"`) {
		t.Errorf("the session: %s", main)
	}
	opened := all[agent.ChildOpened](k.seen)
	if len(opened) != len(kinds) {
		t.Fatal(names(k.seen))
	}
	for _, c := range opened {
		beside := filepath.Join(folder, mirroredID, "subagents", "agent-"+c.Child)
		var meta struct{ Description string }
		_ = json.Unmarshal([]byte(files[beside+".meta.json"]), &meta) // what it has not is told of below
		said := files[beside+".jsonl"]
		if !strings.Contains(said, "It said:") || !strings.Contains(said, `"isSidechain":true`) || !strings.HasPrefix(meta.Description, "write a") {
			t.Errorf("%s: %q, %s", c.Title, meta.Description, said)
		}
	}
	for name, text := range files {
		if strings.Contains(text, secret) || strings.HasSuffix(name, ".jsonl") && filepath.Dir(name) != folder && !strings.Contains(text, "[redacted:") {
			t.Errorf("%s: the secret is not masked", name)
		}
	}
	k.sound()
}

// Nothing is written of what no host drives, of what is not to be kept, or where the settings
// say so.
func TestNotMirrored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags  app.Flags
		chosen string
	}{
		"a person":     {app.Flags{}, ""},
		"kept nowhere": {app.Flags{Hosted: true, Scratch: true}, ""},
		"switched off": {app.Flags{Hosted: true}, "off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, distinct(script.Reply{Text: "Done."}), script.Options{})
			if c.chosen != "" {
				w.chooses(fields{"transcripts": fields{"mirror": c.chosen}})
			}
			k := w.talk(c.flags, agent.Open{New: mirroredID})
			k.turn("Go")
			k.leave()
			if files := w.mirrors(); len(files) > 0 {
				t.Errorf("%v", files)
			}
		})
	}
}

// A mirror that cannot be written costs the session nothing, and is whole once it can.
func TestMirrorThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(script.Reply{Text: "One."}, script.Reply{Text: "Two."}), script.Options{})
	block := filepath.Join(w.home, ".claude")
	if err := os.WriteFile(block, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k := w.talkWith(w.hosted(app.Flags{}), agent.Open{New: mirroredID})
	if end := k.turn("First"); end.Reason != agent.EndDone {
		t.Fatal(end)
	}
	k.leave()
	if err := os.Remove(block); err != nil {
		t.Fatal(err)
	}
	k = w.talkWith(w.hosted(app.Flags{}), agent.Open{Session: mirroredID})
	if end := k.turn("Second"); end.Reason != agent.EndDone {
		t.Fatal(end)
	}
	k.leave()
	for name, text := range w.mirrors() {
		if strings.Count(text, "\n") < 4 || !strings.Contains(text, "First") || !strings.Contains(text, "One.") || !strings.Contains(text, "Two.") {
			t.Errorf("%s: %s", name, text)
		}
	}
	k.sound()
}

// With a session its mirror is deleted, and none of ours is taken for one of another product.
func TestMirrorGoesWithItsSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(script.Reply{Text: "Done."}), script.Options{})
	k := w.talkWith(w.hosted(app.Flags{}), agent.Open{New: mirroredID})
	k.turn("Go")
	k.leave()
	if len(w.mirrors()) != 1 {
		t.Fatal(w.mirrors())
	}
	a := w.program(w.hosted(app.Flags{}))
	found, err := client.Query[query.ImportReport](t.Context(), a.Client(), query.ImportSessions{From: "claude", Dry: true, All: true})
	if err != nil {
		t.Fatal(err)
	}
	if list := found.Found; len(list) != 1 || list[0].State != "exists" || list[0].Session != mirroredID {
		t.Errorf("%+v", list)
	}
	if _, err := client.Query[query.RemovedSession](t.Context(), a.Client(), query.RemoveSession{Session: mirroredID}); err != nil {
		t.Fatal(err)
	}
	if files := w.mirrors(); len(files) > 0 {
		t.Errorf("%v", files)
	}
}

// A tag that others have written takes the place of the one that they know, and of no other:
// none by which this program knows something goes, or comes.
func TestMirrorTakesOneTagOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(script.Reply{Text: "0"}, script.Reply{Text: "1"}, script.Reply{Text: "2"}, script.Reply{Text: "3"}, script.Reply{Text: "4"}, script.Reply{Text: "5"}), script.Options{})
	k := w.talkWith(w.hosted(app.Flags{}), agent.Open{New: mirroredID})
	k.turn("Go")
	tags := []string{"user:ann", "color-red", "old", "more"}
	if err := k.Send(t.Context(), agent.Change{Tags: &tags}); err != nil {
		t.Fatal(err)
	}
	k.leave()
	for _, step := range []struct{ said, want string }{
		{"", "user:ann color-red old more"}, // nothing
		{"mine", "user:ann color-red mine more"},
		{"user:bob", "user:ann color-red mine more"},
		{"color-blue", "user:ann color-red mine more"},
		{"more", "user:ann color-red more"},
	} {
		if step.said != "" {
			for name, text := range w.mirrors() {
				text += `{"type":"tag","tag":"` + step.said + `","sessionId":"` + mirroredID + `"}` + "\n"
				if err := os.WriteFile(filepath.Join(w.home, ".claude", "projects", name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		k = w.talkWith(w.hosted(app.Flags{}), agent.Open{Session: mirroredID})
		k.turn("Go on") // it begins when the file was read
		k.leave()
		a := w.program(w.hosted(app.Flags{}))
		info, err := client.Query[agent.SessionInfo](t.Context(), a.Client(), agent.FindSession{Name: mirroredID})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(info.Tags, " "); got != step.want {
			t.Errorf("behind %q: %s, want %s", step.said, got, step.want)
		}
	}
}
