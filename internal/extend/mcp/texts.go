package mcp

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
	"dure/internal/extend/mcp/servers"
)

// Bounds of what people wait for.
const (
	textLimit     = time.Minute
	completeLimit = 5 * time.Second
	maxCompletion = 100
	maxSaid       = 100 // messages of a prompt
)

// Prompts returns the prompts of all servers, sorted by server and name.
func (s *Set) Prompts() []Prompt {
	var list []Prompt
	for _, v := range s.list() {
		list = append(list, v.offered().prompts...)
	}
	return list
}

// Resources returns the resources of all servers.
func (s *Set) Resources() []Resource {
	var list []Resource
	for _, v := range s.list() {
		list = append(list, v.offered().resources...)
	}
	return list
}

// Templates returns the templates for addresses of resources of all servers.
func (s *Set) Templates() []Resource {
	var list []Resource
	for _, v := range s.list() {
		list = append(list, v.offered().templates...)
	}
	return list
}

// Prompt has a server fill in a prompt. What comes of it is text of the server, whoever
// is said to say it.
func (s *Set) Prompt(ctx context.Context, server, name string, args map[string]string) ([]agent.Message, error) {
	v := s.find(server)
	if v == nil {
		return nil, unknown(server)
	}
	var res *sdk.GetPromptResult
	err := v.do(ctx, textLimit, func(ctx context.Context, l *live) error {
		return l.rounds(ctx, func(more sdk.InputResponseMap, state string) (sdk.InputRequestMap, string, error) {
			var err error
			res, err = l.session.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: args, InputResponses: more, RequestState: state})
			if err != nil {
				return nil, "", err
			}
			return res.InputRequests, res.RequestState, nil
		})
	})
	if err != nil {
		return nil, v.wrong(err)
	}
	var out []agent.Message
	for _, m := range res.Messages[:min(len(res.Messages), maxSaid)] {
		if m == nil {
			continue
		}
		msg := agent.Message{Role: agent.User}
		if m.Role == "assistant" {
			msg.Role = agent.Assistant
		}
		p := &parts{s: s}
		p.take(m.Content)
		if text := p.text.String(); text != "" {
			msg.Blocks = append(msg.Blocks, agent.Block{Type: agent.TextBlock, Text: text})
		}
		if msg.Blocks = append(msg.Blocks, p.blocks...); len(msg.Blocks) > 0 {
			out = append(out, msg)
		}
	}
	return out, nil
}

// Read reads a resource. Texts are in Text, images and documents in Blocks.
func (s *Set) Read(ctx context.Context, server, uri string) (agent.Result, error) {
	v := s.find(server)
	if v == nil {
		return agent.Result{}, unknown(server)
	}
	var res *sdk.ReadResourceResult
	err := v.do(ctx, textLimit, func(ctx context.Context, l *live) error {
		return l.rounds(ctx, func(more sdk.InputResponseMap, state string) (sdk.InputRequestMap, string, error) {
			var err error
			res, err = l.session.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri, InputResponses: more, RequestState: state})
			if err != nil {
				return nil, "", err
			}
			return res.InputRequests, res.RequestState, nil
		})
	})
	if err != nil {
		return agent.Result{}, v.wrong(err)
	}
	p := &parts{s: s}
	for _, c := range res.Contents[:min(len(res.Contents), maxParts)] {
		switch {
		case c == nil:
		case c.Blob != nil:
			p.media("resource "+line(c.URI, maxURI), c.MIMEType, c.URI, c.Blob)
		default:
			p.say(c.Text)
		}
	}
	return agent.Result{Status: agent.StatusOK, Text: p.text.String(), Blocks: p.blocks}, nil
}

// minHidden is the least length of a value that is hidden: shorter ones are parts of words.
const minHidden = 8

// hiding takes the values of variables out of texts, which are often keys: errors name the
// whole address that was not reached, and servers say what they were started with.
func hiding(list []servers.Server) *strings.Replacer {
	var pairs [][2]string
	for _, s := range list {
		for name, v := range s.Values {
			if len(v) < minHidden || strings.HasPrefix(name, "CLAUDE_") { // folders
				continue
			}
			for _, form := range []string{v, url.QueryEscape(v), url.PathEscape(v)} {
				pairs = append(pairs, [2]string{form, "[" + name + "]"})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { // the longest first, and always the same
		return cmp.Or(len(b[0])-len(a[0]), strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]))
	})
	var flat []string
	for _, p := range pairs {
		flat = append(flat, p[0], p[1])
	}
	return strings.NewReplacer(flat...)
}

// A Wanted is what is to be completed: an argument of a prompt, or a name in the
// template of a resource.
type Wanted struct {
	Prompt   string
	Template string
	Argument string
	Value    string            // what has been typed of it
	Others   map[string]string // arguments that have a value already
}

// Complete asks a server how a value may go on. A server that cannot tell has no
// proposals.
func (s *Set) Complete(ctx context.Context, server string, w Wanted) ([]string, error) {
	v := s.find(server)
	if v == nil {
		return nil, unknown(server)
	}
	ref := &sdk.CompleteReference{Type: "ref/prompt", Name: w.Prompt}
	if w.Prompt == "" {
		ref = &sdk.CompleteReference{Type: "ref/resource", URI: w.Template}
	}
	p := &sdk.CompleteParams{Ref: ref, Argument: sdk.CompleteParamsArgument{Name: w.Argument, Value: w.Value}}
	if len(w.Others) > 0 {
		p.Context = &sdk.CompleteContext{Arguments: w.Others}
	}
	var list []string
	err := v.do(ctx, completeLimit, func(ctx context.Context, l *live) error {
		if i := l.session.InitializeResult(); i == nil || i.Capabilities == nil || i.Capabilities.Completions == nil {
			return nil
		}
		res, err := l.session.Complete(ctx, p)
		if err == nil {
			list = res.Completion.Values
		}
		return err
	})
	if err != nil {
		return nil, v.wrong(err)
	}
	list = slices.Clone(list[:min(len(list), maxCompletion)])
	return slices.DeleteFunc(list, func(s string) bool { return line(s, maxRemote) != s }), nil
}

// wrong is the error of a request that is not a call.
func (v *server) wrong(err error) error {
	if r := v.failure(err); r.Error != nil {
		return r.Error
	}
	return err
}

// isNoMethod reports whether a server has said that it does not know a method.
func isNoMethod(err error) bool {
	var said *jsonrpc.Error
	return errors.As(err, &said) && said.Code == jsonrpc.CodeMethodNotFound
}
