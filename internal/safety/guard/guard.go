// Package guard decides what a result may carry back: it masks secrets, takes out
// what does not show, fits the rest into the budget of its tool, and puts what
// could pose as structure between marks.
//
// What does not fit is not lost: the whole cleaned text is stored as a blob that
// can be paged and searched. Nothing is stored or shown before it was cleaned,
// and nothing is cut before that either, so that no half of a secret is left.
// A result that the guard cannot vouch for is an error. It starts no goroutines.
package guard

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"dure/agent"
)

// maxError bounds an error message, and what it suggests, in characters.
const maxError = 1_000

// noOutput stands for a result that says nothing.
const noOutput = "[no output]"

// Config configures a [Guard]. Its zero value works, without a place for what
// does not fit.
type Config struct {
	// Budget returns the user's or the agent's budget for a tool, in characters;
	// 0 = none. It beats the tool's own. nil = none for any.
	Budget func(tool string) int

	// PutBlob stores what it reads to the end. nil loses what does not fit, and
	// the result says so.
	PutBlob func(ctx context.Context, r io.Reader) (sha256 string, size int64, err error)

	MaxSpill int64 // bytes of a blob; 0 = 256 MiB

	// Patterns are the user's own secrets, see [Compile]. nil = none.
	Patterns *Patterns

	// Secret makes the marks unpredictable; nil = 32 bytes from crypto/rand. With
	// the same one, the same results have the same marks.
	Secret []byte

	// Read and Grep are the names under which the model knows the tools that page
	// and search a stored output; "" = Read, Grep.
	Read, Grep string
}

// Guard is safe for concurrent use.
type Guard struct{ Config }

// New returns a Guard.
func New(c Config) *Guard {
	if c.MaxSpill == 0 {
		c.MaxSpill = 256 << 20
	}
	if c.Read == "" {
		c.Read = "Read"
	}
	if c.Grep == "" {
		c.Grep = "Grep"
	}
	if c.Secret == nil {
		c.Secret = make([]byte, 32)
		rand.Read(c.Secret) // never fails
	}
	return &Guard{c}
}

// metaRedacted names the kinds of what was masked, in Result.Meta.
const metaRedacted = "redacted"

// Check returns what the model, the log and hosts may have of a result. It reads
// Result.Stream to its end and closes it; a context that ends meanwhile costs
// what was not read yet. On an error nothing of the result may be used.
func (g *Guard) Check(ctx context.Context, spec agent.Spec, call agent.Call, r agent.Result) (agent.Result, error) {
	c := &checking{Guard: g, ctx: ctx, spec: spec, scope: scopeOf(spec.Group), own: g.Patterns.of(spec.Group), budget: g.budget(spec)}
	stream := r.Stream
	r.Stream, r.Fence = nil, ""
	var p parts
	var err error
	switch {
	case stream != nil:
		p, err = c.stream(stream)
		if cerr := stream.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("closing the output: %w", cerr)
		}
	case r.Text == "" && (len(r.Output) > c.budget || poses(string(r.Output), spec.Group)): // the model reads Output
		p, err = c.text(string(r.Output))
	default:
		p, err = c.text(r.Text)
	}
	if err != nil {
		return agent.Result{}, err
	}
	r.Spill = p.spill
	if r, err = c.rest(r); err != nil {
		return agent.Result{}, err
	}
	switch {
	case p.head != "":
		r.Text, r.Fence = c.fenced(call, p)
	case r.Error != nil:
		r.Text, r.Fence = c.fenced(call, parts{head: r.Error.Message})
	case len(r.Output) == 0 && len(r.Blocks) == 0:
		r.Text = noOutput
	default:
		r.Text = ""
	}
	c.fenceBlocks(call, &r)
	return r, nil
}

// A checking is the work on one result.
type checking struct {
	*Guard
	ctx    context.Context
	spec   agent.Spec
	scope  scope
	own    []ownPattern
	budget int
	kinds  kinds
}

