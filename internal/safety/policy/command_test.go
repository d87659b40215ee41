package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dure/agent"
)

// cmd is a command of these words; leading assignments go before it.
func cmd(words ...string) agent.SimpleCommand {
	var c agent.SimpleCommand
	for len(words) > 0 && assignment(words[0]) {
		c.Vars, words = append(c.Vars, words[0]), words[1:]
	}
	c.Argv = words
	return c
}

// with changes a command.
func with(c agent.SimpleCommand, change func(*agent.SimpleCommand)) agent.SimpleCommand {
	change(&c)
	return c
}

// line is a call of the shell with these commands. What they touch is said of the
// call too.
func line(commands ...agent.SimpleCommand) agent.Proposal {
	e := agent.Effects{Commands: commands}
	for _, c := range commands {
		e.Reads, e.Writes, e.Hosts = append(e.Reads, c.Reads...), append(e.Writes, c.Writes...), append(e.Hosts, c.Hosts...)
	}
	return prop(shellTool, agent.Unsafe, e)
}

func flagged(c agent.SimpleCommand) agent.SimpleCommand {
	c.Flagged = "-x"
	return c
}

func wraps(outer agent.SimpleCommand, transparent bool, inner ...agent.SimpleCommand) agent.SimpleCommand {
	outer.Runs, outer.Transparent = inner, transparent
	return outer
}

