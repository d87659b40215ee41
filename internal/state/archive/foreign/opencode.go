package foreign

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"dure/agent"
)

// An exported message of OpenCode, with its parts.
type exported struct {
	id    string
	info  fields
	parts []fields
}

// readExport reads what "opencode export" writes: {"info":…,"messages":[{"info":…,
// "parts":[…]}]}. What is in front of the JSON is skipped.
func readExport(r io.Reader, b *builder) error {
	data, err := io.ReadAll(io.LimitReader(r, maxPiece*4+1))
	if err != nil {
		return err
	}
	if len(data) > maxPiece*4 {
		return errTooLarge
	}
	if at := strings.IndexByte(string(data), '{'); at > 0 {
		data = data[at:]
	}
	var whole struct {
		Info     json.RawMessage `json:"info"`
		Messages []struct {
			Info  json.RawMessage   `json:"info"`
			Parts []json.RawMessage `json:"parts"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(data, &whole); err != nil {
		return fmt.Errorf("reading the export: %w", err)
	}
	var messages []exported
	for _, m := range whole.Messages {
		e := exported{info: object(m.Info)}
		e.id = e.info.str("id")
		for _, p := range m.Parts {
			e.parts = append(e.parts, object(p))
		}
		messages = append(messages, e)
	}
	return openCode(object(whole.Info), messages, b)
}

// openFolder reads a session that is many files: one of the session, one for each
// message, and one for each part of it.
func (c Config) openFolder(name string) (Session, error) {
	left := int64(maxBytes)
	info, err := c.piece(name, &left)
	if err != nil {
		return Session{}, err
	}
	id := info.str("id")
	if !plainName(id) || id != strings.TrimSuffix(path.Base(name), ".json") {
		return Session{}, errors.New("the session has another ID than its file")
	}
	b := &builder{tool: c.Tool, notes: map[string]note{}, s: Session{Listed: Listed{Source: OpenCode, Path: name}}}
	messages, parts := "message/"+id, "part"
	if strings.HasPrefix(name, "session/info/") { // as the first versions had it
		messages, parts = "session/message/"+id, "session/part/"+id
	}
	var list []exported
	skipped := 0
	for _, file := range c.pieces(messages) {
		m, err := c.piece(messages+"/"+file, &left)
		if errors.Is(err, errTooLarge) {
			return Session{}, err
		}
		if err != nil {
			skipped++
			continue
		}
		e := exported{id: strings.TrimSuffix(file, ".json"), info: m}
		folder := parts + "/" + e.id
		for _, file := range c.pieces(folder) {
			p, err := c.piece(folder+"/"+file, &left)
			if errors.Is(err, errTooLarge) {
				return Session{}, err
			}
			if err != nil {
				skipped++
				continue
			}
			e.parts = append(e.parts, p)
		}
		list = append(list, e)
	}
	if skipped > 0 {
		b.warn(fmt.Sprintf("%d files of the session could not be read and were left out", skipped))
	}
	if err := openCode(info, list, b); err != nil {
		return Session{}, err
	}
	return b.finish()
}

// pieces returns the names of the files of a folder, in order. IDs ascend.
func (c Config) pieces(folder string) []string {
	if noLinks(c.FS, folder) != nil {
		return nil
	}
	entries, err := fs.ReadDir(c.FS, folder)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && plainName(id) && e.Type().IsRegular() && len(names) < maxEntries {
			names = append(names, e.Name())
		}
	}
	return names
}

// piece reads a file that is one JSON object.
func (c Config) piece(name string, left *int64) (fields, error) {
	f, _, err := c.regular(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxPiece+1))
	if err != nil {
		return nil, err
	}
	if *left -= int64(len(data)); len(data) > maxPiece || *left < 0 {
		return nil, errTooLarge
	}
	o := object(data)
	if o == nil {
		return nil, errors.New("not a JSON object")
	}
	return o, nil
}

// plainName reports whether an ID can be the name of a file and nothing else.
func plainName(id string) bool {
	return id != "" && len(id) <= maxName && id != "." && id != ".." && !strings.ContainsAny(id, "/\\:\x00")
}

// openCode adds the messages of a session: those behind the last compaction, up to
// where the user went back to.
func openCode(info fields, messages []exported, b *builder) error {
	b.s.ID, b.s.Title, b.s.Workdir = info.str("id"), info.str("title"), info.str("directory")
	times := object(info["time"])
	b.seen(times.when("created"))
	b.seen(times.when("updated"))
	slices.SortStableFunc(messages, func(x, y exported) int {
		return cmp.Or(created(x).Compare(created(y)), strings.Compare(x.id, y.id))
	})
	if at := object(info["revert"]).str("messageID"); at != "" {
		if i := slices.IndexFunc(messages, func(m exported) bool { return m.id == at }); i >= 0 {
			messages = messages[:i]
		}
	}
	if from := compaction(messages); from > 0 {
		b.warn(fmt.Sprintf("%d messages in front of the last compaction were left out", from))
		messages = messages[from:]
	}
	for _, m := range messages {
		if err := m.add(b); err != nil {
			return err
		}
	}
	return nil
}

func created(m exported) time.Time { return object(m.info["time"]).when("created") }

// compaction returns where the messages begin that a model sees: with the last
// request for a summary that was answered.
func compaction(messages []exported) int {
	for i := len(messages) - 1; i > 0; i-- {
		if messages[i].info.str("role") != "assistant" || !messages[i].info.yes("summary") {
			continue
		}
		for j := i - 1; j >= 0; j-- {
			if slices.ContainsFunc(messages[j].parts, func(p fields) bool { return p.str("type") == "compaction" }) {
				return j
			}
		}
		return i
	}
	return 0
}

// A steps collects the blocks of a message: an answer, the results of its calls,
// and the next answer, when one message has several.
type steps struct {
	m       exported
	b       *builder
	n       int
	answer  []block
	results []block
	note    note
}

func (m exported) add(b *builder) error {
	at := created(m)
	b.seen(at)
	if m.info.str("role") == "user" {
		var content []block
		for _, p := range m.parts {
			if x := userPart(p, b); x != nil {
				content = append(content, x)
			}
		}
		if content == nil {
			return nil
		}
		return b.add(m.id, "user", content, at, note{})
	}
	s := &steps{m: m, b: b}
	s.note.model = short(m.info.str("modelID"))
	if s.note.model != "" {
		b.s.Model = s.note.model
	}
	u := object(m.info["tokens"])
	cache := object(u["cache"])
	s.note.usage = agent.Usage{
		Input: u.count("input"), Output: u.count("output") + u.count("reasoning"),
		CacheRead: cache.count("read"), CacheWrite: cache.count("write"),
	}
	for _, p := range m.parts {
		if err := s.part(p); err != nil {
			return err
		}
	}
	return s.flush()
}

// userPart reads a part of what the user said.
func userPart(p fields, b *builder) block {
	switch p.str("type") {
	case "text":
		text := p.str("text")
		if p.yes("ignored") || strings.TrimSpace(text) == "" {
			return nil
		}
		if !p.yes("synthetic") {
			b.said(text)
		}
		return textOf(text)
	case "file":
		return inline(p.str("url"), p.str("filename"))
	case "compaction":
		return textOf("[What happened so far?]")
	case "subtask":
		return textOf(p.str("prompt", "description"))
	case "agent", "snapshot", "patch": // what it names stands in the text, or is for an undo
	default:
		b.strange(p.str("type"))
	}
	return nil
}

// part reads a part of an answer.
func (s *steps) part(p fields) error {
	kind := p.str("type")
	if len(s.results) > 0 && (kind == "text" || kind == "reasoning" || kind == "step-start") {
		if err := s.flush(); err != nil {
			return err
		}
	}
	switch kind {
	case "text":
		if text := p.str("text"); strings.TrimSpace(text) != "" && !p.yes("ignored") {
			s.answer = append(s.answer, textOf(text))
		}
	case "reasoning":
		if text := p.str("text"); text != "" {
			s.answer = append(s.answer, thinkingOf(text))
		}
	case "tool":
		s.call(p)
	case "file": // providers take none from a model
		s.answer = append(s.answer, textOf(fmt.Sprintf("[attached: %s]", short(p.str("filename", "mime")))))
	case "step-start", "step-finish", "snapshot", "patch", "retry", "agent", "compaction": // for an undo, the count, the screen
	default:
		s.b.strange(kind)
	}
	return nil
}

// call reads a call with its result, which may be missing.
func (s *steps) call(p fields) {
	state := object(p["state"])
	id := p.str("callID", "id")
	var input any = object(state["input"])
	if state["input"] == nil {
		input = fields{}
	}
	s.answer = append(s.answer, callOf(id, p.str("tool"), input))
	switch state.str("status") {
	case "completed":
		var more []block
		for _, raw := range list(state["attachments"]) {
			f := object(raw)
			more = append(more, inline(f.str("url"), f.str("filename")))
		}
		s.results = append(s.results, resultOf(id, state.str("output"), false, more...))
	case "error":
		s.results = append(s.results, resultOf(id, state.str("error"), true))
	}
}

// flush adds an answer and the results of its calls. What the message used is
// counted with the first.
func (s *steps) flush() error {
	at := created(s.m)
	if len(s.answer) > 0 {
		s.n++
		id := s.m.id
		if s.n > 1 {
			id = fmt.Sprintf("%s/%d", id, s.n)
		}
		if err := s.b.add(id, "assistant", s.answer, at, s.note); err != nil {
			return err
		}
		s.note.usage = agent.Usage{}
	}
	if len(s.results) > 0 {
		if err := s.b.add(fmt.Sprintf("%s/results-%d", s.m.id, s.n), "user", s.results, at, note{}); err != nil {
			return err
		}
	}
	s.answer, s.results = nil, nil
	return nil
}
