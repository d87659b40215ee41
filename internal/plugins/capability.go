package plugins

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"dure/internal/front"
)

// A Capability is something that a plugin can do once it is enabled. Two of the same
// text are the same.
type Capability struct {
	Kind   Kind   `json:"kind"`
	Name   string `json:"name,omitempty"`   // of the event, server, skill, ...
	Detail string `json:"detail,omitempty"` // the command, the tools, ..., whole up to a bound
}

// Kind is what a capability is about. Those before Skill reach further than words to a
// model do.
type Kind string

// The kinds, in the order in which they are shown.
const (
	CanHook    Kind = "hook"    // something runs at an event: Name is that
	CanServer  Kind = "server"  // a program or an address that offers tools
	CanProgram Kind = "program" // is found by commands, behind all others of its name
	CanShell   Kind = "shell"   // a skill or command runs commands before the model reads it
	CanTools   Kind = "tools"   // a skill or command lets tools run without a question
	CanMode    Kind = "mode"    // an agent has a permission mode of its own
	CanNetwork Kind = "network" // a host is asked
	CanSetting Kind = "setting" // a setting is changed
	CanSecret  Kind = "secret"  // it asks its user for a secret
	CanSkill   Kind = "skill"
	CanCommand Kind = "command"
	CanAgent   Kind = "agent"
)

// kinds is their order.
var kinds = []Kind{CanHook, CanServer, CanProgram, CanShell, CanTools, CanMode, CanNetwork, CanSetting, CanSecret, CanSkill, CanCommand, CanAgent}

// maxDetail bounds what is shown of one capability, in bytes. What is longer is told to
// be, so that nothing hides behind the end.
const maxDetail = 2_000

// inline finds commands that run when a skill or a command is read.
var inline = lazy("(?ms)(?:^|\\s)!`[^`\n]+`|^[ \t]*```!.*?(?:^[ \t]*```|\\z)")

func (r *reader) capabilities() []Capability {
	c := &collector{list: []Capability{}, seen: map[Capability]bool{}}
	for _, h := range r.p.Hooks {
		c.hooks(h.Raw)
	}
	for _, name := range slices.Sorted(maps.Keys(r.p.Servers)) {
		c.add(CanServer, name, string(r.p.Servers[name]))
		c.hosts(r.p.Servers[name])
	}
	for _, at := range r.p.Programs {
		c.add(CanProgram, path.Base(at), "")
	}
	for _, at := range r.p.Skills {
		c.file(r.fsys, CanSkill, r.skillName(at), path.Join(at, "SKILL.md"))
	}
	for _, at := range r.p.Commands {
		c.file(r.fsys, CanCommand, strings.TrimSuffix(path.Base(at), ".md"), at)
	}
	for _, at := range r.p.Agents {
		c.file(r.fsys, CanAgent, strings.TrimSuffix(path.Base(at), ".md"), at)
	}
	for _, key := range slices.Sorted(maps.Keys(r.p.Settings)) {
		c.add(CanSetting, key, string(r.p.Settings[key]))
	}
	for _, o := range r.p.Options {
		if o.Sensitive {
			c.add(CanSecret, o.Key, o.Title)
		}
	}
	slices.SortStableFunc(c.list, func(a, b Capability) int { return slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind) })
	return c.list
}

// skillName is the name of a skill's folder; the whole plugin has its own.
func (r *reader) skillName(at string) string {
	if at == "." {
		return r.p.Name
	}
	return path.Base(at)
}

// collector puts capabilities together, each once.
type collector struct {
	list []Capability
	seen map[Capability]bool
}

func (c *collector) add(kind Kind, name, detail string) {
	if more := len(detail) - maxDetail; more > 0 {
		detail = fmt.Sprintf("%s… and %d more bytes", strings.ToValidUTF8(detail[:maxDetail], ""), more)
	}
	one := Capability{kind, clip(name), detail}
	if !c.seen[one] {
		c.seen[one] = true
		c.list = append(c.list, one)
	}
}

