package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of what a server may ask.
const (
	maxQuestions = 8
	maxLog       = 2000 // characters of a line
)

// newClient makes the client of one connection.
func (l *live) newClient() *sdk.Client {
	c := l.v.set.c
	can := &sdk.ClientCapabilities{}
	if c.Roots != nil {
		can.RootsV2 = &sdk.RootCapabilities{ListChanged: true} //nolint:staticcheck // SA1019: servers of today still ask for it
	}
	if c.Ask != nil {
		can.Sampling = &sdk.SamplingCapabilities{} //nolint:staticcheck // SA1019: servers of today still ask for it
	}
	if c.Elicit != nil {
		can.Elicitation = &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}
	}
	version := c.Version
	if version == "" {
		version = "0"
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "dure", Version: version}, &sdk.ClientOptions{
		Capabilities:   can,
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},

		// The newest protocol sends these only to clients that have something for them.
		ToolListChangedHandler:     func(context.Context, *sdk.ToolListChangedRequest) { l.stalled() },
		PromptListChangedHandler:   func(context.Context, *sdk.PromptListChangedRequest) { l.stalled() },
		ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { l.stalled() },
	})
	client.AddReceivingMiddleware(l.receive)
	return client
}

// stalled notes that what is known of the server is old.
func (l *live) stalled() {
	select {
	case l.stale <- struct{}{}:
	default:
	}
}

// receive answers what the server asks, and takes what it tells. Nothing of it waits
// but the questions, of which so many may be open at once.
func (l *live) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		defer func() {
			if what := recover(); what != nil {
				res, err = nil, refusal(jsonrpc.CodeInvalidParams, "what was asked cannot be understood")
			}
		}()
		switch method {
		case "ping", "notifications/cancelled", "notifications/tools/list_changed", "notifications/prompts/list_changed",
			"notifications/resources/list_changed", "notifications/subscriptions/acknowledged":
			return next(ctx, method, req)
		case "roots/list", "elicitation/create", "sampling/createMessage":
			return l.question(ctx, req)
		}
		if strings.HasPrefix(method, "notifications/") {
			l.told(method, req)
			return nil, nil
		}
		return nil, refusal(jsonrpc.CodeMethodNotFound, "this client has no "+method)
	}
}

func refusal(code int64, why string) error { return &jsonrpc.Error{Code: code, Message: why} }

// question answers one question of the server.
func (l *live) question(ctx context.Context, req sdk.Request) (sdk.Result, error) {
	select {
	case l.asking <- struct{}{}:
		defer func() { <-l.asking }()
	default:
		return nil, refusal(jsonrpc.CodeInternalError, fmt.Sprintf("no more than %d questions at once", maxQuestions))
	}
	ctx, cancel := l.during(ctx)
	defer cancel()
	switch r := req.(type) {
	case *sdk.ElicitRequest:
		if r.Params == nil {
			return nil, refusal(jsonrpc.CodeInvalidParams, "a question needs params")
		}
		return l.elicit(ctx, r.Params)
	case *sdk.CreateMessageWithToolsRequest:
		if r.Params == nil {
			return nil, refusal(jsonrpc.CodeInvalidParams, "a question needs params")
		}
		return l.sample(ctx, r.Params)
	case *sdk.ListRootsRequest:
		return l.roots()
	}
	return nil, refusal(jsonrpc.CodeMethodNotFound, "this client cannot answer that")
}

// roots tells the folders of the session.
func (l *live) roots() (*sdk.ListRootsResult, error) { //nolint:staticcheck // SA1019: servers of today still ask for it
	if l.v.set.c.Roots == nil {
		return nil, refusal(jsonrpc.CodeMethodNotFound, "there are no roots")
	}
	res := &sdk.ListRootsResult{Roots: []*sdk.Root{}} //nolint:staticcheck // SA1019: servers of today still ask for it
	for _, dir := range l.v.set.c.Roots() {
		res.Roots = append(res.Roots, rootOf(dir))
	}
	return res, nil
}

// rootOf is a folder as the protocol names it.
func rootOf(dir string) *sdk.Root { //nolint:staticcheck // SA1019: servers of today still ask for it
	path := filepath.ToSlash(dir)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive
	}
	return &sdk.Root{URI: (&url.URL{Scheme: "file", Path: path}).String(), Name: filepath.Base(dir)} //nolint:staticcheck // SA1019: servers of today still ask for it
}

// RootsChanged tells the servers that the folders of the session are others.
func (s *Set) RootsChanged() {
	if s.c.Roots == nil {
		return
	}
	for _, v := range s.list() {
		v.mu.Lock()
		l := v.live
		v.mu.Unlock()
		if l == nil {
			continue
		}
		for _, dir := range s.c.Roots() {
			_ = safely(func() error {
				l.client.AddRoots(rootOf(dir)) //nolint:staticcheck // SA1019: servers of today still ask for it
				return nil
			})
			break // one is enough for them to ask
		}
	}
}

// told takes what the server tells without being asked.
func (l *live) told(method string, req sdk.Request) {
	switch p := req.GetParams().(type) {
	case *sdk.ProgressNotificationParams:
		if p != nil {
			l.advance(p)
		}
	case *sdk.LoggingMessageParams: //nolint:staticcheck // SA1019: servers of today still send it
		if p != nil {
			l.log(string(p.Level), p.Logger, p.Data)
		}
	case *sdk.ElicitationCompleteParams:
		if p != nil {
			l.complete(p.ElicitationID)
		}
	default:
		l.v.set.c.Log.Debug("mcp notification", "server", l.v.def.Name, "method", line(method, maxRemote))
	}
}

// log keeps a line of the server's, as long as there are not too many of them.
func (l *live) log(level, logger string, data any) {
	l.mu.Lock()
	pass := l.logs.pass(time.Now())
	l.mu.Unlock()
	if !pass {
		return
	}
	text, ok := data.(string)
	if !ok {
		b, _ := json.Marshal(data)
		text = string(b)
	}
	say, set := l.v.set.c.Log.Debug, l.v.set
	switch level {
	case "warning":
		say = set.c.Log.Warn
	case "error", "critical", "alert", "emergency":
		say = set.c.Log.Error
	case "info", "notice":
		say = set.c.Log.Info
	}
	say("mcp server says", "server", l.v.def.Name, "logger", line(logger, maxRemote), "text", set.say(text, maxLog))
}

// meter shows the progress of one call.
type meter struct {
	show func(string)
	last time.Time
}

// meterPause is the least time between two lines of progress of a call.
const meterPause = 100 * time.Millisecond

// watch returns a token for the progress of a call, and what forgets it.
func (l *live) watch(show func(string)) (token string, forget func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens++
	token = fmt.Sprintf("dure-%d", l.tokens)
	l.progress[token] = &meter{show: show}
	return token, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.progress, token)
	}
}

// advance shows progress.
func (l *live) advance(p *sdk.ProgressNotificationParams) {
	token, _ := p.ProgressToken.(string)
	l.mu.Lock()
	m := l.progress[token]
	now := time.Now()
	if m == nil || now.Sub(m.last) < meterPause {
		l.mu.Unlock()
		return
	}
	m.last = now
	l.mu.Unlock()
	text := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		text = fmt.Sprintf("%g/%g", p.Progress, p.Total)
	}
	if p.Message != "" {
		text += " " + l.v.set.say(line(p.Message, maxRemote), maxRemote)
	}
	m.show(text + "\n")
}
