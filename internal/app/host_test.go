//go:build unix

package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/extend/mcp/connections"
	"dure/internal/models/script"
)

// inside is a program that embeds this one: its hooks and its servers are in it.
type inside struct {
	mu    sync.Mutex
	asked []string // what was asked, in order
	says  map[string]func(input map[string]any) string
}

func (i *inside) note(format string, args ...any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked = append(i.asked, fmt.Sprintf(format, args...))
}

func (i *inside) heard() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.asked)
}

// host is what the program sees of it.
func (i *inside) host(hooks string, servers ...connections.HostServer) *app.Host {
	h := &app.Host{
		Hooks: json.RawMessage(hooks),
		Call: func(ctx context.Context, callback string, input []byte, call string) ([]byte, error) {
			var told map[string]any
			if err := json.Unmarshal(input, &told); err != nil {
				return nil, err
			}
			i.note("%s %v %s", callback, told["hook_event_name"], call)
			if f := i.says[callback]; f != nil {
				return []byte(f(told)), nil
			}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		},
	}
	h.Servers, h.Message = servers, i.message
	return h
}

// message answers what is put to a server: it says things again.
func (i *inside) message(_ context.Context, server string, data []byte) ([]byte, error) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Arguments struct{ Text string }
		}
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	i.note("%s %s", server, m.Method)
	result := ""
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"in","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"echo","description":"Says it again","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}`
	case "tools/call":
		result = fmt.Sprintf(`{"content":[{"type":"text","text":"inside: %s"}]}`, m.Params.Arguments.Text)
	case "notifications/initialized":
		return []byte(`{"jsonrpc":"2.0","result":{},"id":0}`), nil
	default:
		return nil, errors.New("no such method")
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result), nil
}

// embedded is a program with a host.
func (w *world) embedded(h *app.Host, f app.Flags) *app.App {
	w.t.Helper()
	o := options(w.work, w.home, w.model.URL(), f)
	o.Host = h
	return w.program(o)
}

// A hook of the embedding program runs beside those of the settings, and what it denies
// is denied, whatever those and the rules allow.
func TestHostHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(calls(tool("Write", fields{"file_path": "a.txt", "content": "a"})), script.Reply{Text: "Done."}), script.Options{})
	w.chooses(fields{"hooks": fields{"PreToolUse": hso("PreToolUse", fields{"permissionDecision": "allow"})}})
	in := &inside{says: map[string]func(map[string]any) string{
		"hook_0": func(map[string]any) string {
			return `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"the host says no"}}`
		},
		"hook_1": func(map[string]any) string {
			return `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"the host adds this"}}`
		},
	}}
	hooks := `{"PreToolUse":[{"matcher":"Write","hooks":[{"type":"callback","callback":"hook_0"}]}],"UserPromptSubmit":[{"hooks":[{"type":"callback","callback":"hook_1"}]}]}`
	k := w.talkTo(w.embedded(in.host(hooks), app.Flags{Skip: true, Trust: true}), agent.Open{})
	k.turn("Write it")
	decided := all[agent.CallDecided](k.seen)
	if len(decided) != 1 || decided[0].Decision.Verdict != agent.Deny || decided[0].Decision.Code != agent.ErrBlockedByHook || !strings.Contains(decided[0].Decision.Reason, "the host says no") {
		t.Errorf("%+v", decided)
	}
	if reqs := w.model.Requests(); !strings.Contains(string(reqs[0].Body), "the host adds this") {
		t.Error("the model was not told what the host has to say")
	}
	if heard := in.heard(); len(heard) != 2 || heard[0] != "hook_1 UserPromptSubmit " || !strings.HasPrefix(heard[1], "hook_0 PreToolUse ") || strings.HasSuffix(heard[1], " ") {
		t.Errorf("%q", heard)
	}
}

// A callback that does not answer in time forbids a call; one that answers with an error
// does so only where it is to.
func TestHostHookThatFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		hook string
		says func(map[string]any) string
		want agent.Verdict
	}{
		{`{"type":"callback","callback":"late","timeout":0.05}`, nil, agent.Deny},
		{`{"type":"callback","callback":"odd"}`, func(map[string]any) string { return "nonsense" }, agent.Allow},
		{`{"type":"callback","callback":"odd","onFailure":"block"}`, func(map[string]any) string { return "nonsense" }, agent.Deny},
		{`{"type":"callback","callback":"empty","onFailure":"block"}`, func(map[string]any) string { return "{}" }, agent.Allow},
	} {
		w := newWorld(t, distinct(calls(tool("Write", fields{"file_path": "a.txt", "content": "a"})), script.Reply{Text: "Done."}), script.Options{})
		in := &inside{says: map[string]func(map[string]any) string{"odd": tt.says, "empty": tt.says}}
		k := w.talkTo(w.embedded(in.host(`{"PreToolUse":[{"hooks":[`+tt.hook+`]}]}`), app.Flags{Skip: true}), agent.Open{})
		k.turn("Write it")
		if d := all[agent.CallDecided](k.seen); len(d) != 1 || d[0].Decision.Verdict != tt.want {
			t.Errorf("%s: %+v", tt.hook, d)
		}
	}
}

// Settings cannot define what only an embedding program can.
func TestCallbackInSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, distinct(script.Reply{Text: "Hello."}), script.Options{})
	w.chooses(fields{"hooks": fields{"PreToolUse": []fields{{"hooks": []fields{{"type": "callback", "callback": "hook_0"}}}}}})
	a := w.program(options(w.work, w.home, w.model.URL(), app.Flags{Trust: true}))
	if notes := fmt.Sprint(a.Config().Notes); !strings.Contains(notes, "hooks of type callback are given by a program that embeds this one") {
		t.Errorf("%s", notes)
	}
}

// Servers inside the embedding program are there for the first request, by either way of
// naming them; what the host has asked them already is not asked again.
func TestHostServers(t *testing.T) {
	t.Parallel()
	const hello = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"in","version":"1"}}`
	const list = `{"tools":[{"name":"echo","description":"Says it again","inputSchema":{"type":"object"}}]}`
	for _, tt := range []struct {
		name    string
		servers []connections.HostServer
		flags   []string
		want    []string
	}{
		{"asked", []connections.HostServer{{Name: "in"}}, nil, []string{"in initialize", "in notifications/initialized", "in tools/list", "in tools/call"}},
		{"parked", []connections.HostServer{{Name: "in", Initialize: json.RawMessage(hello), Tools: json.RawMessage(list)}}, nil, []string{"in tools/call"}},
		{"flag", nil, []string{`{"mcpServers":{"in":{"type":"sdk","name":"in"}}}`}, []string{"in initialize", "in notifications/initialized", "in tools/list", "in tools/call"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, distinct(calls(tool("mcp__in__echo", fields{"text": "hello"})), script.Reply{Text: "Done."}), script.Options{})
			in := &inside{}
			k := w.talkTo(w.embedded(in.host("", tt.servers...), app.Flags{Servers: tt.flags, Allow: []string{"mcp__in__echo"}}), agent.Open{})
			k.turn("Echo")
			if reqs := w.model.Requests(); !strings.Contains(string(reqs[0].Body), "mcp__in__echo") {
				t.Error("the first request does not have the tool")
			}
			if r := all[agent.CallFinished](k.seen); len(r) != 1 || !strings.Contains(r[0].Result.Text, "inside: hello") {
				t.Errorf("%+v", r)
			}
			if got := in.heard(); !slices.Equal(got, tt.want) {
				t.Errorf("asked %q, not %q", got, tt.want)
			}
		})
	}
}
