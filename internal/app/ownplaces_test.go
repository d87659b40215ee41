//go:build unix

package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
)

// ownCases are folders of settings of the user that the environment puts somewhere else, with
// what a project in {P} may change then, and what it may not.
var ownCases = map[string]struct {
	name, value string // of the variable; {P} is the project, {O} a folder beside it
	make        bool   // the folder is there
	link        string // that leads to the folder; "" = none
	held, free  []string
}{
	"below the project":              {"CLAUDE_CONFIG_DIR", "{P}/cfg", true, "", []string{"cfg/settings.json", "cfg/skills/a"}, []string{"settings.json", "src/a", "cfgs"}},
	"below the project, and missing": {"CLAUDE_CONFIG_DIR", "{P}/cfg", false, "", []string{"cfg/settings.json"}, []string{"settings.json", "src/a"}},
	"relative":                       {"CLAUDE_CONFIG_DIR", "deep/cfg", true, "", []string{"deep/cfg/settings.json"}, []string{"deep/a", "cfg/settings.json"}},
	"by a link":                      {"CLAUDE_CONFIG_DIR", "{O}/link", true, "{P}/cfg", []string{"cfg/settings.json"}, []string{"settings.json"}},
	"the project itself":             {"CLAUDE_CONFIG_DIR", "{P}", true, "", []string{"settings.json", "settings.local.json", "hooks/a"}, []string{"src/a", "made", "src/settings.json"}},
	"above the project":              {"CLAUDE_CONFIG_DIR", "{P}/..", true, "", nil, []string{"settings.json", "src/a", "made"}},
	"everything":                     {"CLAUDE_CONFIG_DIR", "/", true, "", nil, []string{"settings.json", "src/a", "made"}},
	"elsewhere":                      {"CLAUDE_CONFIG_DIR", "{O}/cfg", true, "", nil, []string{"settings.json", "src/a", "cfg/settings.json"}},
	"our own":                        {"DURE_HOME", "{P}/ours", true, "", []string{"ours/settings.json", "ours/policy.jsonc"}, []string{"settings.json", "src/a"}},
	"our own, missing":               {"DURE_HOME", "{P}/ours", false, "", []string{"ours/settings.json", "ours/policy.jsonc"}, []string{"settings.json", "src/a"}},
	"our own is the project":         {"DURE_HOME", "{P}", true, "", []string{"settings.json", "policy.jsonc", "trust.json"}, []string{"src/a", "made"}},
	"our data":                       {"XDG_DATA_HOME", "{P}/data", true, "", []string{"data/dure/trust.json"}, []string{"data/a", "src/a"}},
}

// ownRig builds the program for a case, and returns it with its project and what lies beside
// that.
func ownRig(t *testing.T, name string, mechanisms []string) (a *App, project, beside string) {
	t.Helper()
	tt := ownCases[name]
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	project, beside = filepath.Join(dir, "above", "project"), filepath.Join(dir, "beside")
	home := filepath.Join(dir, "home")
	full := func(s string) string { return strings.NewReplacer("{P}", project, "{O}", beside).Replace(s) }
	value := full(tt.value)
	made := []string{project, beside, home, filepath.Join(project, "src"), filepath.Join(project, "deep"), filepath.Join(project, "data")}
	if to := full(tt.link); to != "" {
		made = append(made, to)
	} else if tt.make && filepath.IsAbs(value) {
		made = append(made, value)
	} else if tt.make {
		made = append(made, filepath.Join(project, value))
	}
	for _, d := range made {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if tt.link != "" {
		if err := os.Symlink(full(tt.link), value); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, tt.name + "=" + value}
	if tt.name == "CLAUDE_CONFIG_DIR" {
		env = append(env, "DURE_HOME="+filepath.Join(home, "dure"))
	}
	a, err = New(Options{Environ: env, UserHome: home, Workdir: project, Version: "test", Mechanisms: mechanisms})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, project, beside
}

// File tools ask before they change settings of the user, wherever these stand in the
// project, and change the rest of it as ever.
func TestOwnSettingsAreAskedAbout(t *testing.T) {
	t.Parallel()
	for name, tt := range ownCases {
		t.Run(name, func(t *testing.T) {
			a, project, _ := ownRig(t, name, []string{})
			ws, err := workspace.New(workspace.Config{Root: project})
			if err != nil {
				t.Fatal(err)
			}
			full := func() string { return "full" }
			d, err := a.policy.New(a.place(catalog.New(catalog.Config{}), ws, project, full), "", agent.ModeAcceptEdits)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range slices.Concat(tt.held, tt.free) {
				want := agent.Allow
				if slices.Contains(tt.held, path) {
					want = agent.AskUser
				}
				got := d.Policy.Decide(agent.Proposal{
					Call: agent.Call{Tool: "file-system__write"}, Class: agent.Checkable, Group: "files",
					Effects: agent.Effects{Writes: []string{filepath.Join(project, filepath.FromSlash(path))}},
				})
				if got.Verdict != want {
					t.Errorf("%s: %s (%s), want %s", path, got.Verdict, got.Reason, want)
				}
			}
		})
	}
}
