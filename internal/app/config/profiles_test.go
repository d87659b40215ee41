package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/internal/knowledge/prompt"
)

// What holds for a kind of work comes from the profile, what it rests on, and the
// settings for all work; what is said for this run, or by who may only tighten, is
// stronger.
func TestWork(t *testing.T) {
	skipWindows(t)
	const file = `{
  "effort": "low", "maxSteps": 50, "fallbackModel": "a,b", "budget": {"usd": 1}, "permissionMode": "plan", "plan": {"mode": "auto"},
  "profiles": {
    "code": {"model": "opus", "effort": "high", "steps": 9, "mode": "acceptEdits", "plan": "always", "budget": {"usd": 2, "tokens": 5}, "fallbackModel": "", "append": "Prefer tabs."},
    "review": {"base": "code", "tools": ["read-only"], "verification": false, "prompt": "You review."},
    "deep": {"base": "review", "effort": "medium", "plan": "off"},
    "chat": {"mode": "bypassPermissions"}
  }}`
	load := func(flags Values, env map[string]string, project string) Config {
		t.Helper()
		files := map[string]string{userFile: file}
		if project != "" {
			files[projectFile] = project
		}
		src := machine{files: files, env: env}.sources()
		src.Flags = flags
		c, err := Load(src)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := load(nil, nil, "")
	code := prompt.Work{Profile: agent.Profile{
		Name: "code", Kind: "code", Model: "opus", Effort: "high", Steps: 9, Mode: agent.ModeAcceptEdits, Plan: agent.PlanAlways, Dollars: 2, Tokens: 5, Verify: true,
	}, Append: "Prefer tabs."}
	deep := code
	deep.Name, deep.Effort, deep.Tools, deep.Verify, deep.Prompt, deep.Plan = "deep", "medium", []string{"read-only"}, false, "You review.", ""
	cowork := prompt.Work{Profile: agent.Profile{Name: "cowork", Kind: "cowork", Fallback: []string{"a", "b"}, Effort: "low", Steps: 50, Mode: agent.ModePlan, Plan: agent.PlanAuto, Dollars: 1, Verify: true}}
	for name, want := range map[string]prompt.Work{"code": code, "deep": deep, "cowork": cowork} {
		if got, err := c.Work(name); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%s: %s", name, cmp.Diff(want, got))
		}
	}
	if _, err := c.Work("nothing"); err == nil {
		t.Error("there is work of a kind that does not exist")
	}
	if d := cmp.Diff([]string{"chat", "code", "cowork", "deep", "finance", "review"}, c.ProfileNames()); d != "" {
		t.Error(d)
	}

	c = load(Values{"effort": "low", "permissions.defaultMode": "dontAsk"}, nil, "")
	if w, _ := c.Work("code"); w.Effort != "low" || w.Mode != agent.ModeDontAsk {
		t.Errorf("flags: %+v", w)
	}
	c = load(nil, nil, `{"maxSteps": 3, "budget": {"usd": 0.5}}`)
	if w, _ := c.Work("code"); w.Steps != 3 || w.Dollars != .5 || w.Tokens != 5 {
		t.Errorf("a repository tightens: %+v", w)
	}
	c = load(nil, nil, `{"plan": {"mode": "always"}}`)
	if w, _ := c.Work("deep"); w.Plan != agent.PlanAlways {
		t.Errorf("a repository has more planned: %+v", w)
	}
	c = load(nil, nil, `{"permissions": {"disableBypassPermissionsMode": "disable"}}`)
	if w, _ := c.Work("chat"); w.Mode == agent.ModeBypass {
		t.Errorf("bypass is switched off: %+v", w)
	}
}

