// Package export makes documents of sessions: Markdown and HTML for people, and
// the neutral JSONL that [dure/internal/state/archive/repair] reads. It is a pure fold
// of events: the same log and options give the same bytes.
//
// What a log holds is hostile: every text is redacted by the function that the
// caller gives, freed of what is no text, and escaped for its format. It opens
// nothing but the blobs and children that the caller hands out, writes nowhere but
// to the given writer, and starts no goroutines.
package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"

	"dure/agent"
	"dure/internal/frontend/view"
	"dure/internal/state/plan"
)

// The limits of a document. What is beyond them is left out, and the document says
// so.
const (
	maxDepth  = 4       // levels of children
	maxItems  = 200_000 // of one session
	maxShown  = 1 << 20 // bytes of one text in Markdown and HTML; JSONL has it whole
	maxImage  = 2 << 20 // bytes of an image
	maxImages = 16 << 20
	maxSystem = 1 << 20 // bytes of the system prompt
)

// Config says what a document is made of. Events is required.
type Config struct {
	Events iter.Seq2[agent.Event, error]

	// Blob returns a blob of the session; nil = none can be had.
	Blob func(sha256 string) ([]byte, error)

	// Child returns how to read a child session; nil, or false, leaves it named
	// only.
	Child func(id string) (Config, bool)

	// Redact masks what nobody else should see in every text; nil = nothing is.
	Redact func(string) string

	NoResults bool // results of calls are left out
	Thinking  bool // what the model thought is shown
	System    bool // the system prompt is shown
}

// Doc is a session as it is shown: what counts of its conversation, in order.
type Doc struct {
	Session, Title, Workdir, Model, Origin string

	Created, Updated time.Time
	Tags             []string
	Usage            agent.Usage
	Cost             *agent.Money // nil = unknown
	System           string
	Items            []Item
	Left             int    // items beyond maxItems
	Cut              string // why the log could not be read to its end
}

// A Kind is what an item is.
type Kind uint8

// The kinds of items.
const (
	Input    Kind = iota // Text, Media, From
	Answer               // Text
	Thinking             // Text
	Call                 // Tool, Args, and the result: Text, Media, Diff, Failed, Done
	Note                 // Text, of Level
	Rating               // Good, Text
	Child                // From, Text, Doc
	Plan                 // ID in Plan, Level: what became of it, From, Text: all of it, or why
)

// An Item is one thing that was said or done.
type Item struct {
	Kind Kind
	Seq  int64 // of its event
	ID   string
	Time time.Time

	From  string // of an input: "" = the user
	Text  string
	Media []agent.Media
	Level string // of a note, or what became of a plan: a key of [Words]
	Plan  string // ID

	Call   string // ID
	Tool   string
	Args   json.RawMessage
	Diff   []string // changed lines, each with its sign
	Done   bool     // there is a result
	Failed bool
	Whole  int64 // bytes of an output of which Text is a part

	Good bool
	Doc  *Doc
}

// Read folds a session. A log that is damaged gives what is in front of the
// damage, and Cut says so; the error is for what kept it from reading at all.
func Read(c Config) (*Doc, error) { return c.read(0) }

func (c Config) read(depth int) (*Doc, error) {
	if c.Redact == nil {
		c.Redact = func(s string) string { return s }
	}
	r := reader{Config: c, depth: depth, doc: &Doc{}, view: view.New("", view.Limits{Rows: view.OpenOnly}), priced: true}
	for e, err := range c.Events {
		if err != nil {
			if r.doc.Session == "" {
				return nil, fmt.Errorf("reading the log: %w", err)
			}
			r.doc.Cut = r.text(err.Error())
			break
		}
		r.take(e)
	}
	if r.doc.Session == "" {
		return nil, errors.New("the log has no events")
	}
	if r.priced && r.money > 0 {
		r.doc.Cost = &r.money
	}
	r.doc.Title, r.doc.Workdir, r.doc.Model = r.text(or(r.view.Title, r.doc.Title)), r.text(r.doc.Workdir), r.text(r.view.Model)
	for i, t := range r.doc.Tags {
		r.doc.Tags[i] = r.text(t)
	}
	return r.doc, nil
}

// A reader folds events into a document.
type reader struct {
	Config
	depth  int
	doc    *Doc
	view   *view.View // the mark of a call is 1 + the index of its item
	money  agent.Money
	priced bool
	system string // blob
}

// text makes a text of a log fit to be shown.
func (r *reader) text(s string) string { return plain(r.Redact(s)) }

