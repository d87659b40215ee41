package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dure/internal/base/jsonc"
	"dure/internal/base/near"
)

// Bounds of what files may define.
const (
	maxHooks   = 1000 // of one source
	maxTimeout = 24 * time.Hour
	maxText    = 64 << 10 // bytes of one field
)

// A Source is where hooks stand.
type Source struct {
	Layer string // managed, flags, user, project, local, plugin, skill, agent, host
	Name  string // of the plugin, skill or agent
	File  string // "" = no file

	Theirs bool // it is written for the ecosystem, wherever it stands

	Root    string            // folder of the plugin or skill: CLAUDE_PLUGIN_ROOT
	Data    string            // folder that a plugin keeps: CLAUDE_PLUGIN_DATA
	Options map[string]string // what the user has set for a plugin: CLAUDE_PLUGIN_OPTION_...
}

// foreign reports whether a source is written for the ecosystem, and not for us: where
// the two differ, hooks mean there what they mean to it.
func (s Source) foreign() bool {
	for _, folder := range slices.Backward(strings.Split(filepath.ToSlash(s.File), "/")) {
		switch folder { // a worktree below .claude has a .dure of its own
		case ".claude":
			return true
		case ".dure":
			return s.Theirs
		}
	}
	return s.Theirs || s.Layer == "plugin"
}

// HostLayer is the layer of hooks that the embedding program gives.
const HostLayer = "host"

// Lasts reports whether hooks of a skill hold for the rest of the session once it was
// called, and not for the turn alone.
func (s Source) Lasts() bool { return s.Layer == "skill" && s.foreign() }

func (s Source) String() string {
	switch {
	case s.File != "":
		return s.File
	case s.Name != "":
		return s.Layer + " " + s.Name
	}
	return s.Layer
}

// A Hook is what is to run at one event, as it is defined.
type Hook struct {
	Event   Event  `json:"event"`
	Matcher string `json:"matcher,omitempty"`
	Source  Source `json:"-"`
	At      string `json:"at"` // JSON pointer in its source: /hooks/PreToolUse/0/hooks/1

	Type    Type          `json:"type"`
	If      string        `json:"if,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"` // 0 = as is usual for the event
	Status  string        `json:"statusMessage,omitempty"`
	Once    bool          `json:"once,omitempty"`
	Block   bool          `json:"block,omitempty"` // what goes wrong with it forbids, rather than lets pass

	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"` // not nil: Command is a program, and no line for a shell
	Shell   string   `json:"shell,omitempty"`
	Async   bool     `json:"async,omitempty"`
	Rewake  bool     `json:"asyncRewake,omitempty"`

	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Vars    []string          `json:"allowedEnvVars,omitempty"`

	Server string          `json:"server,omitempty"`
	Tool   string          `json:"tool,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`

	Prompt   string   `json:"prompt,omitempty"`
	Model    string   `json:"model,omitempty"`
	GoOn     bool     `json:"continueOnBlock,omitempty"`
	MaxSteps int      `json:"maxIterations,omitempty"` // of an agent; 0 = as is usual
	Tools    []string `json:"tools,omitempty"`         // of an agent; nil = those that read

	Callback string `json:"callback,omitempty"` // by which the embedding program knows it

	matches func(string) (bool, error)
	filter  *filter // If
}

// A Fault is something in a source that does not count, or counts for other than its
// writer may think.
type Fault struct {
	Source  string // its file, or what it belongs to
	At      string // JSON pointer
	Message string
	Fix     string
}

