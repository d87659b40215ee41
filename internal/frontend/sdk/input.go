package sdk

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
)

var (
	errBegun   = errors.New("the session has begun already")
	errNothing = error(&agent.Problem{
		Code: agent.ProblemUsage, Message: "the input has ended before anything was asked",
		Fix: "give each task as a line, or one without --input-format: dure -p --output-format stream-json TASK",
	})
	errKept  = errors.New("too many messages of shouldQuery false wait for one that has an answer")
	errEmpty = errors.New("the message has neither text nor an image")
)

// maxGarbage is how many lines that are no messages are told of, on the standard error.
const maxGarbage = 10

// message is one of the user's.
type message struct {
	ID     string // a UUID
	Text   string
	Blocks []agent.Block
	Steers bool // it does not wait for the turn that runs
	Silent bool // it is no reason for a turn
	Plain  bool // it was not typed: it names neither commands nor files
	Named  bool // the host has named it

	content json.RawMessage // as it came; nil = Text
}

// line takes a line of the input.
func (h *Host) line(l line) {
	if l.wrong != "" {
		h.garbage(errors.New(l.wrong))
		return
	}
	switch l.Type {
	case "user":
		h.user(l.data)
	case "control_request":
		h.request(l)
	case "control_cancel_request", "keep_alive", "update_environment_variables":
	default:
		h.garbage(fmt.Errorf("no message of type %q is known", l.Type))
	}
}

// garbage says of a line that it is no message, and goes on.
func (h *Host) garbage(err error) {
	if h.bad++; h.bad > maxGarbage {
		return
	}
	h.complain(fmt.Errorf("a line of the input does not count: %w", err))
}

// user takes a message of the user. It waits until the turn that runs is over, unless it
// says otherwise.
func (h *Host) user(data []byte) {
	m, err := parseMessage(data)
	if err != nil {
		h.failure(err)
		return
	}
	if m.ID != "" && (h.seen[m.ID] || h.show.known[m.ID]) {
		return // it came twice
	}
	if m.Named = m.ID != ""; !m.Named {
		m.ID = newUUID()
	}
	if h.seen == nil {
		h.seen = map[string]bool{}
	}
	h.seen[m.ID] = true
	if m.Silent {
		h.keep(m)
		return
	}
	if !h.begun && !h.c.Awaits {
		if h.begin(nil) != nil {
			return
		}
	}
	if m.Steers && h.show.busy() && !slashed(m) {
		h.send(m)
		return
	}
	h.queue = append(h.queue, m)
}

// parseMessage reads a message of the user.
func parseMessage(data []byte) (m message, err error) {
	var in struct {
		UUID     string `json:"uuid"`
		Priority string `json:"priority"`
		Query    *bool  `json:"shouldQuery"`
		Composed bool   `json:"client_composed"`
		Message  struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return m, fmt.Errorf("a message of the user: %w", err)
	}
	if in.Message.Role != "" && in.Message.Role != string(agent.User) {
		return m, fmt.Errorf("a message of the user has the role %q", in.Message.Role)
	}
	const maxID = 128
	if len(in.UUID) <= maxID {
		m.ID = in.UUID
	}
	m.content, m.Plain = in.Message.Content, in.Composed
	m.Steers = in.Priority == "now" || in.Priority == "next"
	m.Silent = in.Query != nil && !*in.Query
	if m.Text, m.Blocks, err = parseContent(in.Message.Content); err == nil && strings.TrimSpace(m.Text) == "" && len(m.Blocks) == 0 {
		err = errEmpty
	}
	return m, err
}

// parseContent reads what a message says: a text, or blocks.
func parseContent(content json.RawMessage) (string, []agent.Block, error) {
	var words string
	if json.Unmarshal(content, &words) == nil && !bytes.Equal(content, []byte("null")) {
		return words, nil, nil
	}
	var list []struct {
		Type   string `json:"type"`
		Text   string `json:"text"`
		Title  string `json:"title"`
		Source struct {
			Type      string `json:"type"`
			MediaType string `json:"media_type"`
			Data      string `json:"data"`
			URL       string `json:"url"`
		} `json:"source"`
	}
	if err := json.Unmarshal(content, &list); err != nil {
		return "", nil, fmt.Errorf("the content of a message is neither a text nor a list of blocks: %w", err)
	}
	var texts []string
	var blocks []agent.Block
	for _, b := range list {
		switch b.Type {
		case "text":
			texts = append(texts, b.Text)
			continue
		case "image", "document":
		default:
			return "", nil, fmt.Errorf("a block of type %q cannot be sent; send text, image or document", b.Type)
		}
		media := agent.Media{Type: b.Source.MediaType, Name: b.Title, URL: b.Source.URL}
		switch b.Source.Type {
		case "base64":
			var err error
			if media.Data, err = base64.StdEncoding.DecodeString(b.Source.Data); err != nil {
				return "", nil, fmt.Errorf("the source of a block of type %s: %w", b.Type, err)
			}
		case "text":
			texts = append(texts, b.Source.Data)
			continue
		case "url":
		default:
			return "", nil, fmt.Errorf("a source of type %q cannot be sent; send base64, url or text", b.Source.Type)
		}
		kind := agent.ImageBlock
		if b.Type == "document" {
			kind = agent.DocumentBlock
		}
		blocks = append(blocks, agent.Block{Type: kind, Media: &media})
	}
	return strings.Join(texts, "\n\n"), blocks, nil
}

