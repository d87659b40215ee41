package git

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/tools/kit"
)

type flags map[string]*value

// shapes are the flags for how a difference looks. Missing are those that start
// programs (--ext-diff, --textconv), write files (--output), or read files that
// are not in the repository (--no-index, -O).
var shapes = flags{
	"--stat": widths, "--shortstat": nil, "--numstat": nil, "--summary": nil, "--name-only": nil, "--name-status": nil,
	"--patch": nil, "-p": nil, "-u": nil, "--no-patch": nil, "-s": nil, "--raw": nil, "--patch-with-stat": nil,
	"-U": number, "--unified": number, "--function-context": nil, "-W": nil,
	"-w": nil, "-b": nil, "--ignore-all-space": nil, "--ignore-space-change": nil, "--ignore-blank-lines": nil,
	"--ignore-space-at-eol": nil, "--ignore-cr-at-eol": nil,
	"-M": similar, "-C": similar, "--find-renames": similar, "--find-copies": similar, "--no-renames": nil,
	"--diff-filter": takes(made("ACDMRTUXBacdmrtuxb*")), "--word-diff": optionally(oneOf("plain", "porcelain", "none")),
	"--minimal": nil, "--patience": nil, "--histogram": nil, "--full-index": nil, "--abbrev": optionally(number),
	"-S": anything, "-G": anything, "--pickaxe-regex": nil, "--pickaxe-all": nil, "-a": nil, "--text": nil, "-R": nil,
	"--relative": nil, "--no-color": nil,
}

// history are the flags for which commits are shown, and how.
var history = flags{
	"-n": number, "--max-count": number, "--skip": number,
	"--since": anything, "--after": anything, "--until": anything, "--before": anything,
	"--author": anything, "--committer": anything, "--grep": anything, "--all-match": nil, "--invert-grep": nil,
	"-i": nil, "--regexp-ignore-case": nil, "-E": nil, "--extended-regexp": nil, "-F": nil, "--fixed-strings": nil,
	"--all": nil, "--branches": optionally(ref), "--tags": optionally(ref), "--remotes": optionally(ref),
	"--merges": nil, "--no-merges": nil, "--first-parent": nil, "--reverse": nil, "--follow": nil, "--full-history": nil,
	"--ancestry-path": nil, "--cherry-pick": nil, "--left-right": nil, "--left-only": nil, "--right-only": nil, "--boundary": nil,
	"--topo-order": nil, "--date-order": nil, "--author-date-order": nil, "--simplify-by-decoration": nil,
	"--oneline": nil, "--graph": nil, "--decorate": optionally(oneOf("short", "full", "auto", "no")), "--no-decorate": nil,
	"--format": format, "--pretty": format, "--date": dates, "--abbrev-commit": nil, "--no-abbrev-commit": nil,
	"--no-notes": nil, "-g": nil, "--walk-reflogs": nil, "--cc": nil, "-c": nil,
}

// listing are the flags of branch and tag that list and do not change.
var listing = flags{
	"--list": nil, "-l": nil, "--contains": ref, "--no-contains": ref, "--merged": ref, "--no-merged": ref,
	"--points-at": ref, "--sort": sorting, "-i": nil, "--ignore-case": nil,
}

func merge(all ...flags) flags {
	sum := flags{}
	for _, f := range all {
		maps.Copy(sum, f)
	}
	return sum
}

// grammar is what a command of git__read takes.
type grammar struct {
	args  []string // always there: the git command, and what makes it only read
	flags flags
	revs  int  // revisions or patterns at most
	paths bool // it takes paths
	limit bool // without a number of commits it shows maxCommits
}

// maxCommits is how many commits are shown when the call does not say.
const maxCommits = "30"