// parts is what is shown of a text: its head alone, or head and tail with a notice
// of ours between them.
type parts struct {
	head, notice, tail string
	own                bool // all of it is ours
	posed              bool // there were masks in it before
	spill              *agent.Spill
}

// clean cleans a string that is shown as it is.
func (c *checking) clean(s string) string {
	s, found := clean(s, c.scope)
	for _, kind := range found {
		c.kinds.found(kind)
	}
	if len(c.own) > 0 {
		return string(mask(nil, []byte(s), c.own, &c.kinds))
	}
	return s
}

// rest cleans everything but the text.
func (c *checking) rest(r agent.Result) (agent.Result, error) {
	var err error
	if r.Output, err = cleanOutput(r.Output, c.clean); err != nil {
		return agent.Result{}, fmt.Errorf("cleaning the structured output: %w", err)
	}
	meta := make(map[string]json.RawMessage, len(r.Meta)+1)
	for k, v := range r.Meta {
		if meta[k], err = cleanOutput(v, c.clean); err != nil {
			return agent.Result{}, fmt.Errorf("cleaning %s: %w", k, err)
		}
	}
	r.Blocks = slices.Clone(r.Blocks)
	for i, b := range r.Blocks {
		r.Blocks[i].Text = c.clean(b.Text)
		if b.Media != nil {
			m := *b.Media
			m.Name, m.URL = c.clean(m.Name), c.clean(m.URL)
			r.Blocks[i].Media = &m
		}
	}
	if r.Error != nil {
		e := *r.Error
		e.Message = limit(c.clean(e.Message), maxError)
		e.Suggestion = limit(c.clean(e.Suggestion), maxError)
		e.Name, e.HelpURL = limit(c.clean(e.Name), maxError), limit(c.clean(e.HelpURL), maxError)
		r.Error = &e
	}
	if len(c.kinds) > 0 {
		meta[metaRedacted] = encode(c.kinds.sorted())
	}
	if len(meta) > 0 {
		r.Meta = meta
	}
	return r, nil
}

// text fits a text that is in memory. Most are small and clean: they pass
// without a copy.
func (c *checking) text(s string) (parts, error) {
	if len(s) <= c.budget && len(c.own) == 0 && isPlain(s) {
		f := finder{financial: c.scope.financial}
		if _, found := f.find([]byte(s), 0, len(s)); !found {
			return parts{head: s, posed: f.posed}, nil
		}
	}
	return c.stream(strings.NewReader(s))
}

// peekSize is how much of an output tells whether it is text.
const peekSize = 8 << 10

// stream cleans what src has and fits it into the budget, in bounded memory.
func (c *checking) stream(src io.Reader) (parts, error) {
	src = &untilDone{c.ctx, src}
	first := make([]byte, peekSize)
	n, err := io.ReadFull(src, first)
	first = first[:n]
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return parts{}, fmt.Errorf("reading the output: %w", err)
	}
	if isBinary(first) {
		rest, err := io.Copy(io.Discard, src)
		if err != nil {
			return parts{}, fmt.Errorf("reading the output: %w", err)
		}
		return parts{head: fmt.Sprintf("[binary output, %d bytes%s: not shown]", int64(n)+rest, kindOf(first)), own: true}, nil
	}
	f := newFilter(io.MultiReader(bytes.NewReader(first), src), c.scope)
	var cleaned io.Reader = f
	if len(c.own) > 0 {
		cleaned = &ownFilter{src: f, patterns: c.own, kinds: &c.kinds}
	}
	p, err := c.fit(cleaned)
	p.posed = f.posed()
	for _, kind := range f.kinds() {
		c.kinds.found(kind)
	}
	return p, err
}

// untilDone reads until a context ends.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u *untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}

const truncated = "... (truncated)"

// limit cuts s to n characters, the mark that says so included.
func limit(s string, n int) string {
	if len(s) <= n {
		return s
	}
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	if n <= len(truncated) {
		return string(runes[:max(n, 0)])
	}
	return string(runes[:n-len(truncated)]) + truncated
}
