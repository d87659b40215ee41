// Package repair reads damaged transcripts: message records and session logs, one
// JSON object a line. It works on bytes, keeps every record that is intact, says
// what it found wrong, and makes of the rest a conversation that providers take.
//
// It never opens or changes a file: readers come in, and [Report.Write] writes
// the repaired form elsewhere. What stands in a transcript gains no authority by
// being repaired: the role "system" is text, and what was nested in a broken
// record does not become a record. It starts no goroutines.
package repair

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// The limits. What is beyond them is left out and reported, or refused.
const (
	maxFile    = 1 << 30  // bytes of a transcript; a longer one is refused
	maxLine    = 32 << 20 // bytes of a line: more than a provider takes in one request
	maxDepth   = 200      // levels of nesting in a line
	maxRecords = 1 << 20  // records of a transcript; one with more is refused
	maxNotes   = 1000     // warnings, and corruptions, that are listed one by one
	maxID      = 256      // bytes of the ID of a record
	maxCallID  = 128      // bytes of the ID of a call
	maxOpaque  = 64 << 10 // bytes of a piece of unknown kind that are kept as text
)

// Version is the newest version v of a record that is understood.
const Version = 1

// What became of a transcript.
const (
	Loaded    = "ok"        // nothing had to be mended
	Recovered = "recovered" // something had; Repairs and Warnings say what
	Refused   = "refused"   // nothing of it is taken; Reason says why
)

// Options say what is known of a transcript beside its bytes. The zero value is
// fine.
type Options struct {
	// Session is whose records are wanted. Without it they are those of the
	// session that most records name; records that name none always count.
	Session string

	// Blob returns a body that a session log keeps beside its lines, by SHA-256.
	// Without it such an event counts as missing.
	Blob func(sha256 string) ([]byte, error)

	// Loose keeps thinking and media that a provider would refuse: for those who
	// make messages of their own of the entries.
	Loose bool
}

// Report is what a transcript holds and what was wrong with it. All slices are
// there, so that the JSON has lists and no null.
type Report struct {
	Load      string   `json:"load"`
	Recovered []string `json:"recovered_ids"` // IDs of the records that were kept, in order
	Repairs   []string `json:"repairs"`       // what was done to make calls and results fit, with the call's ID
	Valid     bool     `json:"api_valid"`     // the entries are a conversation that providers take
	Warnings  []string `json:"warnings"`
	Entries   []Entry  `json:"entries"`

	Format      string            `json:"format,omitempty"` // messages or events
	Session     string            `json:"session,omitempty"`
	Code        string            `json:"code,omitempty"`   // of Reason: version, too-large, unreadable
	Reason      string            `json:"reason,omitempty"` // why it was refused
	Corruptions []Corruption      `json:"corruptions"`
	Recoverable bool              `json:"recoverable"`
	Opaque      []json.RawMessage `json:"opaque,omitempty"` // records that are no messages, as they are
}

// A Corruption is one thing that was wrong. Index is that of the record among
// those read before it, from 0; Line counts from 1; 0 = no line of its own.
type Corruption struct {
	Type        string `json:"type"`
	Index       int    `json:"index"`
	Line        int    `json:"line,omitempty"`
	ID          string `json:"id,omitempty"` // of the record or call
	Description string `json:"description"`
}

// The types of corruption.
const (
	TruncatedJSON  = "truncated-json" // a line that is no JSON, wherever it is broken
	DuplicateEntry = "duplicate-entry"
	OrphanResult   = "orphan-tool-result"
	MissingResult  = "missing-tool-result"
	InvalidRole    = "invalid-role-sequence"
	ExtraResult    = "extra-tool-result"
	Misplaced      = "misplaced-record"
	OtherSession   = "other-session"
	InvalidText    = "invalid-text"    // bytes that are no text: zeros, wrong UTF-8, UTF-16
	InvalidContent = "invalid-content" // JSON that is no message, or not quite
	OverLimit      = "over-limit"
)

// The names of repairs; behind them stands ":" and the ID of a call.
const (
	synthesized = "synthesize-error-result"
	orphan      = "drop-orphan-result"
	duplicate   = "drop-duplicate-result"
	exactlyOne  = "exactly-one-result"
)

// Check reads a transcript to its end. size is how many bytes it has, or -1 when
// that is not known. The error is for reading; what is wrong with the transcript
// is in the report.
func Check(r io.Reader, size int64, o Options) (Report, error) {
	c := newChecker(o)
	if size > maxFile {
		c.refuse("too-large", fmt.Sprintf("the transcript has %d bytes; at most %d are read", size, int64(maxFile)))
		return c.rep, nil
	}
	if err := c.read(r); err != nil {
		return Report{}, fmt.Errorf("reading transcript: %w", err)
	}
	c.finish()
	return c.rep, nil
}

// Scan gives take every JSON object of a file that has one a line, also those
// that are whole in a broken line. The report has what was wrong with the lines
// and nothing else. take returns false to stop.
func Scan(r io.Reader, take func(raw json.RawMessage) bool) (Report, error) {
	c := newChecker(Options{})
	c.each = take
	if err := c.read(r); err != nil {
		return Report{}, fmt.Errorf("reading transcript: %w", err)
	}
	c.more()
	return c.rep, nil
}

// Records makes a conversation of records in the neutral form, which are JSON
// objects. It reports as [Check] does with Loose set, without lines.
func Records(records []json.RawMessage) Report {
	c := newChecker(Options{Loose: true})
	for _, raw := range records {
		if c.refused() {
			break
		}
		c.object(raw)
	}
	c.finish()
	return c.rep
}

