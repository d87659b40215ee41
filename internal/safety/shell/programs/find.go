package programs

import "strings"

// predicates has the words of find by how many arguments they take.
var predicates = map[string]int{
	"-print": 0, "-print0": 0, "-ls": 0, "-prune": 0, "-quit": 0, "-depth": 0, "-d": 0, "-empty": 0, "-executable": 0,
	"-readable": 0, "-writable": 0, "-true": 0, "-false": 0, "-follow": 0, "-xdev": 0, "-mount": 0, "-daystart": 0,
	"-noleaf": 0, "-ignore_readdir_race": 0, "-noignore_readdir_race": 0, "-nouser": 0, "-nogroup": 0, "-not": 0,
	"-and": 0, "-or": 0, "-a": 0, "-o": 0, "-warn": 0, "-nowarn": 0, "-x": 0, "-E": 0, "-X": 0, "-s": 0,
	"-help": 0, "--help": 0, "-version": 0, "--version": 0,
	"!": 0, "(": 0, ")": 0, ",": 0,

	"-name": 1, "-iname": 1, "-path": 1, "-ipath": 1, "-wholename": 1, "-iwholename": 1, "-regex": 1, "-iregex": 1,
	"-regextype": 1, "-type": 1, "-xtype": 1, "-size": 1, "-mtime": 1, "-atime": 1, "-ctime": 1, "-mmin": 1,
	"-amin": 1, "-cmin": 1, "-perm": 1, "-user": 1, "-group": 1, "-uid": 1, "-gid": 1, "-maxdepth": 1,
	"-mindepth": 1, "-links": 1, "-inum": 1, "-fstype": 1, "-lname": 1, "-ilname": 1, "-used": 1, "-printf": 1,
	"-context": 1, "-flags": 1, "-Btime": 1, "-Bmin": 1,
}

// selective has the tests that keep what stands at the start point itself from
// being found, or all that is in it.
var selective = map[string]bool{
	"-name": true, "-iname": true, "-path": true, "-ipath": true, "-wholename": true, "-iwholename": true,
	"-regex": true, "-iregex": true, "-size": true, "-mtime": true, "-atime": true, "-ctime": true, "-mmin": true,
	"-amin": true, "-cmin": true, "-perm": true, "-user": true, "-group": true, "-empty": true, "-lname": true,
	"-ilname": true, "-links": true, "-inum": true, "-newer": true, "-samefile": true,
}

// finding is an expression of find while it is read.
type finding struct {
	*reading
	starts  []Word
	selects bool
	deletes bool
}

// readFind reads start points and then the expression. Nothing that it prints
// is more than Reads; -exec, -delete and those that write take the Kind away.
func readFind(r *reading) {
	f := finding{reading: r}
	args := r.operands
	i := 0
	for i < len(args) {
		t := args[i].Text
		switch {
		case t == "-H" || t == "-L" || t == "-P" || strings.HasPrefix(t, "-O"):
			i++
		case t == "-D":
			i += 2
		case t == "-f" && i+1 < len(args):
			f.start(args[i+1])
			i += 2
		case t == "--":
			i++
		case strings.HasPrefix(t, "-") || t == "(" || t == "!" || t == ",":
			f.expression(args[i:])
			i = len(args)
		default:
			f.start(args[i])
			i++
		}
	}
	if len(f.starts) == 0 && f.use.Flagged != "-files0-from" {
		f.use.Reads = append(f.use.Reads, ".")
	}
	if f.deletes {
		for _, w := range f.found() {
			f.removes(w)
		}
	}
}

func (f *finding) start(w Word) {
	f.starts = append(f.starts, w)
	f.reads(w)
}

// expression reads tests and actions. Which of the tests select is looked at
// first, as it says what the actions are about.
func (f *finding) expression(args []Word) {
	for _, w := range args {
		if selective[w.Text] || strings.HasPrefix(w.Text, "-newer") {
			f.selects = true
		}
	}
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !f.known(w) {
			continue
		}
		if n, ok := predicates[w.Text]; ok {
			for _, a := range args[i+1 : min(i+1+n, len(args))] {
				f.harmless(a)
			}
			i += n
			continue
		}
		i += f.action(w.Text, args[i+1:])
	}
}

// action reads what does more than test and print. It returns how many of the
// following words belong to it.
func (f *finding) action(name string, rest []Word) int {
	switch name {
	case "-exec", "-execdir", "-ok", "-okdir":
		f.flag(name)
		end := 0
		for end < len(rest) && rest[end].Text != ";" && !(rest[end].Text == "+" && end > 0 && rest[end-1].Text == "{}") {
			end++
		}
		f.runs(f.filled(rest[:end]))
		return end + 1
	case "-delete":
		f.flag(name)
		f.deletes = true
		return 0
	case "-fprint", "-fprint0", "-fls", "-fprintf":
		f.flag(name)
		if len(rest) > 0 {
			f.writes(rest[0])
		}
		if name == "-fprintf" {
			return 2
		}
		return 1
	case "-files0-from":
		f.use.Flagged = name
		if len(rest) > 0 {
			f.reads(rest[0])
		}
		return 1
	case "-samefile", "-anewer", "-cnewer", "-mnewer":
	default:
		if !strings.HasPrefix(name, "-newer") {
			f.odd = true
			return 0
		}
		if len(name) == len("-newerXY") && name[len(name)-1] == 't' { // a time
			return 1
		}
	}
	if len(rest) > 0 {
		f.reads(rest[0])
	}
	return 1
}

// found stands for what is found: the start points, or something below them when
// a test selects.
func (f *finding) found() []Word {
	starts := f.starts
	if len(starts) == 0 {
		starts = []Word{{Text: ".", Known: true}}
	}
	if !f.selects {
		return starts
	}
	below := make([]Word, len(starts))
	for i, w := range starts {
		below[i] = w
		if w.Known {
			below[i].Text = inside(w.Text, "{}")
		}
	}
	return below
}

// filled is a command with what is found in place of {}.
func (f *finding) filled(argv []Word) []Word {
	all := make([]Word, 0, len(argv)+1)
	for i, w := range argv {
		switch {
		case w.Text == "{}" && i > 0:
			all = append(all, f.found()...)
		case w.Known && strings.Contains(w.Text, "{}"):
			// A part of an argument, or the program itself, is what nobody knows.
			all = append(all, Word{Text: w.Text, One: true})
		default:
			all = append(all, w)
		}
	}
	return all
}