// What a pattern allows and what it denies. "-" = neither.
func TestCommandPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		command agent.SimpleCommand
		want    string
	}{
		{"git *", cmd("git", "status"), "allow deny"},
		{"git *", cmd("git"), "allow deny"},
		{"git *", cmd("gitk"), "-"},
		{"git*", cmd("gitk", "--all"), "allow deny"},
		{"git:*", cmd("git", "log"), "allow deny"},
		{"npm run build:*", cmd("npm", "run", "build"), "allow deny"},
		{"npm run build:*", cmd("npm", "run", "build:prod"), "-"},
		{"npm run build*", cmd("npm", "run", "build:prod"), "allow deny"},
		{"git status", cmd("git", "status"), "allow deny"},
		{"git status", cmd("git", "status", "-s"), "-"},
		{"git  status ", cmd("git", "status"), "allow deny"},
		{"* --version", cmd("node", "--version"), "allow deny"},
		{"git * main", cmd("git", "push", "origin", "main"), "allow deny"},
		{"git * main *", cmd("git", "push", "main"), "-"},
		{"git * main *", cmd("git", "push", "main", "x"), "allow deny"},
		{"* * *", cmd("a", "b", "c"), "allow deny"},
		{"", cmd("a"), "skipped"},
		{" *", cmd("a"), "skipped"},
		{":*", cmd("a"), "skipped"},
		{"a 'b", cmd("a"), "skipped"},

		// A word with blanks is one word.
		{"git commit -m *", cmd("git", "commit", "-m", "a b; c"), "allow deny"},
		{"git push *", cmd("git push", "x"), "deny"},
		{"rm x", cmd("rm x"), "deny"},
		{`echo "a b"`, cmd("echo", "a b"), "allow deny"},
		{`echo "a b"`, cmd("echo", "a", "b"), "deny"},
		{"echo a b", cmd("echo", "a b"), "deny"},
		{`echo a\ b`, cmd("echo", "a b"), "allow deny"},
		{"ls *.go", cmd("ls", "a b.go"), "allow deny"},

		// Stars that are quoted stay within a word; one behind a backslash is a star.
		{`git commit -m "*"`, cmd("git", "commit", "-m", "a b"), "allow deny"},
		{`git commit -m "*"`, cmd("git", "commit", "-m", "a", "--amend"), "deny"},
		{`git commit -m '*' "*"`, cmd("git", "commit", "-m", "ab", "cd"), "allow deny"},
		{`find . -name \*`, cmd("find", ".", "-name", "*"), "allow deny"},
		{`find . -name \*`, cmd("find", ".", "-name", "x"), "-"},
		{`echo "\*"`, cmd("echo", "*"), "allow deny"},
		{`echo "\*"`, cmd("echo", "x"), "-"},

		// Programs by a path, and by the endings of Windows.
		{"rm *", cmd("/bin/rm", "x"), "deny"},
		{"rm *", cmd("./rm", "x"), "deny"},
		{"rm *", cmd(`C:\bin\rm.exe`, "x"), "deny"},
		{"rm *", cmd("/my dir/rm", "x"), "deny"},
		{"/bin/rm *", cmd("/bin/rm", "x"), "allow deny"},
		{"/bin/rm *", cmd("rm", "x"), "-"},
		{"./build.sh *", with(cmd("./build.sh", "x"), func(c *agent.SimpleCommand) { c.Flagged = placed }), "allow deny"},
		{"build.sh *", with(cmd("./build.sh", "x"), func(c *agent.SimpleCommand) { c.Flagged = placed }), "deny"},
		{"* x", with(cmd("./build.sh", "x"), func(c *agent.SimpleCommand) { c.Flagged = placed }), "deny"},

		// What it does not tell by its name needs a rule for exactly that.
		{"git *", flagged(cmd("git", "-x")), "deny"},
		{"git -x", flagged(cmd("git", "-x")), "allow deny"},

		// Leading assignments.
		{"make *", cmd("A=1", "make"), "deny"},
		{"make *", cmd("NODE_ENV=a", "NO_COLOR=", "LANG=C", "make"), "allow deny"},
		{"make *", cmd("LANG=C", "A=1", "make"), "deny"},
		{"make *", cmd("SAFE=1", "make"), "allow deny"},
		{"A=1 make *", cmd("A=1", "make"), "allow deny"},
		{"A=1 make *", cmd("A=2", "make"), "-"},
		{"A=1 make *", cmd("make"), "-"},
		{"A=1 make", cmd("B=1", "A=1", "make"), "-"},

		// Wrappers: transparent ones are allowed by what they run, and every one is
		// denied by it.
		{"rm *", wraps(cmd("timeout", "5", "rm", "x"), true, cmd("rm", "x")), "allow deny"},
		{"rm *", wraps(cmd("sudo", "rm", "x"), false, cmd("rm", "x")), "deny"},
		{"rm *", wraps(cmd("A=1", "timeout", "5", "rm", "x"), true, cmd("rm", "x")), "deny"},
		{"rm *", wraps(flagged(cmd("timeout", "5", "rm", "x")), true, cmd("rm", "x")), "deny"},
		{"rm *", wraps(cmd("timeout", "5"), true), "-"},
		{"rm *", wraps(cmd("timeout", "5", "sudo", "rm", "x"), true, wraps(cmd("sudo", "rm", "x"), false, cmd("rm", "x"))), "deny"},
		{"rm *", wraps(cmd("nice", "time", "rm", "x"), true, wraps(cmd("time", "rm", "x"), true, cmd("rm", "x"))), "allow deny"},
		{"timeout *", wraps(cmd("timeout", "5", "rm", "x"), true, cmd("rm", "x")), "allow deny"},
		{"rm *", wraps(cmd("sh", "-c", "a; rm x"), false, cmd("a"), cmd("rm", "x")), "deny"},
		{"a", wraps(cmd("xargs", "a"), true, cmd("a"), cmd("b")), "deny"},
	} {
		var got []string
		for _, v := range []agent.Verdict{agent.Allow, agent.Deny} {
			c := config()
			c.SafeVars = []string{"SAFE"}
			c.Rules = []Rule{{Text: "Bash(" + tt.pattern + ")", Verdict: v}}
			p := mustNew(t, c)
			if w := p.Warnings(); len(w) > 0 {
				if v == agent.Allow {
					got = append(got, "skipped")
				}
				continue
			}
			if p.Decide(line(tt.command)).Verdict == v {
				got = append(got, string(v))
			}
		}
		if got == nil {
			got = []string{"-"}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("Bash(%s) on %q %q: %s, want %s", tt.pattern, tt.command.Vars, tt.command.Argv, s, tt.want)
		}
	}
}

