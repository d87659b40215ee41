package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

const (
	hookMS    = 5   // that a hook may take beyond its process
	startMS   = 10  // that the definitions of hookCount hooks may take at the start
	hookCount = 100 // of a project that is full of them
)

// hooked measures what a hook before each call adds to a step, beyond its process, and
// what hooks take that no event asks.
func hooked(b *bench) ([]Figure, error) {
	const n = 50
	off := []string{"--sandbox", "off"}
	bare, err := b.task(b.runs, shell(n, "true"), off...)
	if err != nil {
		return nil, err
	}
	one := `{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "cat >/dev/null"}]}]}}`
	with, err := b.task(b.runs, shell(n, "true"), append(off, "--settings", one)...)
	if err != nil {
		return nil, err
	}
	home, err := b.home()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	process, _, err := b.reference(b.runs, home, environ(home, ""), "hooks", strconv.Itoa(n))
	if err != nil {
		return nil, err
	}
	hello, err := b.task(b.runs*2, talk("Hello."))
	if err != nil {
		return nil, err
	}
	many, err := b.task(b.runs*2, talk("Hello."), "--settings", manyHooks())
	if err != nil {
		return nil, err
	}
	step, start := spread(bare, wallMS).Median, spread(hello, wallMS).Median
	adds := spread(with, func(s Sample) float64 { return (wallMS(s) - step) / n })
	process /= n
	return []Figure{
		{What: "wall that a hook before a call adds", Unit: "ms", Spread: adds},
		{What: "beyond its process", Unit: "ms", Aim: hookMS, Spread: Spread{Min: adds.Min - process, Median: adds.Median - process, Max: adds.Max - process}},
		{What: fmt.Sprintf("start with %d hooks, beyond one without", hookCount), Unit: "ms", Aim: startMS, Spread: spread(many, func(s Sample) float64 { return wallMS(s) - start })},
	}, nil
}

// manyHooks are the settings of a project with hooks for tools that nobody calls.
func manyHooks() string {
	var groups []string
	for i := range hookCount {
		groups = append(groups, fmt.Sprintf(`{"matcher": "^mcp__server%d__(?!read).*$", "hooks": [{"type": "command", "command": "./check-%d.sh"}]}`, i, i))
	}
	return `{"hooks": {"PreToolUse": [` + strings.Join(groups, ",") + `]}}`
}

// hooksChild runs the process of a hook n times, as little as that can take: with its
// input, and with its output read.
func hooksChild(args []string) (any, error) {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(map[string]any{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": map[string]string{"command": "true"}})
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	for range n {
		cmd := exec.Command("sh", "-c", "cat >/dev/null")
		cmd.Stdin = strings.NewReader(string(input))
		if _, err := cmd.Output(); err != nil {
			return nil, fmt.Errorf("running the process of a hook: %w", err)
		}
	}
	return took{Millis: time.Since(begun).Seconds() * 1000}, nil
}