// Write writes the repaired form: one record a line, those that are no messages
// first. A refused transcript has none.
func (r Report) Write(w io.Writer) error {
	if r.Load == Refused {
		return fmt.Errorf("writing transcript: it was refused: %s", r.Reason)
	}
	b := bufio.NewWriter(w)
	for _, raw := range r.Opaque {
		_, _ = b.Write(raw)
		_ = b.WriteByte('\n')
	}
	for _, e := range r.Entries {
		line, err := e.MarshalJSON()
		if err != nil {
			return fmt.Errorf("writing transcript: %w", err)
		}
		_, _ = b.Write(line)
		_ = b.WriteByte('\n')
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("writing transcript: %w", err)
	}
	return nil
}

// A checker reads one transcript.
type checker struct {
	o   Options
	rep Report

	line    int // of what is being read
	broken  int // lines that were not understood
	entries []Entry
	marked  []string        // sessions of entries, "" = it names none
	seen    map[string]bool // ID and content of what was read
	stamped map[string]bool // time and content of what was read without an ID
	ids     names           // of entries
	native  native
	crlf    bool // lines end with CR and LF
	oldMac  bool // ... or with CR
	unnamed int  // records without an ID

	held      []part // broken lines that may be one record
	heldBytes int
	open      brackets // of held

	hidden  int                        // notes beyond maxNotes
	each    func(json.RawMessage) bool // takes the objects instead; see Scan
	stopped bool
}

func newChecker(o Options) *checker {
	c := &checker{o: o, seen: map[string]bool{}, stamped: map[string]bool{}, ids: newNames()}
	c.rep = Report{
		Load: Loaded, Recovered: []string{}, Repairs: []string{}, Warnings: []string{},
		Entries: []Entry{}, Corruptions: []Corruption{}, Recoverable: true,
	}
	return c
}

func (c *checker) refuse(code, reason string) {
	c.rep.Load, c.rep.Code, c.rep.Reason = Refused, code, reason
	c.rep.Recoverable, c.rep.Valid = false, false
	c.rep.Recovered, c.rep.Repairs, c.rep.Entries, c.rep.Opaque = []string{}, []string{}, []Entry{}, nil
	c.rep.Warnings = append(c.rep.Warnings, reason)
}

func (c *checker) refused() bool { return c.rep.Load == Refused }

// warn says something that is no damage.
func (c *checker) warn(format string, args ...any) {
	if len(c.rep.Warnings) >= maxNotes {
		c.hidden++
		return
	}
	c.rep.Warnings = append(c.rep.Warnings, c.where(c.line)+fmt.Sprintf(format, args...))
}

func (c *checker) where(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", line)
}

// damage notes something that was wrong at the line being read.
func (c *checker) damage(kind, id, format string, args ...any) {
	c.note(Corruption{Type: kind, Index: len(c.entries), Line: c.line, ID: id, Description: fmt.Sprintf(format, args...)})
}

func (c *checker) note(n Corruption) {
	if !c.refused() {
		c.rep.Load = Recovered
	}
	if len(c.rep.Corruptions) >= maxNotes || len(c.rep.Warnings) >= maxNotes {
		c.hidden++
		return
	}
	c.rep.Corruptions = append(c.rep.Corruptions, n)
	c.rep.Warnings = append(c.rep.Warnings, c.where(n.Line)+n.Description)
}

// finish makes the report of what was read.
func (c *checker) finish() {
	if c.refused() {
		return
	}
	c.line = 0
	if len(c.native.events) > 0 {
		if len(c.entries) > 0 {
			c.damage(InvalidContent, "", "%d message records among the events of a session log were left out", len(c.entries))
			c.entries, c.marked = nil, nil
		}
		c.rep.Format = "events"
		c.fold()
	} else if len(c.entries) > 0 {
		c.rep.Format = "messages"
		c.keepSession()
	}
	mended := Mend(c.entries)
	c.rep.Entries, c.rep.Repairs = append(c.rep.Entries, mended.Entries...), append(c.rep.Repairs, mended.Repairs...)
	for _, n := range mended.Corruptions {
		c.note(n)
	}
	if c.rep.Format != "events" { // those are named already
		c.rep.Recovered = append(c.rep.Recovered, mended.Kept...)
	}
	if !c.o.Loose {
		c.thinkLast()
	}
	if c.unnamed > 0 && c.rep.Format == "messages" {
		c.warn("%d records have no ID; they are named after their lines", c.unnamed)
	}
	c.more()
	if len(c.rep.Entries) == 0 && len(c.rep.Opaque) == 0 && c.broken > 0 {
		c.refuse("unreadable", "no record of the transcript can be read")
		return
	}
	c.rep.Valid = valid(c.rep.Entries, c.o.Loose) == nil
}

// more says how many notes are not listed.
func (c *checker) more() {
	if c.hidden > 0 {
		c.rep.Warnings = append(c.rep.Warnings, fmt.Sprintf("%d more like these", c.hidden))
	}
}

// keepSession leaves out the records of other sessions.
func (c *checker) keepSession() {
	want := c.o.Session
	if want == "" {
		count := map[string]int{}
		for _, s := range c.marked {
			if s != "" {
				count[s]++
			}
		}
		for _, s := range c.marked { // in the order of the file: the first of equals wins
			if s != "" && (want == "" || count[s] > count[want]) {
				want = s
			}
		}
	}
	c.rep.Session = want
	var kept []Entry
	for i, e := range c.entries {
		if s := c.marked[i]; s != "" && s != want {
			c.note(Corruption{Type: OtherSession, Index: i, Line: e.line, ID: e.ID, Description: fmt.Sprintf("a record of another session (%.80q) was left out", s)})
			continue
		}
		kept = append(kept, e)
	}
	c.entries = kept
}