// grammars are the commands. None of them writes, and none runs what attributes
// or settings name: --no-ext-diff and --no-textconv stand before what a call
// adds, which cannot take them back.
var grammars = sync.OnceValue(func() map[string]grammar {
	return map[string]grammar{
		"status": {
			args: []string{"status", "--ignore-submodules=dirty"}, paths: true,
			flags: flags{
				"-s": nil, "--short": nil, "-b": nil, "--branch": nil, "--porcelain": optionally(oneOf("v1", "v2", "1", "2")), "--long": nil, "--show-stash": nil,
				"-u": optionally(oneOf("no", "normal", "all")), "--untracked-files": optionally(oneOf("no", "normal", "all")), "--ignored": optionally(oneOf("traditional", "no", "matching")),
				"--ahead-behind": nil, "--no-renames": nil,
			},
		},
		"diff": {
			args: []string{"diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--submodule=short"}, revs: 3, paths: true,
			flags: merge(shapes, flags{"--cached": nil, "--staged": nil, "--merge-base": nil, "--check": nil, "--quiet": nil}),
		},
		"log": {
			args: []string{"log", "--no-ext-diff", "--no-textconv", "--submodule=short"}, revs: 10, paths: true, limit: true,
			flags: merge(shapes, history),
		},
		"show": {
			args: []string{"show", "--no-ext-diff", "--no-textconv", "--submodule=short"}, revs: 10, paths: true,
			flags: merge(shapes, history),
		},
		"blame": {
			args: []string{"blame", "--no-textconv"}, revs: 1, paths: true,
			flags: flags{
				"-L": takes(lines), "-w": nil, "-M": similar, "-C": similar, "-e": nil, "--show-email": nil,
				"-s": nil, "-l": nil, "-f": nil, "--show-name": nil, "--since": anything, "--date": dates, "--first-parent": nil, "--reverse": nil,
			},
		},
		"branch": {
			args: []string{"branch", "--list"}, revs: 10,
			flags: merge(listing, flags{"-a": nil, "--all": nil, "-r": nil, "--remotes": nil, "-v": nil, "-vv": nil, "--verbose": nil}),
		},
		"tag": {
			args: []string{"tag", "--list"}, revs: 10,
			flags: merge(listing, flags{"-n": optionally(number)}),
		},
		"remote":     {args: []string{"remote", "-v"}, flags: flags{"-v": nil, "--verbose": nil}},
		"stash-list": {args: []string{"stash", "list"}, flags: flags{"-n": number, "--max-count": number, "--date": dates}},
		"grep": {
			args: []string{"grep", "--no-textconv", "--no-recurse-submodules", "-I", "-n"}, revs: 10, paths: true,
			flags: flags{
				"-i": nil, "--ignore-case": nil, "-w": nil, "--word-regexp": nil, "-v": nil, "--invert-match": nil,
				"-E": nil, "--extended-regexp": nil, "-F": nil, "--fixed-strings": nil, "-G": nil, "-n": nil, "--line-number": nil,
				"-l": nil, "--files-with-matches": nil, "-L": nil, "-c": nil, "--count": nil, "-o": nil, "--only-matching": nil,
				"-A": number, "-B": number, "-C": number, "-W": nil, "-p": nil, "--show-function": nil, "-m": number, "--max-count": number,
				"-e": anything, "--and": nil, "--or": nil, "--not": nil, "--cached": nil, "--all-match": nil,
			},
		},
	}
})

// request is a call of git__read after its check.
type request struct {
	args  []string // of git
	paths []string // relative to the top, with slashes
}

// parse checks the arguments of a call against the grammar of its command. What
// is not listed there is refused: git has flags that run programs, write files
// and read what is not in the repository, and it gets new ones.
func parse(r repository, tc agent.ToolContext, in readInput) (request, error) {
	gr, ok := grammars()[in.Command]
	if !ok {
		return request{}, kit.Refuse(agent.ErrInput, "there is no command "+quote(in.Command), "Use one of "+strings.Join(slices.Sorted(maps.Keys(grammars())), ", ")+".")
	}
	p := parser{gr: gr, command: in.Command, paths: slices.Clone(in.Paths)}
	if err := p.all(in.Args); err != nil {
		return request{}, err
	}
	switch {
	case in.Command == "blame" && len(p.paths) == 0 && len(p.revs) > 0:
		p.paths, p.revs = []string{p.revs[len(p.revs)-1]}, p.revs[:len(p.revs)-1]
	case in.Command == "grep" && len(p.revs) > 0 && !p.pattern:
		p.flags, p.revs = append(p.flags, "-e", p.revs[0]), p.revs[1:]
		p.pattern = true
	}
	switch {
	case in.Command == "blame" && len(p.paths) != 1:
		return request{}, kit.Refuse(agent.ErrInput, "blame takes one file", "Name it in paths.")
	case in.Command == "grep" && !p.pattern:
		return request{}, kit.Refuse(agent.ErrInput, "grep has no pattern", `Give it as the first of args, as in ["-i", "pattern"].`)
	case len(p.revs) > gr.revs:
		return request{}, kit.Refuse(agent.ErrInput, in.Command+" does not take "+quote(p.revs[gr.revs]), "Files and folders go into paths.")
	case len(p.paths) > 0 && !gr.paths:
		return request{}, kit.Refuse(agent.ErrInput, in.Command+" takes no paths", "Leave them out.")
	}
	for _, rev := range p.revs {
		if err := checkRevision(rev); err != nil {
			return request{}, err
		}
	}
	paths, err := r.inside(tc, p.paths)
	if err != nil {
		return request{}, err
	}
	args := slices.Concat(gr.args, p.flags)
	if gr.limit && !p.counted {
		args = append(args, "--max-count="+maxCommits)
	}
	args = append(args, p.revs...)
	if gr.paths {
		args = append(append(args, "--"), paths...)
	}
	return request{args: args, paths: append(paths, pathsOf(p.revs)...)}, nil
}