// Each piece of a call needs an allowance of its own.
func TestPieces(t *testing.T) {
	kind := func(k agent.CommandKind, c agent.SimpleCommand) agent.SimpleCommand { c.Kind = k; return c }
	cat := func(paths ...string) agent.SimpleCommand {
		return with(kind(agent.CommandReads, cmd("cat")), func(c *agent.SimpleCommand) { c.Reads = paths })
	}
	touch := func(paths ...string) agent.SimpleCommand {
		return with(kind(agent.CommandEdits, cmd("touch")), func(c *agent.SimpleCommand) { c.Writes = paths })
	}
	redirected := func(p agent.Proposal, path string) agent.Proposal {
		p.Effects.Writes = append(p.Effects.Writes, path)
		return p
	}
	tar := with(cmd("tar", "-xf", "x"), func(c *agent.SimpleCommand) { c.Writes = []string{"/w/x"} })
	modes := []agent.Mode{agent.ModeDefault, agent.ModeAcceptEdits, agent.ModePlan, agent.ModeDontAsk, agent.ModeBypass}
	for _, tt := range []struct {
		name, allow string
		prop        agent.Proposal
		want        string // in the order of modes
	}{
		{"one of two", "Bash(a *)", line(cmd("a"), cmd("b")), "ask ask ask deny allow"},
		{"both", "Bash(a *), Bash(b *)", line(cmd("a"), cmd("b")), "allow allow allow allow allow"},
		{"one by a rule and one that prints", "Bash(a *)", line(cmd("a"), cat("/w/x")), "allow allow allow allow allow"},
		{"prints what is inside", "", line(cat("/w/x")), "allow allow allow allow allow"},
		{"prints what is outside", "", line(cat("/etc/passwd")), "ask ask ask deny allow"},
		{"prints what a link leads to", "", line(cat("/w/link/passwd")), "ask ask ask deny allow"},
		{"prints, with a variable", "", line(with(cat("/w/x"), func(c *agent.SimpleCommand) { c.Vars = []string{"PAGER=x"} })), "ask ask ask deny allow"},
		{"git prints elsewhere", "", line(with(kind(agent.CommandReads, cmd("git", "log")), func(c *agent.SimpleCommand) { c.Dir = "/w/sub" })), "ask ask ask deny allow"},
		{"prints, with a flag", "", line(flagged(cat("/w/x"))), "ask ask ask deny allow"},
		{"a rule covers what its command touches", "Bash(tar *)", line(tar), "allow allow allow allow allow"},
		{"writes, and nobody knows it", "", line(tar), "ask ask deny deny allow"},
		{"a redirection is an edit", "Bash(a *)", redirected(line(cmd("a")), "/w/out"), "ask allow deny deny allow"},
		{"a redirection with its rule", "Bash(a *), Edit(out)", redirected(line(cmd("a")), "/w/out"), "allow allow allow allow allow"},
		{"a redirection to the outside", "Bash(a *)", redirected(line(cmd("a")), "/etc/x"), "ask ask ask deny allow"},
		{"the tool as a whole", "Bash", redirected(line(cmd("a"), flagged(cmd("b"))), "/w/out"), "allow allow allow allow allow"},
		{"the tool as a whole, to the outside", "Bash(*)", redirected(line(cmd("a")), "/etc/x"), "ask ask ask deny allow"},
		{"the tool as a whole, protected", "Bash", redirected(line(cmd("a")), "/w/.git/config"), "ask ask ask deny allow"},
		{"edits", "", line(touch("/w/x")), "ask allow deny deny allow"},
		{"edits behind a wrapper", "", line(wraps(cmd("timeout", "1"), true, touch("/w/x"))), "ask allow deny deny allow"},
		{"edits with a harmless variable", "", line(with(touch("/w/x"), func(c *agent.SimpleCommand) { c.Vars = []string{"LANG=C"} })), "ask allow deny deny allow"},
		{"edits with a variable", "", line(with(touch("/w/x"), func(c *agent.SimpleCommand) { c.Vars = []string{"A=C"} })), "ask ask deny deny allow"},
		{"edits outside", "", line(touch("/etc/x")), "ask ask ask deny allow"},
		{"edits inside and outside", "", line(touch("/w/x", "/etc/x")), "ask ask deny deny allow"},
		{"edits through a link", "", line(touch("/w/link/x")), "ask ask ask deny allow"},
		{"edits what is protected", "", line(touch("/w/.vscode/x")), "ask ask ask deny allow"},
		{"a host of a command", "Bash(curl *)", line(with(cmd("curl", "h"), func(c *agent.SimpleCommand) { c.Hosts = []string{"h"} })), "allow allow allow allow allow"},
		{"a host of none", "Bash, WebFetch(domain:h)", prop(shellTool, agent.Unsafe, agent.Effects{Commands: []agent.SimpleCommand{cmd("a")}, Hosts: []string{"h"}}), "ask ask ask deny allow"},
		{"nothing at all", "", prop(shellTool, agent.Unsafe, agent.Effects{}), "ask ask ask deny allow"},
		{"nothing at all that says it reads", "", prop(shellTool, agent.Read, agent.Effects{}), "ask ask ask deny allow"},
		{"unreadable", "Bash, Bash(a *)", func() agent.Proposal { p := line(cmd("a")); p.Effects.Unreadable = "?"; return p }(), "ask ask ask deny allow"},
		{"unreadable, and it edits", "", func() agent.Proposal { p := line(touch("/w/a")); p.Effects.Unreadable = "?"; return p }(), "ask ask deny deny allow"},
		{"unparsed", "Bash", func() agent.Proposal { p := line(cmd("a")); p.Effects.Unparsed = "?"; return p }(), "ask ask ask deny ask"},
		{"destructive", "Bash", func() agent.Proposal { p := line(cmd("a")); p.Effects.Destructive = "?"; return p }(), "deny deny deny deny deny"},
		{"a NUL in the text", "Bash", func() agent.Proposal {
			p := line(cmd("a"))
			p.Call.Input = []byte(`{"command":"a \\\u0000"}`)
			return p
		}(), "deny deny deny deny deny"},
		{"no NUL in the text", "Bash", func() agent.Proposal {
			p := line(cmd("a"))
			p.Call.Input = []byte(`{"command":"a \\u0000"}`)
			return p
		}(), "allow allow allow allow allow"},
		{"another tool's command line", "Bash(a *)", prop("code__check", agent.Unsafe, agent.Effects{Commands: []agent.SimpleCommand{cmd("a")}}), "allow allow allow allow allow"},
		{"another tool's command line as a whole", "Bash", prop("code__check", agent.Unsafe, agent.Effects{Commands: []agent.SimpleCommand{cmd("a")}}), "allow allow allow allow allow"},
		{"another tool's command line, and more", "Bash", prop("code__check", agent.Unsafe, agent.Effects{Commands: []agent.SimpleCommand{cmd("a")}, Runs: [][]string{{"b"}}}), "ask ask ask deny allow"},
		{"another tool's command line, asked about", "!Bash", prop("code__check", agent.Unsafe, agent.Effects{Commands: []agent.SimpleCommand{cmd("a")}}), "ask ask ask deny ask"},
		{"what another tool starts", "Bash(a *)", prop("git__commit", agent.Unsafe, agent.Effects{Runs: [][]string{{"a"}}}), "ask ask ask deny allow"},
		{"a script by its words", "bash__script(run.sh a *)", prop(scriptTool, agent.Unsafe, agent.Effects{Reads: []string{"/w/run.sh"}, Runs: [][]string{{"run.sh", "a", "b"}}}), "allow allow allow allow allow"},
		{"a script by a rule for commands", "Bash(run.sh *)", prop(scriptTool, agent.Unsafe, agent.Effects{Runs: [][]string{{"run.sh"}}}), "ask ask ask deny allow"},
	} {
		var got []string
		for _, m := range modes {
			c := config()
			c.Mode = m
			if rule, asks := strings.CutPrefix(tt.allow, "!"); asks {
				c.Ask = []string{rule}
			} else if tt.allow != "" {
				c.Allow = strings.Split(tt.allow, ", ")
			}
			got = append(got, string(mustNew(t, c).Decide(tt.prop).Verdict))
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, s, tt.want)
		}
	}
}

