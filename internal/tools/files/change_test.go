package files

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/safety/workspace"
)

func TestWrite(t *testing.T) {
	d := newDesk(t)
	d.want("write", in{"file_path": "a/b.txt", "content": "one\ntwo\n"}, "Created a/b.txt (2 lines).")
	d.want("write", in{"file_path": "a/b.txt", "content": "one\nTWO\n"}, "Wrote a/b.txt: +1 -1 lines.\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO")
	d.want("write", in{"file_path": "a/b.txt", "content": "one\nTWO\n"}, "a/b.txt has this content already; nothing was written.")
	d.want("write", in{"file_path": "a/b.txt", "content": ""}, "Wrote a/b.txt: +0 -2 lines.\n@@ -1,2 +0,0 @@\n-one\n-TWO")

	d.put("theirs", "x\n")
	over := in{"file_path": "theirs", "content": "y\n"}
	d.want("write", over, "E_FILE_NOT_READ: WS/theirs exists and has not been read in this session\nRead it first, then repeat the call.")
	d.do("read", in{"file_path": "theirs"})
	d.put("theirs", "changed\n")
	d.want("write", over, "E_FILE_CHANGED: WS/theirs has changed since it was read: someone else, or a command, wrote to it\nRead it again, then repeat the change on what it contains now.")
	if d.get("theirs") != "changed\n" {
		t.Error("overwritten")
	}
	d.do("read", in{"file_path": "theirs", "limit": 1})
	d.want("write", over, "Wrote theirs: +1 -1 lines.\n@@ -1,1 +1,1 @@\n-changed\n+y")

	d.put("empty", "")
	d.want("write", in{"file_path": "empty", "content": "x"}, "Wrote empty: +1 -0 lines.\n@@ -0,0 +1,1 @@\n+x\n\\ No newline at end of file")
	d.put("binary", "\x00")
	d.want("write", in{"file_path": "binary", "content": "x"}, "E_FILE_BINARY: WS/binary exists and is not a text file\nWrite to another path, or remove it with a command first.")
	d.want("write", in{"file_path": "a", "content": "x"}, "E_FILE_TYPE: WS/a is a folder\nList it with the list tool, or name a file in it.")
	d.want("write", in{"file_path": "theirs/x", "content": "x"}, "E_TOOL: writing WS/theirs/x: a file stands where a folder is needed")
	d.put("fixed", "x")
	d.check(os.Chmod(filepath.Join(d.ws, "fixed"), 0o444))
	d.do("read", in{"file_path": "fixed"})
	d.want("write", in{"file_path": "fixed", "content": "y"}, "E_FILE_READ_ONLY: WS/fixed is read-only\nAsk the user before you change its mode.")
}

// A file that is too large to be compared is known by its size and time.
func TestWriteOverLargeFile(t *testing.T) {
	d := newDesk(t)
	large := strings.Repeat("0123456789abcde\n", 12<<20/16)
	d.put("large", large)
	over := in{"file_path": "large", "content": "small\n"}
	if got := d.text("write", over); !strings.HasPrefix(got, "E_FILE_NOT_READ") {
		t.Error(got)
	}
	d.do("read", in{"file_path": "large"})
	d.put("large", large+"more")
	if got := d.text("write", over); !strings.HasPrefix(got, "E_FILE_CHANGED") {
		t.Error(got)
	}
	d.do("read", in{"file_path": "large"})
	d.want("write", over, "Wrote large.")
	d.want("write", in{"file_path": "new", "content": strings.Repeat("x", workspace.MaxText+1)}, "E_TOOL_INPUT: content is larger than 10 MiB\nMake the file with a command.")
}

func TestWriteOutput(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct{ content, want string }{
		{"one\ntwo\n", `{"type":"create","filePath":"WS/f","originalFile":null,"structuredPatch":[{"oldStart":0,"oldLines":0,"newStart":1,"newLines":2,"lines":["+one","+two"]}]}`},
		{"one\n2\n", `{"type":"update","filePath":"WS/f","originalFile":"one\ntwo\n","structuredPatch":[{"oldStart":1,"oldLines":2,"newStart":1,"newLines":2,"lines":[" one","-two","+2"]}]}`},
	} {
		r := d.do("write", in{"file_path": "f", "content": c.content})
		if got := strings.ReplaceAll(string(r.Output), d.ws, "WS"); got != c.want {
			t.Errorf("%s", got)
		}
		if len(r.Files) != 1 || !r.Files[0].Wrote || r.Files[0].SHA256 != workspace.Sum([]byte(c.content)) {
			t.Errorf("%+v", r.Files)
		}
	}
	r := d.do("edit", in{"file_path": "f", "old_string": "2", "new_string": "two"})
	want := `{"filePath":"WS/f","originalFile":"one\n2\n","structuredPatch":[{"oldStart":1,"oldLines":2,"newStart":1,"newLines":2,"lines":[" one","-2","+two"]}],"oldString":"2","newString":"two","replaceAll":false,"userModified":false}`
	if got := strings.ReplaceAll(string(r.Output), d.ws, "WS"); got != want {
		t.Errorf("%s", got)
	}
}

