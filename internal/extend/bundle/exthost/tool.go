package exthost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"dure/agent"
)

// A Resource is a tool resource of a bundle: code with what it exports.
type Resource struct {
	Name    string
	Runtime Runtime

	// Entry is a path below the root for [Node] and [Process], an address for [HTTP],
	// the name of a server for [MCP], and the name of a function for [Builtin]; there
	// "" = each export has one of its own name.
	Entry   string
	Args    []string // of an executable
	Exports []Export

	// ErrorLimit is the most characters of a message of an error; 0 = 1000.
	ErrorLimit int

	// Sign signs calls in; nil = they need nobody.
	Sign Sign
}

// An Export is a tool of a resource: its name there, and how it is known to models.
type Export struct {
	Name string
	Spec agent.Spec
}

// usualErrors is how long messages of errors are.
const usualErrors = 1000

// Tools returns the tools of a resource. It looks at what can be told without running
// code; [Host.Check] runs it.
func (h *Host) Tools(r Resource) ([]agent.Tool, error) {
	if err := h.fits(r); err != nil {
		return nil, fmt.Errorf("the tool %s: %w", r.Name, err)
	}
	if r.ErrorLimit <= 0 {
		r.ErrorLimit = usualErrors
	}
	var all []agent.Tool
	for _, e := range r.Exports {
		all = append(all, &foreign{host: h, from: r, export: e.Name, spec: e.Spec})
	}
	return all, nil
}

func (h *Host) fits(r Resource) error {
	if len(r.Exports) == 0 {
		return errors.New("it exports nothing")
	}
	for i, e := range r.Exports {
		if slices.ContainsFunc(r.Exports[:i], func(o Export) bool { return o.Name == e.Name }) {
			return fmt.Errorf("it exports %q twice", e.Name)
		}
	}
	if r.Sign != nil {
		if err := r.Signable(); err != nil {
			return err
		}
	}
	switch r.Runtime {
	case Node, Process:
		_, err := h.below(r.Entry)
		return err
	case HTTP:
		u, err := url.Parse(r.Entry)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("%q is no address of http or https", r.Entry)
		}
		if h.c.Post == nil {
			return errors.New("nothing is asked over HTTP here")
		}
	case MCP:
		if r.Entry == "" || h.c.Invoke == nil {
			return fmt.Errorf("there is no MCP server %q here", r.Entry)
		}
	case Builtin:
		for _, e := range r.Exports {
			if h.builtin(r, e.Name) == nil {
				return fmt.Errorf("there is no built-in function for %q", e.Name)
			}
		}
	default:
		return fmt.Errorf("nothing here runs %q: node, process, http, builtin and mcp are known", r.Runtime)
	}
	return nil
}

// below returns where an entry is, which has to be a file below the root.
func (h *Host) below(entry string) (string, error) {
	clean := path.Clean(filepath.ToSlash(entry))
	if entry == "" || !filepath.IsLocal(filepath.FromSlash(clean)) {
		return "", fmt.Errorf("its entry %q is no path in the bundle", entry)
	}
	real, err := filepath.EvalSymlinks(filepath.Join(h.c.Root, filepath.FromSlash(clean)))
	if err != nil {
		return "", fmt.Errorf("its entry %q: there is no such file in the bundle", entry)
	}
	root, err := filepath.EvalSymlinks(h.c.Root)
	if err != nil {
		return "", fmt.Errorf("opening the folder of the bundle: %w", err)
	}
	if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("its entry %q leads out of the bundle", entry)
	}
	return real, nil
}

func (h *Host) builtin(r Resource, export string) Func {
	if r.Entry != "" {
		return h.c.Builtins[r.Entry]
	}
	return h.c.Builtins[export]
}

// foreign is a tool whose code is not ours.
type foreign struct {
	host   *Host
	from   Resource
	export string
	spec   agent.Spec
}

func (f *foreign) Spec() agent.Spec {
	s := f.spec
	if s.Limit == 0 {
		s.Limit = f.host.c.Limits.Call
	}
	return s
}

// Plan says what runs. What that does then nobody can tell from the input, so the rules
// for the tool itself decide.
func (f *foreign) Plan(ctx context.Context, _ agent.ToolContext, _ agent.Call) (agent.Effects, error) {
	e := agent.Effects{Transactional: f.spec.Transactional, Sensitive: f.spec.Sensitive}
	if asks := f.host.c.Asks; f.from.Runtime == MCP && asks != nil {
		person, err := asks(ctx, f.from.Entry, f.export)
		if err != nil {
			return e, err
		}
		e.Transactional = e.Transactional || person
	}
	if f.from.Runtime == HTTP {
		if u, err := url.Parse(f.from.Entry); err == nil {
			e.Hosts = []string{u.Host}
		}
	}
	return e, nil
}

