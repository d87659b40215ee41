package lsp

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed diagnostics.md
var diagnosticsText string

// Limits of a call.
const (
	askWait   = 15 * time.Second
	askLimit  = 30 * time.Second
	askBudget = 6_000 // characters of a result
	askLines  = 50    // diagnostics
)

type diagnosticsInput struct {
	Path string `json:"path"`
}

// asking is code__diagnostics.
type asking struct {
	kit.Tool
	client *Client
}

// Enabled is [Client.Enabled].
func (a asking) Enabled() bool { return a.client.Enabled() }

// Tools returns code__diagnostics.
func (l *Client) Tools() []agent.Tool {
	return []agent.Tool{asking{client: l, Tool: kit.Tool{
		About: agent.Spec{
			Name: "code__diagnostics", Description: kit.Describe(diagnosticsText),
			Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":false}`),
			Class: agent.Read, Group: "code", Risk: agent.RiskLow, Limit: askLimit, Budget: askBudget,
			Aliases: map[string]string{"file_path": "path", "file": "path", "uri": "path"},
		},
		Touches: l.plan,
		Does:    l.diagnose,
	}}}
}

// target returns the file that a call names, absolute; "" = it names none.
func (l *Client) target(tc agent.ToolContext, c agent.Call) (string, error) {
	in, err := kit.Decode[diagnosticsInput](c)
	if err != nil || in.Path == "" {
		return "", err
	}
	path, err := kit.Path(tc, l.Root, in.Path)
	if err != nil {
		return "", err
	}
	if _, _, ok := l.spec(path); !ok {
		return "", kit.Refuse(agent.ErrInput, "no language server that is installed knows "+filepath.Base(path), "There are servers for "+l.extensions()+"; otherwise build the project.")
	}
	return path, nil
}

// extensions lists the files for which there are servers.
func (l *Client) extensions() string {
	known := map[string]bool{}
	for _, s := range l.Servers {
		if l.installed()[s.Name] != "" {
			for e := range s.Languages {
				known[e] = true
			}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(known)), " ")
}

// plan says that the server is run when it is not running yet.
func (l *Client) plan(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
	path, err := l.target(tc, c)
	if err != nil {
		return agent.Effects{}, err
	}
	if path == "" {
		var e agent.Effects
		for _, s := range l.all() {
			e.Reads = append(e.Reads, s.files()...)
		}
		return e, nil
	}
	e := agent.Effects{Reads: []string{path}}
	if l.runs(path) == nil {
		_, argv, _ := l.spec(path)
		e.Runs = [][]string{argv}
	}
	return e, nil
}

// files returns the files that the server knows.
func (s *server) files() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, d := range s.docs {
		list = append(list, d.path)
	}
	slices.Sort(list)
	return list
}

func (l *Client) diagnose(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	path, err := l.target(tc, c)
	if err != nil {
		return agent.Result{}, err
	}
	if path == "" {
		var list []waiting
		for _, s := range l.all() {
			for _, p := range s.files() {
				list = append(list, waiting{s: s, path: p})
			}
		}
		if len(list) == 0 {
			return agent.OK("[no file was edited or asked about yet: name one]"), nil
		}
		return l.wait(ctx, tc, list), nil
	}
	if _, err := l.FS.Stat(path); err != nil {
		return agent.Result{}, kit.Refuse(agent.ErrTool, "reading "+l.shown(tc, path)+": "+err.Error(), "Name an existing file.")
	}
	s := l.server(path, true)
	if s == nil {
		return agent.Result{}, kit.Refuse(agent.ErrAborted, "the language servers are closed", "")
	}
	return l.wait(ctx, tc, []waiting{{s: s, path: path}}), nil
}

// diagnosticsAnswer is the answer for hooks and hosts.
type diagnosticsAnswer struct {
	Files    int `json:"files"`
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Late     int `json:"unanswered"`
}

// wait asks about files and renders what is found.
func (l *Client) wait(ctx context.Context, tc agent.ToolContext, list []waiting) agent.Result {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	for i, w := range list {
		list[i].turn = w.s.ask(w.path)
	}
	var a diagnosticsAnswer
	var lines, notes []string
	for _, w := range list {
		a.Files++
		how := dead
		if w.turn > 0 {
			how = w.s.await(ctx, w.path, w.turn)
		}
		if how != fresh {
			a.Late++
			notes = append(notes, l.excuse(tc, w, how))
			continue
		}
		found := w.s.all(w.path)
		for _, f := range found {
			if f.Severity == severeError {
				a.Errors++
			} else {
				a.Warnings++
			}
		}
		lines = append(lines, l.render(tc, w.s, w.path, found)...)
	}
	if n := len(lines) - askLines; n > 0 {
		lines = append(lines[:askLines], fmt.Sprintf("[%d more]", n))
	}
	if n := len(notes) - 10; n > 0 {
		notes = append(notes[:10], fmt.Sprintf("[%d more files without an answer]", n))
	}
	if lines = append(lines, notes...); len(lines) == 0 {
		lines = []string{"[no errors or warnings]"}
	}
	r := agent.OK(strings.Join(lines, "\n"))
	r.Output = kit.Structured(a)
	return r
}

// all returns the diagnostics of a file, which counts as reporting them.
func (s *server) all(path string) []diagnostic {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.docs[key(path)]
	if d == nil {
		return nil
	}
	d.reported = d.findings
	return d.findings
}

// excuse says why there are no diagnostics for a file.
func (l *Client) excuse(tc agent.ToolContext, w waiting, how outcome) string {
	name, file := w.s.spec.Name, l.shown(tc, w.path)
	switch how {
	case gone:
		return fmt.Sprintf("[%s: %s cannot be read as text, is larger than %d MiB, or is gone]", name, file, maxText>>20)
	case dead:
		return fmt.Sprintf("[%s does not run: it ended too often, or has too much to do]", name)
	}
	return fmt.Sprintf("[%s has not answered about %s yet; it may still be reading the project: ask again]", name, file)
}
