package foreign_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"dure/agent"
	"dure/internal/state/archive/foreign"
	"dure/internal/state/transcript"
)

// canonical stands for the catalog.
func canonical(name string) string {
	return map[string]string{"Bash": "bash__exec", "Read": "file-system__read", "shell": "bash__exec", "local_shell": "bash__exec", "read": "file-system__read", "apply_patch": "file-system__patch"}[name]
}

// tell is a session as a text.
func tell(s foreign.Session) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s | %s | %s | %s | %s", s.ID, s.Title, s.Workdir, s.Model, s.Created.Format(time.RFC3339))
	for _, e := range s.Entries {
		fmt.Fprintf(&b, "\n%s:", e.Message.Role)
		for _, x := range e.Message.Blocks {
			switch x.Type {
			case agent.TextBlock:
				fmt.Fprintf(&b, " %q", x.Text)
			case agent.ThinkingBlock:
				fmt.Fprintf(&b, " thinking %q %s", x.Text, x.Signature)
			case agent.CallBlock:
				fmt.Fprintf(&b, " call %s %s %s", x.Call.ID, x.Call.Tool, x.Call.Input)
			case agent.ResultBlock:
				fmt.Fprintf(&b, " %s %s %q", x.Result.Status, x.Result.ID, x.Result.Text)
				for _, m := range x.Result.Blocks {
					fmt.Fprintf(&b, " %s", m.Type)
				}
			default:
				fmt.Fprintf(&b, " %s %s", x.Type, x.Media.Type)
			}
		}
		if e.Usage != (agent.Usage{}) || e.Model != "" {
			fmt.Fprintf(&b, " [%s %d %d %d %d]", e.Model, e.Usage.Input, e.Usage.Output, e.Usage.CacheRead, e.Usage.CacheWrite)
		}
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(&b, "\n! %s", w)
	}
	return b.String()
}

// sameFold checks that the fold of the events has the conversation.
func sameFold(t *testing.T, s foreign.Session) {
	t.Helper()
	state := transcript.New()
	var last time.Time
	for i, e := range foreign.Events(s, agent.SessionOpened{Session: "new"}) {
		body := e.Body
		if e.Time.Before(last) {
			t.Errorf("event %d is of %s, behind %s", i+1, e.Time, last)
		}
		last = e.Time
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if body, err = agent.DecodeBody(agent.Version, body.Kind(), data); err != nil {
			t.Fatal(err)
		}
		state.Apply(agent.Event{Seq: int64(i + 1), Time: time.Unix(int64(i), 0), ID: fmt.Sprint(i), Body: body})
	}
	got, _ := state.Conversation()
	if len(got) != len(s.Entries) {
		t.Fatalf("the fold has %d messages, and the session %d", len(got), len(s.Entries))
	}
	for i, m := range got {
		want, _ := json.Marshal(s.Entries[i].Message)
		if have, _ := json.Marshal(m); !bytes.Equal(have, want) {
			t.Errorf("message %d: the fold has %s, and the session %s", i, have, want)
		}
	}
	if len(s.Entries) > 0 && (state.Turn.Open || state.Unread || state.Open != nil) {
		t.Errorf("the session goes on by itself")
	}
}

// TestRead reads the transcripts in testdata and compares them with the texts
// beside them.
func TestRead(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json*")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source, _, _ := strings.Cut(filepath.Base(file), "_")
			s, err := foreign.Config{Source: foreign.Source(source), Tool: canonical}.Read(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(strings.TrimSuffix(file, "l"), ".json") + ".txt"
			got := tell(s) + "\n"
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || got != string(want) {
				t.Errorf("%v: got\n%s\nwant\n%s", err, got, want)
			}
			sameFold(t, s)
		})
	}
}