func TestProfilesOfARepository(t *testing.T) {
	skipWindows(t)
	const project = `{"user": {"name": "x"}, "investment": {}, "profiles": {"mine": {"base": "code"},
  "code": {"model": "haiku", "effort": "low", "append": "obey", "prompt": "p", "mode": "bypassPermissions", "plan": "off", "steps": 1000, "tools": ["all"], "verification": false, "budget": {"usd": 0}, "base": "chat", "fallbackModel": "x"}}}`
	for _, trusted := range []bool{false, true} {
		src := machine{files: map[string]string{projectFile: project}}.sources()
		src.Trusted = trusted
		c, err := Load(src)
		if err != nil {
			t.Fatal(err)
		}
		want := Profile{Model: new("haiku"), Effort: new("low")}
		notes := 12
		if trusted {
			want.Append = new("obey")
		}
		if d := cmp.Diff(map[string]Profile{"code": want}, c.Profiles); d != "" || len(c.Notes) != notes || c.User != (Person{}) || c.Investment != nil {
			t.Errorf("trusted %t: %s, %d notes: %v", trusted, d, len(c.Notes), c.Notes)
		}
	}
}

func TestBadProfiles(t *testing.T) {
	skipWindows(t)
	for file, want := range map[string]string{
		`{"profiles": {"coed": {"model": "opus"}}}`:                         `settings /home/u/.dure/settings.json:1:15: there is no profile coed`,
		`{"profiles": {"a": {"base": "b"}, "b": {"base": "a"}}}`:            `settings /home/u/.dure/settings.json:1:21: profiles.a.base is "b" and has to be one of: b, chat, code, cowork, finance`,
		`{"profiles": {"a": {"base": "kode"}}}`:                             `settings /home/u/.dure/settings.json:1:21: profiles.a.base is "kode" and has to be one of: chat, code, cowork, finance`,
		`{"profiles": {"../a": {"base": "code"}}}`:                          `settings /home/u/.dure/settings.json:1:15: a profile is called "../a"`,
		`{"profile": "kode"}`:                                               `settings /home/u/.dure/settings.json:1:2: profile is "kode" and has to be one of: chat, code, cowork, finance`,
		`{"profiles": {"code": {"effort": "most"}}}`:                        `settings /home/u/.dure/settings.json:1:24: profiles.code.effort is "most" and has to be one of: low, medium, high`,
		`{"profiles": {"code": {"mode": "yolo"}}}`:                          `settings /home/u/.dure/settings.json:1:24: profiles.code.mode is "yolo" and has to be one of: default, acceptEdits, plan, dontAsk, bypassPermissions`,
		`{"profiles": {"code": {"plan": "Never"}}}`:                         `settings /home/u/.dure/settings.json:1:24: profiles.code.plan is "Never" and has to be one of: off, auto, always`,
		`{"profiles": {"code": {"steps": -1}}}`:                             `settings /home/u/.dure/settings.json:1:24: profiles.code.steps is "-1" and has to be one of: 0, a positive number`,
		`{"profiles": {"code": {"tools": [""]}}}`:                           `settings /home/u/.dure/settings.json:1:34: profiles.code.tools is "" and has to be one of: the name of a tool, group:NAME, read-only, all`,
		`{"profiles": {"code": {"budget": {"usd": -1}}}}`:                   `settings /home/u/.dure/settings.json:1:35: profiles.code.budget.usd is "-1" and has to be one of: 0, an amount of US dollars`,
		`{"investment": {"complianceLevel": "none"}}`:                       `settings /home/u/.dure/settings.json:1:17: investment.complianceLevel is "none" and has to be one of: retail, professional, institutional`,
		`{"investment": {"riskTolerance": "wild", "preferredMarkets": []}}`: `settings /home/u/.dure/settings.json:1:17: investment.riskTolerance is "wild" and has to be one of: conservative, moderate, aggressive`,
		`{"user": {"name": "a\u0007"}}`:                                     `settings /home/u/.dure/settings.json:1:11: user.name is "a\a" and has to be one of: a line of at most 200 bytes`,
	} {
		_, err := Load(machine{files: map[string]string{userFile: file}}.sources())
		if p := agent.ProblemOf(err); p == nil || p.Message != want {
			t.Errorf("%s\n got %v\nwant %s", file, err, want)
		}
	}
}
