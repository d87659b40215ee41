// Package mirror writes conversations where programs for agent sessions look for them: in a
// folder for each working folder, a file of lines for each session, and beside it those of
// its agents.
//
// A file is a projection of a session's events, and only ever appended to: what is in it
// already, by whichever of its earlier runs, is not written again, and what others have
// appended stays. It starts no goroutines. A Mirror is not safe for concurrent use.
package mirror

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/state/transcript"
)

// Config says what is mirrored, and where to.
type Config struct {
	Projects string // the folder with a folder for each working folder
	Folder   string // the name of that; "" = as [Folder] has it
	Session  string // the session that a person has: a UUID
	Agent    string // ID of the agent whose conversation it is; "" = the session's own
	Kind     string // type of that agent
	About    string // what it was to do

	Workdir string // absolute, resolved
	Branch  string // of git; "" = none
	Version string // of the program that writes

	// Shown returns the name under which models and programs know a tool.
	Shown func(canonical string) string

	// Wrote is told what was added to the file, once it stands there: whole lines. nil =
	// nobody is.
	Wrote func(lines []byte)

	// Adopted says that the session was taken over from the file: its events up to the note
	// of that code are there already. "" = it was not.
	Adopted string

	// Log tells the log of an adopted session from others of the same session, whose lines
	// the file has too: they are those of others. "" = it was not adopted.
	Log string
}

// A Mirror is the file of one conversation.
type Mirror struct {
	c    Config
	path string   // of the file, below the folder of all
	root *os.Root // with the files of all; no link leads out of it
	file *os.File

	head   int64           // the newest event of ours in the file
	said   [2]int64        // those of the newest of the conversation in it, and of the one before
	asked  string          // ID of the event of the newest request
	seen   map[string]bool // what of it is there: UUIDs, and kinds of lines without one
	talk                   // the conversation
	calls  map[string]bool // that have no result yet
	told   bool            // the file has what was adopted, and events up to its end are to come
	tag    string          // the one that we have written last
	others Others
}

// Others is what others have said in the file about the session since we wrote to it.
type Others struct {
	Title string  // "" = nothing
	Tag   *string // nil = nothing
}

// The bounds of a file that is gone on with.
const (
	maxFile = 1 << 30  // bytes
	maxLine = 64 << 20 // bytes of a line that is looked at; longer ones are passed over
)

