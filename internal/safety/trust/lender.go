package trust

import (
	"path/filepath"
	"slices"
	"strings"

	"dure/agent"
)

// Owners are the folders in which files that extend programs of this sort lie.
var Owners = []string{".dure", ".claude", ".agents"}

// A Lender is a skill, or a command of a file, of a project, whose rules are in force.
type Lender struct {
	Name   string
	Dir    string // all files in it are its own; "" = those that a call names
	Covers func(path string, data []byte) bool
}

// Unproven returns a file that came or changed after the folder was trusted: beside the
// skill, or named by a call and of those that trust covers; "" = there is none.
func (l Lender) Unproven(p agent.Proposal, workdir string) string {
	if l.Covers == nil {
		return ""
	}
	if l.Dir != "" {
		if file := Unproven(l.Dir, l.Covers); file != "" {
			return file
		}
	}
	for _, path := range namedFiles(p, workdir) {
		if !Proven(path, l.Covers) {
			return path
		}
	}
	return ""
}

// maxNamedFiles bounds the words of a call that are looked at.
const maxNamedFiles = 500

// namedFiles are the paths in the folders of owners that a call reads or has as words.
func namedFiles(p agent.Proposal, workdir string) (list []string) {
	add := func(dir, word string) {
		if dir == "" {
			dir = workdir
		}
		if !filepath.IsAbs(word) {
			word = filepath.Join(dir, word)
		}
		inOwners := slices.ContainsFunc(strings.Split(filepath.ToSlash(word), "/"), func(part string) bool {
			return slices.ContainsFunc(Owners, func(o string) bool { return strings.EqualFold(o, part) })
		})
		if inOwners && len(list) < maxNamedFiles && !strings.ContainsRune(word, 0) {
			list = append(list, filepath.Clean(word))
		}
	}
	for _, path := range p.Effects.Reads {
		add("", path)
	}
	var of func(all []agent.SimpleCommand)
	of = func(all []agent.SimpleCommand) {
		for _, c := range all {
			for _, word := range slices.Concat(c.Argv, c.Reads) {
				add(c.Dir, word)
			}
			of(c.Runs)
		}
	}
	of(p.Effects.Commands)
	return list
}

// ChangedWhy says it to people and models.
func ChangedWhy(name, file string) string {
	return file + ", which belongs to what " + name + " may run unasked, came or changed after its folder was trusted; look at it, then: dure trust"
}

// Asks wants a person to be asked, because something is not what was trusted.
func Asks(why string) agent.Decision {
	const by = "trust"
	said := []agent.Opinion{{Stage: by, Verdict: agent.AskUser, Reason: why}} // who decides again needs it
	return agent.Decision{Verdict: agent.AskUser, By: by, Reason: why, Trace: said}
}
