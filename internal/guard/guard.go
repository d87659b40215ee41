// Package guard decides what a result may carry back: it takes out control
// characters and secrets, and fits the rest into the budget of its tool.
//
// What does not fit is not lost: the whole cleaned text is stored as a blob that
// can be paged and searched. Nothing is stored or shown before it was cleaned,
// and nothing is cut before that either, so that no half of a secret is left.
// A result that the guard cannot vouch for is an error. It starts no goroutines.
package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"dure/agent"
)

// The budgets, in characters.
const (
	defaultBudget = 6_000
	maxBudget     = 50_000  // whatever a tool or the user asks for
	ceiling       = 100_000 // of any text in a result
	errorLimit    = 1_000   // of an error message
)

// budgets are those of the built-in tools.
var budgets = map[string]int{
	"file-system__read":       12_000,
	"file-system__grep":       8_000,
	"file-system__list":       4_000,
	"file-system__multi-read": 20_000,
	"bash__exec":              10_000,
	"bash__script":            10_000,
	"http__request":           8_000,
	"git__run":                6_000,
}

// exactGroup is the group of tools that show files as they are: an edit has to
// find again what was read. There only what a terminal would obey is changed.
const exactGroup = "files"

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

	MaxSpill   int64 // bytes of a blob; 0 = 256 MiB
	ErrorLimit int   // characters of an error message; 0 = 1,000

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
	if c.ErrorLimit == 0 {
		c.ErrorLimit = errorLimit
	}
	if c.Read == "" {
		c.Read = "Read"
	}
	if c.Grep == "" {
		c.Grep = "Grep"
	}
	return &Guard{c}
}

// Check returns what the model, the log and hosts may have of a result. It reads
// Result.Stream to its end and closes it; a context that ends meanwhile costs
// what was not read yet. On an error nothing of the result may be used.
func (g *Guard) Check(ctx context.Context, spec agent.Spec, _ agent.Call, r agent.Result) (agent.Result, error) {
	exact := spec.Group == exactGroup
	budget := g.budget(spec)
	stream := r.Stream
	r.Stream = nil
	var err error
	switch {
	case stream != nil:
		r.Text, r.Spill, err = g.stream(ctx, stream, exact, budget)
		if cerr := stream.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("closing the output: %w", cerr)
		}
	case r.Text == "" && len(r.Output) > budget: // the model reads Output
		r.Text, r.Spill, err = g.text(ctx, string(r.Output), exact, budget)
	default:
		r.Text, r.Spill, err = g.text(ctx, r.Text, exact, budget)
	}
	if err != nil {
		return agent.Result{}, err
	}
	return g.rest(r, exact)
}

// rest cleans everything but the text.
func (g *Guard) rest(r agent.Result, exact bool) (agent.Result, error) {
	var err error
	if r.Output, err = cleanOutput(r.Output, exact); err != nil {
		return agent.Result{}, fmt.Errorf("cleaning the structured output: %w", err)
	}
	if len(r.Meta) > 0 {
		meta := make(map[string]json.RawMessage, len(r.Meta))
		for k, v := range r.Meta {
			if meta[k], err = cleanOutput(v, exact); err != nil {
				return agent.Result{}, fmt.Errorf("cleaning %s: %w", k, err)
			}
		}
		r.Meta = meta
	}
	for i, b := range r.Blocks {
		if t := clean(b.Text, exact); t != b.Text {
			r.Blocks = append([]agent.Block(nil), r.Blocks...)
			r.Blocks[i].Text = t
		}
	}
	if r.Error != nil {
		e := *r.Error
		e.Message = limit(clean(e.Message, false), g.ErrorLimit)
		e.Suggestion = limit(clean(e.Suggestion, false), g.ErrorLimit)
		r.Error = &e
		if r.Text == "" {
			r.Text = e.Message
		}
	}
	if r.Text == "" && len(r.Output) == 0 && len(r.Blocks) == 0 {
		r.Text = noOutput
	}
	return r, nil
}

// budget returns a tool's budget: the user's, the tool's own, the table's.
func (g *Guard) budget(spec agent.Spec) int {
	n := 0
	if g.Budget != nil {
		n = g.Budget(spec.Name)
	}
	if n <= 0 {
		n = spec.Budget
	}
	if n <= 0 {
		n = budgets[spec.Name]
	}
	if n <= 0 {
		n = defaultBudget
	}
	return min(n, maxBudget, ceiling)
}

// text fits a text that is in memory. Most are small and clean: they pass
// without a copy.
func (g *Guard) text(ctx context.Context, s string, exact bool, budget int) (string, *agent.Spill, error) {
	if len(s) <= budget && isClean(s, exact) {
		return s, nil, nil
	}
	return g.stream(ctx, strings.NewReader(s), exact, budget)
}

// peekSize is how much of an output tells whether it is text.
const peekSize = 8 << 10

// stream cleans what src has and fits it into the budget, in bounded memory.
func (g *Guard) stream(ctx context.Context, src io.Reader, exact bool, budget int) (string, *agent.Spill, error) {
	src = &untilDone{ctx, src}
	first := make([]byte, peekSize)
	n, err := io.ReadFull(src, first)
	first = first[:n]
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", nil, fmt.Errorf("reading the output: %w", err)
	}
	if isBinary(first) {
		rest, err := io.Copy(io.Discard, src)
		if err != nil {
			return "", nil, fmt.Errorf("reading the output: %w", err)
		}
		return fmt.Sprintf("[binary output, %d bytes%s: not shown]", int64(n)+rest, kindOf(first)), nil, nil
	}
	return g.fit(ctx, newFilter(io.MultiReader(bytes.NewReader(first), src), exact), budget)
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
