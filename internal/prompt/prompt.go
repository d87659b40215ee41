// Package prompt writes the system prompt: the one place for text that tells a
// model what it is and how to work here. The same input gives the same bytes,
// so that providers can cache it. It does no I/O.
package prompt

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"dure/agent"
)

//go:embed base.md
var base string

// Config is what the prompt tells about the surroundings of a session.
type Config struct {
	Workdir string
	Extra   []string // further folders that the session may work in
	Git     bool     // Workdir is in a git repository
	OS      string   // linux, darwin, windows
	Shell   string   // name of the shell that commands run in
	Model   string
	Opened  time.Time // when the session began; not the current time, which would break the cache
	Append  string    // text of the user's own, at the end
}

// System returns the sections of the system prompt, the last one with a cache
// mark.
func System(c Config) []agent.Section {
	var env strings.Builder
	fmt.Fprintf(&env, "# Environment\nWorking directory: %s\n", c.Workdir)
	for _, e := range c.Extra {
		fmt.Fprintf(&env, "Also available: %s\n", e)
	}
	yes := map[bool]string{true: "yes", false: "no"}
	fmt.Fprintf(&env, "Git repository: %s\nPlatform: %s\nShell: %s\nDate: %s\nModel: %s\n",
		yes[c.Git], c.OS, c.Shell, c.Opened.Format(time.DateOnly), c.Model)
	sections := []agent.Section{
		{Name: "base", Text: strings.TrimSpace(base)},
		{Name: "environment", Text: strings.TrimSpace(env.String())},
	}
	if c.Append != "" {
		sections = append(sections, agent.Section{Name: "user", Text: c.Append})
	}
	sections[len(sections)-1].Cache = true
	return sections
}
