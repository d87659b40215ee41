package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
	"dure/internal/base/forms"
)

// Bounds of questions.
const (
	maxFields    = 32
	maxOptions   = 100
	maxForm      = 64 << 10 // bytes of the schema of a form
	maxAddress   = 2048     // characters: whoever shows it shows all of it
	maxTalk      = 64       // messages for the model
	maxTalkBytes = 1 << 20
	maxTokens    = 8192
	waitFinished = 10 * time.Minute // for what a person does at an address
)

// An Elicitation is a question of a server to the person: a form, or an address that
// they are asked to open.
type Elicitation struct {
	Server  string
	Message string
	Fields  []Field         // of a form
	Schema  json.RawMessage // of a form, as the server has it
	URL     string          // to open; "" = it is a form
	Host    string          // of URL, as it is to be shown
	ID      string

	// Fits says whether the values of a form are an answer to it; nil = it is none.
	Fits func(map[string]any) error
}

// A Field is one value that a form asks for.
type Field struct {
	Name     string
	Title    string
	About    string
	Type     string // string, number, integer or boolean
	Format   string // email, uri, date or date-time
	Required bool
	Many     bool // a list of Options
	Options  []Option
	Default  json.RawMessage
}

// An Option is one value out of which to choose.
type Option struct{ Value, Title string }

// The actions of a [plug.ElicitReply].
const (
	Accept  = "accept"
	Decline = "decline"
	Cancel  = "cancel"
)

// elicit puts a question to the person.
func (l *live) elicit(ctx context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	set := l.v.set
	if set.c.Elicit == nil {
		return nil, refusal(jsonrpc.CodeInvalidParams, "there is nobody to ask")
	}
	q := Elicitation{Server: l.v.def.Name, Message: set.say(p.Message, maxTeach), ID: p.ElicitationID}
	var form *forms.Form
	if p.Mode == "url" || p.Mode == "" && p.URL != "" {
		host, err := address(p.URL)
		if err != nil {
			return nil, refusal(jsonrpc.CodeInvalidParams, err.Error())
		}
		q.URL, q.Host = p.URL, host
	} else {
		var err error
		if form, err = set.form(&q, p.RequestedSchema); err != nil {
			return nil, refusal(jsonrpc.CodeInvalidParams, err.Error())
		}
		q.Fits = func(content map[string]any) error {
			_, err := filled(q.Fields, form, content)
			return err
		}
	}
	r, err := set.c.Elicit(ctx, q)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		set.c.Log.Info("mcp question", "server", q.Server, "problem", set.say(err.Error(), maxProblem))
		return &sdk.ElicitResult{Action: Cancel}, nil
	case r.Action == Decline || r.Action == Cancel:
		return &sdk.ElicitResult{Action: r.Action}, nil
	case r.Action != Accept:
		return nil, refusal(jsonrpc.CodeInternalError, "the person did not answer")
	case q.URL != "":
		l.agreed(q.ID)
		return &sdk.ElicitResult{Action: Accept}, nil
	}
	content, err := filled(q.Fields, form, r.Content)
	if err != nil {
		return nil, refusal(jsonrpc.CodeInternalError, err.Error())
	}
	return &sdk.ElicitResult{Action: Accept, Content: content}, nil
}

// address checks what a person is asked to open, and returns its host. It is a web
// address; without encryption only on this machine. Hosts are ASCII, as they are on the
// wire: letters of other scripts look like others.
func address(raw string) (host string, err error) {
	u, err := url.Parse(raw)
	if err != nil || len(raw) > maxAddress || u.Host == "" || u.User != nil || u.Opaque != "" || line(raw, maxAddress) != raw || strings.ContainsFunc(u.Host, func(r rune) bool { return r > unicode.MaxASCII }) {
		return "", fmt.Errorf("the address cannot be shown to a person")
	}
	ip, _ := netip.ParseAddr(u.Hostname())
	if u.Scheme != "https" && (u.Scheme != "http" || u.Hostname() != "localhost" && !ip.IsLoopback()) {
		return "", fmt.Errorf("only https addresses are opened")
	}
	return u.Host, nil
}

