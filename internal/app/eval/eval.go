// Package eval decides on calls that nobody makes, and guards and shortens texts that are in
// no session: a line of JSON in, a line out. It runs nothing and starts no goroutines.
package eval

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"

	"dure/agent"
	"dure/internal/kernel/loop"
	"dure/internal/knowledge/compact"
	"dure/internal/safety/guard"
	"dure/internal/safety/policy"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
)

// Case is a call that is to be decided on, with the rules to go by.
type Case struct {
	ID    json.RawMessage `json:"id"` // goes back as it came
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input"`
	Rules Rules           `json:"rules"`
	Mode  string          `json:"mode"` // "" = default

	Cwd   string   `json:"cwd"` // workspace, current folder and place of the rules; "" = that of the evaluator
	Extra []string `json:"additional_dirs"`
	Home  string   `json:"home"` // "" = that of the evaluator
}

// Rules are rules as settings have them.
type Rules struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
	Ask   []string `json:"ask"`
}

// Verdict is what was decided: allow, ask or deny.
type Verdict struct {
	ID      json.RawMessage `json:"id"`
	Verdict agent.Verdict   `json:"verdict"`
	By      string          `json:"by"`
	Reason  string          `json:"reason"`
}

// Evaluator decides on calls that nobody makes, by the same gate as on all
// others. It takes full confinement for given, reads no settings, runs nothing,
// and looks at the disk only to find out where paths lead. It is for one
// goroutine.
type Evaluator struct {
	Dir  string // absolute; the folder of cases that name none
	Home string // "" = none is known

	places map[string]*Place
}

// The limits of an evaluation.
const (
	maxLine   = 16 << 20 // bytes of one case
	maxPlaces = 64       // that are kept at hand
)

// Place is what cases with one folder have in common.
type Place struct {
	ws      *workspace.Workspace
	extra   []string
	Catalog *catalog.Catalog
	step    *catalog.Step
}

// Run decides on the cases of in, one a line, and writes a verdict for each, in
// their order. A line that is no case is denied. Its errors are those of reading
// and writing.
func (v *Evaluator) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	return eachLine(ctx, in, out, func(line []byte) any {
		var c Case
		if err := json.Unmarshal(line, &c); err != nil {
			var id struct{ ID json.RawMessage }
			_ = json.Unmarshal(line, &id) // of what is wrong, the name may be right
			return Verdict{ID: known(id.ID), Verdict: agent.Deny, By: "input", Reason: "the case cannot be read: " + err.Error()}
		}
		return v.Decide(ctx, c)
	})
}

// Guard guards the texts of in, one a line, and writes what is left of each, in
// their order. A line that is none is answered with an error.
func Guard(ctx context.Context, in io.Reader, out io.Writer) error {
	return eachLine(ctx, in, out, func(line []byte) any {
		g, err := guard.EvalLine(line)
		if err != nil {
			return map[string]any{"id": g.ID, "error": err.Error()}
		}
		return g
	})
}

// Shorten shortens the conversations of in, a case a line, and writes to out what
// became of each, see [compact.Case] and [compact.Verdict].
func Shorten(ctx context.Context, in io.Reader, out io.Writer) error {
	return eachLine(ctx, in, out, func(line []byte) any { return compact.Evaluate(ctx, line) })
}

// eachLine answers every line of in that is not empty with one line of JSON.
func eachLine(ctx context.Context, in io.Reader, out io.Writer, answer func(line []byte) any) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	w := bufio.NewWriterSize(out, 64<<10)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for {
		line, err := readLine(lines)
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(fmt.Errorf("reading the input: %w", err), w.Flush())
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := e.Encode(answer(line)); err != nil {
				return fmt.Errorf("writing the answer: %w", err)
			}
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), w.Flush())
		}
		if lines.Buffered() == 0 { // somebody may be waiting for the answer
			if err := w.Flush(); err != nil {
				return fmt.Errorf("writing the answer: %w", err)
			}
		}
	}
}

// readLine returns the next line; of one that is too long, nothing but its start.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if room := maxLine - len(line); room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// Decide decides on one case.
func (v *Evaluator) Decide(ctx context.Context, c Case) Verdict {
	d, err := v.decide(ctx, c)
	if err != nil {
		d = agent.Decision{Verdict: agent.Deny, By: "input", Reason: err.Error()}
	}
	return Verdict{ID: known(c.ID), Verdict: d.Verdict, By: d.By, Reason: d.Reason}
}

func known(id json.RawMessage) json.RawMessage {
	if len(id) == 0 {
		return json.RawMessage("null")
	}
	return id
}

