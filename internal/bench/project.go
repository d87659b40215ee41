package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

const (
	projectSkills = 500
	projectHooks  = 100
)

// project measures what a task costs more in a project with many skills and hooks than
// in an empty one. None of them is called for: it is what being there costs.
func project(b *bench) ([]Figure, error) {
	home, err := b.home()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	if err := furnish(filepath.Join(home, "work", ".claude")); err != nil {
		return nil, fmt.Errorf("making a project: %w", err)
	}
	srv, err := serveAny(reply{text: "Hello."})
	if err != nil {
		return nil, err
	}
	defer srv.close()
	empty, err := b.home()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(empty)

	var spreads [2]Spread
	for i, dir := range []string{empty, home} {
		ask := func() (Sample, error) {
			return b.print(dir, environ(dir, srv.url()), "--trust", "--model", scripted)
		}
		if _, err := ask(); err != nil { // what is kept of it by the system
			return nil, err
		}
		s, err := repeat(b.runs*2, ask)
		if err != nil {
			return nil, err
		}
		spreads[i] = spread(s, wallMS)
	}
	more := spreads[1]
	for _, v := range []*float64{&more.Median, &more.Min, &more.Max} {
		*v -= spreads[0].Median
	}
	return []Figure{{
		What: fmt.Sprintf("start, beyond an empty one: %d skills, %d hooks", projectSkills, projectHooks), Unit: "ms", Aim: 40, Spread: more,
	}}, nil
}

// furnish writes skills and hooks into a folder of settings.
func furnish(dir string) error {
	for i := range projectSkills {
		skill := filepath.Join(dir, "skills", fmt.Sprintf("skill-%03d", i))
		if err := os.MkdirAll(skill, 0o700); err != nil {
			return err
		}
		text := fmt.Sprintf("---\nname: skill-%03d\ndescription: Does the work of number %d. Use it when that is called for.\nallowed-tools: Read Grep\n---\n# Skill %d\n\nDo it for $ARGUMENTS.\n", i, i, i)
		if err := os.WriteFile(filepath.Join(skill, "SKILL.md"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	var groups []map[string]any
	for i := range projectHooks {
		groups = append(groups, map[string]any{
			"matcher": fmt.Sprintf("^(Bash|mcp__server%d__.*)(?!x)", i),
			"hooks":   []map[string]any{{"type": "command", "command": fmt.Sprintf("exit %d", i%2)}},
		})
	}
	data, err := json.Marshal(map[string]any{"hooks": map[string]any{"PreToolUse": groups}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "settings.json"), data, 0o600)
}
