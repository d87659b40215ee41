package policy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/prooftest"
)

func TestHosts(t *testing.T) {
	for _, tt := range []struct{ pattern, host, want string }{
		{"a.example", "a.example", "allow deny"},
		{"A.Example.", "a.example:443", "allow deny"},
		{"a.example", "A.EXAMPLE.", "allow deny"},
		{"a.example", "b.a.example", "-"},
		{"a.example", "a.example.evil.test", "-"},
		{"a.example", "xa.example", "-"},
		{"*.a.example", "b.a.example", "allow deny"},
		{"*.a.example", "c.b.a.example", "allow deny"},
		{"*.a.example", "a.example", "-"},
		{"*.a.example", "xa.example", "-"},
		{"api.*.example", "api.x.example", "allow deny"},
		{"api.*.example", "api.x.y.example", "-"},
		{"ap*.example", "apx.example", "allow deny"},
		{"*", "anything.test:8080", "allow deny"},
		{"10.0.0.1", "10.0.0.1:80", "allow deny"},
		{"::1", "[::1]:80", "allow deny"},
		{"bücher.example", "xn--bcher-kva.example:443", "allow deny"},
		{"xn--bcher-kva.example", "bücher.example", "allow deny"},
	} {
		var got []string
		for _, v := range []agent.Verdict{agent.Allow, agent.Deny} {
			c := config()
			c.Rules = []Rule{{Text: "WebFetch(domain:" + tt.pattern + ")", Verdict: v}}
			if d := mustNew(t, c).Decide(prop(fetchTool, agent.Read, agent.Effects{Hosts: []string{tt.host}})); d.Verdict == v {
				got = append(got, string(v))
			}
		}
		if got == nil {
			got = []string{"-"}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("domain:%s on %s: %s, want %s", tt.pattern, tt.host, s, tt.want)
		}
	}
	c := config()
	c.Allow, c.Deny = []string{"WebFetch(domain:*.test)", "WebFetch(domain:b.twin)", "Bash"}, []string{"WebFetch(domain:evil.test)"}
	p := mustNew(t, c)
	for name, tt := range map[string]struct {
		prop agent.Proposal
		want agent.Verdict
	}{
		"every host of a call counts":        {prop(fetchTool, agent.Read, agent.Effects{Hosts: []string{"a.test", "evil.test"}}), agent.Deny},
		"a command is held to it":            {line(wraps(cmd("sudo"), false, with(cmd("curl"), func(c *agent.SimpleCommand) { c.Hosts = []string{"evil.test"} }))), agent.Deny},
		"another tool is held to it":         {prop(httpTool, agent.Unsafe, agent.Effects{Hosts: []string{"evil.test:80"}}), agent.Deny},
		"another tool is not allowed by it":  {prop(httpTool, agent.Unsafe, agent.Effects{Hosts: []string{"a.test"}}), agent.AskUser},
		"a page may be led to its twin":      {prop(fetchTool, agent.Read, agent.Effects{Hosts: []string{"b.twin:80", "b.twin:443", "www.b.twin:443"}}), agent.Allow},
		"and is no other page":               {prop(fetchTool, agent.Read, agent.Effects{Hosts: []string{"www.b.twin:443", "b.twin:443"}}), agent.AskUser},
		"nor is a third":                     {prop(fetchTool, agent.Read, agent.Effects{Hosts: []string{"b.twin:443", "x.b.twin:443"}}), agent.AskUser},
		"hosts that are allowed are no more": {prop(fetchTool, agent.Read, agent.Effects{Hosts: []string{"a.test"}, Writes: []string{"/w/a"}}), agent.AskUser},
	} {
		if d := p.Decide(tt.prop); d.Verdict != tt.want {
			t.Errorf("%s: %s (%s), want %s", name, d.Verdict, d.Reason, tt.want)
		}
	}
}

