package shell

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/sandbox/machine"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

//go:embed environment.md
var environmentText string

// The bounds of looking at the machine.
const (
	versionTimeout = 2 * time.Second // of one program
	versionsAtOnce = 8
	maxVersion     = 100 // characters of what a program says of itself
	maxNames       = 300 // environment variables
)

// usualPrograms are asked for their versions if they are on PATH.
var usualPrograms = []string{
	"git", "go", "node", "npm", "python3", "rustc", "cargo", "java", "ruby", "php",
	"gcc", "clang", "make", "cmake", "docker", "rg", "jq", "curl",
}

// versions remembers what the programs said.
type versions struct {
	mu    sync.Mutex
	known []string // "program: version"; nil = not asked yet
}

func (v *versions) get() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.known
}

func (v *versions) set(known []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known = known
}

func (s *Shell) environment() agent.Tool {
	none := func(c agent.Call) error { _, err := kit.Decode[struct{}](c); return err }
	return kit.Tool{
		About: agent.Spec{
			Name: "environment__info", Description: kit.Describe(environmentText),
			Input: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
			Class: agent.Read, Group: "system", Risk: agent.RiskLow, Limit: time.Minute, Budget: listedBudget,
		},
		Touches: func(_ agent.ToolContext, c agent.Call) (agent.Effects, error) {
			if err := none(c); err != nil || s.programs.get() != nil {
				return agent.Effects{}, err
			}
			return agent.Effects{Runs: installed()}, nil
		},
		Does: func(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
			if err := none(c); err != nil {
				return agent.Result{}, err
			}
			return s.describe(ctx, tc), nil
		},
	}
}

// environment is the structured answer.
type environment struct {
	OS         string   `json:"os"`
	Arch       string   `json:"arch"`
	System     string   `json:"system,omitempty"` // as it calls itself
	CPUs       int      `json:"cpus"`
	Memory     int64    `json:"memory,omitempty"`     // bytes
	MemoryFree int64    `json:"memoryFree,omitempty"` // that could be used
	DiskFree   int64    `json:"diskFree,omitempty"`   // bytes, in the working folder
	Workdir    string   `json:"workdir"`
	Git        bool     `json:"git"`
	Shell      string   `json:"shell"`
	Locale     string   `json:"locale,omitempty"`
	TimeZone   string   `json:"timeZone"`
	Programs   []string `json:"programs"`
	Variables  []string `json:"variables"` // names
}

func (s *Shell) describe(ctx context.Context, tc agent.ToolContext) agent.Result {
	here := machine.Look(tc.Workdir)
	m := environment{
		OS: here.OS, Arch: here.Arch, System: oneLine(here.Name, maxVersion), CPUs: here.CPUs,
		Memory: here.Memory, MemoryFree: here.MemoryFree, DiskFree: here.DiskFree,
		Workdir: tc.Workdir, Git: workspace.InRepository(tc.Workdir), Shell: s.Path,
		Locale: locale(s.Env), Programs: s.askVersions(ctx), Variables: names(s.Env),
	}
	zone, offset := time.Now().Zone()
	m.TimeZone = fmt.Sprintf("%s (%s, UTC%+03d:%02d)", time.Local, zone, offset/3600, max(offset, -offset)/60%60)
	git := "no"
	if m.Git {
		git = "yes"
	}
	var b strings.Builder
	for _, row := range [][2]string{
		{"system", strings.TrimSpace(m.OS + " " + m.Arch + " " + m.System)},
		{"processors", fmt.Sprint(m.CPUs)},
		{"memory", size(m.Memory) + ", of it free " + size(m.MemoryFree)},
		{"folder", m.Workdir},
		{"disk free", size(m.DiskFree)},
		{"git repository", git},
		{"shell", m.Shell},
		{"locale", m.Locale},
		{"time zone", m.TimeZone},
		{"programs", "\n  " + strings.Join(m.Programs, "\n  ")},
		{"variables", strings.Join(m.Variables, " ")},
	} {
		fmt.Fprintf(&b, "%s: %s\n", row[0], row[1])
	}
	return agent.Result{Status: agent.StatusOK, Text: strings.TrimRight(b.String(), "\n"), Output: kit.Structured(m)}
}

// installed returns what is run to ask the programs that are there.
func installed() [][]string {
	var there [][]string
	for _, name := range usualPrograms {
		flag := "--version"
		if name == "go" {
			flag = "version"
		}
		if sandbox.Find(name) != "" {
			there = append(there, []string{name, flag})
		}
	}
	return there
}

// askVersions asks the programs once. When the context ends meanwhile, what they
// said is not kept.
func (s *Shell) askVersions(ctx context.Context) []string {
	if known := s.programs.get(); known != nil {
		return known
	}
	argvs := installed()
	said := make([]string, len(argvs))
	slots := make(chan struct{}, versionsAtOnce)
	var all sync.WaitGroup
	for i, argv := range argvs {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			said[i] = argv[0] + ": " + s.version(ctx, argv)
		})
	}
	all.Wait()
	if ctx.Err() == nil {
		s.programs.set(said)
	}
	return said
}

// version runs a program in a folder that has no settings for it, and returns
// the first line that it prints.
func (s *Shell) version(ctx context.Context, argv []string) string {
	out := s.Box.NewCapture()
	defer out.Close()
	exit, err := s.Box.Run(ctx, sandbox.Cmd{
		Argv: argv, Dir: rootDir, Env: append(s.Env[:len(s.Env):len(s.Env)], "GOTOOLCHAIN=local"),
		Timeout: versionTimeout, Out: out,
	})
	switch {
	case err != nil:
		return "there, and cannot be started"
	case exit.Interrupted():
		return "there, and does not answer"
	case exit.Code != 0:
		return "there, and cannot tell its version"
	}
	text, _ := out.Page(0, 4<<10)
	first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return oneLine(first, maxVersion)
}

// locale is what programs take from the environment.
func locale(env []string) string {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		for _, entry := range env {
			if value, ok := strings.CutPrefix(entry, name+"="); ok && value != "" {
				return oneLine(value, maxVersion)
			}
		}
	}
	return ""
}

// names returns the names of variables, sorted.
func names(env []string) []string {
	var list []string
	for _, entry := range env {
		if name, _, ok := strings.Cut(entry, "="); ok && name != "" {
			list = append(list, oneLine(name, maxVersion))
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), maxNames)]
}