// plain leaves text: no control characters but tab and newline, none that turn the
// direction of what follows or are letters that nobody sees, and valid UTF-8.
func plain(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\n', c == '\t':
			return c
		case unicode.IsControl(c), c >= 0x202a && c <= 0x202e, c >= 0x2066 && c <= 0x2069, c == 0xfeff, c >= 0xe0000 && c <= 0xe007f:
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, "\ufffd"))
}

func (r *reader) add(e agent.Event, it Item) {
	if len(r.doc.Items) >= maxItems {
		r.doc.Left++
		return
	}
	it.Seq, it.ID, it.Time = e.Seq, e.ID, e.Time.UTC()
	r.doc.Items = append(r.doc.Items, it)
}

func (r *reader) take(e agent.Event) {
	if e.Live() {
		return
	}
	rows := r.view.Apply(e)
	d := r.doc
	d.Updated = e.Time.UTC()
	switch b := e.Body.(type) {
	case agent.SessionOpened:
		r.opened(e, b)
	case agent.SettingsChanged:
		if b.Tags != nil {
			d.Tags = slices.Clone(*b.Tags)
		}
	case agent.InputAdded:
		r.input(e, b)
	case agent.ModelRequested:
		if r.Config.System && b.Purpose == "" && b.System != r.system {
			r.prompt(b.System)
		}
	case agent.ModelAnswered:
		r.answer(e, b)
	case agent.CallFinished:
		r.result(rows)
	case agent.CallSettled:
		r.add(e, Item{Kind: Note, Level: "settled", Text: r.text(b.Notice)})
	case agent.ConversationRewound:
		// An event that is taken back takes its items with it, which are the newest.
		at := slices.IndexFunc(d.Items, func(it Item) bool { return it.Seq > b.To })
		if at >= 0 {
			d.Items = d.Items[:at]
		}
	case agent.ContextCompacted:
		r.add(e, Item{Kind: Note, Level: "compacted"})
	case agent.TurnEnded:
		if b.Error != "" {
			r.add(e, Item{Kind: Note, Level: "failed", Text: r.text(b.Error)})
		}
	case agent.Note:
		if b.Level == "warn" || b.Level == "error" {
			r.add(e, Item{Kind: Note, Level: "note", Text: r.text(b.Text)})
		}
	case agent.Rated:
		r.add(e, Item{Kind: Rating, Good: b.Good, Text: r.text(b.Text)})
	case agent.ChildOpened:
		r.child(e, b)
	case agent.PlanProposed:
		r.plan(e, b.Plan, "proposed", "", plan.Render(b.Body))
	case agent.PlanChanged:
		r.plan(e, b.Plan, "changed", b.By, plan.Render(b.Body))
	case agent.PlanDecided:
		r.plan(e, b.Plan, string(b.Verdict), b.By, b.Reason)
	}
}

func (r *reader) plan(e agent.Event, id, what, by, text string) {
	r.add(e, Item{Kind: Plan, Plan: r.text(id), Level: r.text(what), From: r.text(by), Text: r.text(text)})
}

func (r *reader) opened(e agent.Event, b agent.SessionOpened) {
	d := r.doc
	if d.Session == "" || b.ForkOf != "" {
		d.Session, d.Workdir, d.Created = b.Session, b.Workdir, e.Time.UTC()
	}
	if b.Origin != nil {
		d.Origin = r.text(strings.TrimSpace(b.Origin.Source + " " + b.Origin.ID))
	}
}

func (r *reader) input(e agent.Event, b agent.InputAdded) {
	it := Item{Kind: Input, From: r.text(b.Origin), Text: r.text(b.Text)}
	for _, p := range b.Parts {
		r.part(&it, p)
	}
	if it.Text == "" && len(it.Media) == 0 {
		return
	}
	if r.doc.Title == "" && b.Origin == "" {
		r.doc.Title = firstLine(it.Text) // masked before it is cut
	}
	r.add(e, it)
}

// firstLine is what a session is called that nobody has given a title.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	const most = 40
	if c := []rune(s); len(c) > most {
		return string(c[:most])
	}
	return s
}

// part adds a block to what was said.
func (r *reader) part(it *Item, b agent.Block) {
	switch {
	case b.Type == agent.TextBlock:
		it.Text = strings.TrimPrefix(it.Text+"\n"+r.text(b.Text), "\n")
	case b.Media != nil:
		m := *b.Media
		m.Name, m.URL, m.Type = r.text(m.Name), r.text(m.URL), plain(m.Type)
		it.Media = append(it.Media, m)
	}
}