// decide takes a case through what every call goes through before it runs. An
// error is a call that would not have come to the gate.
func (v *Evaluator) decide(ctx context.Context, c Case) (agent.Decision, error) {
	dir := c.Cwd
	switch {
	case dir == "":
		dir = v.Dir
	case !filepath.IsAbs(dir):
		dir = filepath.Join(v.Dir, dir)
	}
	home := c.Home
	if home == "" {
		home = v.Home
	}
	place, err := v.Place(dir, c.Extra, home)
	if err != nil {
		return agent.Decision{}, err
	}
	prop, err := place.Propose(ctx, c, dir)
	if err != nil {
		return agent.Decision{}, err
	}
	mode := c.Mode
	if mode == "manual" { // another name for it
		mode = string(agent.ModeDefault)
	}
	cfg := place.Config(dir, home)
	cfg.Mode, cfg.Allow, cfg.Deny, cfg.Ask = agent.Mode(mode), c.Rules.Allow, c.Rules.Deny, c.Rules.Ask
	pol, err := policy.New(cfg)
	if err != nil {
		return agent.Decision{}, err
	}
	return pol.Decide(prop), nil
}

// Place returns what cases in a folder have in common.
func (v *Evaluator) Place(dir string, extra []string, home string) (*Place, error) {
	key := strings.Join(append([]string{dir, home}, extra...), "\x00")
	if p, ok := v.places[key]; ok {
		return p, nil
	}
	abs := make([]string, len(extra))
	for i, e := range extra {
		switch {
		case e == "~" || strings.HasPrefix(e, "~/"):
			e = filepath.Join(home, e[1:])
		case !filepath.IsAbs(e):
			e = filepath.Join(dir, e)
		}
		abs[i] = e
	}
	ws, err := workspace.New(workspace.Config{Root: dir, Extra: abs, Absent: true})
	if err != nil {
		return nil, err
	}
	p := &Place{ws: ws, extra: abs, Catalog: catalog.New(catalog.Config{})}
	for _, t := range planners(ws, home) {
		if err := p.Catalog.Register(t, catalog.BuiltIn, ""); err != nil {
			return nil, err
		}
	}
	p.step = p.Catalog.Step(nil)
	if len(v.places) >= maxPlaces || v.places == nil {
		v.places = map[string]*Place{}
	}
	v.places[key] = p
	return p, nil
}

// Config is a policy without rules.
func (p *Place) Config(dir, home string) policy.Config {
	return policy.Config{
		Canonical: p.Catalog.Canonical, Resolve: p.ws.Resolve, Inside: p.ws.Inside, Key: p.ws.Key,
		Dir: dir, Extra: p.extra, Home: home, PowerShell: runtime.GOOS == "windows",
	}
}

// usual are inputs that a case may leave out, because no decision depends on
// them.
var usual = map[string]json.RawMessage{
	"content": json.RawMessage(`""`), "old_string": json.RawMessage(`"a"`), "new_string": json.RawMessage(`"b"`),
	"edits":      json.RawMessage(`[{"old_string":"a","new_string":"b"}]`),
	"new_source": json.RawMessage(`""`), "pattern": json.RawMessage(`"*"`), "prompt": json.RawMessage(`"a"`),
}

// Propose plans a call.
func (p *Place) Propose(ctx context.Context, c Case, dir string) (agent.Proposal, error) {
	call := agent.Call{ID: "call", Tool: c.Tool, Input: c.Input}
	if len(call.Input) == 0 {
		call.Input = json.RawMessage(`{}`)
	}
	name, _ := p.Catalog.Canonical(c.Tool)
	tool, ok := p.step.Lookup(name)
	if !ok {
		return foreign(call)
	}
	spec := tool.Spec()
	call.Tool = spec.Name
	input, bad := p.step.Check(spec, completed(spec, call.Input), false)
	if bad != nil {
		return agent.Proposal{}, bad
	}
	call.Input = input
	effects, err := tool.Plan(ctx, agent.ToolContext{Workdir: dir}, call)
	if err != nil {
		return agent.Proposal{}, err
	}
	return loop.Propose(call, spec, effects), nil
}

// completed fills in what a case has left out.
func completed(spec agent.Spec, input json.RawMessage) json.RawMessage {
	var schema struct {
		Required []string `json:"required"`
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(spec.Input, &schema) != nil || json.Unmarshal(input, &object) != nil || object == nil {
		return input
	}
	changed := false
	for _, name := range schema.Required {
		if value, ok := usual[name]; ok && object[name] == nil {
			object[name], changed = value, true
		}
	}
	if !changed {
		return input
	}
	full, err := json.Marshal(object)
	if err != nil {
		return input
	}
	return full
}

// foreign is a call of a tool that comes from elsewhere: a server, a skill, an
// agent. Nothing is known of what it does but that it may be asked for.
func foreign(call agent.Call) (agent.Proposal, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(call.Input, &object); err != nil {
		return agent.Proposal{}, fmt.Errorf("the input is not a JSON object: %w", err)
	}
	switch {
	case strings.HasPrefix(call.Tool, "mcp__"), call.Tool == "Agent", call.Tool == "Task", call.Tool == "Skill":
		return agent.Proposal{Call: call, Class: agent.Unsafe, Group: "custom", Risk: agent.RiskMedium}, nil
	}
	return agent.Proposal{}, fmt.Errorf("unknown tool: %s", call.Tool)
}