// form reads the schema of a form, which is flat.
func (s *Set) form(q *Elicitation, schema any) (*forms.Form, error) {
	if schema == nil {
		schema = map[string]any{"type": "object"}
	}
	data, err := json.Marshal(schema)
	if err != nil || len(data) > maxForm {
		return nil, fmt.Errorf("the form is too long")
	}
	var top struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if err := json.Unmarshal(data, &top); err != nil || top.Type != "object" || len(top.Properties) > maxFields {
		return nil, fmt.Errorf("the form is not an object of at most %d values", maxFields)
	}
	for _, name := range slices.Sorted(maps.Keys(top.Properties)) {
		f, err := s.field(name, top.Properties[name])
		if err != nil {
			return nil, err
		}
		f.Required = slices.Contains(top.Required, name)
		q.Fields = append(q.Fields, f)
	}
	q.Schema = data
	sch, err := forms.Read(data)
	if err != nil {
		return nil, fmt.Errorf("the form cannot be read")
	}
	res, err := forms.New(sch)
	if err != nil {
		return nil, fmt.Errorf("the form cannot be read")
	}
	return res, nil
}

// choice is one value of oneOf or anyOf.
type choice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// field reads one value of a form.
func (s *Set) field(name string, data json.RawMessage) (Field, error) {
	var v struct {
		Type        string          `json:"type"`
		Title       string          `json:"title"`
		Description string          `json:"description"`
		Format      string          `json:"format"`
		Default     json.RawMessage `json:"default"`
		Enum        []string        `json:"enum"`
		EnumNames   []string        `json:"enumNames"`
		OneOf       []choice        `json:"oneOf"`
		Items       *struct {
			Enum  []string `json:"enum"`
			AnyOf []choice `json:"anyOf"`
		} `json:"items"`
	}
	bad := fmt.Errorf("the form asks for %s in a way that cannot be shown", line(name, maxRemote))
	if json.Unmarshal(data, &v) != nil || line(name, maxRemote) != name || name == "" {
		return Field{}, bad
	}
	f := Field{
		Name: name, Title: s.say(line(v.Title, maxRemote), maxRemote), About: s.say(v.Description, maxWords),
		Type: v.Type, Format: line(v.Format, 32), Default: v.Default,
	}
	values, pairs := v.Enum, v.OneOf
	switch v.Type {
	case "string", "number", "integer", "boolean":
	case "array":
		if f.Many = true; v.Items == nil {
			return Field{}, bad
		}
		f.Type, values, pairs = "string", v.Items.Enum, v.Items.AnyOf
	default:
		return Field{}, bad
	}
	for i, value := range values {
		o := Option{Value: value}
		if i < len(v.EnumNames) {
			o.Title = s.say(line(v.EnumNames[i], maxRemote), maxRemote)
		}
		f.Options = append(f.Options, o)
	}
	for _, p := range pairs {
		f.Options = append(f.Options, Option{p.Const, s.say(line(p.Title, maxRemote), maxRemote)})
	}
	if len(f.Options) > maxOptions || f.Many && len(f.Options) == 0 {
		return Field{}, bad
	}
	return f, nil
}

// filled puts the defaults into what the person gave, takes out what nobody asked for,
// and checks the whole.
func filled(fields []Field, form *forms.Form, given map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for _, f := range fields {
		v, ok := given[f.Name]
		if !ok && f.Default != nil {
			ok = json.Unmarshal(f.Default, &v) == nil && v != nil
		}
		if ok {
			out[f.Name] = v
		}
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("the answer is no JSON")
	}
	var plain map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&plain); err != nil {
		return nil, fmt.Errorf("the answer is no JSON")
	}
	if err := form.Validate(plain); err != nil {
		return nil, fmt.Errorf("the answer does not fit the form")
	}
	return plain, nil
}