// What is removed and must not go asks in every mode, wherever it stands.
func TestCriticalRemovals(t *testing.T) {
	rm := func(paths ...string) agent.SimpleCommand {
		return agent.SimpleCommand{Argv: append([]string{"rm", "-rf"}, paths...), Kind: agent.CommandEdits, Writes: paths, Removes: paths}
	}
	for _, tt := range []struct {
		name string
		prop agent.Proposal
		want agent.Verdict // in mode bypassPermissions
	}{
		{"the root", line(rm("/")), agent.AskUser},
		{"below the root", line(rm("/etc")), agent.AskUser},
		{"further below", line(rm("/etc/x")), agent.Allow},
		{"home", line(rm("/home/u")), agent.AskUser},
		{"what home lies in", line(rm("/home")), agent.AskUser},
		{"in home", line(rm("/home/u/x")), agent.Allow},
		{"the workspace", line(rm("/w")), agent.AskUser},
		{"in the workspace", line(rm("/w/x")), agent.Allow},
		{"the workspace by a link", line(rm("/some/into")), agent.Allow},
		{"within a wrapper", line(wraps(cmd("sudo", "rm"), false, rm("/home/u"))), agent.AskUser},
		{"what the reading says", line(with(cmd("rm"), func(c *agent.SimpleCommand) { c.Critical = "it removes what a variable names" })), agent.AskUser},
		{"all of a further folder", line(with(rm("/extra/a/x"), func(c *agent.SimpleCommand) { c.Argv = []string{"rm", "-rf", "/extra/a/*"} })), agent.AskUser},
		{"all of the workspace", line(with(rm("/w/x"), func(c *agent.SimpleCommand) { c.Argv = []string{"rm", "-rf", "*"} })), agent.AskUser},
		{"all of home", line(with(rm("/home/u/x"), func(c *agent.SimpleCommand) { c.Argv = []string{"rm", "-rf", "~/*"} })), agent.AskUser},
		{"all of a folder in it", line(with(rm("/w/a/x"), func(c *agent.SimpleCommand) { c.Argv = []string{"rm", "-rf", "a/*"} })), agent.Allow},
		{"by a tool", prop("file-system__delete", agent.Unsafe, agent.Effects{Writes: []string{"/w"}}), agent.AskUser},
		{"by a tool, in it", prop("file-system__delete", agent.Unsafe, agent.Effects{Writes: []string{"/w/x"}}), agent.Allow},
		{"a drive", line(rm(`C:\`)), agent.AskUser},
		{"below a drive", line(rm(`C:\x`)), agent.AskUser},
		{"further below a drive", line(rm(`C:\x\y`)), agent.Allow},
	} {
		c := config()
		c.Mode, c.Extra, c.Allow = agent.ModeBypass, []string{"/extra/a"}, []string{"Bash"}
		if d := mustNew(t, c).Decide(tt.prop); d.Verdict != tt.want {
			t.Errorf("%s: %s (%s), want %s", tt.name, d.Verdict, d.Reason, tt.want)
		}
	}
}

// Where nothing confines commands, each of them asks.
func TestUnconfined(t *testing.T) {
	level := "none"
	c := config()
	c.Allow, c.Confined = []string{"Bash"}, func() string { return level }
	p := mustNew(t, c)
	call := line(with(cmd("ls"), func(c *agent.SimpleCommand) { c.Kind = agent.CommandReads }))
	look := prop("git__read", agent.Read, agent.Effects{Reads: []string{"/w"}, Runs: [][]string{{"git", "log"}}})
	said := func() string {
		return fmt.Sprint(p.Decide(call).Verdict, " ", p.Decide(look).By, " ", p.Decide(reads("/w/a")).Verdict)
	}
	if got := said(); got != "ask mode allow" {
		t.Error(got)
	}
	if level = "reduced"; said() != "allow mode allow" {
		t.Error(said())
	}
	level = "none"
	if err := p.SetMode(agent.ModeBypass); err != nil {
		t.Fatal(err)
	}
	if got := said(); got != "allow mode allow" {
		t.Error(got)
	}
	if d := p.Decide(call); d.Basis.Confined != "none" {
		t.Errorf("%+v", d.Basis)
	}
}

func TestPowerShell(t *testing.T) {
	for _, tt := range []struct {
		rule string
		argv []string
		on   bool
		want string
	}{
		{"PowerShell(Get-Content *)", []string{"get-content", "x"}, true, "allow deny"},
		{"PowerShell(Get-Content *)", []string{"get-content", "x"}, false, "deny"},
		{"PowerShell(remove-item *)", []string{"Remove-Item", "X"}, true, "allow deny"},
		{"powershell", []string{"Remove-Item", "X"}, true, "allow deny"},
		{"powershell", []string{"Remove-Item", "X"}, false, "deny"},
		{"Bash(git *)", []string{"git.exe", "log"}, true, "deny"},
	} {
		var got []string
		for _, v := range []agent.Verdict{agent.Allow, agent.Deny} {
			c := config()
			c.PowerShell, c.Rules = tt.on, []Rule{{Text: tt.rule, Verdict: v}}
			if d := mustNew(t, c).Decide(line(cmd(tt.argv...))); d.Verdict == v {
				got = append(got, string(v))
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s on %q: %s, want %s", tt.rule, tt.argv, s, tt.want)
		}
	}
}

// Rules from anywhere: nothing goes wrong, and none that cannot be read allows.
func FuzzRule(f *testing.F) {
	for _, s := range []string{
		"Bash", "Bash(git *)", "Bash(a 'b c' \"*\" \\*)", "Read(~/.ssh/**)", "Edit(!/a/[x-z]?)", "WebFetch(domain:*.a.example)", "mcp__a__*",
		"group:x", "files:*", "Agent(model:opus)", "Skill(pdf *)", "Bash(run_in_background:true)", "Bash(", "()", "*", "Bash(A=1 make:*)",
	} {
		f.Add(s)
	}
	call := line(cmd("git", "push", "a b"))
	f.Fuzz(func(t *testing.T, text string) {
		c := plainConfig()
		c.Allow = []string{text}
		p, err := New(c)
		if err != nil {
			t.Fatalf("an allow rule is an error: %v", err)
		}
		skipped := slices.ContainsFunc(p.Warnings(), func(w Warning) bool { return !w.Unknown })
		if d := p.Decide(call); skipped && d.Verdict == agent.Allow {
			t.Fatalf("%q allows, though it was skipped", text)
		}
		c.Allow, c.Deny = nil, []string{text}
		if p, err = New(c); err == nil {
			p.Decide(call)
		}
		if exact := "Bash(" + exactly(strings.Fields(text)) + ")"; len(strings.Fields(text)) > 0 && len(exact) < maxRule && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
			words := strings.Fields(text)
			c.Deny, c.Allow = nil, []string{exact}
			for len(words) > 0 && assignment(words[0]) {
				words = words[1:]
			}
			if len(words) == 0 {
				return
			}
			own, other := cmd(strings.Fields(text)...), cmd(append(strings.Fields(text), "x")...)
			if p = mustNew(t, c); p.Decide(line(own)).Verdict != agent.Allow || p.Decide(line(other)).Verdict == agent.Allow {
				t.Fatalf("%s does not mean %q alone", exact, own.Argv)
			}
		}
	})
}