// next sends the message that waits longest, once nothing runs. What may have been in the
// session before, or is about it, waits until that is known.
func (h *Host) next() {
	for h.sess != nil && h.fatal == nil && len(h.queue) > 0 && !h.show.busy() {
		m := h.queue[0]
		if (m.Named || slashed(m)) && h.show.behind() {
			return
		}
		h.queue = h.queue[1:]
		if h.show.known[m.ID] {
			h.rest()
			continue
		}
		if focus, ok := compactsFor(m); ok {
			h.compact(m, focus)
			continue
		}
		if slashed(m) {
			h.reads(m)
			continue
		}
		h.send(m)
	}
}

// Bounds of the messages that go in front of the next.
const (
	maxKept      = 1000
	maxKeptBytes = 32 << 20
)

// keep keeps a message that asks for no answer.
func (h *Host) keep(m message) {
	size := len(m.content)
	for _, k := range h.kept {
		size += len(k.content)
	}
	if len(h.kept) >= maxKept || size > maxKeptBytes {
		delete(h.seen, m.ID)
		h.failure(errKept)
		return
	}
	h.kept = append(h.kept, m)
}

// behindKept puts what was kept in front of a message, as it came.
func (h *Host) behindKept(p *agent.Prompt) {
	if len(h.kept) == 0 {
		return
	}
	var texts []string
	var blocks []agent.Block
	for _, m := range h.kept {
		texts, blocks = append(texts, m.Text), append(blocks, m.Blocks...)
	}
	texts = slices.DeleteFunc(append(texts, p.Text), func(t string) bool { return strings.TrimSpace(t) == "" })
	p.Text, p.Blocks, h.kept = strings.Join(texts, "\n\n"), append(blocks, p.Blocks...), nil
	if strings.HasPrefix(p.Text, "/") {
		p.Text = " " + p.Text // the session would look for a command
	}
}

// send sends a message to the session.
func (h *Host) send(m message) {
	p := agent.Prompt{ID: m.ID, Text: m.Text, Blocks: m.Blocks, Later: !m.Steers}
	if !slashed(m) { // a command has nothing in front of it
		h.behindKept(&p)
	}
	if m.Plain {
		if p.Without = []string{agent.WithoutAll}; strings.HasPrefix(p.Text, "/") {
			p.Text = " " + p.Text // the session would look for a command
		}
	}
	h.show.sent[m.ID] = m
	h.grace, h.expired = nil, false
	h.setState(stateRunning)
	if err := h.sess.Send(h.ctx, p); err != nil {
		delete(h.show.sent, m.ID)
		h.failure(err)
		h.rest()
	}
}

// interrupt stops the turn that runs.
func (h *Host) interrupt() {
	if h.sess == nil {
		return
	}
	defer h.uncompact()
	if err := h.sess.Send(h.ctx, agent.Interrupt{}); err != nil {
		h.complain(err)
	}
}

// interrupted stops the turn that runs, and says which messages still wait.
func (h *Host) interrupted(body json.RawMessage) (any, error) {
	var in struct {
		Cancel bool `json:"cancel_queued"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	out := map[string]any{"still_queued": []string{}}
	ids := []string{}
	for _, m := range h.queue {
		ids = append(ids, m.ID)
	}
	if in.Cancel {
		h.queue, out["cancelled"] = nil, ids
		for _, id := range ids {
			delete(h.seen, id) // they may come again
		}
	} else {
		out["still_queued"] = ids
	}
	if h.sess != nil {
		if err := h.sess.Send(h.ctx, agent.Interrupt{}); err != nil {
			return nil, err
		}
		h.uncompact()
	}
	return out, nil
}