func (f *foreign) Run(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.Spec().Limit, overdue{f.Spec().Limit})
	defer cancel()
	var r agent.Result
	var err error
	var cred *Credential
	if f.from.Sign != nil {
		if cred, r = f.from.Sign(ctx, f.export, nil); cred == nil {
			return r, nil
		}
	}
	switch f.from.Runtime {
	case Node:
		r, err = f.host.node.run(ctx, f.from.Entry, f.export, tc, c, cred)
	case Process:
		r, err = f.host.once(ctx, f.from, f.export, tc, c, cred)
	case HTTP:
		r, err = f.host.post(ctx, f.from, f.export, tc, c, cred)
	case MCP:
		r, err = f.host.c.Invoke(ctx, f.from.Entry, f.export, c.Input)
	case Builtin:
		r, err = native(ctx, f.host.builtin(f.from, f.export), tc, c.Input)
	}
	if err != nil {
		return failure(err, f.from.ErrorLimit), nil
	}
	return r, nil
}

// native runs a function of Go. What it panics with is its error.
func native(ctx context.Context, f Func, tc agent.ToolContext, input json.RawMessage) (r agent.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	v, err := f(ctx, tc, input)
	if err != nil {
		return r, err
	}
	if r, ok := v.(agent.Result); ok {
		return r, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return r, fmt.Errorf("its answer is no JSON: %w", err)
	}
	return result(data), nil
}

// result is what a model reads of a value.
func result(value json.RawMessage) agent.Result {
	if len(value) == 0 {
		value = json.RawMessage("null")
	}
	r := agent.Result{Status: agent.StatusOK, Output: value}
	var text string
	if json.Unmarshal(value, &text) == nil && value[0] == '"' {
		r.Text = text
	}
	return r
}

// failure is what a model reads of an error of foreign code.
func failure(err error, limit int) agent.Result {
	e := agent.ToolError{Code: agent.ErrTool, Message: err.Error(), Suggestion: "Look at the message; call the tool again only if that can help."}
	if t, ok := errors.AsType[*thrown](err); ok {
		e.Message, e.Name, e.HelpURL = t.Message, t.Data.Name, t.Data.HelpURL
		if t.Data.Suggestion != "" {
			e.Suggestion = t.Data.Suggestion
		}
		if ownCode(t.Data.Code) {
			e.Code = agent.ErrorCode(t.Data.Code)
		}
	}
	if te, ok := errors.AsType[*agent.ToolError](err); ok {
		e = *te
	}
	_, late := errors.AsType[overdue](err)
	_, gone := errors.AsType[*Ended](err)
	switch {
	case late || errors.Is(err, context.DeadlineExceeded):
		e.Code, e.Suggestion = agent.ErrTimeout, "What it had done by then is not known: look before you call it again."
	case errors.Is(err, context.Canceled):
		e.Code, e.Suggestion = agent.ErrAborted, ""
	case gone:
		e.Suggestion = "What it had done by then is not known: look before you call it again."
	}
	e.Message = shortened(strings.ToValidUTF8(e.Message, "\ufffd"), limit)
	e.Name, e.HelpURL = shortened(e.Name, limit), shortened(e.HelpURL, limit)
	e.Suggestion = shortened(e.Suggestion, usualErrors)
	e.Code = agent.ErrorCode(shortened(string(e.Code), 100))
	r := agent.Failure(e.Code, e.Message, e.Suggestion)
	r.Error = &e
	return r
}

// ownCode reports whether a code is one that foreign code may have: those of the runtime
// say what the runtime has done.
func ownCode(code string) bool {
	return code != "" && !strings.HasPrefix(code, string(agent.ErrTool)) && code != string(agent.ErrOAuthRequired) && !strings.ContainsFunc(code, func(r rune) bool {
		return !(r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.", r))
	})
}

// cutMark ends a message that was cut, and counts into its length.
const cutMark = "... (truncated)"

// shortened cuts a text to so many characters.
func shortened(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	keep, mark := most-len(cutMark), cutMark
	if keep < 1 {
		keep, mark = most, ""
	}
	for i := range s {
		if keep == 0 {
			return s[:i] + mark
		}
		keep--
	}
	return s
}
