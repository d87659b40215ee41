package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"dure/agent"
	"dure/agent/query"
)

// Case is a call with what a policy should say about it.
type Case struct {
	ID     string          `json:"id"`
	Tool   string          `json:"tool"` // in any spelling
	Input  json.RawMessage `json:"input"`
	Mode   agent.Mode      `json:"mode,omitempty"` // "" = the policy's
	Cwd    string          `json:"cwd,omitempty"`
	Expect agent.Verdict   `json:"expect"`
	Rule   string          `json:"rule,omitempty"` // the rule that has to decide; "" = any
	Why    string          `json:"why,omitempty"`

	Line int `json:"-"`
}

// ParseCases reads expectations, one JSON object on each line. Empty lines and
// those that begin with // are skipped.
func ParseCases(data []byte, file string) ([]Case, error) {
	var cases []Case
	ids := map[string]int{}
	line := 0
	for text := range bytes.Lines(data) {
		line++
		text = bytes.TrimSpace(text)
		if len(text) == 0 || bytes.HasPrefix(text, []byte("//")) {
			continue
		}
		c := Case{Line: line}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		err := d.Decode(&c)
		if err == nil {
			if _, more := d.Token(); !errors.Is(more, io.EOF) {
				err = errors.New("something stands behind the case")
			}
		}
		if err == nil && c.Expect != agent.Allow && c.Expect != agent.AskUser && c.Expect != agent.Deny {
			err = fmt.Errorf("%q is none of allow, ask, deny", c.Expect)
		}
		if err == nil && ids[c.ID] != 0 && c.ID != "" {
			err = fmt.Errorf("id %q stands in line %d too", c.ID, ids[c.ID])
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s:%d: %w", file, line, err)
		}
		ids[c.ID] = line
		cases = append(cases, c)
	}
	return cases, nil
}

// Report is what became of expectations.
type Report struct {
	Cases    int       `json:"cases"`
	Rules    int       `json:"rules"`
	Failures []Failure `json:"failures"`
	Unused   []string  `json:"unused"` // rules that decided no case, and no piece of one
}

// OK reports whether everything is as expected, and every rule of use.
func (r Report) OK() bool { return len(r.Failures) == 0 && len(r.Unused) == 0 }

// Failure is a case in which the policy says something else.
type Failure struct {
	Line        int                `json:"line"`
	ID          string             `json:"id,omitempty"`
	Expect      agent.Verdict      `json:"expect"`
	Error       string             `json:"error,omitempty"` // the case could not be planned
	Explanation *query.Explanation `json:"explanation,omitempty"`
}

// Test decides on cases and compares what comes out with what is expected. Plan
// says what a case would do.
func Test(c Config, cases []Case, plan func(Case) (agent.Proposal, error)) (Report, error) {
	p, err := New(c)
	if err != nil {
		return Report{}, err
	}
	rep := Report{Cases: len(cases), Rules: len(c.Rules), Failures: []Failure{}, Unused: []string{}}
	fail := func(k Case, e *query.Explanation, fault string) {
		rep.Failures = append(rep.Failures, Failure{k.Line, k.ID, k.Expect, fault, e})
	}
	type name struct{ text, source string }
	used := map[name]bool{}
	base := p.state.Load()
	for _, k := range cases {
		prop, err := plan(k)
		if err != nil {
			fail(k, nil, err.Error())
			continue
		}
		s := base
		if k.Mode != "" {
			if err := checkMode(k.Mode); err != nil {
				fail(k, nil, err.Error())
				continue
			}
			with := *base
			with.Mode = k.Mode
			s = &with
		}
		d, pieces := s.explain(prop)
		for _, o := range d.Trace {
			if o.Rule == d.Rule && o.Verdict == d.Verdict {
				used[name{o.Rule, o.Source}] = true
			}
		}
		if d.Verdict == agent.Allow {
			for _, piece := range pieces {
				used[name{piece.Rule, piece.Source}] = true
			}
		}
		if d.Verdict != k.Expect || k.Rule != "" && d.Rule != k.Rule {
			fail(k, &query.Explanation{Decision: d, Pieces: pieces}, "")
		}
	}
	for _, r := range c.all(nil) {
		ready, _, err := base.try(r)
		if err == nil && ready != nil && ready.not {
			continue // an exception decides nothing: without it, another rule would
		}
		if err != nil || ready == nil || !used[name{ready.text, ready.source}] {
			rep.Unused = append(rep.Unused, strings.TrimSuffix(r.Text+" ("+r.Source.String()+")", " ()"))
		}
	}
	return rep, nil
}