// Files keep their encoding and line ends, whatever the model sends.
func TestChangesKeepTheForm(t *testing.T) {
	for _, c := range []struct{ name, before, edited, written string }{
		{"CRLF", "a\r\nb\r\n", "a\r\nx\r\ny\r\n", "n\r\nm\r\n"},
		{"mark", "\xef\xbb\xbfa\nb\n", "\xef\xbb\xbfa\nx\ny\n", "\xef\xbb\xbfn\nm\n"},
		{"UTF-16", "\xff\xfea\x00\n\x00b\x00", "\xff\xfea\x00\n\x00x\x00\n\x00y\x00", "\xff\xfen\x00\n\x00m\x00\n\x00"},
		{"Korean", "\xbe\xc8\xb3\xe7\nb\n", "\xbe\xc8\xb3\xe7\nx\ny\n", "n\nm\n"},
		{"damaged", "두레\xff\nb\n", "두레\xff\nx\ny\n", "n\nm\n"},
		{"no final line end", "a\nb", "a\nx\ny", "n\nm\n"},
	} {
		d := newDesk(t)
		d.put("f", c.before)
		d.do("read", in{"file_path": "f"})
		if r := d.do("edit", in{"file_path": "f", "old_string": "b", "new_string": "x\ny"}); r.Failed() || d.get("f") != c.edited {
			t.Errorf("%s: edited to %q, %v", c.name, d.get("f"), r.Error)
		}
		if r := d.do("write", in{"file_path": "f", "content": "n\nm\n"}); r.Failed() || d.get("f") != c.written {
			t.Errorf("%s: written as %q, %v", c.name, d.get("f"), r.Error)
		}
	}
	d := newDesk(t)
	d.put("f", "caf\xe9\n")
	d.do("read", in{"file_path": "f"})
	d.want("edit", in{"file_path": "f", "old_string": "café", "new_string": "두레"},
		"E_FILE_ENCODING: WS/f cannot take this text: the file is stored as windows-1252, which has no '두'\nLeave such characters out, or convert the file to UTF-8 first with a command.")
	if d.get("f") != "caf\xe9\n" {
		t.Error("changed")
	}
}

// A session that is resumed knows the files that its log says it has seen.
func TestTrackingIsRestored(t *testing.T) {
	d := newDesk(t)
	d.put("f", "x\n")
	past := d.do("read", in{"file_path": "f"}).Files
	past = append(past, d.do("edit", in{"file_path": "f", "old_string": "x", "new_string": "y"}).Files...)
	d.files.Tracker = d.files.Workspace.NewTracker(past)
	d.open()
	d.want("edit", in{"file_path": "f", "old_string": "y", "new_string": "z"}, "Edited f: +1 -1 lines.\n@@ -1,1 +1,1 @@\n-y\n+z")
	d.files.Tracker = nil
	d.open()
	if got := d.text("edit", in{"file_path": "f", "old_string": "z", "new_string": "q"}); !strings.HasPrefix(got, "E_FILE_NOT_READ") {
		t.Error(got)
	}
}