// await returns a channel that is closed when the server says that what a person did
// at an address is finished, and what forgets it.
func (l *live) await(id string) (<-chan struct{}, func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ch := l.finished[id]
	if ch == nil && len(l.finished) < maxAsked {
		ch = make(chan struct{})
		l.finished[id] = ch
	}
	return ch, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.finished[id] == ch {
			delete(l.finished, id)
		}
	}
}

// agreed notes that a person does something at an address.
func (l *live) agreed(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id != "" && len(l.visits) < maxAsked {
		l.visits[id] = true
	}
}

// complete is the other end of await. What nobody has agreed to is told to nobody.
func (l *live) complete(id string) {
	l.mu.Lock()
	known := l.visits[id]
	delete(l.visits, id)
	if ch := l.finished[id]; ch != nil {
		delete(l.finished, id)
		close(ch)
	}
	l.mu.Unlock()
	if known {
		l.v.set.c.Elicited(l.v.def.Name)
	}
}

// sample puts a question to the model.
func (l *live) sample(ctx context.Context, p *sdk.CreateMessageWithToolsParams) (*sdk.CreateMessageWithToolsResult, error) { //nolint:staticcheck // SA1019: servers of today still ask for it
	c := l.v.set.c
	if c.Ask == nil {
		return nil, refusal(jsonrpc.CodeMethodNotFound, "there is no model to ask")
	}
	if len(p.Tools) > 0 {
		return nil, refusal(jsonrpc.CodeInvalidParams, "the model is asked without tools")
	}
	q := agent.Question{Purpose: "mcp", System: tidy(p.SystemPrompt, maxTalkBytes), MaxTokens: int(min(max(p.MaxTokens, 1), maxTokens))}
	if len(p.Messages) == 0 || len(p.Messages) > maxTalk {
		return nil, refusal(jsonrpc.CodeInvalidParams, fmt.Sprintf("a question has 1 to %d messages", maxTalk))
	}
	size := len(p.SystemPrompt)
	for _, m := range p.Messages {
		msg, n, err := spoken(m)
		if size += n; err != nil || size > maxTalkBytes {
			return nil, refusal(jsonrpc.CodeInvalidParams, "a question is text and images, and not longer than 1 MiB")
		}
		q.Messages = append(q.Messages, msg)
	}
	a, err := c.Ask(ctx, l.v.def.Name, q)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		c.Log.Info("mcp question to the model", "server", l.v.def.Name, "problem", l.v.set.say(err.Error(), maxProblem))
		return nil, refusal(-1, "the question was rejected")
	}
	res := &sdk.CreateMessageWithToolsResult{Role: "assistant", Model: a.Model, StopReason: "endTurn"} //nolint:staticcheck // SA1019: servers of today still ask for it
	switch a.Stop {
	case agent.StopLength:
		res.StopReason = "maxTokens"
	case agent.StopSequence:
		res.StopReason = "stopSequence"
	}
	res.Content = []sdk.Content{&sdk.TextContent{Text: a.Message.Text()}}
	return res, nil
}

// spoken makes a message for the model, and tells its size.
func spoken(m *sdk.SamplingMessageV2) (agent.Message, int, error) { //nolint:staticcheck // SA1019: servers of today still ask for it
	out, size := agent.Message{Role: agent.User}, 0
	if m == nil {
		return out, 0, fmt.Errorf("no message")
	}
	if m.Role == "assistant" {
		out.Role = agent.Assistant
	}
	for _, c := range m.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			size += len(c.Text)
			out.Blocks = append(out.Blocks, agent.Block{Type: agent.TextBlock, Text: strings.ToValidUTF8(c.Text, "")})
		case *sdk.ImageContent:
			size += len(c.Data)
			b, ok := picture(c.MIMEType, c.Data)
			if !ok || out.Role != agent.User {
				return out, size, fmt.Errorf("no image")
			}
			out.Blocks = append(out.Blocks, b)
		default:
			return out, size, fmt.Errorf("neither text nor image")
		}
	}
	if len(out.Blocks) == 0 {
		return out, size, fmt.Errorf("an empty message")
	}
	return out, size, nil
}