// Parse reads the value of "hooks" in settings. What cannot be read is left out and
// told; the rest counts.
func Parse(data []byte, from Source) ([]Hook, []Fault) {
	p := &parser{from: from}
	if len(bytes.TrimSpace(data)) == 0 || string(bytes.TrimSpace(data)) == "null" {
		return nil, nil
	}
	root, err := jsonc.Parse(data)
	if err != nil || root.Kind != '{' {
		p.fault("/hooks", `write it like {"EventName": [...]}`, "has to be an object with the names of events")
		return nil, p.faults
	}
	slices.SortStableFunc(root.Members, func(a, b jsonc.Member) int { return strings.Compare(a.Key, b.Key) })
	for i, m := range root.Members {
		name, at := m.Key, "/hooks/"+escape(m.Key)
		if i > 0 && root.Members[i-1].Key == name { // the last one alone would be all that encoding/json knows
			p.fault(at, "put them together", "%s stands there twice; both count", name)
		}
		e, ok := EventOf(name)
		if !ok {
			fix := "see the events with: dure hooks events"
			if like := closest(name); like != "" {
				fix = "did you mean " + like + "?"
			}
			p.fault(at, fix, "%s is no event", name)
			continue
		}
		p.event(at, e, data[m.Value.Start:m.Value.End])
	}
	if len(p.hooks) > maxHooks {
		p.fault("/hooks", "define fewer", "there are %d hooks, and %d count", len(p.hooks), maxHooks)
		p.hooks = p.hooks[:maxHooks]
	}
	return p.hooks, p.faults
}

// closest returns the event that was meant; "" = that cannot be told.
func closest(name string) (like string) {
	best := 4
	for _, e := range Events() {
		if d := near.Distance(plain(name), plain(string(e)), best); d < best {
			best, like = d, string(e)
		}
	}
	return like
}

// escape is a name in a JSON pointer.
func escape(s string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(s) }

type parser struct {
	from   Source
	hooks  []Hook
	faults []Fault
}