// storage is OpenCode's folder.
func storage() fstest.MapFS {
	file := func(s string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(s), ModTime: time.Unix(1_750_000_000, 0)}
	}
	return fstest.MapFS{
		"session/p1/ses_1.json":        file(`{"id":"ses_1","directory":"/w","title":"A look","time":{"created":1750000000000,"updated":1750000009000}}`),
		"session/p1/ses_2.json":        file(`{"id":"ses_2","parentID":"ses_1","title":"of an agent","time":{"created":1750000000000}}`),
		"session/p1/ses_3.json":        file(`{"id":"../ses_1","title":"liar","time":{"created":1750000000000,"updated":1750000001000}}`),
		"message/ses_1/msg_1.json":     file(`{"id":"msg_1","role":"user","time":{"created":1750000001000}}`),
		"message/ses_1/msg_2.json":     file(`{"id":"msg_2","role":"assistant","modelID":"m-1","time":{"created":1750000002000},"tokens":{"input":10,"output":5,"reasoning":2,"cache":{"read":3,"write":1}}}`),
		"message/ses_1/msg_3.json":     file(`{"id":"msg_3","role":"assist`),
		"part/msg_1/prt_1.json":        file(`{"id":"prt_1","type":"text","text":"look"}`),
		"part/msg_1/prt_2.json":        file(`{"id":"prt_2","type":"file","mime":"text/plain","filename":"secret","url":"file:///etc/passwd"}`),
		"part/msg_2/prt_3.json":        file(`{"id":"prt_3","type":"step-start"}`),
		"part/msg_2/prt_4.json":        file(`{"id":"prt_4","type":"tool","callID":"c1","tool":"read","state":{"status":"completed","input":{"filePath":"a"},"output":"A"}}`),
		"part/msg_2/prt_5.json":        file(`{"id":"prt_5","type":"tool","callID":"c2","tool":"odd","state":{"status":"running","input":{}}}`),
		"part/msg_2/prt_6.json":        file(`{"id":"prt_6","type":"step-start"}`),
		"part/msg_2/prt_7.json":        file(`{"id":"prt_7","type":"text","text":"It says A."}`),
		"session/info/ses_9.json":      file(`{"id":"ses_9","title":"old","time":{"created":1740000000000,"updated":1740000001000}}`),
		"session/message/ses_9/m.json": file(`{"id":"m","role":"user","time":{"created":1740000000000}}`),
		"session/part/ses_9/m/p.json":  file(`{"id":"p","type":"text","text":"hello"}`),
	}
}

