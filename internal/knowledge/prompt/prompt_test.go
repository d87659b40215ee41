package prompt_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/knowledge/prompt"
)

var update = flag.Bool("update", false, "write the golden files")

// everything is a context in which all fifteen sections say something.
func everything(kind string) prompt.Context {
	return prompt.Context{
		Kind: kind, Verify: kind != "chat",
		Tools: []string{"bash__exec", "file-system__read", "todo__write", "task__note"},
		Model: agent.ModelInfo{ID: "model-1", Images: kind != "chat"},
		User:  "Kim", About: "I test things.", Channel: "terminal", Chat: "direct",
		Custom: "Prefer tabs.", Memory: true,
		Workdir: "/w", Extra: []string{"/x"}, Git: true, OS: "linux", Shell: "bash",
		Opened: time.Date(2031, 2, 3, 23, 4, 5, 0, time.UTC),
	}
}

func build(t *testing.T, c prompt.Context, budget int) prompt.Prompt {
	t.Helper()
	p, err := prompt.Build(c, budget)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGolden(t *testing.T) {
	cases := map[string]prompt.Context{}
	for _, kind := range prompt.Kinds {
		cases[kind] = everything(kind)
	}
	pro := everything("finance")
	pro.Language = "ko"
	pro.Investment = &prompt.Investment{Risk: "conservative", Markets: []string{"KRX", "NYSE"}, Compliance: "professional"}
	cases["finance-professional"] = pro
	own := everything("code")
	own.Replace, own.Custom = true, "You are a pirate.\n\nSay arr."
	cases["replaced"] = own
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := build(t, c, 0)
			var b strings.Builder
			for _, s := range p.Sections {
				fmt.Fprintf(&b, "=== %s · %s · priority %d · required %t · %d tokens\n%s\n", s.ID, s.Title, s.Priority, s.Required, s.Tokens, s.Content)
			}
			fmt.Fprintf(&b, "=== %d tokens · %s\n", p.Tokens, prompt.Hash(p.System()))
			path := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || b.String() != string(want) {
				t.Errorf("%v\n%s", err, b.String())
			}
		})
	}
}

// ids are the sections of a prompt, those that are left out in brackets.
func ids(p prompt.Prompt) string {
	var all []string
	for _, s := range p.Sections {
		if s.Dropped {
			s.ID = "(" + s.ID + ")"
		}
		all = append(all, s.ID)
	}
	return strings.Join(all, " ")
}

func TestSections(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*prompt.Context)
		want   string
	}{
		{
			"everything", func(c *prompt.Context) { c.Investment = &prompt.Investment{} },
			"identity capabilities tools constraints formatting language finance-context compliance risk-disclaimer memory examples custom user-context channel-context current-state",
		},
		{
			"no money", func(*prompt.Context) {},
			"identity capabilities tools constraints formatting language memory examples custom user-context channel-context current-state",
		},
		{
			"nothing of the user's own", func(c *prompt.Context) {
				c.User, c.About, c.Custom, c.Channel, c.Memory, c.Tools = "", "", "", "", false, nil
			},
			"identity capabilities constraints formatting language examples current-state",
		},
		{
			"replaced", func(c *prompt.Context) { c.Replace = true },
			"tools constraints language memory custom user-context channel-context current-state",
		},
	} {
		ctx := everything("code")
		c.change(&ctx)
		if got := ids(build(t, ctx, 0)); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// Sections that do not fit go, those of the lowest priority first; required ones stay.
func TestBudget(t *testing.T) {
	c := everything("finance")
	c.Count = func(string) int { return 10 }
	for budget, want := range map[int]string{
		1000: "identity capabilities tools constraints formatting language finance-context compliance risk-disclaimer memory examples custom user-context channel-context current-state",
		149:  "identity capabilities tools constraints formatting language finance-context compliance risk-disclaimer memory (examples) custom user-context channel-context current-state",
		120:  "identity capabilities tools constraints formatting language finance-context compliance risk-disclaimer memory (examples) custom (user-context) (channel-context) current-state",
		60:   "identity (capabilities) (tools) constraints (formatting) (language) (finance-context) compliance risk-disclaimer (memory) (examples) custom (user-context) (channel-context) current-state",
	} {
		p := build(t, c, budget)
		if got := ids(p); got != want || p.Tokens > budget || len(p.System())*10 != p.Tokens {
			t.Errorf("%d: %d tokens, %s", budget, p.Tokens, got)
		}
	}
	p, err := prompt.Build(c, 59)
	if e, ok := errors.AsType[*prompt.TooLong](err); !ok || *e != (prompt.TooLong{Tokens: 60, Budget: 59}) || len(p.System()) != 6 {
		t.Errorf("less than what is required: %v, %s", err, ids(p))
	}
}

// What differs from session to session stands behind what does not, the end has the
// mark, and nothing that is not said changes a byte.
func TestPrefix(t *testing.T) {
	one, other := everything("code"), everything("code")
	other.Workdir, other.Opened, other.Model.ID, other.Git = "/elsewhere", other.Opened.AddDate(1, 0, 0), "model-2", false
	a, b := build(t, one, 0).System(), build(t, other, 0).System()
	for i := range a {
		if last := i == len(a)-1; (a[i].Text == b[i].Text) == last || a[i].Cache != last {
			t.Errorf("%s: %+v and %+v", a[i].Name, a[i], b[i])
		}
	}
	later := everything("code")
	later.Opened = later.Opened.Add(-20 * time.Hour) // the same day
	if got := prompt.Hash(build(t, later, 0).System()); got != prompt.Hash(a) {
		t.Error("another hour makes another prompt")
	}
}

// Every line of the texts holds for some session, so that no condition is a word that
// means nothing.
func TestConditions(t *testing.T) {
	files, err := filepath.Glob("sections/*.md")
	if err != nil || len(files) != 11 {
		t.Fatal(files, err)
	}
	var all strings.Builder
	for _, kind := range prompt.Kinds {
		for i, language := range []string{"", "en", "ko"} {
			c := everything(kind)
			c.Language = language
			c.Verify = true
			c.Model.Images = i == 0
			c.Investment = &prompt.Investment{
				Risk:       []string{"conservative", "moderate", "aggressive"}[i],
				Compliance: []string{"retail", "professional", "institutional"}[i],
			}
			for _, s := range build(t, c, 0).System() {
				all.WriteString(s.Text + "\n")
			}
		}
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.HasPrefix(line, "?") {
				_, line, _ = strings.Cut(line, ": ")
			}
			if !strings.Contains(all.String(), line) {
				t.Errorf("%s: nobody reads %q", f, line)
			}
		}
	}
}
