package mcp

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/internal/extend/mcp/servers"
	"dure/internal/kernel/plug"
)

// Whatever a server does, a call has one result that says what is wrong, and the next
// one is served.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	call := func(f func(*peer, message)) func(*peer, message) bool {
		done := false
		return func(p *peer, m message) bool {
			if m.Method != "tools/call" || done {
				return false
			}
			done = true
			f(p, m)
			return true
		}
	}
	for name, c := range map[string]struct {
		script func(*peer, message) bool
		code   agent.ErrorCode // of the first call; "" = it is served
		part   string
	}{
		"dies": {script: call(func(p *peer, _ message) { p.quit() }), code: agent.ErrMCPUnavailable, part: "the connection has ended"},
		"junk": {script: call(func(p *peer, m message) {
			for _, junk := range []string{"Starting...", "[]", "{}", "null", "{\"a\":1}", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`, "\x1b[2J", `{"jsonrpc":"2.0","id":99,"result":{}}`} {
				p.line(junk)
			}
			p.reply(m, saysOK)
		})},
		"wrong": {script: call(func(p *peer, m message) {
			p.line(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32603,"message":"no\u001b[2J luck"}}`)
		}), code: agent.ErrTool, part: "no[2J luck"},
		"badly": {script: call(func(p *peer, m message) { p.fail(m, -32602, "a is missing") }), code: agent.ErrInput, part: "a is missing"},
		"empty": {script: call(func(p *peer, m message) { p.reply(m, `{}`) })},
		"null":  {script: call(func(p *peer, m message) { p.reply(m, `{"content":[null]}`) }), code: agent.ErrTool, part: "the MCP server null"},
		"asks nothing": {
			script: call(func(p *peer, m message) { p.reply(m, `{"content":[],"inputRequests":{"a":null}}`) }),
			code:   agent.ErrTool, part: "cannot be understood",
		},
		"asks for ever": {
			script: func(p *peer, m message) bool {
				if m.Method == "tools/call" && p.asked("tools/call") <= maxRounds {
					p.reply(m, `{"inputRequests":{"a":{"method":"roots/list","params":{}}},"requestState":"x"}`)
					return true
				}
				return false
			},
			code: agent.ErrTool, part: "again and again",
		},
		"long": {script: call(func(p *peer, _ message) { p.line(strings.Repeat("x", maxMessage+1)) }), code: agent.ErrMCPUnavailable, part: "more than 16 MiB"},
		"nosy": {script: call(func(p *peer, _ message) {
			for i := range 4 * maxAsked {
				p.line(fmt.Sprintf(aQuestion, i)) // and it does not read the answers
			}
		}), code: agent.ErrMCPUnavailable, part: "questions at once"},
		"rude": {script: call(func(p *peer, m message) {
			for _, ask := range []string{
				`{"jsonrpc":"2.0","id":"e1","method":"elicitation/create"}`, `{"jsonrpc":"2.0","id":"e2","method":"elicitation/create","params":null}`,
				`{"jsonrpc":"2.0","id":"e3","method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"anyOf":[null]}}}}}`,
				`{"jsonrpc":"2.0","id":"e4","method":"sampling/createMessage"}`, `{"jsonrpc":"2.0","id":"e5","method":"completion/complete","params":{}}`,
				`{"jsonrpc":"2.0","id":"e6","method":"no/such"}`,
			} {
				p.line(ask)
				if answer, err := p.in.ReadString('\n'); err != nil || strings.Contains(answer, `"result"`) {
					p.fail(m, 1, "an answer to "+ask+": "+answer)
					return
				}
			}
			for _, note := range []string{"elicitation/complete", "message", "progress", "tools/list_changed", "cancelled", "no/such"} {
				p.line(`{"jsonrpc":"2.0","method":"notifications/` + note + `"}`)
				p.line(`{"jsonrpc":"2.0","method":"notifications/` + note + `","params":null}`)
			}
			p.reply(m, saysOK)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			r := newRig(t)
			r.scripts[name] = c.script
			s := r.open(Config{Servers: stdio(name), Roots: func() []string { return nil }, Elicit: func(context.Context, Elicitation) (plug.ElicitReply, error) {
				t.Error("a person was asked")
				return plug.ElicitReply{}, nil
			}})
			tool := "mcp__" + plain(name) + "__t"
			first := run(t, s, tool, `{}`)
			if c.code == "" && first.Failed() {
				t.Fatalf("the call failed: %s", first.Text)
			}
			if c.code != "" {
				wants(t, first, c.code, c.part)
			}
			if next := run(t, s, tool, `{}`); next.Text != "ok" {
				t.Errorf("the next call got %q", next.Text)
			}
		})
	}
}

