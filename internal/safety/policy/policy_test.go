package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"dure/agent"
)

// config is a policy for the workspace /w. The links are /w/link to /etc, /into to
// /w, and /w/alias to /w/.git.
func config() Config {
	return Config{
		Canonical: func(name string) (string, bool) {
			c, ok := map[string]string{
				"Bash": "bash__exec", "bash": "bash__exec", "bash__exec": "bash__exec", "Read": "file-system__read",
				"Edit": "file-system__edit", "file_edit": "file-system__edit", "Write": "file-system__write",
				"WebFetch": "web__fetch", "Grep": "file-system__grep", "HttpRequest": "http__request",
			}[name]
			if !ok && strings.Contains(name, "__") {
				return name, true
			}
			return c, ok
		},
		Resolve: func(p string) (string, string, error) {
			if strings.Contains(p, "loop") {
				return "", "", errors.New("too many links")
			}
			given := filepath.ToSlash(filepath.Clean(p))
			return given, strings.NewReplacer("/w/link", "/etc", "/into", "/w", "/w/alias", "/w/.git").Replace(given), nil
		},
		Inside: func(p string) bool { return p == "/w" || strings.HasPrefix(p, "/w/") },
		Dir:    "/w", Home: "/home/u",
	}
}

func mustNew(t *testing.T, c Config) *Policy {
	t.Helper()
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// decide is what the gate does without hooks.
func decide(p *Policy, prop agent.Proposal) agent.Decision {
	if d := p.Before(prop); d.Verdict != agent.Pass {
		return d
	}
	return p.After(prop, agent.Decision{})
}

func prop(tool string, class agent.Class, e agent.Effects) agent.Proposal {
	group := map[string]string{"bash__exec": "system", "bash__script": "system"}[tool]
	if strings.HasPrefix(tool, "file-system__") {
		group = "files"
	}
	return agent.Proposal{Call: agent.Call{Tool: tool}, Class: class, Group: group, Effects: e}
}

func reads(paths ...string) agent.Proposal {
	return prop("file-system__read", agent.Read, agent.Effects{Reads: paths})
}

func edits(paths ...string) agent.Proposal {
	return prop("file-system__edit", agent.Checkable, agent.Effects{Reads: paths, Writes: paths})
}

func runs(command string) agent.Proposal {
	return prop("bash__exec", agent.Unsafe, agent.Effects{Runs: [][]string{{"bash", "-c", command}}})
}

// The mode table, line by line.
func TestModes(t *testing.T) {
	modes := []agent.Mode{agent.ModeDefault, agent.ModeAcceptEdits, agent.ModePlan, agent.ModeDontAsk, agent.ModeBypass}
	asked := func(p agent.Proposal) agent.Proposal { p.Call.Tool = "asked__tool"; return p }
	denied := func(p agent.Proposal) agent.Proposal { p.Call.Tool = "denied__tool"; return p }
	allowed := func(p agent.Proposal) agent.Proposal { p.Call.Tool = "allowed__tool"; return p }
	with := func(p agent.Proposal, change func(*agent.Effects)) agent.Proposal { change(&p.Effects); return p }
	for _, tt := range []struct {
		name string
		prop agent.Proposal
		want string // in the order of modes
	}{
		{"reads inside", reads("/w/a", "/w/b/c"), "allow allow allow allow allow"},
		{"touches nothing, may be repeated", prop("todo__write", agent.Idempotent, agent.Effects{}), "allow allow allow allow allow"},
		{"touches nothing, it says", prop("x__y", agent.Unsafe, agent.Effects{}), "ask ask ask deny allow"},
		{"reads inside, may not be repeated", prop("x__y", agent.Unsafe, agent.Effects{Reads: []string{"/w/a"}}), "ask ask ask deny allow"},
		{"reads what is private", with(reads("/w/a"), func(e *agent.Effects) { e.Sensitive = true }), "ask ask ask deny allow"},
		{"gives powers", with(edits("/w/a"), func(e *agent.Effects) { e.Powers = "?" }), "ask ask deny deny allow"},
		{"gives powers, allowed", allowed(with(edits("/w/a"), func(e *agent.Effects) { e.Powers = "?" })), "allow allow allow allow allow"},
		{"a server's tool that says it reads", prop("mcp__a__b", agent.Read, agent.Effects{}), "ask ask ask deny allow"},
		{"edits inside", edits("/w/a"), "ask allow deny deny allow"},
		{"edits inside by a command", with(runs("x"), func(e *agent.Effects) { e.Writes = []string{"/w/a"} }), "ask ask deny deny allow"},
		{"other commands", runs("make"), "ask ask ask deny allow"},
		{"hosts", prop("web__fetch", agent.Read, agent.Effects{Hosts: []string{"a.example"}}), "ask ask ask deny allow"},
		{"reads outside", reads("/w/a", "/etc/passwd"), "ask ask ask deny allow"},
		{"reads outside by a link", reads("/w/link/passwd"), "ask ask ask deny allow"},
		{"reads outside, with dots", reads("/w/../elsewhere"), "ask ask ask deny allow"},
		{"reads inside by a link from outside", reads("/into/a"), "ask ask ask deny allow"},
		{"reads beside", reads("/work"), "ask ask ask deny allow"},
		{"reads what cannot be resolved", reads("/w/loop"), "ask ask ask deny allow"},
		{"edits outside", edits("/etc/hosts"), "ask ask ask deny allow"},
		{"edits outside by a link", edits("/w/link/hosts"), "ask ask ask deny allow"},
		{"edits inside and outside", edits("/w/a", "/etc/hosts"), "ask ask deny deny allow"},
		{"edits a protected path", edits("/w/.git/config"), "ask ask ask deny allow"},
		{"edits a protected path by a link", edits("/w/alias/config"), "ask ask ask deny allow"},
		{"reads a protected path", reads("/w/.git/config"), "allow allow allow allow allow"},
		{"unreadable", with(runs("x"), func(e *agent.Effects) { e.Unreadable = "too long" }), "ask ask ask deny allow"},
		{"reads inside, and what cannot be read", with(reads("/w/a"), func(e *agent.Effects) { e.Unreadable = "dynamic" }), "ask ask ask deny allow"},
		{"needs the user", prop("user__ask", agent.Idempotent, agent.Effects{User: true}), "ask ask ask deny ask"},
		{"transactional", with(edits("/w/a"), func(e *agent.Effects) { e.Transactional = true }), "ask ask ask deny ask"},
		{"ask rule", asked(reads("/w/a")), "ask ask ask deny ask"},
		{"allow rule", allowed(runs("make")), "allow allow allow allow allow"},
		{"allow rule, transactional", allowed(with(runs("make"), func(e *agent.Effects) { e.Transactional = true })), "ask ask ask deny ask"},
		{"allow rule, needs the user", allowed(prop("", agent.Read, agent.Effects{User: true})), "ask ask ask deny ask"},
		{"allow rule, protected path", allowed(edits("/w/.envrc")), "ask ask ask deny allow"},
		{"allow rule, unreadable", allowed(with(runs("x"), func(e *agent.Effects) { e.Unreadable = "dynamic" })), "ask ask ask deny allow"},
		{"deny rule", denied(reads("/w/a")), "deny deny deny deny deny"},
		{"hard denial", reads("/w/a\x00b"), "deny deny deny deny deny"},
		{"hard denial in a command", allowed(runs("a\x00b")), "deny deny deny deny deny"},
	} {
		var got []string
		for _, m := range modes {
			c := config()
			c.Mode, c.Ask, c.Deny, c.Allow = m, []string{"asked__tool"}, []string{"denied__tool"}, []string{"allowed__tool"}
			d := decide(mustNew(t, c), tt.prop)
			got = append(got, string(d.Verdict))
			if d.Reason == "" || d.By == "" || len(d.Trace) == 0 {
				t.Errorf("%s, %s: decided without a reason: %+v", tt.name, m, d)
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, s, tt.want)
		}
	}
}

func TestAfterHooks(t *testing.T) {
	for _, tt := range []struct {
		name  string
		mode  agent.Mode
		soFar agent.Decision
		prop  agent.Proposal
		want  agent.Decision // without its trace
	}{
		{"hook allows", agent.ModeDefault, agent.Decision{Verdict: agent.Allow, By: "hook", Reason: "fine"}, runs("x"), agent.Decision{Verdict: agent.Allow, By: "hook", Reason: "fine"}},
		{"hook asks", agent.ModeBypass, agent.Decision{Verdict: agent.AskUser, By: "hook", Reason: "look"}, reads("/w/a"), agent.Decision{Verdict: agent.AskUser, By: "hook", Reason: "look"}},
		{"hook asks and nobody is asked", agent.ModeDontAsk, agent.Decision{Verdict: agent.AskUser, By: "hook", Reason: "look"}, reads("/w/a"), agent.Decision{Verdict: agent.Deny, By: "mode", Reason: "look (mode dontAsk: nobody is asked)"}},
		{"hook denies", agent.ModeBypass, agent.Decision{Verdict: agent.Deny, By: "hook", Reason: "no", Stop: true}, reads("/w/a"), agent.Decision{Verdict: agent.Deny, By: "hook", Reason: "no", Stop: true}},
		{"hook allows what has a floor", agent.ModeDefault, agent.Decision{Verdict: agent.Allow, By: "hook"}, edits("/w/.mcp.json"), agent.Decision{Verdict: agent.AskUser, By: "floor", Reason: "/w/.mcp.json is a protected path", Flip: "mode bypassPermissions"}},
		{"hook allows what has an ask rule", agent.ModeDefault, agent.Decision{Verdict: agent.Allow, By: "hook"}, prop("asked__tool", agent.Read, agent.Effects{}), agent.Decision{Verdict: agent.AskUser, By: "rule", Reason: "ask rule asked__tool", Rule: "asked__tool", Flip: "without the rule asked__tool"}},
		{"no hook", agent.ModePlan, agent.Decision{}, edits("/w/a"), agent.Decision{Verdict: agent.Deny, By: "mode", Reason: "mode plan: it changes /w/a, and nothing is changed before the plan is approved", Flip: "mode default"}},
	} {
		c := config()
		c.Mode, c.Ask = tt.mode, []string{"asked__tool"}
		got := mustNew(t, c).After(tt.prop, tt.soFar)
		got.Trace, got.Basis = nil, nil
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// The trace has every stage, also those that did not decide.
func TestTrace(t *testing.T) {
	c := config()
	c.Deny = []string{"group:finance"}
	c.Rules = []Rule{{Text: "Bash", Verdict: agent.Allow, Source: Source{Layer: User, File: "settings.json", Line: 7}}}
	p := mustNew(t, c)
	call := runs("x")
	want := []agent.Opinion{
		{Stage: "hard"},
		{Stage: "deny"},
		{Stage: "floors"},
		{Stage: "confinement"},
		{Stage: "ask"},
		{Stage: "allow", Verdict: agent.Allow, Reason: "allow rule Bash", Rule: "Bash", Source: "settings.json:7"},
		{Stage: "read-only"},
		{Stage: "mode", Source: "default"},
		{Stage: "global-deny"},
		{Stage: "global-allow", Verdict: agent.Allow, Reason: "allow rule Bash", Rule: "Bash", Source: "settings.json:7"},
		{Stage: "user-deny"},
		{Stage: "user-allow"},
		{Stage: "channel-policy"},
		{Stage: "group-policy", Verdict: agent.AskUser, Reason: "what the group has by default"},
		{Stage: "tool-policy"},
		{Stage: "finance-safety"},
		{Stage: "default-policy", Verdict: agent.AskUser, Reason: "by class and risk"},
	}
	if got := p.Decide(call).Trace; !reflect.DeepEqual(got, want) {
		t.Errorf("trace\n%+v\nwant\n%+v", got, want)
	}
}

func TestRules(t *testing.T) {
	all := []agent.Proposal{
		prop("bash__exec", "", agent.Effects{}), prop("bash__script", "", agent.Effects{}), prop("file-system__read", "", agent.Effects{}),
		prop("file-system__edit", "", agent.Effects{}), prop("file-system__write", "", agent.Effects{}), prop("file-system__grep", "", agent.Effects{}),
		prop("mcp__git__get_a", "", agent.Effects{}), prop("mcp__git__put_a", "", agent.Effects{}), prop("mcp__github__get_a", "", agent.Effects{}),
	}
	for _, tt := range []struct{ rule, allows, denies string }{
		{"Bash", "bash__exec", "bash__exec bash__script"},
		{" Bash(*) ", "bash__exec", "bash__exec bash__script"},
		{"bash__script", "bash__script", "bash__script"},
		{"bash__*", "skipped", "bash__exec bash__script"},
		{"bash:*", "bash__exec bash__script", "bash__exec bash__script"},
		{"file_edit", "file-system__edit file-system__write", "file-system__edit file-system__write"},
		{"Write", "file-system__write", "file-system__write"},
		{"file-system__read", "file-system__read file-system__grep", "file-system__read file-system__edit file-system__write file-system__grep"},
		{"group:files", "file-system__read file-system__edit file-system__write file-system__grep", "file-system__read file-system__edit file-system__write file-system__grep"},
		{"files:*", "file-system__read file-system__edit file-system__write file-system__grep", "file-system__read file-system__edit file-system__write file-system__grep"},
		{"mcp__git", "mcp__git__get_a mcp__git__put_a", "mcp__git__get_a mcp__git__put_a"},
		{"mcp__git__*", "mcp__git__get_a mcp__git__put_a", "mcp__git__get_a mcp__git__put_a"},
		{"mcp__git__get_*", "mcp__git__get_a", "mcp__git__get_a"},
		{"mcp__git__get_a", "mcp__git__get_a", "mcp__git__get_a"},
		{"mcp__*__get_*", "skipped", "mcp__git__get_a mcp__github__get_a"},
		{"mcp__git*", "skipped", "mcp__git__get_a mcp__git__put_a mcp__github__get_a"},
		{"mcp__*", "skipped", "mcp__git__get_a mcp__git__put_a mcp__github__get_a"},
		{"*a*", "skipped", "bash__exec bash__script file-system__read mcp__git__get_a mcp__git__put_a mcp__github__get_a"},
		{"*__*", "skipped", "bash__exec bash__script file-system__read file-system__edit file-system__write file-system__grep mcp__git__get_a mcp__git__put_a mcp__github__get_a"},
		{"Unheard", "", ""},
		{"bash__exe", "", ""},
		{"Bash(", "skipped", "bash__exec bash__script"},
		{"Bash()", "skipped", "bash__exec bash__script"},
		{"Bash( )", "skipped", "bash__exec bash__script"},
		{"Bash('a)", "skipped", "bash__exec bash__script"},
		{"Read([)", "skipped", "file-system__read file-system__edit file-system__write file-system__grep"},
		{"Read(a/../b)", "skipped", "file-system__read file-system__edit file-system__write file-system__grep"},
		{"WebFetch(x.example)", "skipped", ""},
		{"mcp__git__get_a(x)", "skipped", "mcp__git__get_a"},
		{"(*)", "skipped", "error"},
		{"", "skipped", "error"},
		{"a b", "skipped", "error"},
		{"group:", "skipped", "error"},
		{"group:*", "skipped", "error"},
		{"a:b", "skipped", "error"},
		{":*", "skipped", "error"},
		{"mcp__", "skipped", "error"},
		{"도구", "skipped", "error"},
	} {
		for _, list := range []string{"allow", "deny"} {
			c, want := config(), tt.allows
			c.Allow = []string{tt.rule}
			if list == "deny" {
				c.Allow, c.Deny, want = nil, []string{tt.rule}, tt.denies
			}
			var got []string
			p, err := New(c)
			if err != nil {
				got = []string{"error"}
			} else if w := p.Warnings(); len(w) == 1 && strings.HasPrefix(w[0].Text, "skipped: ") {
				got = []string{"skipped"}
			} else {
				for _, call := range all {
					if d := decide(p, call); d.By == "rule" && string(d.Verdict) == list {
						got = append(got, call.Call.Tool)
					}
				}
			}
			if s := strings.Join(got, " "); s != want {
				t.Errorf("%s %s: %q (%v), want %q", list, tt.rule, s, err, want)
			}
		}
	}
}

func TestFaultsOfRules(t *testing.T) {
	from := Source{Layer: Project, File: "p.json", Line: 3}
	for _, tt := range []struct {
		rule    string
		verdict agent.Verdict
		want    string
	}{
		{"Bash(rm", agent.Allow, `p.json:3:7: rule "Bash(rm": skipped: it has no closing parenthesis`},
		{"Bash(rm", agent.Deny, `p.json:3:7: rule "Bash(rm": it has no closing parenthesis: taken for every call of Bash`},
		{`Bash(rm "x)`, agent.AskUser, `p.json:3:11: rule "Bash(rm \"x)": a quote is not closed: taken for every call of Bash`},
		{"Read(/src/[a)", agent.Deny, `p.json:3:11: rule "Read(/src/[a)": a [ is not closed, or a \ stands at the end: taken for every call of Read`},
		{"WebFetch(domain:a b)", agent.Deny, `p.json:3:18: rule "WebFetch(domain:a b)": a host has letters, digits, dots and hyphens: taken for every call of WebFetch`},
		{"mcp__*", agent.Allow, `p.json:3:6: rule "mcp__*": skipped: an allow rule with * in the name of a tool has to begin with a whole server, as in mcp__SERVER__*`},
		{"mcp__a__b(x:1)", agent.Allow, `p.json:3:11: rule "mcp__a__b(x:1)": skipped: a rule on a parameter can only deny or ask`},
		{"Bash(a\x01)", agent.Deny, `error: reading deny rule: p.json:3:7: rule "Bash(a\x01)": it has a control character`},
		{"a b", agent.Deny, `error: reading deny rule: p.json:3:2: rule "a b": it names no tool: write a name, group:NAME, mcp__SERVER, or a name with *`},
		{"Wheather", agent.Deny, `p.json:3:1: rule "Wheather": it matches no tool that is known`},
	} {
		c := config()
		c.Rules = []Rule{{Text: tt.rule, Verdict: tt.verdict, Source: from}}
		p, err := New(c)
		got := ""
		if err != nil {
			got = "error: " + err.Error()
		} else if w := p.Warnings(); len(w) == 1 {
			got = w[0].String()
		}
		if got != tt.want {
			t.Errorf("%s %s:\n%s\nwant\n%s", tt.verdict, tt.rule, got, tt.want)
		}
	}
	from.Column = 5 // where it begins on its line
	w := Warning{Rule: "Bash(rm", Source: from, Column: 7, Text: "it has no closing parenthesis"}
	if got, want := w.String(), `p.json:3:12: rule "Bash(rm": it has no closing parenthesis`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, err := New(Config{Mode: "yolo"}); err == nil || err.Error() != `unknown permission mode "yolo"` {
		t.Error(err)
	}
}

// A rule for a tool that comes later takes effect when it comes.
func TestUnknownTool(t *testing.T) {
	c := config()
	later := map[string]string{}
	c.Canonical = func(n string) (string, bool) { s, ok := later[n]; return s, ok }
	c.Deny = []string{"Weather", "mcp__x__y"}
	p := mustNew(t, c)
	if got := p.Unknown(); !reflect.DeepEqual(got, []string{"Weather"}) {
		t.Errorf("unknown: %q", got)
	}
	call := prop("weather__now", agent.Read, agent.Effects{})
	if d := decide(p, call); d.Verdict != agent.Allow {
		t.Errorf("before: %+v", d)
	}
	later["Weather"] = "weather__now"
	if d := decide(p, call); d.Verdict != agent.Deny {
		t.Errorf("after: %+v", d)
	}
}

// Without a word on paths nothing is inside.
func TestNothingIsInsideByDefault(t *testing.T) {
	p := mustNew(t, Config{})
	if d := decide(p, reads("/w/a")); d.Verdict != agent.AskUser {
		t.Errorf("%+v", d)
	}
}

func TestChangeWhileDeciding(t *testing.T) {
	c := config()
	p := mustNew(t, c)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 500 {
				switch i {
				case 0:
					_ = p.SetMode(agent.ModeBypass)
				case 1:
					_ = p.SetMode(agent.ModeDefault)
				case 2:
					_ = p.Update(c)
				default:
					if v := decide(p, runs("x")).Verdict; v != agent.AskUser && v != agent.Allow {
						panic(fmt.Sprint("verdict ", v))
					}
				}
			}
		})
	}
	wg.Wait()
	if err := p.SetMode("yolo"); err == nil {
		t.Error("an unknown mode was set")
	}
	bad := c
	bad.Deny = []string{"a b"}
	if err := p.SetMode(agent.ModePlan); err != nil {
		t.Error(err)
	}
	if err := p.Update(bad); err == nil || p.Mode() != agent.ModePlan {
		t.Errorf("a bad update: %v, mode %s", err, p.Mode())
	}
}

