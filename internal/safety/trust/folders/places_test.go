package folders

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlaces(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	repo := filepath.Join(home, "src", "repo")
	sub := filepath.Join(repo, "a", "b")
	for _, dir := range []string{filepath.Join(repo, ".git"), sub} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := Config{UserHome: home, Workdir: sub, Home: filepath.Join(home, ".dure"), Managed: "/etc/dure", Never: true}

	show := func(workdir, kind string) string {
		var b strings.Builder
		for _, p := range New(c).Places(workdir, kind) {
			dir := p.Dir
			if rel, err := filepath.Rel(home, dir); err == nil && filepath.IsLocal(rel) {
				dir = filepath.Join("~", rel)
			}
			fmt.Fprintln(&b, p.Scope, filepath.ToSlash(dir), p.Trusted)
		}
		return b.String()
	}
	const skills = `managed /etc/dure/skills true
managed /etc/dure/.dure/skills true
managed /etc/dure/.claude/skills true
managed /etc/dure/.agents/skills true
user ~/.dure/skills true
user ~/.claude/skills true
user ~/.agents/skills true
project ~/src/repo/a/b/.dure/skills false
project ~/src/repo/a/b/.claude/skills false
project ~/src/repo/a/b/.agents/skills false
project ~/src/repo/a/.dure/skills false
project ~/src/repo/a/.claude/skills false
project ~/src/repo/a/.agents/skills false
project ~/src/repo/.dure/skills false
project ~/src/repo/.claude/skills false
project ~/src/repo/.agents/skills false
`
	if got := show(sub, Skills); got != skills {
		t.Errorf("skills:\n%s", got)
	}
	c.Trusted = true
	const agents = `managed /etc/dure/agents true
managed /etc/dure/.dure/agents true
managed /etc/dure/.claude/agents true
user ~/.dure/agents true
user ~/.claude/agents true
`
	if got := show(home, Agents); got != agents {
		t.Errorf("in the home folder, which is the user's and no project's:\n%s", got)
	}
	if got, want := show(sub, Agents), agents+"project ~/src/repo/a/b/.dure/agents true\nproject ~/src/repo/a/b/.claude/agents true\n"; got != want {
		t.Errorf("trusted, but not its repository:\n%s", got)
	}
}