// parser sorts arguments into flags, revisions and paths.
type parser struct {
	gr      grammar
	command string

	flags, revs, paths []string
	counted            bool // the number of commits is given
	pattern            bool // grep has its pattern
}

const maxArgs = 60

func (p *parser) all(args []string) error {
	if len(args) > maxArgs {
		return kit.Refuse(agent.ErrInput, "more than 60 arguments", "Do less in one call.")
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			p.paths = append(p.paths, args[i+1:]...)
			return nil
		case len(a) < 2 || a[0] != '-':
			p.revs = append(p.revs, a)
			continue
		}
		taken, err := p.flag(a, args[i+1:])
		if err != nil {
			return err
		}
		i += taken
	}
	return nil
}

// flag checks one flag, of which rest may hold the value. It returns how many
// arguments of rest it took.
func (p *parser) flag(a string, rest []string) (int, error) {
	if digits(a[1:]) && p.gr.flags["-n"] != nil { // -5
		a = "-n" + a[1:]
	}
	name, val, has := strings.Cut(a, "=")
	if !strings.HasPrefix(a, "--") {
		if name, val = a[:2], a[2:]; val == "v" && name == "-v" { // -vv
			name, val = a, ""
		}
		has = val != ""
	}
	v, known := p.gr.flags[name]
	if !known {
		return 0, p.refuse(a)
	}
	taken := 0
	switch {
	case v == nil && has:
		return 0, p.refuse(a)
	case v != nil && !has && !v.optional:
		if len(rest) == 0 {
			return 0, kit.Refuse(agent.ErrInput, quote(a)+" needs a value", "Write it as "+name+"=VALUE.")
		}
		val, has, taken = rest[0], true, 1
	}
	if has && !v.fits(val) {
		return 0, kit.Refuse(agent.ErrInput, quote(val)+" is no value for "+name, "Use another value, or leave the flag out.")
	}
	p.counted = p.counted || name == "-n" || name == "--max-count"
	switch {
	case name == "-e" && p.command == "grep":
		p.pattern = true
		p.flags = append(p.flags, name, val)
	case has && strings.HasPrefix(name, "--"):
		p.flags = append(p.flags, name+"="+val)
	default:
		p.flags = append(p.flags, name+val)
	}
	return taken, nil
}

func (p *parser) refuse(a string) error {
	names := slices.Sorted(maps.Keys(p.gr.flags))
	return kit.Refuse(agent.ErrInput, p.command+" does not take "+quote(a)+" here", "Use only "+strings.Join(names, " ")+"; or run git with a command.")
}

// checkRevision refuses what git could take for a flag, or for a path that is not
// in the repository.
func checkRevision(rev string) error {
	outside := strings.HasPrefix(rev, "/") || strings.HasPrefix(rev, ".") || strings.HasPrefix(rev, "~") || strings.HasPrefix(rev, `\`) ||
		strings.Contains(rev, "/../") || strings.HasSuffix(rev, "/..") || filepath.IsAbs(rev) || filepath.VolumeName(rev) != ""
	long := len(rev) > 250 || strings.ContainsFunc(rev, func(r rune) bool { return r < ' ' || r == 0x7f })
	if rev == "" || rev[0] == '-' || outside || long {
		return kit.Refuse(agent.ErrInput, quote(rev)+" is no revision that can be used here", "Use a branch, a tag, a commit, or a range such as main..HEAD; files go into paths.")
	}
	return nil
}

// pathsOf returns the paths in revisions such as HEAD:docs/a.md and :0:docs/a.md.
func pathsOf(revs []string) []string {
	var paths []string
	for _, r := range revs {
		tree, p, ok := strings.Cut(r, ":")
		if ok && tree == "" && len(p) > 1 && p[1] == ':' {
			p = p[2:]
		}
		if ok && p != "" && filepath.IsLocal(p) {
			paths = append(paths, p)
		}
	}
	return paths
}