// agentID is what an agent is called in the name of a file.
var agentID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`) })

// Open opens the file of a conversation, new or to be gone on with.
func Open(c Config) (*Mirror, error) {
	if !transcript.IsUUID(c.Session) {
		return nil, fmt.Errorf("the session %.64q is not called by a UUID", c.Session)
	}
	if c.Agent != "" && !agentID().MatchString(c.Agent) {
		return nil, fmt.Errorf("an agent cannot be called %.64q", c.Agent)
	}
	m := &Mirror{c: c, path: c.file(), seen: map[string]bool{}, calls: map[string]bool{}, talk: talk{stood: map[string]mark{}}}
	if err := m.open(); err != nil {
		return nil, fmt.Errorf("mirroring session %s: %w", c.Session, err)
	}
	return m, nil
}

// Path is where the file of the conversation is.
func (c Config) Path() string { return filepath.Join(c.Projects, c.file()) }

// file is that below the folder of all.
func (c Config) file() string {
	if c.Agent != "" {
		return filepath.Join(c.beside(), "subagents", "agent-"+c.Agent+".jsonl")
	}
	return c.beside() + ".jsonl"
}

// beside is the folder with what belongs to the session, below that of all.
func (c Config) beside() string { return filepath.Join(cmp.Or(c.Folder, Folder(c.Workdir)), c.Session) }

func (m *Mirror) open() (err error) {
	if err := os.MkdirAll(m.c.Projects, 0o700); err != nil {
		return err
	}
	if m.root, err = os.OpenRoot(m.c.Projects); err != nil {
		return err
	}
	if err = m.root.MkdirAll(filepath.Dir(m.path), 0o700); err == nil {
		m.file, err = m.root.OpenFile(m.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	}
	if err != nil {
		return errors.Join(err, m.root.Close())
	}
	err = m.read()
	m.told = m.told && m.After() == 0 // what follows is behind what was taken over
	if err == nil && m.c.Agent != "" {
		err = m.describe()
	}
	if err != nil {
		return errors.Join(err, m.Close())
	}
	return nil
}

// describe says beside the file of an agent what it is.
func (m *Mirror) describe() error {
	data, err := json.Marshal(struct {
		Kind  string `json:"agentType"`
		About string `json:"description,omitempty"`
	}{m.c.Kind, m.c.About})
	if err != nil {
		return err
	}
	return m.root.WriteFile(strings.TrimSuffix(m.path, ".jsonl")+".meta.json", data, 0o600)
}

// known is what is looked at of a line that is there.
type known struct {
	Type    string  `json:"type"`
	Subtype string  `json:"subtype"`
	UUID    string  `json:"uuid"`
	Parent  string  `json:"parentUuid"`
	Event   string  `json:"event"`
	Summary bool    `json:"isCompactSummary"`
	Title   *string `json:"customTitle"`
	Tag     *string `json:"tag"`
	Compact struct {
		Kept kept `json:"preservedMessages"`
	} `json:"compactMetadata"`
	Message struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

// read takes in what the file has. A last line that was cut short gets its end: it says
// nothing then.
func (m *Mirror) read() error {
	info, err := m.file.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is no regular file")
	case info.Size() > maxFile:
		return fmt.Errorf("it has more than %d bytes", maxFile)
	}
	r := bufio.NewReaderSize(m.file, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) <= maxLine {
			m.take(line)
		}
		if err == io.EOF {
			if len(line) > 0 {
				_, err := m.file.Write([]byte("\n"))
				return err
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take takes in a line.
func (m *Mirror) take(data []byte) {
	var k known
	if json.Unmarshal(data, &k) != nil {
		return
	}
	seq := m.numberOf(k.Event)
	if seq == 0 {
		switch {
		case k.Type == "custom-title" && k.Title != nil:
			m.others.Title = *k.Title
		case k.Type == "tag" && k.Tag != nil:
			m.others.Tag = k.Tag
		case (k.Type == "user" || k.Type == "assistant") && m.head == 0 && m.c.Adopted != "":
			m.told, m.last = true, k.UUID
		}
		return
	}
	switch k.Type {
	case "custom-title":
		m.others.Title = ""
	case "tag":
		if m.others.Tag = nil; k.Tag != nil {
			m.tag = *k.Tag
		}
	}
	m.head = max(m.head, seq)
	if k.UUID == "" {
		m.seen[k.Type+" "+k.Event] = true
		return
	}
	m.seen[k.UUID] = true
	if seq > m.said[0] {
		m.said = [2]int64{seq, m.said[0]}
	}
	m.heard(seq, k)
	var blocks []struct {
		Type string `json:"type"`
		ID   string `json:"id"`
		Call string `json:"tool_use_id"`
	}
	if json.Unmarshal(k.Message.Content, &blocks) != nil {
		return // it is a text
	}
	for _, b := range blocks {
		switch b.Type {
		case "tool_use":
			m.calls[b.ID] = true
		case "tool_result":
			delete(m.calls, b.Call)
		}
	}
}

// numberOf is the number of an event of the log that is written here; 0 = it is of no event of it.
func (m *Mirror) numberOf(event string) int64 {
	session, event, _ := strings.Cut(event, ":")
	number, log, _ := strings.Cut(event, ":")
	seq, err := strconv.ParseInt(number, 10, 64)
	if session != m.owner() || log != m.c.Log || err != nil {
		return 0
	}
	return max(seq, 0)
}

// owner is whose events the file has.
func (m *Mirror) owner() string {
	if m.c.Agent != "" {
		return m.c.Agent
	}
	return m.c.Session
}

// After is the event behind which the file is to be gone on with: all that follow it are to
// be applied. The newest of the conversation may be there in part, and what it came of is
// behind the one before.
func (m *Mirror) After() int64 { return m.said[1] }

// Others is what others have said in the file.
func (m *Mirror) Others() Others { return m.others }

// Close closes the file.
func (m *Mirror) Close() error { return errors.Join(m.file.Close(), m.root.Close()) }

// Apply writes what an event says. What is there already is not written again.
func (m *Mirror) Apply(e agent.Event) error {
	if e.Live() {
		return nil
	}
	if m.told { // it was taken over, up to a note that says so
		if n, ok := e.Body.(agent.Note); ok && n.Code == m.c.Adopted {
			m.told = false
		}
		return nil
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for _, l := range m.lines(e) {
		if m.seen[l.key()] {
			continue
		}
		if err := enc.Encode(l); err != nil {
			return fmt.Errorf("mirroring event %d: %w", e.Seq, err)
		}
	}
	if b, ok := e.Body.(agent.SettingsChanged); ok && b.Archived != nil && m.c.Agent == "" && e.Seq > m.head {
		if err := m.archived(*b.Archived, e.Time); err != nil {
			return err
		}
	}
	if out.Len() == 0 {
		return nil
	}
	n, err := m.file.Write(out.Bytes())
	if whole := bytes.LastIndexByte(out.Bytes()[:n], '\n') + 1; whole > 0 && m.c.Wrote != nil {
		m.c.Wrote(out.Bytes()[:whole])
	}
	return err
}

// archived says beside the file whether the session was put away.
func (m *Mirror) archived(yes bool, at time.Time) error {
	data, err := json.Marshal(struct {
		Archived bool   `json:"archived"`
		At       string `json:"at"`
		By       string `json:"by"`
	}{yes, stamp(at), "sdk"})
	if err == nil {
		err = m.root.MkdirAll(m.c.beside(), 0o700)
	}
	if err == nil {
		err = m.root.WriteFile(filepath.Join(m.c.beside(), "archived.json"), data, 0o600)
	}
	return err
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
