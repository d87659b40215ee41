package commands

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"dure/agent/query"
	"dure/internal/base/near"
)

// maxNear bounds the commands that are offered in the place of an unknown one.
const maxNear = 3

// Known is what a route knows beside the table.
type Known struct {
	Session bool                // there is one that is open
	Others  []query.CommandInfo // commands from files and skills; of two of a name the first counts

	// Exists reports whether there is such a path: what begins with one is no
	// command. nil = there is none.
	Exists func(path string) bool
}

// Split takes an input apart that begins with a slash: the name goes up to the first
// white space.
func Split(text string) (name, arguments string, ok bool) {
	rest, ok := strings.CutPrefix(text, "/")
	if !ok {
		return "", "", false
	}
	at := strings.IndexFunc(rest, unicode.IsSpace)
	if at < 0 {
		return rest, "", true
	}
	return rest[:at], strings.TrimSpace(rest[at:]), true
}

// Read says what an input is: built-in commands come before those of files, those
// before skills, and what names none of them is a message when it looks like a path or
// like text, and else unknown. A slash alone asks for help.
func Read(text string, k Known) query.CommandRead {
	name, arguments, ok := Split(text)
	if !ok {
		return query.CommandRead{Is: query.ReadSend}
	}
	if name == "" {
		if arguments != "" {
			return query.CommandRead{Is: query.ReadSend}
		}
		name = "help"
	}
	r := query.CommandRead{Name: name, Arguments: arguments}
	if b, ok := Find(name); ok {
		r.Is, r.Kind, r.Name = query.ReadRun, query.CommandBuiltIn, b.Name
		switch {
		case b.Bare && arguments != "":
			r.Is, r.Why = query.ReadRefuse, query.WhyUsage
		case !b.Free && !k.Session:
			r.Is, r.Why = query.ReadRefuse, query.WhySession
		case b.Prompt:
			r.Is = query.ReadSend
		}
		return r
	}
	if c, ok := k.find(name); ok {
		r.Is, r.Kind, r.Name = query.ReadSend, c.Kind, c.Name
		if c.Off != "" {
			r.Is, r.Why = query.ReadRefuse, c.Off
		}
		return r
	}
	if strings.ContainsAny(name, `/\`) || strings.Contains(text, "\n") || k.Exists != nil && k.Exists("/"+name) {
		return query.CommandRead{Is: query.ReadSend}
	}
	r.Is, r.Near = query.ReadUnknown, k.nearest(name)
	return r
}

// find returns the command of a name: as it is written, else in any case if it is the
// only one. The last part of a name alone means none.
func (k Known) find(name string) (query.CommandInfo, bool) {
	var found []query.CommandInfo
	name = norm.NFC.String(name)
	for _, c := range k.Others {
		switch {
		case c.Name == name:
			return c, true
		case strings.EqualFold(c.Name, name) && !slices.ContainsFunc(found, func(f query.CommandInfo) bool { return f.Name == c.Name }):
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		return query.CommandInfo{}, false
	}
	return found[0], true
}

// nearest returns the commands that a mistyped name may mean, the likeliest first.
func (k Known) nearest(name string) []string {
	const longest = 64 // bytes; nothing that is called by name is longer
	if len(name) > longest {
		return nil
	}
	type guess struct {
		name     string
		distance int
	}
	low := strings.ToLower(name)
	var all []guess
	add := func(shown, spelling string) {
		distance := near.Distance(low, strings.ToLower(spelling), 0)
		if _, last, ok := strings.Cut(spelling, ":"); ok && strings.EqualFold(last, name) {
			distance = 0
		}
		if len(low) > 1 && strings.HasPrefix(strings.ToLower(spelling), low) {
			distance = min(distance, 1)
		}
		if distance < len(name)/3+1 || distance <= 1 {
			all = append(all, guess{shown, distance})
		}
	}
	for _, b := range builtIns {
		add(b.Name, b.Name)
		for _, a := range b.Aliases {
			add(b.Name, a)
		}
	}
	for _, c := range k.Others {
		if c.Off == "" {
			add(c.Name, c.Name)
		}
	}
	slices.SortStableFunc(all, func(a, b guess) int { return a.distance - b.distance })
	var names []string
	for _, g := range all {
		if !slices.Contains(names, g.name) && len(names) < maxNear {
			names = append(names, g.name)
		}
	}
	return names
}
