package completions

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/auth"
)

// complete answers POST /v1/chat/completions.
func (d *Desk) complete(w http.ResponseWriter, r *http.Request) {
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	default:
		refuse(http.StatusTooManyRequests, "rate_limit_exceeded", "", fmt.Sprintf("%d turns run already; ask again in a moment", maxTurns)).write(w)
		return
	}
	in, err := read(w, r)
	if err != nil {
		refusalOf(err).write(w)
		return
	}
	if in.model != "" {
		if in.model, err = d.resolve(r.Context(), in.model); err != nil {
			refusalOf(err).write(w)
			return
		}
	}
	s, done, err := d.opened(r.Context(), in)
	if err != nil {
		if refusalOf(err).status == http.StatusInternalServerError {
			d.c.Logger.Warn("a request got no session", "error", err)
		}
		refusalOf(err).write(w)
		return
	}
	defer done()
	d.turn(w, r, in, s)
}

// turn has a session answer, and the client read it.
func (d *Desk) turn(w http.ResponseWriter, r *http.Request, in asked, s *client.Session) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	id := rand.Text()
	p := agent.Prompt{ID: "chat_" + id, Text: in.text, Blocks: in.blocks, Later: true, Without: []string{agent.WithoutAll}}
	if err := s.Send(ctx, p); err != nil {
		refusalOf(err).write(w)
		return
	}
	model := s.Info.Model
	if in.model != "" {
		model = in.model
	}
	reply := &reply{ID: "chatcmpl-" + id, Created: time.Now().Unix(), Model: model, session: s.Info.ID}
	o := &outlet{news: make(chan struct{}, 1), whole: !in.stream}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		o.finish(follow(ctx, s, p.ID, o, cancel))
	}()
	if in.stream {
		d.stream(ctx, w, in, reply, o)
	} else {
		d.whole(r.Context(), w, reply, o, gone)
	}
	cancel()
	<-gone
	if o.running() {
		stopping, done := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer done()
		if err := s.Send(stopping, agent.Interrupt{}); err != nil {
			d.c.Logger.Warn("the turn of a client that is gone was not interrupted", "session", s.Info.ID, "error", err)
		}
	}
}

// follow reads the events of a session into an outlet, up to the end of the turn that
// answers an input. A client that does not take what it is told is given up.
func follow(ctx context.Context, s *client.Session, input string, o *outlet, giveUp func()) outcome {
	notes := newScribe(input)
	for e, err := range s.Events(ctx, s.Info.Head) {
		if err != nil {
			return outcome{err: refusalOf(err)}
		}
		piece, end := notes.read(e)
		if notes.begun {
			o.began()
		}
		if piece != "" && !o.add(piece) {
			giveUp()
			return outcome{err: refuse(http.StatusInternalServerError, "too_large", "", "the answer is too large, or taken too slowly")}
		}
		if end != nil {
			return *end
		}
	}
	r := refuse(http.StatusServiceUnavailable, "session_closed", "", "the session was closed before its turn had ended")
	r.final = true
	return outcome{err: r}
}

// outlet is between whoever reads events and whoever writes to the client.
type outlet struct {
	news chan struct{} // holds one when there is something new

	mu    sync.Mutex
	text  []byte // that was not taken
	whole bool   // it is taken at the end
	begun bool   // the turn
	end   *outcome
}

func (o *outlet) tell() {
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// add adds to the text; false = there is too much of it.
func (o *outlet) add(piece string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	limit := maxPending
	if o.whole {
		limit = maxAnswer
	}
	if len(o.text)+len(piece) > limit {
		return false
	}
	o.text = append(o.text, piece...)
	o.tell()
	return true
}

func (o *outlet) began() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun = true
}

func (o *outlet) finish(end outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end = &end
	o.tell()
}

// take returns the text that is there, and the outcome when that is.
func (o *outlet) take() (string, *outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := string(o.text)
	o.text = nil
	return text, o.end
}

// running reports whether the turn has begun, and has not ended.
func (o *outlet) running() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.begun && (o.end == nil || o.end.end.Reason == "")
}

// reply is what answers of a request have in common.
type reply struct {
	ID      string
	Created int64
	Model   string
	session string
}

// usage counts tokens as the API does: what was read from a cache is part of the prompt.
type usage struct {
	Prompt     int         `json:"prompt_tokens"`
	Completion int         `json:"completion_tokens"`
	Total      int         `json:"total_tokens"`
	Details    promptUsage `json:"prompt_tokens_details"`
}

type promptUsage struct {
	Cached int `json:"cached_tokens"`
}

func usageOf(u agent.Usage) usage {
	prompt := u.Input + u.CacheRead + u.CacheWrite
	return usage{prompt, u.Output, prompt + u.Output, promptUsage{u.CacheRead}}
}

// completion is an answer as a whole.
type completion struct {
	ID       string            `json:"id"`
	Object   string            `json:"object"`
	Created  int64             `json:"created"` // seconds since 1970
	Model    string            `json:"model"`
	Choices  []answered        `json:"choices"` // one
	Usage    usage             `json:"usage"`
	Metadata map[string]string `json:"metadata"` // session
}

