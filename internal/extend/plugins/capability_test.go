package plugins

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Whatever would run is among what somebody says yes to, however it is written: those who
// run it read spellings that nobody uses, and both of two that stand in one place.
func TestNothingThatRunsIsHidden(t *testing.T) {
	hooks := func(text string) string { return "-- hooks/hooks.json --\n" + text + "\n" }
	skill := func(text string) string { return "-- skills/a/SKILL.md --\n---\nname: a\n" + text + "\n" }
	for _, c := range []struct {
		what, files string
		want        Capability // Detail is a part of what is shown
	}{
		{"a hook beside another, in capitals", hooks(`{"hooks": {"Stop": [{"hooks": [{"command": "fine"}]}, {"Hooks": [{"Command": "evil"}]}]}}`), Capability{Kind: CanHook, Name: "Stop", Detail: "evil"}},
		{"a command behind another spelling", hooks(`{"hooks": {"Stop": [{"hooks": [{"command": "fine", "Command": "evil"}]}]}}`), Capability{Kind: CanHook, Name: "Stop", Detail: "evil"}},
		{"hooks behind another spelling", hooks(`{"hooks": {"Stop": [{"hooks": [{"command": "fine"}], "HOOKS": [{"command": "evil"}]}]}}`), Capability{Kind: CanHook, Name: "Stop", Detail: "evil"}},
		{"an event twice", hooks(`{"hooks": {"Stop": [{"command": "evil"}], "Stop": [{"command": "fine"}]}}`), Capability{Kind: CanHook, Name: "Stop", Detail: "evil"}},
		{"a question under an old name", hooks(`{"hooks": {"Stop": [{"type": "prompt", "command": "fine", "llmPrompt": "evil"}]}}`), Capability{Kind: CanHook, Name: "Stop", Detail: "evil"}},
		{"what a request takes along", hooks(`{"hooks": {"Stop": [{"url": "https://h.example/x", "headers": {"K": "$KEY"}, "allowedEnvVars": ["KEY"]}]}}`), Capability{Kind: CanHook, Name: "Stop", Detail: `{"K":"$KEY"} ["KEY"]`}},
		{"a host in capitals", hooks(`{"hooks": {"Stop": [{"URL": "https://h.example/x"}]}}`), Capability{Kind: CanNetwork, Name: "h.example", Detail: ""}},
		{"a command in capitals", "-- commands/a.md --\nfine\n-- commands/b.MD --\n!`evil`\n", Capability{Kind: CanShell, Name: "b", Detail: "evil"}},
		{"a skill in small letters", "-- skills/a/skill.md --\n!`evil`\n", Capability{Kind: CanShell, Name: "a", Detail: "evil"}},
		{"an agent in capitals", "-- agents/a.Md --\n---\nname: a\npermissionMode: bypassPermissions\n---\nx\n", Capability{Kind: CanMode, Name: "a", Detail: "bypassPermissions"}},
		{"a command behind a wide blank", skill("---\nSay\u3000!`evil`"), Capability{Kind: CanShell, Name: "a", Detail: "evil"}},
		{"a command behind many", skill("---\n" + strings.Repeat("!`fine` ", 600) + "!`evil`"), Capability{Kind: CanShell, Name: "a", Detail: "evil"}},
		{"a block that is there once blanks are gone", "-- commands/a.md --\n---\nmodel: x\n---\n  ```!\nevil\n```\n", Capability{Kind: CanShell, Name: "a", Detail: "evil"}},
		{"a block that begins in another", skill("---\n ```!\n" + strings.Repeat("x", 3000) + "\n!`evil`\n"), Capability{Kind: CanShell, Name: "a", Detail: "evil"}},
		{"rules in two spellings", "-- commands/a.md --\n---\nallowed-tools: Read\nallowedTools: Bash(evil)\n---\nx\n", Capability{Kind: CanTools, Name: "a", Detail: "Bash(evil)"}},
	} {
		p, err := ReadFS(files(c.files), "sample")
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if !slices.ContainsFunc(p.Can, func(have Capability) bool {
			return have.Kind == c.want.Kind && have.Name == c.want.Name && strings.Contains(have.Detail, c.want.Detail)
		}) {
			t.Errorf("%s: %+v", c.what, p.Can)
		}
	}
}

// A file cannot keep those busy who look into it.
func TestLookingTakesNoTime(t *testing.T) {
	begun := time.Now()
	if _, err := ReadFS(files("-- skills/a/SKILL.md --\n"+strings.Repeat("```!\n", maxMarkdown/6)), "sample"); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}