// A tool's own file is no protected path for it, and for nobody else; and not where a
// link leads out of it.
func TestOwn(t *testing.T) {
	p, err := New(Config{
		Mode: agent.ModeAcceptEdits, Dir: "/w", Home: "/home/u",
		Resolve: func(p string) (string, string, error) {
			if p == "/w/.dure/link" {
				return p, "/w/.dure/settings.json", nil
			}
			return p, p, nil
		},
		Inside: func(p string) bool { return strings.HasPrefix(p, "/w/") },
		Own: func(tool, p string) bool {
			return tool == "memory__append" && slices.Contains([]string{"/w/.dure/own", "/home/u/.dure/own", "/w/.dure/link"}, p)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tool, path string
		want       agent.Verdict
	}{
		{"memory__append", "/w/.dure/own", agent.Allow},
		{"memory__append", "/home/u/.dure/own", agent.Allow},
		{"memory__append", "/w/.dure/link", agent.AskUser},
		{"memory__append", "/w/.dure/settings.json", agent.AskUser},
		{"file-system__write", "/w/.dure/own", agent.AskUser},
		{"bash__exec", "/w/.dure/own", agent.AskUser},
	} {
		call := agent.Proposal{Call: agent.Call{ID: "1", Tool: tt.tool, Input: []byte(`{}`)}, Effects: agent.Effects{Writes: []string{tt.path}}}
		if d := p.After(call, agent.Decision{}); d.Verdict != tt.want {
			t.Errorf("%s of %s: %+v, want %s", tt.tool, tt.path, d, tt.want)
		}
	}
	if err := p.SetMode(agent.ModePlan); err != nil {
		t.Fatal(err)
	}
	call := agent.Proposal{Call: agent.Call{ID: "1", Tool: "memory__append", Input: []byte(`{}`)}, Effects: agent.Effects{Writes: []string{"/w/.dure/own"}}}
	if d := p.After(call, agent.Decision{}); d.Verdict != agent.Deny {
		t.Errorf("in plan mode: %+v", d)
	}
}

func TestProtected(t *testing.T) {
	for path, want := range map[string]bool{
		"/w/.git/config": true, "/w/.git": true, "/w/sub/.git/hooks/x": true, "/w/.GIT/config": true, "/w/.git./x": true, "/w/.git /x": true,
		"/w/.g\u200cit/x": true, "/w/.git:stream/x": true, "/w/git~1/x": true, `C:\w\.git\x`: true, "/w/.config/git/ignore": true,
		"/w/.claude/settings.json": true, "/w/.dure/rules/a.md": true, "/w/.mcp.json": true, "/home/u/.bashrc": true, "/w/.ENVRC": true,
		"/w/.v\u017fcode/tasks.json": true, "/w/.\u212aube/config": true, "/w/GIT~2/config": true, "/w/VSCODE~1/tasks.json": true, "/w/DEVCON~1/x": true,
		"/w/git~x/y": false, "/w/gitx~1/y": false, "/w/~1/y": false,
		"/w/.github/workflows/ci.yml": true, "/home/u/.ssh/id": true,
		"/w/.claude/worktrees/x/main.go": false, "/w/.claude/worktrees/x/.git": true, "/w/.claude/worktrees/.claude/x": true,
		"/w/.gitignore": false, "/w/git/x": false, "/w/.github/CODEOWNERS": false, "/w/bashrc": false, "/w/x.git/y": false,
		"/": false, "": false, "/w/.config/x": false,
	} {
		if got := isProtected(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}