type answered struct {
	Index    int     `json:"index"`
	Message  said    `json:"message"`
	Finish   string  `json:"finish_reason"` // stop, length or content_filter
	Logprobs *string `json:"logprobs"`      // always null
}

type said struct {
	Role    string  `json:"role"`
	Content string  `json:"content"`
	Refusal *string `json:"refusal"` // always null
}

// errDenied says that a client has no access any more.
func errDenied() *refusal {
	r := refuse(http.StatusUnauthorized, auth.NoToken, "", "the token is missing, or another one")
	r.final = true
	return r
}

// whole answers with one document, when the turn has ended.
func (d *Desk) whole(ctx context.Context, w http.ResponseWriter, r *reply, o *outlet, ended <-chan struct{}) {
	pulse := time.NewTicker(d.pulse)
	defer pulse.Stop()
	for waits := true; waits; {
		select {
		case <-ended:
			waits = false
		case <-pulse.C:
			if !d.c.Still(ctx) {
				errDenied().write(w)
				return
			}
		}
	}
	if ctx.Err() != nil {
		return // nobody reads it
	}
	text, end := o.take()
	w.Header().Set(Header, r.session)
	if end.err != nil {
		end.err.write(w)
		return
	}
	data, err := json.Marshal(completion{
		ID: r.ID, Object: "chat.completion", Created: r.Created, Model: r.Model,
		Choices: []answered{{Message: said{Role: "assistant", Content: text}, Finish: end.finish()}},
		Usage:   usageOf(end.end.Usage), Metadata: map[string]string{"session": r.session},
	})
	if err != nil {
		refusalOf(err).write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // one that cannot be bounded is bounded by the server
	_, _ = w.Write(data)                                                          // a client that is gone reads nothing
}

// errGone says that a client does not read.
var errGone = errors.New("the client is gone")

// stream answers with pieces as they come. An error that comes before all of them is
// answered as such.
func (d *Desk) stream(ctx context.Context, w http.ResponseWriter, in asked, r *reply, o *outlet) {
	pulse := time.NewTicker(d.pulse)
	defer pulse.Stop()
	out := &pieces{w: w, control: http.NewResponseController(w), reply: r, usage: in.usage}
	for {
		beat := false
		select {
		case <-o.news:
		case <-pulse.C:
			beat = true
		case <-ctx.Done():
			return
		}
		if beat && !d.c.Still(ctx) {
			out.deny()
			return
		}
		text, end := o.take()
		if !out.begun && text == "" && end != nil && end.err != nil {
			w.Header().Set(Header, r.session)
			end.err.write(w)
			return
		}
		if err := out.write(text, end, beat); err != nil || end != nil {
			return
		}
	}
}

// pieces writes a stream of the API.
type pieces struct {
	w       http.ResponseWriter
	control *http.ResponseController
	reply   *reply
	usage   bool
	begun   bool
}

// chunk is a piece of a stream.
type chunk struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

type choice struct {
	Index  int     `json:"index"`
	Delta  delta   `json:"delta"`
	Finish *string `json:"finish_reason"`
}

type delta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

// write writes what there is; without anything a sign of life.
func (p *pieces) write(text string, end *outcome, beat bool) error {
	var out []byte
	if !p.begun {
		if text == "" && end == nil && !beat {
			return nil
		}
		p.begun = true
		h := p.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		h.Set(Header, p.reply.session)
		out = p.data(out, p.chunk(choice{Delta: delta{Role: "assistant", Content: new(string)}}))
	}
	if text != "" {
		out = p.data(out, p.chunk(choice{Delta: delta{Content: &text}}))
	}
	switch {
	case end != nil && end.err != nil:
		out = append(append(append(out, "data: "...), end.err.body()...), "\n\n"...)
	case end != nil:
		reason := end.finish()
		out = p.data(out, p.chunk(choice{Finish: &reason}))
		if p.usage {
			u, last := usageOf(end.end.Usage), p.chunk()
			last.Usage = &u
			out = p.data(out, last)
		}
		out = append(out, "data: [DONE]\n\n"...)
	case beat && len(out) == 0:
		out = append(out, ": still there\n\n"...)
	}
	if len(out) == 0 {
		return nil
	}
	if err := p.control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if _, err := p.w.Write(out); err != nil {
		return errors.Join(errGone, err)
	}
	return p.control.Flush()
}

// deny ends the stream of a client that has no access any more.
func (p *pieces) deny() {
	if !p.begun {
		errDenied().write(p.w)
		return
	}
	_ = p.write("", &outcome{err: errDenied()}, false) // whoever has gone does not read it
}

func (p *pieces) chunk(c ...choice) chunk {
	if c == nil {
		c = []choice{}
	}
	return chunk{p.reply.ID, "chat.completion.chunk", p.reply.Created, p.reply.Model, c, nil}
}

func (p *pieces) data(dst []byte, c chunk) []byte {
	data, err := json.Marshal(c)
	if err != nil { // strings and numbers cannot fail
		return dst
	}
	return append(append(append(dst, "data: "...), data...), "\n\n"...)
}