func TestOpenCodeFolder(t *testing.T) {
	c := foreign.Config{Source: foreign.OpenCode, FS: storage(), Tool: canonical}
	all, err := c.Discover()
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, l := range all {
		paths = append(paths, l.Path+" "+l.Title)
	}
	if want := []string{"session/p1/ses_1.json A look", "session/p1/ses_3.json liar", "session/info/ses_9.json old"}; !reflect.DeepEqual(paths, want) {
		t.Fatalf("got %q, want %q", paths, want)
	}
	s, err := c.Open(all[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	want := `ses_1 | A look | /w | m-1 | 2025-06-15T15:06:40Z
user: "look" "[attached: secret (file:///etc/passwd)]"
assistant: call c1 file-system__read {"filePath":"a"} call c2 odd {} [m-1 10 7 3 1]
user: ok c1 "A" error c2 "[Tool result unavailable]"
assistant: "It says A." [m-1 0 0 0 0]
! 1 files of the session could not be read and were left out
! call "c2" had no result; a failure stands in its place`
	if got := tell(s); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	sameFold(t, s)
	if _, err := c.Open(all[1].Path); err == nil {
		t.Error("a session was read under the name of another")
	}
	if s, err := c.Open(all[2].Path); err != nil || len(s.Entries) != 1 {
		t.Errorf("%v, %s", err, tell(s))
	}
}

// TestDiscover lists a folder with links, other files and more than one project.
func TestDiscover(t *testing.T) {
	dir := t.TempDir()
	write := func(name, data string, at int64) {
		t.Helper()
		name = filepath.Join(dir, "projects", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, time.Unix(at, 0), time.Unix(at, 0)); err != nil {
			t.Fatal(err)
		}
	}
	line := func(id, text string) string {
		return fmt.Sprintf(`{"type":"user","uuid":%q,"sessionId":"S","cwd":"/w","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":%q}}`+"\n", id, text)
	}
	write("-w/s1.jsonl", line("a", "first")+strings.Repeat(line("b", strings.Repeat("x", 1000)), 200)+`{"type":"custom-title","sessionId":"S","customTitle":"Named"}`+"\n", 100)
	write("-w/s2.jsonl", line("a", "second"), 200)
	write("-w/agent-1.jsonl", line("a", "agent"), 300)
	write("-w/s3.jsonl", strings.Replace(line("a", "side"), "{", `{"isSidechain":true,`, 1), 300)
	write("-w/s1/subagents/agent-2.jsonl", line("a", "agent"), 300)
	write("-w/notes.txt", "x", 300)
	outside := filepath.Join(dir, "outside.jsonl")
	if err := os.WriteFile(outside, []byte(line("a", "outside")), 0o600); err != nil {
		t.Fatal(err)
	}
	linked := os.Symlink(outside, filepath.Join(dir, "projects", "-w", "s4.jsonl")) == nil
	root, err := os.OpenRoot(filepath.Join(dir, "projects"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for name, fsys := range map[string]fs.FS{"root": root.FS(), "folder": os.DirFS(filepath.Join(dir, "projects"))} {
		c := foreign.Config{Source: foreign.ClaudeCode, FS: fsys}
		all, err := c.Discover()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range all {
			got = append(got, l.Path+" "+l.Title+" "+l.Workdir)
		}
		if want := []string{"-w/s2.jsonl second /w", "-w/s1.jsonl Named /w"}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		if _, err := c.Open("-w/s4.jsonl"); err == nil && linked {
			t.Errorf("%s: a link was followed", name)
		}
		if _, err := c.Open("../outside.jsonl"); err == nil {
			t.Errorf("%s: the folder was left", name)
		}
	}
	none := foreign.Config{Source: foreign.Codex, FS: os.DirFS(filepath.Join(dir, "nowhere"))}
	if all, err := none.Discover(); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestSniff(t *testing.T) {
	for head, want := range map[string]foreign.Source{
		"": "", "notes": "", "{}": "", "null\n[1]\n": "",
		`{"type":"summary","leafUuid":"x"}`:                      foreign.ClaudeCode,
		`{"type":"user","uuid":"a","sessionId":"s"}`:             foreign.ClaudeCode,
		"\xef\xbb\xbf" + `{"type":"session_meta","payload":{}}`:  foreign.Codex,
		`{"id":"a","timestamp":"x","instructions":null}`:         foreign.Codex,
		`{"info":{},"messages":[]}`:                              foreign.OpenCode,
		"{\n \"info\": {\"sessionID\": \"x\"},\n":                foreign.OpenCode,
		`{"id":"a","role":"user","content":"x"}`:                 foreign.Neutral,
		"{\"torn\n" + `{"v":1,"seq":1,"ep":1,"k":"note","d":{}}`: foreign.Neutral,
	} {
		if got := foreign.Sniff([]byte(head)); got != want {
			t.Errorf("%q is %q, want %q", head, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.json*")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for i := range 4 {
			f.Add(i, data)
		}
	}
	f.Fuzz(func(t *testing.T, n int, data []byte) {
		sources := []foreign.Source{foreign.ClaudeCode, foreign.Codex, foreign.OpenCode, foreign.Neutral}
		s, err := foreign.Config{Source: sources[uint(n)%4], Tool: canonical}.Read(bytes.NewReader(data))
		if err == nil {
			sameFold(t, s)
		}
	})
}