// After a crash a call's mark and the file tell whether the call took effect.
func TestProbe(t *testing.T) {
	write := in{"file_path": "f", "content": "new\n"}
	edit := in{"file_path": "f", "old_string": "old", "new_string": "old and new"}
	none := func(*desk, agent.Tool, agent.Call) {}
	ran := func(d *desk, t agent.Tool, c agent.Call) {
		if r, err := t.Run(d.Context(), d.context(), c); err != nil || r.Failed() {
			d.Error(r.Error, err)
		}
	}
	theirs := func(d *desk, _ agent.Tool, _ agent.Call) { d.put("f", "theirs\n") }
	removed := func(d *desk, _ agent.Tool, _ agent.Call) { d.check(os.RemoveAll(filepath.Join(d.ws, "f"))) }
	for _, c := range []struct {
		name, before, tool string
		input              in
		happened           func(*desk, agent.Tool, agent.Call)
		want               agent.Probe
	}{
		{"create, killed before", "", "write", write, none, agent.ProbeNotDone},
		{"create, killed after", "", "write", write, ran, agent.ProbeDone},
		{"create, someone else did", "", "write", write, theirs, agent.ProbeUnknown},
		{"overwrite, killed before", "old\n", "write", write, none, agent.ProbeNotDone},
		{"overwrite, killed after", "old\n", "write", write, ran, agent.ProbeDone},
		{"overwrite, file gone", "old\n", "write", write, removed, agent.ProbeUnknown},
		{"edit, killed before", "old\n", "edit", edit, none, agent.ProbeNotDone},
		{"edit, killed after", "old\n", "edit", edit, ran, agent.ProbeDone},
		{"edit, someone else changed it", "old\n", "edit", edit, theirs, agent.ProbeUnknown},
		{"edit that was going to fail", "other\n", "edit", edit, none, agent.ProbeNotDone},
		{"edit that was going to fail, then changed", "other\n", "edit", edit, theirs, agent.ProbeUnknown},
		{"edits, killed after", "old\n", "multi-edit", in{"file_path": "f", "edits": []in{{"old_string": "old", "new_string": "1"}, {"old_string": "1", "new_string": "2"}}}, ran, agent.ProbeDone},
	} {
		d := newDesk(t)
		if c.before != "" {
			d.put("f", c.before)
			d.do("read", in{"file_path": "f"})
		}
		tool, call := d.tools[c.tool].(agent.Checker), d.newCall(c.input)
		mark, err := tool.Mark(t.Context(), d.context(), call)
		d.check(err)
		c.happened(d, d.tools[c.tool], call)
		d.open() // another process
		got, r, err := d.tools[c.tool].(agent.Checker).Probe(t.Context(), d.context(), call, mark)
		if err != nil || got != c.want || (got == agent.ProbeDone) != (len(r.Files) == 1 && r.Status == agent.StatusOK) {
			t.Errorf("%s: %s, %+v, %v; mark %s", c.name, got, r, err, mark)
		}
	}
	d := newDesk(t)
	if got, _, err := d.tools["write"].(agent.Checker).Probe(t.Context(), d.context(), agent.Call{}, json.RawMessage(`"?"`)); got != agent.ProbeUnknown || err == nil {
		t.Error(got, err)
	}
}

func TestMultiEditIsAllOrNothing(t *testing.T) {
	d := newDesk(t)
	d.put("f", "a\nb\nc\n")
	d.do("read", in{"file_path": "f"})
	d.want("multi-edit", in{"file_path": "f", "edits": []in{{"old_string": "a", "new_string": "x"}, {"old_string": "no", "new_string": "y"}}},
		"E_EDIT_NO_MATCH: edit 2 of 2: old_string does not occur in the file, and nothing like it\nRead the file, or look for the text with the grep tool. None of the edits was made.")
	if d.get("f") != "a\nb\nc\n" {
		t.Error("half edited")
	}
	d.want("multi-edit", in{"file_path": "f", "edits": []in{{"old_string": "a", "new_string": "b"}, {"old_string": "b", "new_string": "d", "replace_all": true}}},
		"Edited f in 3 places: +2 -2 lines.\n@@ -1,3 +1,3 @@\n-a\n-b\n+d\n+d\n c")
	d.want("multi-edit", in{"file_path": "new", "edits": []in{{"old_string": "", "new_string": "1\n"}, {"old_string": "1", "new_string": "2"}}}, "Created new (1 line).")
}

func TestPatchBounds(t *testing.T) {
	before := strings.Repeat("x\n", 10) + count(1, 3000) + strings.Repeat("y\n", 10)
	after := strings.ReplaceAll(before, "line", "LINE")
	p := diffOf(before, after)
	if p.added != 3000 || p.removed != 3000 {
		t.Errorf("+%d -%d", p.added, p.removed)
	}
	if len(p.bounded()) != 0 {
		t.Error("a patch of 6000 lines is given whole")
	}
	text := p.text(40, 2500)
	if n := strings.Count(text, "\n"); n != 41 || !strings.HasSuffix(text, "[5966 more lines of the diff]") {
		t.Errorf("%d lines: %s", n, text)
	}
	p = diffOf("a\n"+before, "b\n"+before+"z")
	if len(p.hunks) != 2 || p.hunks[1].OldStart != 3019 || p.hunks[1].NewStart != 3019 {
		t.Errorf("%+v", p.hunks)
	}
}