// A server that does not answer costs the time limit of the call, and no more; one that
// does not read either is given up.
func TestHangs(t *testing.T) {
	for name, stop := range map[string]bool{"answers not": false, "reads not": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				block := make(chan struct{})
				r := newRig(t)
				r.scripts["s"] = func(p *peer, m message) bool {
					if m.Method == "tools/call" && stop && r.count("s") == 1 {
						<-block
					}
					return m.Method == "tools/call" && r.count("s") == 1
				}
				def := stdio("s")
				def[0].Timeout = 20 * time.Second
				s := r.open(Config{Servers: def})
				defer func() { s.Close(); close(block); r.wg.Wait() }()
				begun := time.Now()
				wants(t, run(t, s, "mcp__s__t", `{}`), agent.ErrTimeout, "did not answer within 20s")
				if took := time.Since(begun); took > 21*time.Second {
					t.Errorf("it took %v", took)
				}
				if !stop {
					synctest.Wait()
					if r.last("s").asked("notifications/cancelled") != 1 {
						t.Error("the server was not told that nobody waits any more")
					}
					return
				}
				// What tells it so is not read: that ends the connection, and there is a new one.
				time.Sleep(time.Minute)
				if r := run(t, s, "mcp__s__t", `{}`); r.Text != "ok" {
					t.Errorf("got %q", r.Text)
				}
			})
		})
	}
}

// Whoever cancels a call has its end at once, and the server is told.
func TestCancel(t *testing.T) {
	began := make(chan struct{})
	told := make(chan struct{})
	r := newRig(t)
	r.scripts["s"] = func(_ *peer, m message) bool {
		switch m.Method {
		case "tools/call":
			close(began)
			return true
		case "notifications/cancelled":
			close(told)
		}
		return false
	}
	s := r.open(Config{Servers: stdio("s")})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	wants(t, runIn(ctx, t, s, "mcp__s__t", `{}`), agent.ErrAborted, "cancelled")
	select {
	case <-told:
	case <-time.After(slow):
		t.Error("the server was not told")
	}
}

// A flood of notifications is let drain away: nothing of it is kept.
func TestFlood(t *testing.T) {
	const lines = 30_000
	note := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"` + strings.Repeat("y", 1000) + `"}}` + "\n"
	r := newRig(t)
	r.scripts["s"] = func(p *peer, m message) bool {
		if m.Method != "tools/call" {
			return false
		}
		many := strings.Repeat(note, 100)
		for range lines / 100 {
			p.line(many)
		}
		p.reply(m, saysOK)
		return true
	}
	s := r.open(Config{Servers: stdio("s")})
	before := heap()
	if r := runIn(t.Context(), t, s, "mcp__s__t", `{}`); r.Text != "ok" {
		t.Fatalf("got %q", r.Text)
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("%d MiB are kept of %d notifications", grown>>20, lines)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Lists that never end are read to their bounds.
func TestEndlessLists(t *testing.T) {
	r := newRig(t)
	pages := 0
	r.scripts["same"] = func(p *peer, m message) bool {
		if m.Method != "tools/list" {
			return false
		}
		p.reply(m, `{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":"again"}`)
		return true
	}
	r.scripts["new"] = func(p *peer, m message) bool {
		if m.Method != "tools/list" {
			return false
		}
		var all []string
		for i := range 30 {
			all = append(all, fmt.Sprintf(`{"name":"t%d_%d","inputSchema":{"type":"object"}}`, pages, i))
		}
		pages++
		p.reply(m, fmt.Sprintf(`{"tools":[%s],"nextCursor":"%d"}`, strings.Join(all, ","), pages))
		return true
	}
	s := r.open(Config{Servers: stdio("same", "new")})
	if n := state(s, "same").Tools; n != 1 {
		t.Errorf("%d tools of a list that repeats itself", n)
	}
	if n := state(s, "new").Tools; n != maxEntries {
		t.Errorf("%d tools of a list without an end", n)
	}
}

// Servers that do not come up cost their own time limit only, and say why.
func TestStartup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		silent := func(*peer, message) bool { return true }
		r.scripts["silent"] = silent
		r.scripts["deaf to the newest"] = func(_ *peer, m message) bool { return m.Method == "server/discover" }
		r.scripts["dies of the newest"] = func(p *peer, m message) bool {
			if m.Method == "server/discover" {
				p.quit()
			}
			return false
		}
		r.refuse["missing"] = fmt.Errorf("no such program")
		list := stdio("silent", "deaf to the newest", "dies of the newest", "missing", "fine")
		list = append(list, servers.Server{Name: "odd", Type: "carrier pigeon"})
		begun := time.Now()
		s := r.open(Config{Servers: list})
		defer func() { s.Close(); r.wg.Wait() }()
		if took := time.Since(begun); took > usualStartup+time.Second {
			t.Errorf("it took %v", took)
		}
		for name, want := range map[string]struct {
			state State
			part  string
		}{
			"silent": {Failed, "within 30s"}, "deaf to the newest": {Connected, ""}, "dies of the newest": {Connected, ""},
			"missing": {Failed, "no such program"}, "fine": {Connected, ""}, "odd": {Failed, "no type of MCP server"},
		} {
			if st := state(s, name); st.State != want.state || !strings.Contains(st.Problem, want.part) {
				t.Errorf("%s is %s: %s", name, st.State, st.Problem)
			}
		}
	})
}
