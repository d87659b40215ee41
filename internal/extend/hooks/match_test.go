package hooks

import (
	"encoding/json"
	"strings"
	"testing"
)

// Each line: event, matcher, value, whether it matches.
func TestMatchers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		event          Event
		matcher, value string
		want           bool
	}{
		{PreToolUse, "", "Bash", true},
		{PreToolUse, "*", "Bash", true},
		{PreToolUse, "Bash", "Bash", true},
		{PreToolUse, "Bash", "BashOutput", false},
		{PreToolUse, "bash", "Bash", false},
		{PreToolUse, "Edit|Write", "Write", true},
		{PreToolUse, "Edit, Write", "Write", true},
		{PreToolUse, "Edit | Write", "Edit", true},
		{PreToolUse, "mcp__memory", "mcp__memory__get", false},
		{PreToolUse, "mcp__memory__.*", "mcp__memory__get", true},
		{PreToolUse, "mcp__my-server__get", "mcp__my-server__get", true},
		{PreToolUse, "^(?!Bash$).*", "Bash", false},
		{PreToolUse, "^(?!Bash$).*", "Read", true},
		{PreToolUse, "(?<=mcp__)git", "mcp__github", true},
		{PreToolUse, "E.it", "NotebookEdit", true},
		{PreToolUse, `(a)\1`, "aa", true},
		{PreToolUse, "(unclosed", "(unclosed", false},
		{SessionStart, "startup|resume", "resume", true},
		{SessionStart, "startup", "clear", false},
		{FileChanged, ".env|.envrc", ".envrc", true},
		{StopFailure, "rate_limit|server_error", "server_error", true},
		{Stop, "anything", "", true},
		{UserPromptSubmit, "never", "", true},
	} {
		got, err := newMatcher(tt.event, tt.matcher)(tt.value)
		if got != tt.want || (err != nil) != strings.Contains(tt.matcher, "unclosed") {
			t.Errorf("%s %q of %q: %v, %v", tt.event, tt.matcher, tt.value, got, err)
		}
	}
	m := newMatcher(PreToolUse, "^(a+)+$")
	if _, err := m(strings.Repeat("a", 40) + "!"); err == nil {
		t.Error("an expression that takes for ever is not stopped")
	}
}

func TestFilters(t *testing.T) {
	input := map[string]json.RawMessage{
		"tool_name": json.RawMessage(`"Bash"`), "prompt": json.RawMessage(`"fix && \"go\""`), "cwd": json.RawMessage(`"/w/a b"`), "hook_event_name": json.RawMessage(`"PreToolUse"`),
	}
	for s, want := range map[string]string{
		`tool_name == Bash`:                         "yes",
		`tool_name == "Bash"`:                       "yes",
		`toolName != Bash`:                          "no",
		`tool_name==Bash&&work_folder=='/w/a b'`:    "yes",
		`user_message contains "fix && "`:           "yes",
		`user_message contains go && event == Stop`: "no",
		`session_id == x`:                           "no",
		`session_id != x`:                           "yes",
		`nothing == 1`:                              `"nothing" is no field: they are tool_name, event, session_id, work_folder, user_message, changed_file, permission_mode`,
		`tool_name == "Bash`:                        errFilter.Error(),
		`tool_name == Bash && rubbish`:              errFilter.Error(),
		`tool_name ==`:                              errFilter.Error(),
		`Bash(git push *)`:                          "rule Bash(git push *)",
		`Bash(test "$a" == b)`:                      `rule Bash(test "$a" == b)`,
		`Edit(*.go)`:                                "rule Edit(*.go)",
	} {
		f, err := parseFilter(PreToolUse, s)
		got := "no"
		switch {
		case err != nil:
			got = err.Error()
		case f.rule != "":
			got = "rule " + f.rule
		case f.holds(input):
			got = "yes"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", s, got, want)
		}
	}
	if _, err := parseFilter(Stop, "Bash(git *)"); err == nil {
		t.Error("a rule holds where there is no call")
	}
}