func (p *parser) fault(at, fix, format string, args ...any) {
	p.faults = append(p.faults, Fault{Source: p.from.String(), At: at, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// event reads what stands behind an event: groups with matchers, or hooks without such,
// or a command alone.
func (p *parser) event(at string, e Event, data json.RawMessage) {
	var line string
	if json.Unmarshal(data, &line) == nil {
		p.add(Hook{Event: e, At: at, Type: Command, Command: line})
		return
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		if !isObject(data) {
			p.fault(at, `write it like [{"hooks": [...]}]`, "has to be a list")
			return
		}
		list = []json.RawMessage{data}
	}
	for i, raw := range list {
		p.group(at+"/"+strconv.Itoa(i), e, raw)
	}
}

func isObject(data []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) }

func (p *parser) group(at string, e Event, data json.RawMessage) {
	var line string
	if json.Unmarshal(data, &line) == nil {
		p.add(Hook{Event: e, At: at, Type: Command, Command: line})
		return
	}
	fields, ok := p.fields(at, data)
	if !ok {
		return
	}
	matcher := fields.text("matcher")
	inner, grouped := fields.take("hooks")
	if !grouped { // the hook itself
		h := Hook{Event: e, At: at, Matcher: matcher}
		p.hook(fields, h)
		return
	}
	_, _ = fields.take("description") // for people who read the file
	fields.rest("matcher and hooks")
	var list []json.RawMessage
	if err := json.Unmarshal(inner, &list); err != nil {
		p.fault(at+"/hooks", `write it like [{"type": "command", "command": "..."}]`, "has to be a list of hooks")
		return
	}
	for i, raw := range list {
		at := at + "/hooks/" + strconv.Itoa(i)
		if inner, ok := p.fields(at, raw); ok {
			p.hook(inner, Hook{Event: e, At: at, Matcher: matcher})
		}
	}
}

// hook reads one.
func (p *parser) hook(f *fields, h Hook) {
	h.Source = p.from
	given := f.text("type")
	h.Type = typeOf(given)
	h.If, h.Status = f.text("if", "condition"), f.text("statusMessage")
	h.Timeout, h.Once = f.seconds("timeout"), f.flag("once")
	switch v := f.text("onFailure", "onError"); v {
	case "", "continue":
	case "block":
		h.Block = true
	default:
		f.fault("onFailure", `write "continue" or "block"`, "%q is neither continue nor block", v)
		return
	}
	if f.flag("security") {
		h.Block = true
	}
	h.Command, h.Args, h.Shell = f.text("command"), f.list("args"), f.text("shell")
	h.Async, h.Rewake = f.flag("async"), f.flag("asyncRewake")
	h.Async = h.Async || h.Rewake
	h.URL, h.Headers, h.Vars = f.text("url"), f.texts("headers"), f.list("allowedEnvVars")
	h.Server, h.Tool = f.text("server"), f.text("tool")
	h.Input, _ = f.take("input")
	h.Prompt, h.Model = f.text("prompt", "llmPrompt", "agentPrompt"), f.text("model", "llmModel")
	h.Callback = f.text("callback")
	h.GoOn, h.MaxSteps, h.Tools = f.flag("continueOnBlock"), f.number("maxIterations"), f.list("tools", "agentTools")
	if h.Type == "" && given == "" { // told by what it has
		h.Type = guess(h)
	}
	f.rest("the fields of a hook")
	if f.bad {
		return
	}
	if h.Type == "" {
		f.fault("type", "write command, http, mcp_tool, prompt or agent", "%q is no type of hook", given)
		return
	}
	p.add(h)
}

// typeOf returns the type of a name; "" = there is none.
func typeOf(name string) Type {
	switch plain(name) {
	case "command", "shell":
		return Command
	case "http":
		return HTTP
	case "mcptool":
		return MCPTool
	case "prompt", "llm":
		return Prompt
	case "agent":
		return Agent
	case "callback":
		return Callback
	}
	return ""
}

func guess(h Hook) Type {
	switch {
	case h.Command != "":
		return Command
	case h.URL != "":
		return HTTP
	case h.Server != "" || h.Tool != "":
		return MCPTool
	case h.Prompt != "":
		return Prompt
	}
	return ""
}

// add checks a hook as a whole and keeps it.
func (p *parser) add(h Hook) {
	h.Source = p.from
	need := func(field, v string) bool {
		if v == "" {
			p.fault(h.At, `add "`+field+`"`, "a hook of type %s needs %s", h.Type, field)
		}
		return v != ""
	}
	ok := true
	switch h.Type {
	case Command:
		ok = need("command", h.Command)
	case HTTP:
		ok = need("url", h.URL)
	case MCPTool:
		ok = need("server", h.Server) && need("tool", h.Tool)
	case Prompt, Agent:
		ok = need("prompt", h.Prompt)
	case Callback:
		if ok = p.from.Layer == HostLayer; !ok {
			p.fault(h.At, "use one of: "+joined(allTypes), "hooks of type callback are given by a program that embeds this one")
		}
		ok = ok && need("callback", h.Callback)
	}
	if !ok {
		return
	}
	k := kinds[h.Event]
	if h.Type != Callback && !slices.Contains(k.types, h.Type) {
		p.fault(h.At, "use one of: "+joined(k.types), "hooks of type %s do not run at %s", h.Type, h.Event)
		return
	}
	if h.Matcher != "" && k.matcher == "" {
		p.fault(h.At, "remove matcher", "%s has nothing that a matcher could look at: it runs each time", h.Event)
	}
	if h.Once && h.Source.foreign() && h.Source.Layer != "skill" {
		p.fault(h.At, "remove once, or define the hook in a skill", "once counts in skills alone there: the hook runs each time")
		h.Once = false
	}
	h.matches = newMatcher(h.Event, h.Matcher)
	if h.If != "" {
		var err error
		if h.filter, err = parseFilter(h.Event, h.If); err != nil {
			p.fault(h.At, "mend it, or remove if", "if %q cannot be read, and the hook never runs: %s", h.If, err.Error())
			return
		}
	}
	p.hooks = append(p.hooks, h)
}

// Check returns what is wrong with hooks that are not looked at before an event asks:
// matchers that cannot be read.
func Check(hooks []Hook) (faults []Fault) {
	for _, h := range hooks {
		if _, err := h.matches(""); err != nil {
			faults = append(faults, Fault{Source: h.Source.String(), At: h.At, Message: fmt.Sprintf("the matcher %q fails: %s", h.Matcher, err.Error()), Fix: "mend the regular expression"})
		}
	}
	return faults
}

func joined(types []Type) string {
	var all []string
	for _, t := range types {
		all = append(all, string(t))
	}
	return strings.Join(all, ", ")
}

// fields are those of an object, in any spelling. What is asked for is taken out.
type fields struct {
	p     *parser
	at    string
	m     map[string]json.RawMessage
	names map[string]string // how a field is spelt in m, by its plain name
	bad   bool
}

func (p *parser) fields(at string, data json.RawMessage) (*fields, bool) {
	f := &fields{p: p, at: at}
	if err := json.Unmarshal(data, &f.m); err != nil || f.m == nil {
		p.fault(at, `write it like {"type": "command", "command": "..."}`, "has to be an object")
		return nil, false
	}
	f.names = make(map[string]string, len(f.m))
	for name := range f.m {
		n := plain(name)
		if had, ok := f.names[n]; !ok || name < had {
			f.names[n] = name
		}
	}
	return f, true
}

func (f *fields) fault(name, fix, format string, args ...any) {
	f.bad = true
	f.p.fault(f.at+"/"+escape(name), fix, format, args...)
}

// take returns the first field that has one of the names. Of several spellings in one
// object the first in the alphabet counts, and the others are told as unknown.
func (f *fields) take(names ...string) (json.RawMessage, bool) {
	if len(f.names) == 0 {
		return nil, false
	}
	for _, name := range names {
		n := plain(name)
		if spelt, ok := f.names[n]; ok {
			v := f.m[spelt]
			delete(f.m, spelt)
			delete(f.names, n)
			return v, true
		}
	}
	return nil, false
}

func into[T any](f *fields, what, fix string, names []string) (v T) {
	data, ok := f.take(names...)
	if !ok || string(data) == "null" {
		return v
	}
	if err := json.Unmarshal(data, &v); err != nil {
		f.fault(names[0], fix, "has to be %s", what)
	}
	return v
}

func (f *fields) text(names ...string) string {
	s := into[string](f, "a text", `write it in quotes`, names)
	if len(s) > maxText {
		f.fault(names[0], "make it shorter", "has %d bytes; %d are the most", len(s), maxText)
	}
	return s
}

func (f *fields) flag(name string) bool {
	return into[bool](f, "true or false", "write true or false", []string{name})
}

func (f *fields) number(name string) int {
	n := into[float64](f, "a number", "write a number", []string{name})
	if n < 0 || n > 1000 || n != math.Trunc(n) {
		f.fault(name, "write a whole number from 0 to 1000", "has to be a whole number from 0 to 1000")
		return 0
	}
	return int(n)
}

func (f *fields) list(names ...string) []string {
	return into[[]string](f, "a list of texts", `write it like ["...", "..."]`, names)
}

func (f *fields) texts(name string) map[string]string {
	return into[map[string]string](f, "an object of texts", `write it like {"Name": "value"}`, []string{name})
}

func (f *fields) seconds(name string) time.Duration {
	n := into[float64](f, "a number of seconds", "write a number", []string{name})
	if n < 0 || n > maxTimeout.Seconds() || math.IsNaN(n) {
		f.fault(name, "write a number of seconds, up to 86400", "has to be a number of seconds from 0 to %.0f", maxTimeout.Seconds())
		return 0
	}
	return time.Duration(n * float64(time.Second))
}

// rest tells of fields that nobody has asked for.
func (f *fields) rest(of string) {
	names := make([]string, 0, len(f.m))
	for name := range f.m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f.p.fault(f.at+"/"+escape(name), "remove it, or check its spelling", "%s is none of %s, and does nothing", name, of)
	}
}

var errFilter = errors.New("write field == value, field != value or field contains value, joined by &&")