func TestParametersAndNames(t *testing.T) {
	for _, tt := range []struct{ rule, tool, input, want string }{
		{"Bash(run_in_background:true)", shellTool, `{"command":"x","run_in_background":true}`, "deny"},
		{"Bash(run_in_background:true)", shellTool, `{"command":"x","run_in_background":false}`, "-"},
		{"Bash(run_in_background:true)", shellTool, `{"command":"x"}`, "-"},
		{"Bash(run_in_background:true)", shellTool, `{"command":"x","Run_In_Background":true}`, "deny"},
		{"mcp__a__b(level:hi*)", "mcp__a__b", `{"level":"high"}`, "deny"},
		{"mcp__a__b(level:hi*)", "mcp__a__b", `{"level":["high"]}`, "-"},
		{"mcp__a__b(n:3)", "mcp__a__b", `{"n":3}`, "deny"},
		{"mcp__a__*(n:3)", "mcp__a__c", `{"n":3}`, "deny"},
		{"mcp__a(n:3)", "mcp__a__c", `{"n":3}`, "deny"},
		{"mcp__a(n:3)", "mcp__b__c", `{"n":3}`, "-"},
		{"Agent(reviewer)", "Agent", `{"subagent_type":"reviewer"}`, "allow deny"},
		{"Agent(reviewer)", "Agent", `{"subagent_type":"other"}`, "-"},
		{"Agent(review*)", "Agent", `{"subagent_type":"reviewer"}`, "allow deny"},
		{"Agent(model:opus)", "Agent", `{"subagent_type":"reviewer","model":"opus"}`, "deny"},
		{"Skill(pdf)", "Skill", `{"skill":"pdf"}`, "allow deny"},
		{"Skill(pdf)", "Skill", `{"skill":"pdf","args":"x"}`, "deny"},
		{"Skill(pdf *)", "Skill", `{"skill":"pdf","args":"x"}`, "allow deny"},
		{"Skill(pdf *)", "Skill", `{"skill":"pdf"}`, "allow deny"},
		{"Skill(pdf *)", "Skill", `{"skill":"pdfs"}`, "-"},
		{"Skill(pdf:*)", "Skill", `{"skill":"/pdf x"}`, "allow deny"},
		{"Skill(pdf)", "Skill", `not JSON`, "-"},
	} {
		var got []string
		for _, v := range []agent.Verdict{agent.Allow, agent.Deny} {
			c := config()
			c.Canonical = nil
			c.Rules = []Rule{{Text: tt.rule, Verdict: v}}
			call := prop(tt.tool, agent.Unsafe, agent.Effects{})
			if call.Call.Input = json.RawMessage(tt.input); tt.tool == shellTool {
				call.Effects.Commands = []agent.SimpleCommand{cmd("x")}
			}
			if d := mustNew(t, c).Decide(call); d.Verdict == v {
				got = append(got, string(v))
			}
		}
		if got == nil {
			got = []string{"-"}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s on %s %s: %s, want %s", tt.rule, tt.tool, tt.input, s, tt.want)
		}
	}
}

