package swarm

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/base/frontmatter"
)

// Bounds of a definition.
const (
	maxName  = 64        // characters of a name
	maxFile  = 256 << 10 // bytes of a file
	maxSteps = 1000      // steps that an agent may be given
	maxList  = 200       // entries of a list
)

// General is the type that is meant where none is named.
const General = "general-purpose"

// A Definition is a type of agents.
type Definition struct {
	Name        string
	Description string
	Prompt      string // what it is told to be; "" = the usual instructions
	Place       frontmatter.Place
	Path        string // its file; "" = it has none

	Tools   []string // in any spelling; nil = all that the session has
	Types   []string // types that it may hand work to in turn; nil = all
	Without []string // tools that it does not have
	Model   string   // "" = the session's
	Mode    agent.Mode
	Effort  string // low, medium or high; "" = the session's
	Steps   int    // of a task; 0 = no limit
	Skills  []string
	Memory  string // user, project or local: the notes that it keeps by itself
	Initial string // what begins a session that runs as this agent
	Color   string

	Background bool   // it runs in the background unless the call says otherwise
	Isolation  string // worktree or process; "" = none
	Bare       bool   // without the instruction files of the project
	Powerless  bool   // the file is not what was trusted: its hooks, servers and model do not count

	Hooks   json.RawMessage // as they stand in the file
	Servers json.RawMessage

	Faults   []frontmatter.Fault // why it cannot be used
	Warnings []frontmatter.Fault
	Hidden   string // what of the same name counts instead; "" = this one does
}

// disarm takes the powers from a definition whose file is not what was trusted. What it
// takes away stays, and its mode, which never allows more than that of the session.
func (d *Definition) disarm() {
	var powers []string
	for name, has := range map[string]bool{"hooks": d.Hooks != nil, "mcpServers": d.Servers != nil, "model": d.Model != ""} {
		if has {
			powers = append(powers, name)
		}
	}
	if len(powers) == 0 {
		return
	}
	slices.Sort(powers)
	d.Powerless, d.Hooks, d.Servers, d.Model = true, nil, nil, ""
	d.Warnings = append([]frontmatter.Fault{frontmatter.Uncovered(powers...)}, d.Warnings...)
}

// Usable reports whether work can be handed to it.
func (d Definition) Usable() bool { return len(d.Faults) == 0 && d.Place.Trusted && d.Hidden == "" }

// Routes reports whether it does nothing but hand work on, so that those that it hands work
// to may have the tools that it does without: all of whoever has started it. No file can
// make a type one that does.
func (d Definition) Routes() bool {
	return d.Place.Scope == frontmatter.BuiltIn && d.Name == "coordinator"
}

// State is active, invalid, hidden or untrusted.
func (d Definition) State() string {
	switch {
	case len(d.Faults) > 0:
		return "invalid"
	case !d.Place.Trusted:
		return "untrusted"
	case d.Hidden != "":
		return "hidden"
	}
	return "active"
}

// fault and warn say what is wrong with a definition.
func (d *Definition) fault(err error) {
	if f := frontmatter.FaultOf(err); f != nil {
		d.Faults = append(d.Faults, *f)
	} else if err != nil {
		d.Faults = append(d.Faults, frontmatter.Fault{Message: err.Error()})
	}
}

func (d *Definition) warn(f *frontmatter.Fault) { d.Warnings = append(d.Warnings, *f) }

// Parse reads a file. rel is its path in the place, with slashes. What is wrong with it
// is in the definition.
func Parse(place frontmatter.Place, file, rel string, data []byte) Definition {
	d := Definition{Place: place, Path: file}
	base := strings.TrimSuffix(path.Base(rel), ".md")
	doc, err := frontmatter.Parse(data)
	d.Warnings = append(d.Warnings, doc.Warnings...)
	if d.fault(err); err != nil {
		d.Name = base
		return d
	}
	if d.Name = base; !doc.Has {
		d.fault(&frontmatter.Fault{Line: 1, Column: 1, Message: "the file does not begin with fields", Fix: "begin it with lines of ---, name: " + named(base) + ", description: when to use it, ---"})
		return d
	}
	d.Prompt = strings.TrimSpace(doc.Body)
	d.identify(doc, base, place)
	for _, f := range doc.Fields {
		if err := d.take(f); err != nil {
			d.fault(err)
		}
	}
	d.belong(rel)
	return d
}

// identify takes the name and the description, without which a file means nothing.
func (d *Definition) identify(doc frontmatter.Doc, base string, place frontmatter.Place) {
	f, has := doc.Get("name")
	name, err := "", error(nil)
	if has {
		name, err = f.Text()
	}
	switch name = strings.TrimSpace(name); {
	case err != nil:
		d.fault(err)
	case name == "" && place.Plugin != "":
		name = base
	case name == "":
		d.fault(&frontmatter.Fault{Line: 1, Key: "name", Message: "the agent has no name", Fix: "add the field name: " + named(base)})
	default:
		if why := BadName(name); why != "" {
			d.fault(f.Fault("use letters, digits and -, as in "+named(name), "%s", why))
		} else if name != strings.ToLower(name) && place.Scope != frontmatter.BuiltIn {
			d.warn(f.Fault("write it as "+named(name), "has capital letters, which other programs refuse"))
		}
	}
	if name != "" {
		d.Name = name
	}
	f, has = doc.Get("description")
	if has {
		d.Description, err = f.Text()
		d.fault(err)
		d.Description = strings.TrimSpace(d.Description)
	}
	if d.Description == "" && place.Plugin == "" {
		d.fault(&frontmatter.Fault{Line: 1, Key: "description", Message: "the agent has no description, so nobody knows when to use it", Fix: "add the field description: when to use it"})
	}
}

// belong gives an agent of a plugin the name of the plugin, and takes from it what
// plugins may not bring.
func (d *Definition) belong(rel string) {
	if d.Place.Plugin == "" {
		return
	}
	plugin, _, _ := strings.Cut(d.Place.Plugin, "@")
	parts := append([]string{plugin}, strings.Split(path.Dir(rel), "/")...)
	parts = slices.DeleteFunc(append(parts, d.Name), func(s string) bool { return s == "." || s == "" })
	d.Name = strings.Join(parts, ":")
	for key, has := range map[string]bool{"hooks": d.Hooks != nil, "mcpServers": d.Servers != nil, "permissionMode": d.Mode != ""} {
		if has {
			d.warn(&frontmatter.Fault{Key: key, Message: key + " of an agent of a plugin is not in force", Fix: "put it into the plugin itself, or into your own settings"})
		}
	}
	slices.SortFunc(d.Warnings, func(a, b frontmatter.Fault) int { return strings.Compare(a.Message, b.Message) })
	d.Hooks, d.Servers, d.Mode = nil, nil, ""
}

// BadName says what is wrong with a name; "" = nothing.
func BadName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxName:
		return fmt.Sprintf("is longer than %d characters", maxName)
	case strings.ContainsRune(name, ':'):
		return "has a colon in it, which separates the name of a plugin"
	case name[0] == '-' || name[0] == '_':
		return "begins with " + name[:1]
	case strings.ContainsFunc(name, func(r rune) bool { return !isName(r) }):
		return "has characters in it that names do not have"
	}
	return ""
}

func isName(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

// named makes a name of a text.
func named(s string) string {
	s = strings.Trim(strings.Map(func(r rune) rune {
		if isName(r) {
			return r
		}
		return '-'
	}, strings.ToLower(s)), "-_")
	if len(s) > maxName {
		s = s[:maxName]
	}
	if s == "" {
		return "my-agent"
	}
	return s
}