// Definitions of every form, and what is told of mistakes.
func TestDefinitions(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"the usual form", `{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"a.sh","timeout":5}]}]}`, "PreToolUse[Bash] command a.sh 5s"},
		{"names in any spelling", `{"pre_tool_use":[{"hooks":[{"type":"shell","command":"a","status_message":"wait","on_error":"block"}]}]}`, "PreToolUse[] command a block"},
		{"an alias", `{"agentStop":[{"hooks":[{"type":"llm","LlmPrompt":"is it done?","LlmModel":"m"}]}]}`, "Stop[] prompt is it done?"},
		{"a command alone", `{"Stop":"make check"}`, "Stop[] command make check"},
		{"a list of commands", `{"Stop":["make check", {"command":"b"}]}`, "Stop[] command make check\nStop[] command b"},
		{"flat", `{"PostToolUse":[{"matcher":"Edit","url":"http://x/y"}]}`, "PostToolUse[Edit] http http://x/y"},
		{"rewake is async", `{"PostToolUse":[{"hooks":[{"command":"a","asyncRewake":true}]}]}`, "PostToolUse[] command a async"},
		{"no event", `{"PreToolUs":[]}`, "/hooks/PreToolUs: PreToolUs is no event (did you mean PreToolUse?)"},
		{"no type", `{"Stop":[{"hooks":[{"type":"python","command":"a"}]}]}`, `/hooks/Stop/0/hooks/0/type: "python" is no type of hook (write command, http, mcp_tool, prompt or agent)`},
		{"nothing to run", `{"Stop":[{"hooks":[{"type":"command"}]}]}`, `/hooks/Stop/0/hooks/0: a hook of type command needs command (add "command")`},
		{"a type that does not run there", `{"SessionStart":[{"hooks":[{"type":"prompt","prompt":"a"}]}]}`, "/hooks/SessionStart/0/hooks/0: hooks of type prompt do not run at SessionStart (use one of: command, mcp_tool)"},
		{"a field that is none", `{"Stop":[{"hooks":[{"command":"a","timout":3}]}]}`, "Stop[] command a\n/hooks/Stop/0/hooks/0/timout: timout is none of the fields of a hook, and does nothing (remove it, or check its spelling)"},
		{"a number as text", `{"Stop":[{"hooks":[{"command":"a","timeout":"3"}]}]}`, "/hooks/Stop/0/hooks/0/timeout: has to be a number of seconds (write a number)"},
		{"a matcher for nothing", `{"Stop":[{"matcher":"x","hooks":[{"command":"a"}]}]}`, "Stop[x] command a\n/hooks/Stop/0/hooks/0: Stop has nothing that a matcher could look at: it runs each time (remove matcher)"},
		{"a broken expression", `{"PreToolUse":[{"matcher":"(","hooks":[{"command":"a"}]}]}`, "PreToolUse[(] command a\n/hooks/PreToolUse/0/hooks/0: the matcher \"(\" fails: reading the matcher: error parsing regexp: missing closing ) in `(` (mend the regular expression)"},
		{"an if where there is no call", `{"Stop":[{"hooks":[{"command":"a","if":"Bash(x)"}]}]}`, `/hooks/Stop/0/hooks/0: if "Bash(x)" cannot be read, and the hook never runs: Stop is about no call, and a rule cannot hold for it (mend it, or remove if)`},
		{"twice", `{"Stop":"a","Stop":"b"}`, "Stop[] command a\nStop[] command b\n/hooks/Stop: Stop stands there twice; both count (put them together)"},
		{"no object", `[1]`, `/hooks: has to be an object with the names of events (write it like {"EventName": [...]})`},
		{"nothing", ``, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hooks, faults := Parse([]byte(tt.in), Source{Layer: "user"})
			faults = append(faults, Check(hooks)...)
			var lines []string
			for _, h := range hooks {
				l := string(h.Event) + "[" + h.Matcher + "] " + h.Name()
				if h.Timeout > 0 {
					l += " " + h.Timeout.String()
				}
				if h.Block {
					l += " block"
				}
				if h.Async {
					l += " async"
				}
				lines = append(lines, l)
			}
			for _, f := range faults {
				lines = append(lines, f.At+": "+f.Message+" ("+f.Fix+")")
			}
			if got := strings.Join(lines, "\n"); got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

func FuzzDefinitions(f *testing.F) {
	f.Add(`{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"a.sh","timeout":5,"if":"a == b && c"}]}]}`)
	f.Add(`{"Stop":"x","stop":[["a"],{"hooks":{}}]}`)
	f.Fuzz(func(t *testing.T, in string) {
		hooks, _ := Parse([]byte(in), Source{})
		for _, h := range hooks {
			if h.Type == "" || h.matches == nil || kinds[h.Event].types == nil {
				t.Errorf("%+v", h)
			}
			_, _ = h.matches("Bash")
		}
	})
}

func TestParseEnv(t *testing.T) {
	vars, faults := ParseEnv([]byte("export A=1\nB='two words'\nC=\"x \\\"y\\\"\"\n# comment\nPATH=/evil\nLD_PRELOAD=x\nD=$HOME\nE=`id`\nnot a line\n1F=2\nG=a b\nH=\nI=a\\ b\n"))
	if got, want := strings.Join(vars, "|"), `A=1|B=two words|C=x "y"|H=|I=a b`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	want := `line 5 PATH may not be set by a hook|line 6 LD_PRELOAD may not be set by a hook|line 7 is no NAME=value, or needs a shell to be read|line 8 is no NAME=value, or needs a shell to be read|line 9 is no NAME=value, or needs a shell to be read|line 10 "1F" is no name of a variable|line 11 is no NAME=value, or needs a shell to be read`
	if got := strings.Join(faults, "|"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
