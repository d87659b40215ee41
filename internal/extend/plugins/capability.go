package plugins

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"dure/internal/base/frontmatter"
	"dure/internal/base/jsonc"
)

// The kinds of capabilities, in the order in which they are shown. Those before CanSkill reach
// further than words to a model do.
const (
	CanHook    = "hook"    // something runs at an event: Name is that
	CanServer  = "server"  // a program or an address that offers tools
	CanProgram = "program" // is found by commands, behind all others of its name
	CanShell   = "shell"   // a skill or command runs commands before the model reads it
	CanTools   = "tools"   // a skill or command lets tools run without a question
	CanMode    = "mode"    // an agent has a permission mode of its own
	CanNetwork = "network" // a host is asked
	CanSetting = "setting" // a setting is changed
	CanSecret  = "secret"  // it asks its user for a secret
	CanSkill   = "skill"
	CanCommand = "command"
	CanAgent   = "agent"
)

// kinds is their order.
var kinds = []string{CanHook, CanServer, CanProgram, CanShell, CanTools, CanMode, CanNetwork, CanSetting, CanSecret, CanSkill, CanCommand, CanAgent}

// maxDetail bounds what is shown of one capability, in bytes. What is longer is told to
// be, so that nothing hides behind the end.
const maxDetail = 2_000

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
		c.file(r.fsys, CanSkill, r.skillName(at), r.skillFile(at))
	}
	for _, at := range r.p.Commands {
		c.file(r.fsys, CanCommand, strings.TrimSuffix(path.Base(at), path.Ext(at)), at)
	}
	for _, at := range r.p.Agents {
		c.file(r.fsys, CanAgent, strings.TrimSuffix(path.Base(at), path.Ext(at)), at)
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

func (c *collector) add(kind, name, detail string) {
	if more := len(detail) - maxDetail; more > 0 {
		detail = fmt.Sprintf("%s… and %d more bytes", strings.ToValidUTF8(detail[:maxDetail], ""), more)
	}
	one := Capability{Kind: kind, Name: clip(name), Detail: detail}
	if !c.seen[one] {
		c.seen[one] = true
		c.list = append(c.list, one)
	}
}

// hooks adds what runs at events. Whoever runs them reads them more leniently than they are
// shown here, so whatever has no known form is shown as it is.
func (c *collector) hooks(raw json.RawMessage) {
	root, err := jsonc.Parse(raw)
	switch {
	case err == nil && root.Kind == 'n':
		return
	case err != nil || root.Kind != '{':
		c.add(CanHook, "?", string(raw))
		return
	}
	slices.SortStableFunc(root.Members, func(a, b jsonc.Member) int { return strings.Compare(a.Key, b.Key) })
	for _, m := range root.Members { // an event that stands there twice counts twice
		if m.Value.Kind != '[' {
			c.group(m.Key, raw, m.Value)
		}
		for _, one := range m.Value.Items {
			c.group(m.Key, raw, one)
		}
	}
}

// The fields of a group of hooks, those of a hook that are shown, and those that say
// nothing of what runs.
var (
	groupFields = []string{"matcher", "hooks", "description"}
	shownFields = []string{"command", "args", "url", "headers", "allowedEnvVars", "prompt", "server", "tool", "input", "tools"}
	quietFields = []string{
		"type", "matcher", "if", "timeout", "statusMessage", "once", "onFailure", "shell", "async", "asyncRewake", "model", "continueOnBlock", "maxIterations", "description",
	}
)

// group adds the hooks of a group, or a hook that is in none.
func (c *collector) group(event string, raw json.RawMessage, v jsonc.Value) {
	list := -1
	for i, m := range v.Members {
		if frontmatter.Plain(m.Key) == "hooks" {
			list = i
		}
	}
	switch {
	case list < 0:
		c.hook(event, raw, v)
	case !onlyOnce(v, groupFields) || v.Members[list].Value.Kind != '[':
		c.whole(event, raw, v)
	default:
		for _, one := range v.Members[list].Value.Items {
			c.hook(event, raw, one)
		}
	}
}

// hook adds one hook: in short, if it is written as everybody writes it.
func (c *collector) hook(event string, raw json.RawMessage, v jsonc.Value) {
	for _, m := range v.Members {
		if u, err := url.Parse(plainText(raw[m.Value.Start:m.Value.End])); frontmatter.Plain(m.Key) == "url" && err == nil && u.Host != "" {
			c.add(CanNetwork, u.Host, "")
		}
	}
	var line string
	if v.Kind == '"' && json.Unmarshal(raw[v.Start:v.End], &line) == nil {
		c.add(CanHook, event, line)
		return
	}
	if v.Kind != '{' || !onlyOnce(v, slices.Concat(shownFields, quietFields)) {
		c.whole(event, raw, v)
		return
	}
	what := []string{}
	for _, key := range shownFields {
		for _, m := range v.Members {
			if m.Key != key {
				continue
			}
			text := string(compact(raw[m.Value.Start:m.Value.End]))
			if m.Value.Kind == '"' {
				text = plainText(raw[m.Value.Start:m.Value.End])
			}
			what = append(what, text)
		}
	}
	if len(what) == 0 {
		c.whole(event, raw, v)
		return
	}
	c.add(CanHook, event, strings.Join(what, " "))
}

// whole adds a hook, or what may be some, as it is written.
func (c *collector) whole(event string, raw json.RawMessage, v jsonc.Value) {
	c.add(CanHook, event, string(compact(raw[v.Start:v.End])))
}

// onlyOnce reports whether an object has these keys alone, in this spelling, each once.
func onlyOnce(v jsonc.Value, keys []string) bool {
	for i, m := range v.Members {
		again := func(o jsonc.Member) bool { return o.Key == m.Key }
		if !slices.Contains(keys, m.Key) || slices.ContainsFunc(v.Members[:i], again) {
			return false
		}
	}
	return true
}

// compact is JSON without its blanks.
func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // of what was read as JSON
	return b.Bytes()
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
func (c *collector) file(fsys fs.FS, kind, name, at string) {
	c.add(kind, name, "")
	data, err := readFile(fsys, at, maxMarkdown)
	if err != nil {
		c.add(CanShell, name, "it cannot be looked into: "+err.Error())
		return
	}
	doc, err := frontmatter.Parse(data)
	if err != nil {
		c.add(CanTools, name, "its fields cannot be read: "+err.Error())
	}
	for _, f := range doc.Fields { // in each spelling: which of them counts differs
		c.field(kind, name, f)
	}
	if kind == CanAgent {
		return
	}
	body := doc.Body
	if kind == CanCommand {
		body = strings.TrimSpace(body) // as it is read there
	}
	for _, in := range frontmatter.Inlines(body) {
		c.add(CanShell, name, strings.TrimSpace(body[in.From:in.To]))
	}
}

// field adds what one field lets a file do.
func (c *collector) field(kind, name string, f frontmatter.Field) {
	switch key := frontmatter.Plain(f.Key); key {
	case "allowedtools", "tools":
		if key == "tools" && kind == CanAgent { // there it takes away
			return
		}
		tools, err := f.List(frontmatter.Words)
		if err != nil {
			tools = []string{err.Error()}
		}
		if len(tools) > 0 {
			c.add(CanTools, name, strings.Join(tools, ", "))
		}
	case "permissionmode", "mode":
		mode, _ := f.Text() // a wrong one is refused where it is read
		c.add(CanMode, name, mode)
	case "hooks":
		if raw, err := f.JSON(); err != nil {
			c.add(CanHook, name, err.Error())
		} else {
			c.hooks(raw)
		}
	case "mcpservers":
		raw, _ := f.JSON() // the name alone says that there are some
		c.add(CanServer, name, string(raw))
	}
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
