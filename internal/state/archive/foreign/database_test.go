package foreign_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/prooftest"
	"dure/internal/state/archive/foreign"
)

// stored makes a database as OpenCode has it.
func stored(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "opencode.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range append([]string{
		"PRAGMA journal_mode = WAL",
		"CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, slug text, directory text NOT NULL, title text NOT NULL, revert text, time_created integer, time_updated integer)",
		"CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer, time_updated integer, data text NOT NULL)",
		"CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer, time_updated integer, data text NOT NULL)",
	}, statements...) {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return path
}

func TestOpenCodeDatabase(t *testing.T) {
	path := stored(
		t,
		`INSERT INTO session VALUES ('ses_2', 'p', NULL, 's', '/w', 'Look at it', NULL, 1767225600000, 1767225603000)`,
		`INSERT INTO session VALUES ('ses_7', 'p', 'ses_2', 's', '/w', 'of a sub-agent', NULL, 1767225600000, 1767225603000)`,
		`INSERT INTO message VALUES ('msg_1', 'ses_2', 1, 1, '{"role":"user","time":{"created":1767225600000}}')`,
		`INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_2', 1, 1, '{"type":"text","text":"What is in a?"}')`,
		`INSERT INTO message VALUES ('msg_2', 'ses_2', 1, 1, '{"role":"assistant","modelID":"m1","time":{"created":1767225601000},"tokens":{"input":3,"output":4}}')`,
		`INSERT INTO part VALUES ('prt_2', 'msg_2', 'ses_2', 1, 1, '{"type":"tool","callID":"c1","tool":"read","state":{"status":"completed","input":{"filePath":"a"},"output":"A"}}')`,
		`INSERT INTO part VALUES ('prt_3', 'msg_2', 'ses_2', 1, 1, '{"type":"text","text":"A."}')`,
		`INSERT INTO part VALUES ('prt_4', 'msg_2', 'ses_2', 1, 1, '{"type":"te')`,
		`INSERT INTO part VALUES ('prt_5', 'msg_9', 'ses_2', 1, 1, '{"type":"text","text":"of nobody"}')`,
	)
	c := foreign.Config{Source: foreign.OpenCode, FS: storage(), Database: path}
	found, err := c.Discover()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, l := range found {
		ids = append(ids, l.Path)
	}
	if got := strings.Join(ids, " "); !strings.Contains(got, foreign.InDatabase+"ses_2") || strings.Contains(got, "ses_7") || len(ids) < 2 {
		t.Errorf("found %s", got)
	}
	s, err := c.Open(foreign.InDatabase + "ses_2")
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range s.Entries {
		for _, b := range e.Message.Blocks {
			switch b.Type {
			case agent.CallBlock:
				said = append(said, "call "+b.Call.Tool)
			case agent.ResultBlock:
				said = append(said, "result "+b.Result.Text)
			default:
				said = append(said, string(e.Message.Role)+" "+b.Text)
			}
		}
	}
	got := strings.Join(said, ", ") + "; " + s.Title + "; " + s.Workdir + "; " + s.Model + "; " + strings.Join(s.Warnings, ", ")
	want := "user What is in a?, call read, result A, assistant A.; Look at it; /w; m1; 2 rows of the session could not be read and were left out"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if beside, err := os.ReadDir(filepath.Dir(path)); err != nil || len(beside) != 1 {
		t.Errorf("beside the database: %v, %v", beside, err)
	}
	if _, err := c.Open(foreign.InDatabase + "ses_none"); err == nil {
		t.Error("a session that is not there was opened")
	}
}

func TestOtherDatabase(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{"empty.db": "", "text.db": strings.Repeat("no database ", 100)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := (foreign.Config{Source: foreign.OpenCode, FS: storage(), Database: path}).Discover(); err == nil {
			t.Errorf("%s: found %v", name, found)
		}
	}
	link := filepath.Join(dir, "link.db")
	prooftest.Link(t, os.Symlink(stored(t), link))
	if _, err := (foreign.Config{Source: foreign.OpenCode, FS: storage(), Database: link}).Discover(); err == nil {
		t.Error("a link was followed")
	}
}