// hooks adds what runs at events. Whatever has no known form is shown as it is.
func (c *collector) hooks(raw json.RawMessage) {
	var events map[string]any
	if json.Unmarshal(raw, &events) != nil {
		c.add(CanHook, "?", string(raw))
		return
	}
	for _, event := range slices.Sorted(maps.Keys(events)) {
		if !c.hook(event, events[event]) {
			data, _ := json.Marshal(events[event]) // of what was read as JSON
			c.add(CanHook, event, string(data))
		}
	}
}

// hook looks for what runs in a value, and reports whether there was something.
func (c *collector) hook(event string, v any) (found bool) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			found = c.hook(event, one) || found
		}
	case map[string]any:
		what := []string{}
		for _, key := range []string{"command", "args", "url", "prompt", "server", "tool"} {
			switch value := v[key].(type) {
			case nil:
			case string:
				what = append(what, value)
				if u, err := url.Parse(value); key == "url" && err == nil && u.Host != "" {
					c.add(CanNetwork, u.Host, "")
				}
			default:
				data, _ := json.Marshal(value) // of what was read as JSON
				what = append(what, string(data))
			}
		}
		if len(what) > 0 {
			c.add(CanHook, event, strings.Join(what, " "))
			found = true
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == "hooks" {
				found = c.hook(event, v[key]) || found
			}
		}
	case string:
		c.add(CanHook, event, v)
		return v != ""
	}
	return found
}

// hosts adds the host of a server that is asked over the network.
func (c *collector) hosts(raw json.RawMessage) {
	var server struct{ URL string }
	if json.Unmarshal(raw, &server) != nil || server.URL == "" {
		return
	}
	if u, err := url.Parse(server.URL); err == nil && u.Host != "" {
		c.add(CanNetwork, u.Host, "")
		return
	}
	c.add(CanNetwork, "?", server.URL)
}

// file adds a skill, a command or an agent, and what its fields let it do.
func (c *collector) file(fsys fs.FS, kind Kind, name, at string) {
	c.add(kind, name, "")
	data, err := readFile(fsys, at, maxMarkdown)
	if err != nil {
		c.add(CanShell, name, "it cannot be looked into: "+err.Error())
		return
	}
	doc, err := front.Parse(data)
	if err != nil {
		c.add(CanTools, name, "its fields cannot be read: "+err.Error())
	}
	for _, key := range []string{"allowed-tools", "tools"} {
		f, ok := doc.Get(key)
		if !ok || key == "tools" && kind == CanAgent { // there it takes away
			continue
		}
		tools, err := f.List(front.Words)
		if err != nil {
			tools = []string{err.Error()}
		}
		if len(tools) > 0 {
			c.add(CanTools, name, strings.Join(tools, ", "))
		}
	}
	if f, ok := doc.Get("permissionMode", "mode"); ok {
		mode, _ := f.Text() // a wrong one is refused where it is read
		c.add(CanMode, name, mode)
	}
	if f, ok := doc.Get("hooks"); ok {
		if raw, err := f.JSON(); err != nil {
			c.add(CanHook, name, err.Error())
		} else {
			c.hooks(raw)
		}
	}
	if f, ok := doc.Get("mcpServers"); ok {
		raw, _ := f.JSON() // the name alone says that there are some
		c.add(CanServer, name, string(raw))
	}
	if kind != CanAgent {
		for _, m := range inline().FindAllString(doc.Body, maxNamed) {
			c.add(CanShell, name, strings.TrimSpace(m))
		}
	}
}

// Change is how the capabilities of one release differ from those of another.
type Change struct {
	Added   []Capability `json:"added"`
	Removed []Capability `json:"removed"`
}

// Compare compares what a plugin could do with what it can do now.
func Compare(then, now []Capability) Change {
	c := Change{Added: []Capability{}, Removed: []Capability{}}
	for _, one := range now {
		if !slices.Contains(then, one) {
			c.Added = append(c.Added, one)
		}
	}
	for _, one := range then {
		if !slices.Contains(now, one) {
			c.Removed = append(c.Removed, one)
		}
	}
	return c
}