// Every spelling of a rule is read, and written back in one.
func TestSpellings(t *testing.T) {
	for text, want := range map[string]string{
		`"Bash(git *)"`: "allow Bash(git *)",
		`{"tool":"Bash","pattern":"git *","behavior":"deny"}`:               "deny Bash(git *)",
		`{"tool":"bash","pattern":"git *","decision":"ask","reason":"r"}`:   "ask Bash(git *)",
		`{"tool":"bash:*","pattern":"git *","verdict":"allow"}`:             "allow Bash(git *)",
		`{"tool":"bash__exec","pattern":"*","behavior":"allow"}`:            "allow Bash",
		`{"pattern":"finance:*","verdict":"require-approval","priority":3}`: "ask finance:*",
		`{"rule":"file_edit(/src/**)","verdict":"allow"}`:                   "allow Edit(/src/**)",
		`{"tool":"Write","pattern":"x","verdict":"deny"}`:                   "deny Edit(x)",
		`{"tool":"mcp__a__*","verdict":"allow","scope":{"stage":"user"}}`:   "allow mcp__a__*",
		`{"tool":"Bash","verdict":"allow","behavior":"deny"}`:               "error",
		`{"tool":"Bash","verdict":"perhaps"}`:                               "error",
		`{"tool":"Bash","verdict":"allow","extra":1}`:                       "error",
		`{"tool":"Bash"}`: "error",
		`7`:               "error",
		`{"tool":"Bash","verdict":"allow","scope":{"stage":"planet"}}`: "error",
	} {
		var r Rule
		got := "error"
		if err := json.Unmarshal([]byte(text), &r); err == nil {
			if text[0] == '"' {
				r.Verdict = agent.Allow
			}
			s, err := compile(config(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if ready, _, err := s.try(r); err == nil && ready != nil {
				got = fmt.Sprint(ready.verdict, " ", ready.text)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Rules with a scope speak in their stage, and all of them count; the priority
// says who is named.
func TestStages(t *testing.T) {
	pay := prop("bank__pay", agent.Unsafe, agent.Effects{Transactional: true})
	pay.Group = "finance"
	quote := prop("bank__quote", agent.Read, agent.Effects{Reads: []string{"/w/x"}})
	quote.Group, quote.Risk = "finance", agent.RiskLow
	rule := func(v agent.Verdict, stage, subject string, priority int) Rule {
		return Rule{
			Tool: "finance:*", Verdict: v, Priority: priority, Scope: Scope{stage, subject},
			Reason: fmt.Sprint(stage, " ", subject, " ", priority),
		}
	}
	said := func(d agent.Decision) string {
		var words []string
		for _, o := range d.Trace {
			if slices.Contains(stageNames[:], o.Stage) && o.Verdict != agent.Pass {
				words = append(words, fmt.Sprintf("%s %s", o.Stage, o.Verdict))
			}
		}
		return fmt.Sprintf("%s (%s): %s", d.Verdict, d.Reason, strings.Join(words, ", "))
	}
	for _, tt := range []struct {
		name  string
		call  agent.Proposal
		rules []Rule
		want  string
	}{
		{"no rules", quote, nil, "allow (it reads inside the workspace): group-policy allow, default-policy allow"},
		{"a transactional call", pay, []Rule{rule(agent.Allow, "", "", 0)}, "ask (the call is transactional: each one is approved on its own): global-allow allow, group-policy allow, finance-safety ask, default-policy ask"},
		{"a deny of the user beats an allow of all", quote, []Rule{rule(agent.Allow, "global", "", 9), rule(agent.Deny, "user", "kim", 0)}, "deny (deny rule finance:*: user kim 0): user-deny deny, group-policy allow, default-policy allow"},
		{"a deny of another user", quote, []Rule{rule(agent.Deny, "user", "lee", 0)}, "allow (it reads inside the workspace): group-policy allow, default-policy allow"},
		{"a deny of the channel beats all that allows", quote, []Rule{rule(agent.Allow, "user", "kim", 9), rule(agent.Deny, "channel", "web", 0)}, "deny (deny rule finance:*: channel web 0): channel-policy deny, group-policy allow, default-policy allow"},
		{"a deny of another channel", quote, []Rule{rule(agent.Deny, "channel", "mail", 0)}, "allow (it reads inside the workspace): group-policy allow, default-policy allow"},
		{"a group's ask", quote, []Rule{rule(agent.AskUser, "group", "finance", 0)}, "ask (ask rule finance:*: group finance 0): group-policy ask, default-policy allow"},
		{"another group's ask", quote, []Rule{rule(agent.AskUser, "group", "web", 0)}, "allow (it reads inside the workspace): group-policy allow, default-policy allow"},
		{"a tool's ask", quote, []Rule{rule(agent.AskUser, "tool", "bank__quote", 0)}, "ask (ask rule finance:*: tool bank__quote 0): group-policy allow, tool-policy ask, default-policy allow"},
		{"the priority names", quote, []Rule{rule(agent.Deny, "channel", "", 1), rule(agent.Deny, "channel", "web", 5), rule(agent.AskUser, "channel", "web", 9)}, "deny (deny rule finance:*: channel web 5): channel-policy deny, group-policy allow, default-policy allow"},
	} {
		c := config()
		c.Rules, c.User, c.Channel = tt.rules, "kim", "web"
		if got := said(mustNew(t, c).Decide(tt.call)); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// A deny of any layer holds against an allow of any other, and managed settings
// can take the others' allowing away.
func TestLayers(t *testing.T) {
	layers := []Layer{Managed, Flags, Local, Project, User, Session}
	for _, denies := range layers {
		for _, allows := range layers {
			c := config()
			c.Rules = []Rule{
				{Text: "Bash(a *)", Verdict: agent.Allow, Source: Source{Layer: allows, File: "a.json", Line: 2}},
				{Text: "Bash(a *)", Verdict: agent.Deny, Source: Source{Layer: denies, File: "d.json", Line: 3}},
			}
			d := mustNew(t, c).Decide(line(cmd("a")))
			if want := "without the rule Bash(a *) (d.json:3)"; d.Verdict != agent.Deny || d.Flip != want {
				t.Errorf("%s denies, %s allows: %s, %s", denies, allows, d.Verdict, d.Flip)
			}
		}
	}
	c := config()
	c.ManagedOnly, c.DisableBypass, c.Mode = true, true, agent.ModeBypass
	c.Allow = []string{"Bash(c *)"}
	c.Rules = []Rule{
		{Text: "Bash(a *)", Verdict: agent.Allow, Source: Source{Layer: User}},
		{Text: "Bash(b *)", Verdict: agent.Allow, Source: Source{Layer: Managed}},
		{Text: "Bash(b x)", Verdict: agent.Deny, Source: Source{Layer: Project}},
	}
	p := mustNew(t, c)
	var got []string
	for _, argv := range [][]string{{"a"}, {"b"}, {"b", "x"}, {"c"}} {
		d := p.Decide(line(cmd(argv...)))
		got = append(got, fmt.Sprint(d.Verdict, " ", d.Flip))
	}
	if s := strings.Join(got, ", "); s != "ask , allow , deny without the rule Bash(b x) (project), ask " {
		t.Error(s)
	}
	if p.Mode() != agent.ModeDefault || p.SetMode(agent.ModeBypass) == nil {
		t.Errorf("the mode is %s", p.Mode())
	}
	if err := p.Grant([]string{"Bash(a *)"}, Session); err == nil {
		t.Error("a grant counts that managed settings rule out")
	}
}

// What is granted holds at once, all of it or nothing, and survives new settings.
func TestGrant(t *testing.T) {
	c := config()
	p := mustNew(t, c)
	call := line(cmd("npm", "test"), cmd("make"))
	before := p.Hash()
	if err := p.Grant([]string{"Bash(npm test *)", "Bash(make"}, Session); err == nil || p.Decide(call).Verdict != agent.AskUser || p.Hash() != before {
		t.Errorf("half a grant: %v", err)
	}
	if err := p.Grant([]string{"Bash(npm test *)", "Bash(make)"}, Session); err != nil {
		t.Fatal(err)
	}
	if d := p.Decide(call); d.Verdict != agent.Allow || d.Trace[5].Source != "session" || p.Hash() == before {
		t.Errorf("%+v", d)
	}
	if err := p.Update(c); err != nil || p.Decide(call).Verdict != agent.Allow {
		t.Errorf("after new settings: %v", err)
	}
	c.Deny = []string{"Bash(make *)"}
	if err := p.Update(c); err != nil || p.Decide(call).Verdict != agent.Deny {
		t.Errorf("after a new deny: %v", err)
	}
}

// What is offered for a call, and that it allows the call.
func TestSuggest(t *testing.T) {
	reads := func(c agent.SimpleCommand, paths ...string) agent.SimpleCommand {
		c.Kind, c.Reads = agent.CommandReads, paths
		return c
	}
	for _, tt := range []struct {
		name string
		prop agent.Proposal
		want string // what it is remembered for, and the rules
	}{
		{"a script of a package", line(cmd("npm", "run", "build", "--prod")), "session: Bash(npm run build *); always: Bash(npm run build *)"},
		{"a command of git", line(cmd("git", "push", "origin")), "session: Bash(git push *); always: Bash(git push *)"},
		{"a program", line(cmd("pytest", "-q")), "session: Bash(pytest *); always: Bash(pytest *)"},
		{"a program with words, and none", line(cmd("make")), "session: Bash(make); always: Bash(make)"},
		{"flags before the words", line(cmd("git", "-C", "x", "push")), "session: Bash(git -C x push); always: Bash(git -C x push)"},
		{"each command", line(cmd("npm", "test"), cmd("git", "add", "a"), cmd("npm", "test", "x")), "session: Bash(npm test *), Bash(git add *); always: Bash(npm test *), Bash(git add *)"},
		{"only what is not allowed", line(reads(cmd("cat"), "/w/a"), cmd("make", "x")), "session: Bash(make x *); always: Bash(make x *)"},
		{"more than five", line(cmd("a"), cmd("b"), cmd("c"), cmd("d"), cmd("e"), cmd("f")), ""},
		{"with a flag that runs something", line(flagged(cmd("go", "test", "-exec", "x y"))), `session: Bash(go test -exec "x y"); always: Bash(go test -exec "x y")`},
		{"with a variable", line(cmd("A=b c", "make", "x")), `session: Bash(A="b c" make x); always: Bash(A="b c" make x)`},
		{"by a path", line(with(cmd("./a.sh", "x"), func(c *agent.SimpleCommand) { c.Flagged = placed })), "session: Bash(./a.sh x); always: Bash(./a.sh x)"},
		{"an interpreter", line(cmd("python3.12", "-c", "print(1)")), `session: Bash(python3.12 -c "print(1)")`},
		{"a wrapper that is not transparent", line(wraps(cmd("sudo", "make"), false, cmd("make"))), "session: Bash(sudo make)"},
		{"a transparent wrapper", line(wraps(cmd("timeout", "5", "make", "x"), true, cmd("make", "x"))), "session: Bash(make x *); always: Bash(make x *)"},
		{"what names files, hosts or processes", line(cmd("curl", "-s", "https://a.example/x"), cmd("mv", "a", "b")), "session: Bash(curl -s https://a.example/x), Bash(mv a b); always: Bash(curl -s https://a.example/x), Bash(mv a b)"},
		{"what many depend on", line(cmd("terraform", "apply", "x")), "session: Bash(terraform apply x)"},
		{"removing", line(cmd("rm", "-rf", "*")), `session: Bash(rm -rf "\*")`},
		{"what runs anything", line(cmd("docker", "run", "x")), "session: Bash(docker run x)"},
		{"going elsewhere", line(reads(cmd("cd", "/etc/x"), "/etc/x")), "session: Read(//etc/x/**); always: Read(//etc/x/**)"},
		{"reading elsewhere", line(reads(cmd("cat", "a"), "/home/u/a[1].txt")), `session: Read(~/a\[1].txt); always: Read(~/a\[1].txt)`},
		{"a redirection", prop(shellTool, agent.Unsafe, agent.Effects{Commands: []agent.SimpleCommand{cmd("make", "x")}, Writes: []string{"/w/o/a"}}), "session: Bash(make x *), Edit(//w/o/a)"},
		{"an edit", edits("/w/src/a.go"), "session: Edit(//w/src/a.go); session: Edit(//w/src/**)"},
		{"an edit at the top", edits("/w/a.go"), "session: Edit(//w/a.go)"},
		{"a read", prop("file-system__read", agent.Read, agent.Effects{Reads: []string{"/etc/hosts"}}), "session: Read(//etc/hosts); always: Read(//etc/hosts)"},
		{"a page", prop(fetchTool, agent.Read, agent.Effects{Hosts: []string{"A.example:443"}}), "session: WebFetch(domain:a.example); always: WebFetch(domain:a.example)"},
		{"a page that may lead to its twin", prop(fetchTool, agent.Read, agent.Effects{Hosts: []string{"a.example:443", "www.a.example:443"}}), "session: WebFetch(domain:a.example); always: WebFetch(domain:a.example)"},
		{"another tool's command line", prop("code__check", agent.Unsafe, agent.Effects{Commands: []agent.SimpleCommand{cmd("go", "test")}}), "session: Bash(go test *); always: Bash(go test *)"},
		{"a script", prop(scriptTool, agent.Unsafe, agent.Effects{Runs: [][]string{{"/w/a.sh", "x"}}}), "session: bash__script(/w/a.sh *); always: bash__script(/w/a.sh *)"},
		{"a server's tool", prop("mcp__a__b", agent.Unsafe, agent.Effects{}), "session: mcp__a__b; always: mcp__a__b"},
		{"what is allowed", reads0("/w/a"), ""},
		{"what is denied", line(cmd("denied")), ""},
		{"what a rule asks about", line(cmd("asked")), ""},
		{"what has a floor", edits("/w/.git/config"), ""},
		{"what cannot be read", func() agent.Proposal { p := line(cmd("a")); p.Effects.Unreadable = "?"; return p }(), ""},
		{"what cannot be parsed", func() agent.Proposal { p := line(cmd("a")); p.Effects.Unparsed = "?"; return p }(), ""},
	} {
		c := config()
		c.Shown, c.Ask, c.Deny = shown, []string{"Bash(asked)"}, []string{"Bash(denied)"}
		p := mustNew(t, c)
		var got []string
		for _, choice := range p.Suggest(tt.prop) {
			got = append(got, choice.Remember+": "+strings.Join(choice.Rules, ", "))
			q := mustNew(t, c)
			if err := q.Grant(choice.Rules, Session); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			if d := q.Decide(tt.prop); d.Verdict != agent.Allow {
				t.Errorf("%s: %v was granted, and it is %s: %s", tt.name, choice.Rules, d.Verdict, d.Reason)
			}
		}
		if s := strings.Join(got, "; "); s != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, s, tt.want)
		}
	}
}

// A question says which rule nearly allows a command, and why that does not hold.
func TestWhyAsked(t *testing.T) {
	reads := func(path string) agent.SimpleCommand {
		return with(cmd("cat", path), func(c *agent.SimpleCommand) { c.Kind, c.Reads = agent.CommandReads, []string{path} })
	}
	for _, tt := range []struct {
		prop agent.Proposal
		want string
	}{
		{line(flagged(cmd("go", "test", "-exec", "x"))), "mode default: the rule Bash(go test *) does not cover this: -x"},
		{line(cmd("A=1", "go", "test")), "mode default: the rule Bash(go test *) does not cover this: A is set"},
		{line(cmd("A=1", "make")), "mode default: it runs a command"},
		{line(flagged(cmd("make", "-f", "x"))), "mode default: it runs a command"},
		{line(cmd("go", "test"), cmd("make", "x y")), `mode default: it runs make "x y"`},
		{line(reads("/etc/hosts")), "mode default: /etc/hosts is outside of the workspace"},
	} {
		c := config()
		c.Shown, c.Allow = shown, []string{"Bash(go test *)"}
		if d := mustNew(t, c).Decide(tt.prop); d.Verdict != agent.AskUser || d.Reason != tt.want {
			t.Errorf("%s %s, want %s", d.Verdict, d.Reason, tt.want)
		}
	}
}

func reads0(path string) agent.Proposal { return reads(path) }

// What is said to lead to another verdict does.
func TestFlips(t *testing.T) {
	for _, tt := range []struct {
		mode agent.Mode
		prop agent.Proposal
		want string
	}{
		{agent.ModeDefault, line(cmd("make", "x")), "allow Bash(make x *)"},
		{agent.ModeDefault, line(cmd("make", "x"), cmd("b")), "allow Bash(make x *), Bash(b *)"},
		{agent.ModeDontAsk, line(cmd("make", "x")), "allow Bash(make x *)"},
		{agent.ModeDefault, edits("/w/a"), "mode acceptEdits"},
		{agent.ModeDefault, edits("/etc/hosts"), "allow Edit(//etc/hosts)"},
		{agent.ModePlan, edits("/w/a"), "mode default"},
		{agent.ModeDefault, edits("/w/.git/x"), "mode bypassPermissions"},
		{agent.ModeDefault, line(cmd("asked")), "without the rule Bash(asked) (a.json:4)"},
		{agent.ModeDefault, line(cmd("asked", "twice")), "without the rule Bash(asked twice) (a.json:5) and the others that ask it"},
		{agent.ModeBypass, line(cmd("denied")), "without the rule Bash(denied) (a.json:6)"},
		{agent.ModeDefault, func() agent.Proposal { p := line(cmd("a")); p.Effects.Unreadable = "?"; return p }(), "mode bypassPermissions"},
		{agent.ModeDefault, func() agent.Proposal { p := line(cmd("a")); p.Effects.Unparsed = "?"; return p }(), ""},
		{agent.ModeDefault, func() agent.Proposal { p := line(cmd("a")); p.Effects.Transactional = true; return p }(), ""},
		{agent.ModeDefault, func() agent.Proposal { p := line(cmd("a")); p.Effects.Destructive = "?"; return p }(), ""},
	} {
		c := config()
		c.Shown, c.Mode = shown, tt.mode
		for i, r := range []Rule{{Text: "Bash(asked)"}, {Text: "Bash(asked twice)", Priority: 1}, {Text: "Bash(denied)", Verdict: agent.Deny}, {Text: "Bash(asked tw*)"}} {
			if r.Source = (Source{File: "a.json", Line: 4 + i}); r.Verdict == agent.Pass {
				r.Verdict = agent.AskUser
			}
			c.Rules = append(c.Rules, r)
		}
		p := mustNew(t, c)
		was := p.Decide(tt.prop)
		if was.Flip != tt.want {
			t.Errorf("%s %+v: %q, want %q", tt.mode, tt.prop.Effects, was.Flip, tt.want)
		}
		if rules, ok := strings.CutPrefix(was.Flip, "allow "); ok {
			if err := p.Grant(strings.Split(rules, ", "), Session); err != nil {
				t.Fatal(err)
			}
		} else if mode, ok := strings.CutPrefix(was.Flip, "mode "); ok {
			if err := p.SetMode(agent.Mode(mode)); err != nil {
				t.Fatal(err)
			}
		} else {
			continue
		}
		if now := p.Decide(tt.prop); now.Verdict == was.Verdict {
			t.Errorf("%s does not change %s", was.Flip, was.Verdict)
		}
	}
}

// pool is what random policies and calls are made of.
var pool = struct {
	rules []string
	calls []agent.Proposal
}{
	rules: []string{
		"Bash", "Bash(a *)", "Bash(b)", "Bash(a b)", "Bash(* b)", "Bash(c:*)", "Read", "Edit", "Write", "Read(x)", "Edit(src/**)", "Read(//etc/**)", "Read(~/**)",
		"Edit(//w/**)", "WebFetch", "WebFetch(domain:*.h)", "WebFetch(domain:h)", "group:files", "group:system", "mcp__a__*", "mcp__a__b(n:1)", "Grep", "bash__script",
	},
	calls: func() (calls []agent.Proposal) {
		a, b, ab := cmd("a"), cmd("b"), cmd("a", "b")
		cat := agent.SimpleCommand{Argv: []string{"cat", "x"}, Kind: agent.CommandReads, Reads: []string{"/w/x"}}
		rm := agent.SimpleCommand{Argv: []string{"rm", "src"}, Kind: agent.CommandEdits, Writes: []string{"/w/src/y"}, Removes: []string{"/w/src/y"}}
		calls = append(calls,
			reads("/w/x"), reads("/etc/x"), reads("/w/link/x"), reads("/home/u/x"), edits("/w/src/a"), edits("/w/x"), edits("/etc/x"), edits("/w/.git/x"),
			prop("file-system__write", agent.Unsafe, agent.Effects{Writes: []string{"/w/src/a"}}),
			prop(fetchTool, agent.Read, agent.Effects{Hosts: []string{"h"}}), prop(fetchTool, agent.Read, agent.Effects{Hosts: []string{"x.h:80", "h"}}),
			prop("mcp__a__b", agent.Unsafe, agent.Effects{}), prop(scriptTool, agent.Unsafe, agent.Effects{Runs: [][]string{{"a", "b"}}}),
			prop("todo__write", agent.Idempotent, agent.Effects{}),
			line(a), line(b), line(ab), line(a, b, cat), line(cat), line(rm), line(rm, a),
			line(wraps(cmd("timeout", "a"), true, a)), line(wraps(cmd("sudo", "b"), false, b)), line(flagged(ab)), line(cmd("X=1", "a")),
			prop(shellTool, agent.Unsafe, agent.Effects{Commands: []agent.SimpleCommand{a}, Writes: []string{"/w/x"}}),
		)
		for _, change := range []func(*agent.Effects){
			func(e *agent.Effects) { e.Unreadable = "?" }, func(e *agent.Effects) { e.Unparsed = "?" }, func(e *agent.Effects) { e.Transactional = true },
			func(e *agent.Effects) { e.Sensitive = true }, func(e *agent.Effects) { e.Destructive = "?" },
			func(e *agent.Effects) { e.Powers = "?" },
		} {
			p := line(a, cat)
			change(&p.Effects)
			calls = append(calls, p)
		}
		return calls
	}(),
}

func randomConfig(rng *rand.Rand) Config {
	c := config()
	c.Canonical, c.Mode = nil, []agent.Mode{agent.ModeDefault, agent.ModeAcceptEdits, agent.ModePlan, agent.ModeDontAsk, agent.ModeBypass}[rng.IntN(5)]
	for i := range rng.IntN(7) {
		v := []agent.Verdict{agent.Allow, agent.Allow, agent.AskUser, agent.Deny}[rng.IntN(4)]
		c.Rules = append(c.Rules, Rule{Text: pool.rules[rng.IntN(len(pool.rules))], Verdict: v, Source: Source{Layer: User, File: "r.json", Line: i + 1}})
	}
	return c
}

// configs returns how many of the random configurations a test looks at.
func configs(all int) int {
	if prooftest.Long() {
		return all
	}
	return all / 3
}

// However rules and calls are put together: more denying or asking never loosens,
// allowing never overcomes a denial, and the order of rules does not matter.
func TestProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range configs(1500) {
		c := randomConfig(rng)
		call := pool.calls[rng.IntN(len(pool.calls))]
		was := mustNew(t, c).Decide(call)
		extra := Rule{Text: pool.rules[rng.IntN(len(pool.rules))], Source: Source{Layer: Managed}}
		decide := func(v agent.Verdict) agent.Decision {
			with := c
			extra.Verdict = v
			with.Rules = append(slices.Clone(c.Rules), extra)
			return mustNew(t, with).Decide(call)
		}
		for _, v := range []agent.Verdict{agent.Deny, agent.AskUser} {
			if v == agent.AskUser && c.Mode == agent.ModePlan {
				continue // rules come before the mode, which denies
			}
			if now := decide(v); strictness[now.Verdict] < strictness[was.Verdict] {
				t.Fatalf("%v and %s %s: %s becomes %s on %+v", c.Rules, v, extra.Text, was.Verdict, now.Verdict, call)
			}
		}
		now := decide(agent.Allow)
		if strictness[now.Verdict] > strictness[was.Verdict] || was.Verdict == agent.Deny && was.By != "mode" && now.Verdict != agent.Deny {
			t.Fatalf("%v and allow %s: %s becomes %s on %+v", c.Rules, extra.Text, was.Verdict, now.Verdict, call)
		}
		mixed := c
		mixed.Rules = slices.Clone(c.Rules)
		rng.Shuffle(len(mixed.Rules), reflect.Swapper(mixed.Rules))
		if now := mustNew(t, mixed).Decide(call); now.Verdict != was.Verdict || now.By != was.By {
			t.Fatalf("%v, in another order: %s by %s becomes %s by %s on %+v", c.Rules, was.Verdict, was.By, now.Verdict, now.By, call)
		}
	}
}

// What was decided is decided again: the unchanged policy flips nothing, and a
// changed one flips what it changes.
func TestSimulate(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range configs(300) {
		c := randomConfig(rng)
		p := mustNew(t, c)
		var decided []agent.CallDecided
		for _, call := range pool.calls {
			d := p.Before(call)
			if d.Verdict == agent.Pass {
				hook := agent.Decision{}
				before := d.Trace
				if v := []agent.Verdict{agent.Pass, agent.Pass, agent.Allow, agent.AskUser}[rng.IntN(4)]; v != agent.Pass {
					hook = agent.Decision{Verdict: v, By: "hook", Reason: "so it says"}
					before = append(before, agent.Opinion{Stage: "hook", Verdict: v})
				}
				d = p.After(call, hook)
				d.Trace = append(before, d.Trace...)
			}
			if d.Verdict == agent.AskUser { // a person answers
				d.Verdict, d.By = agent.Allow, "user"
			}
			data, err := json.Marshal(agent.CallDecided{Proposal: call, Decision: d})
			if err != nil {
				t.Fatal(err)
			}
			var stored agent.CallDecided
			if err := json.Unmarshal(data, &stored); err != nil {
				t.Fatal(err)
			}
			decided = append(decided, stored)
		}
		flips, skipped, err := Simulate(decided, c)
		if err != nil || len(flips) > 0 || skipped > 0 {
			t.Fatalf("%v %v: %d skipped, %+v", err, c.Rules, skipped, flips)
		}
	}
	c := config()
	c.Allow, c.Home = []string{"Bash(a *)", "Read(~/notes/**)"}, "/into/home" // which leads to /w/home
	c.Inside = nil
	p := mustNew(t, c)
	notes := p.Decide(reads("/into/home/notes/x"))
	if flips, _, err := Simulate([]agent.CallDecided{{Proposal: reads("/into/home/notes/x"), Decision: notes}}, c); err != nil || len(flips) > 0 || notes.Verdict != agent.Allow {
		t.Errorf("a home behind a link: %v, %+v", err, flips)
	}
	var decided []agent.CallDecided
	for _, call := range []agent.Proposal{line(cmd("a")), line(cmd("b")), reads("/w/link/x")} {
		decided = append(decided, agent.CallDecided{Key: call.Call.Tool, Proposal: call, Decision: p.Decide(call)})
	}
	decided = append(decided, agent.CallDecided{Proposal: line(cmd("a"))})
	flips, skipped, err := Simulate(decided, Config{Deny: []string{"Bash(a *)"}, Allow: []string{"Read(//etc/**)", "Read(link/**)"}})
	var got []string
	for _, f := range flips {
		got = append(got, fmt.Sprint(f.Decided.Key, " ", f.Was, " ", f.Now.Verdict))
	}
	if s := strings.Join(got, ", "); err != nil || skipped != 1 || s != "bash__exec allow deny, file-system__read ask allow" {
		t.Errorf("%v %d %s", err, skipped, s)
	}
}

// An explanation tells the decision as it was made, stage by stage and piece by
// piece.
func TestExplain(t *testing.T) {
	c := config()
	c.Shown = shown
	c.Rules = []Rule{{Text: "Bash(npm test *)", Verdict: agent.Allow, Reason: "tests are harmless", Source: Source{File: "a.json", Line: 3}}}
	p := mustNew(t, c)
	call := line(cmd("npm", "test"), agent.SimpleCommand{Argv: []string{"cat", "x"}, Kind: agent.CommandReads, Reads: []string{"/w/x"}}, cmd("git", "push"))
	d := p.Decide(call)
	e := p.Explain(call, d)
	want := `ask by mode: mode default: it runs git push
  hard            -     
  deny            -     
  floors          -     
  confinement     -     
  ask             -     
  allow           -     allow rule Bash(npm test *): tests are harmless, but no rule for what runs git push (a.json:3)
  read-only       -     
  mode            ask   mode default: it runs git push
  global-deny     -     
  global-allow    allow allow rule Bash(npm test *): tests are harmless (a.json:3)
  user-deny       -     
  user-allow      -     
  channel-policy  -     
  group-policy    ask   what the group has by default
  tool-policy     -     
  finance-safety  -     
  default-policy  ask   by class and risk
  it runs npm test: allow by rule Bash(npm test *)
  it runs cat x: allow by read-only
  it runs git push: ask by mode
otherwise: allow Bash(git push *)
`
	if got := written(e); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if !reflect.DeepEqual(e.Decision, d) || len(e.Offers) != 2 {
		t.Errorf("%+v", e)
	}
	if err := p.SetMode(agent.ModeBypass); err != nil {
		t.Fatal(err)
	}
	if later := p.Explain(call, d); later.Pieces[2].Verdict != agent.AskUser {
		t.Errorf("explained in another mode than it was decided in: %+v", later.Pieces)
	}
}

// written is an explanation, one line for each stage.
func written(e query.Explanation) string {
	var b strings.Builder
	d := e.Decision
	fmt.Fprintf(&b, "%s by %s: %s\n", d.Verdict, d.By, d.Reason)
	for _, o := range d.Trace {
		fmt.Fprintf(&b, "  %-15s %-5s %s", o.Stage, word(o.Verdict), o.Reason)
		if o.Rule != "" && o.Source != "" {
			fmt.Fprintf(&b, " (%s)", o.Source)
		}
		b.WriteByte('\n')
	}
	for _, p := range e.Pieces {
		fmt.Fprintf(&b, "  %s: %s by %s", p.What, p.Verdict, p.By)
		if p.Rule != "" {
			fmt.Fprintf(&b, " %s", p.Rule)
		}
		b.WriteByte('\n')
	}
	if d.Flip != "" {
		fmt.Fprintf(&b, "otherwise: %s\n", d.Flip)
	}
	return b.String()
}

func word(v agent.Verdict) string {
	if v == agent.Pass {
		return "-"
	}
	return string(v)
}