// prompt keeps the newest system prompt.
func (r *reader) prompt(sha string) {
	if r.Blob == nil {
		return
	}
	data, err := r.Blob(sha)
	var sections []agent.Section
	if err != nil || len(data) > maxSystem || json.Unmarshal(data, &sections) != nil {
		return // the document does without
	}
	var texts []string
	for _, s := range sections {
		texts = append(texts, s.Text)
	}
	r.system, r.doc.System = sha, r.text(strings.Join(texts, "\n\n"))
}

func (r *reader) answer(e agent.Event, b agent.ModelAnswered) {
	r.doc.Usage = r.doc.Usage.Add(b.Usage)
	if b.Cost == nil {
		r.priced = false
	} else {
		r.money += *b.Cost
	}
	if b.Purpose != "" {
		return
	}
	for _, x := range b.Message.Blocks {
		switch {
		case x.Type == agent.TextBlock && strings.TrimSpace(x.Text) != "":
			r.add(e, Item{Kind: Answer, Text: r.text(x.Text)})
		case x.Type == agent.ThinkingBlock && r.Config.Thinking && x.Text != "":
			r.add(e, Item{Kind: Thinking, Text: r.text(x.Text)})
		case x.Type == agent.CallBlock && x.Call != nil:
			r.call(e, *x.Call)
		}
	}
}

func (r *reader) call(e agent.Event, c agent.Call) {
	r.add(e, Item{Kind: Call, Call: c.ID, Tool: r.text(c.Tool), Args: r.json(c.Input)})
	if row := r.view.Call(c.ID); row != nil && r.doc.Left == 0 {
		row.Mark = len(r.doc.Items)
	}
}

// json redacts every string of a value, names too.
func (r *reader) json(raw json.RawMessage) json.RawMessage {
	var v any
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return json.RawMessage(`{}`)
	}
	out, err := marshal(r.value(v))
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return out
}

func (r *reader) value(v any) any {
	switch v := v.(type) {
	case string:
		return r.text(v)
	case []any:
		for i := range v {
			v[i] = r.value(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			if s, ok := x.(string); ok { // what a name makes a secret shows with it alone
				line := k + ": " + s
				if shown := r.text(line); shown != plain(line) {
					x = strings.TrimPrefix(shown, plain(k)+": ")
				}
			}
			out[r.text(k)] = r.value(x)
		}
		return out
	}
	return v
}

// result gives a call what came of it. The first of the rows is that of the call.
func (r *reader) result(rows []*view.Row) {
	if len(rows) == 0 || rows[0].Call == nil || rows[0].Mark == 0 {
		return
	}
	row := rows[0]
	it, b := &r.doc.Items[row.Mark-1], row.Call.Result
	row.Mark = 0 // one that goes on is told of by a note
	it.Done, it.Failed = true, b.Failed()
	it.Diff = r.changed(row.Call)
	if r.NoResults {
		return
	}
	it.Text = b.Unfenced()
	if it.Text == "" {
		it.Text = string(b.Output)
	}
	it.Text = r.text(it.Text)
	for _, x := range b.Blocks {
		r.part(it, x)
	}
	if b.Spill != nil {
		it.Whole = b.Spill.Bytes
	}
}

// changed returns the lines of the change that an edit has made.
func (r *reader) changed(c *view.Call) (lines []string) {
	if len(c.Changes) != 1 || c.Tool == "file-system__patch" { // the text of a patch names its files
		return nil
	}
	for _, h := range c.Changes[0].Hunks {
		lines = append(lines, fmt.Sprintf("@@ -%d +%d @@", h.OldStart, h.NewStart))
		body := r.text(strings.Join(h.Lines, "\n")) // together: secrets have several lines
		lines = append(lines, strings.Split(body, "\n")...)
	}
	return lines
}

func (r *reader) child(e agent.Event, b agent.ChildOpened) {
	it := Item{Kind: Child, From: or(r.text(b.Title), r.text(b.Agent)), Text: r.text(b.Prompt)}
	if r.Config.Child != nil && r.depth < maxDepth {
		if c, ok := r.Config.Child(b.Child); ok {
			if doc, err := c.read(r.depth + 1); err == nil {
				it.Doc = doc
			}
		}
	}
	r.add(e, it)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// marshal encodes without escaping what only HTML needs escaped: the formats
// escape by themselves.
func marshal(v any) (json.RawMessage, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n")), nil
}
