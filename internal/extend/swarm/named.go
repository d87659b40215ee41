package swarm

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"dure/internal/base/frontmatter"
	"dure/internal/extend/swarm/presets"
)

// Kinds has the types that the description of the tool names.
//
//go:embed kinds/*.md
var Kinds embed.FS

// Presets returns the types that come with the program: those that the description of
// the tool names, and roles.
var Presets = sync.OnceValue(func() (all []Definition) {
	for _, files := range []fs.FS{Kinds, presets.Files} {
		some, err := embedded(files)
		if err != nil {
			panic(err) // they are part of the program
		}
		all = append(all, some...)
	}
	return all
})

// embedded returns the definitions of files that are part of the program.
func embedded(files fs.FS) (all []Definition, err error) {
	err = fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		d := Parse(frontmatter.Place{Scope: frontmatter.BuiltIn, Trusted: true}, "", path.Base(name), data)
		if len(d.Faults) > 0 {
			return fmt.Errorf("reading the agent %s: %w", name, &d.Faults[0])
		}
		all = append(all, d)
		return nil
	})
	return all, err
}

// ParseNamed reads the agents of a command line: a JSON object of a name to its fields,
// which are those of files, with prompt for the body.
func ParseNamed(text string) ([]Definition, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("reading agents: they have more than %d bytes", maxFile)
	}
	var in map[string]map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fmt.Errorf("reading agents at byte %d: %w", syntax.Offset, err)
		}
		return nil, fmt.Errorf(`reading agents, which are {"NAME": {"description": "...", "prompt": "..."}}: %w`, err)
	}
	var all []Definition
	for _, name := range slices.Sorted(maps.Keys(in)) {
		d, err := namedOne(name, in[name])
		if err != nil {
			return nil, fmt.Errorf("reading the agent %q: %w", name, err)
		}
		all = append(all, d)
	}
	return all, nil
}

func namedOne(name string, in map[string]json.RawMessage) (Definition, error) {
	d := Definition{Name: name, Place: frontmatter.Place{Scope: frontmatter.Flag, Trusted: true}}
	if name == "" {
		return d, errors.New("it has no name")
	}
	if why := BadName(name); why != "" {
		return d, errors.New("its name " + why)
	}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		f := frontmatter.Field{Key: key, Value: new(yaml.Node)}
		if err := yaml.Unmarshal(in[key], f.Value); err != nil || len(f.Value.Content) == 0 {
			return d, fmt.Errorf("%s cannot be read", key)
		}
		f.Value = f.Value.Content[0]
		if frontmatter.Plain(key) == "description" {
			text, err := f.Text()
			if err != nil {
				return d, bare(err)
			}
			d.Description = strings.TrimSpace(text)
		} else if err := d.take(f); err != nil {
			return d, bare(err)
		}
	}
	for i := range d.Warnings {
		d.Warnings[i].Line, d.Warnings[i].Column = 0, 0
	}
	if d.Description == "" || d.Prompt == "" {
		return d, errors.New("it needs a description and a prompt")
	}
	return d, nil
}

// bare is a fault without a place, which means nothing on a command line.
func bare(err error) error {
	if f := frontmatter.FaultOf(err); f != nil {
		return errors.New(f.Message)
	}
	return err
}

// Template returns the text of a new file.
func Template(name, description string) string {
	name = named(name)
	if description == "" {
		description = "Say here when work should be handed to this agent."
	}
	quoted, err := json.Marshal(description) // which YAML reads too
	if err != nil {
		panic(err) // a text
	}
	return "---\nname: " + name + "\ndescription: " + string(quoted) + `
# tools: Read, Grep, Glob        # without it: all that the session has
# disallowedTools: Bash
# model: inherit                 # or a name; inherit = that of the session
# maxTurns: 20
---

You are ` + strings.ReplaceAll(name, "-", " ") + `. Say here what it is to do, what its answer has in it, and what it must not do.
`
}
