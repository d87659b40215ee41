//go:build linux

package shell

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A scribe writes random command lines with all that bash knows, over the programs
// of the oracle's box.
type scribe struct {
	*rand.Rand
	depth int
	inFn  bool // no function calls itself
	docs  []string
	odds  []string // see odd
}

// newScribe returns one that writes the same for the same seed.
func newScribe(t *testing.T, seed uint64) *scribe {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "odd.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s := &scribe{Rand: rand.New(rand.NewPCG(seed, 0))}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' || strings.HasPrefix(line, "# '") {
			s.odds = append(s.odds, strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t").Replace(line))
		}
	}
	return s
}

func (s *scribe) one(choices ...string) string { return choices[s.IntN(len(choices))] }

func (s *scribe) chance(percent int) bool { return s.IntN(100) < percent }

// script writes a whole command line.
func (s *scribe) script() string {
	s.depth, s.docs = 0, nil
	return s.list()
}

func (s *scribe) list() string {
	var b strings.Builder
	for i, n := 0, 1+s.IntN(3); i < n; i++ {
		b.WriteString(s.statement())
		if len(s.docs) > 0 {
			b.WriteString("\n" + strings.Join(s.docs, ""))
			s.docs = nil
			continue
		}
		if i < n-1 {
			b.WriteString(s.one(" && ", " || ", "; ", "\n", " & ", " | ", " |& ", ";", " # x\n", " \\\n&& "))
		}
	}
	return b.String()
}

// inner is a list inside a statement: its documents end within it.
func (s *scribe) inner() string {
	kept := s.docs
	s.docs = nil
	s.depth++
	out := s.list()
	s.depth--
	s.docs = kept
	return out
}

func (s *scribe) statement() string {
	if s.depth > 3 || s.chance(55) {
		return s.simple()
	}
	switch s.IntN(27) {
	case 23, 24, 25:
		return s.odd()
	case 0:
		return "( " + s.inner() + "\n)" + s.redirect(20)
	case 1:
		return "{ " + s.inner() + "\n}" + s.redirect(20)
	case 2:
		return "if " + s.inner() + "\nthen " + s.inner() + "\nelse " + s.inner() + "\nfi" + s.redirect(10)
	case 3:
		return "for " + s.name() + " in " + s.words(2) + "; do " + s.inner() + "\ndone" + s.redirect(10)
	case 4:
		return "while " + s.inner() + "\ndo " + s.inner() + "\nbreak; done"
	case 5:
		return s.one("until "+s.inner(), "select "+s.name()+" in "+s.words(2)) + "\ndo " + s.inner() + "\nbreak; done" + s.one("", " <<< 1")
	case 6:
		return "case " + s.word() + " in " + s.one("*", "a", "[ab]*", s.literal()) + ") " + s.inner() + "\n" + s.one(";;", ";&", ";;&") + " *) " + s.inner() + "\n;; esac"
	case 7:
		return s.function()
	case 8:
		return "[[ " + s.one("-n ", "-z ", "-v ", "! -e ") + s.word() + " ]]"
	case 9:
		return "[[ " + s.word() + s.one(" == ", " -eq ", " =~ ", " < ", " != ") + s.word() + " ]]"
	case 10:
		return "(( " + s.arithmetic() + " ))"
	case 11:
		return "! " + s.simple()
	case 12:
		return s.one("time ", "time -p ", "coproc ") + s.simple()
	case 13:
		return "eval " + s.one(s.quoted(s.inner()), s.words(3), s.simple())
	case 14:
		return "trap " + s.quoted(s.inner()) + s.one(" EXIT", " 0", " INT", " DEBUG", " ERR")
	case 15:
		return s.shell()
	case 16:
		return s.assignment()
	case 17:
		return s.one("export ", "declare ", "readonly ", "typeset -x ", "local ", "declare -i ") + s.assignment()
	case 18:
		return s.one("unset ", "read ", "let ", "getopts a ", "printf -v ", "mapfile ", "declare -n r=") + s.one(s.name(), s.quoted("a["+s.sub()+"]"), s.name()+"=1")
	case 19:
		return "cd " + s.one("src", "..", "/", "-", "~", ".", s.word(), "src/..", "nosuch")
	case 20:
		return "for ((i=" + s.arithmetic() + ";i<1;i++)); do " + s.inner() + "\ndone"
	case 21:
		return s.one("exec ", "command ", "builtin ", "command -p ", "exec -a x ") + s.simple()
	case 22:
		return s.one("alias ls=", "alias git=") + s.literal() + s.one("\n", "; ") + "ls"
	}
	return s.one("set -f", "set -- "+s.words(2), "shift", "shopt -s extglob nullglob", "shopt -s expand_aliases", "hash -p /bin/rm ls", "enable -n echo", "IFS=x", "exec 3>"+s.target(), "umask 022", "pushd src", "popd", ". ./a.txt", "source a.txt", "PATH=$PATH:.", "return", "wait")
}

// shell is one that reads a list of its own, as an argument or as its input.
func (s *scribe) shell() string {
	program := s.one("sh", "bash", "/bin/sh", "bash --norc", "dash")
	if s.chance(60) {
		return program + " -c " + s.quoted(s.inner())
	}
	program = s.one("", "timeout 1 ", "env ", "nohup ", "command ", "exec ", "env A=1 nice ", "stdbuf -oL ", "setsid ") + program + s.one("", " -s", " -s a", " -")
	if s.chance(50) || s.depth > 2 {
		return program + " <<< " + s.quoted(s.inner())
	}
	text := s.inner()
	s.docs = append(s.docs, text+"\nDONE\n")
	return program + s.one(" <<'DONE'", " <<DONE", " 0<<'DONE'")
}

// odd is what shells disagree over: a line of testdata/odd.txt.
func (s *scribe) odd() string {
	return strings.NewReplacer(
		"{a}", s.literal()+" a", "{b}", s.literal()+" b", "{program}", s.literal(),
		"{word}", s.word(), "{sub}", s.sub(), "{number}", s.arithmetic(),
	).Replace(s.one(s.odds...))
}

func (s *scribe) function() string {
	if s.inFn {
		return s.simple()
	}
	s.inFn = true
	name := s.one("f", "g", "ls", "git", "echo", "cd")
	body := s.inner()
	s.inFn = false
	return s.one(name+"() { ", "function "+name+" { ") + body + "\n}" + s.redirect(10) + s.one("", "; ", "\n") + s.one(name, name+" a", "")
}

// simple is a simple command with assignments, wrappers and redirections.
func (s *scribe) simple() string {
	var parts []string
	if s.chance(12) {
		parts = append(parts, s.assignment())
	}
	if s.chance(10) {
		parts = append(parts, strings.TrimSpace(s.redirect(100)))
	}
	for s.chance(18) {
		parts = append(parts, s.wrapper())
	}
	parts = append(parts, s.program())
	if s.chance(75) {
		parts = append(parts, s.words(3))
	}
	return strings.Join(parts, " ") + s.redirect(12)
}

func (s *scribe) wrapper() string {
	return s.one("timeout 1", "timeout -k 1 1", "timeout --signal=KILL 1s", "env", "env -i", "env A=1", "env -u X B=2", "env -S 'A=1 env'", "nice", "nice -n 1", "nohup", "stdbuf -oL", "setsid",
		"xargs", "xargs -n1", "xargs -I{}", "echo "+s.literal()+" | xargs", "echo a | xargs -t", "find . -maxdepth 0 -exec", "find a.txt -execdir", "command", "env -- ", "xargs -0 -r", "exec", "time")
}

// program is a name of a program, in one of many spellings.
func (s *scribe) program() string {
	name := s.literal()
	switch s.IntN(30) {
	case 0:
		return "\\" + name
	case 1:
		return "'" + name + "'"
	case 2:
		return "\"" + name + "\""
	case 3:
		return name[:1] + "''" + name[1:]
	case 4:
		return name[:1] + "\\" + name[1:]
	case 5:
		return fmt.Sprintf("$'\\x%x%s'", name[0], name[1:])
	case 6:
		return fmt.Sprintf("$'\\%o'%s", name[0], name[1:])
	case 7:
		return "/bin/" + name
	case 8:
		return "/usr/bin/../../bin/" + name
	case 9:
		return "{" + name + ",a}"
	case 10:
		return name[:1] + "{" + name[1:] + ",}"
	case 11:
		return "$" + s.name()
	case 12:
		return "\"$" + s.name() + "\""
	case 13:
		return s.sub()
	case 14:
		return name[:1] + "\\\n" + name[1:]
	case 15:
		return name + "${e}"
	case 16:
		return "${" + s.name() + ":-" + name + "}"
	case 17:
		return "/bin/" + name[:1] + "*"
	case 18:
		return "$\"" + name + "\""
	case 19:
		return s.one("echo", "printf '%s'", "test", "[ a", ":", "true", "pwd", "f", "g", "type", "read")
	}
	return name
}

func (s *scribe) literal() string {
	return s.one("rm", "ls", "cat", "git", "curl", "id", "npm", "grep", "cp", "zap", "sort", "make", "go", "head", "touch", "mkdir")
}

func (s *scribe) name() string {
	return s.one("x", "y", "z", "e", "a", "PATH", "IFS", "HOME", "_", "1", "@")
}

func (s *scribe) words(most int) string {
	var words []string
	for range 1 + s.IntN(most) {
		words = append(words, s.word())
	}
	return strings.Join(words, " ")
}

func (s *scribe) word() string {
	switch s.IntN(34) {
	case 0:
		return s.sub()
	case 1:
		return "\"" + s.sub() + "\""
	case 2:
		return "'" + s.literal() + "; rm x'"
	case 3:
		return "\"a $" + s.name() + "\""
	case 4:
		return "$" + s.name()
	case 5:
		return "${" + s.name() + s.one(":-", ":=", ":+", "#", "%%", "/a/", "-", "=", ":") + s.one(s.literal(), s.sub(), "1") + "}"
	case 6:
		return "${" + s.one("#x", "!x", "x@P", "x@Q", "x^^", "a[0]", "a[@]", "x:0:1", "!a*", "a["+s.sub()+"]") + "}"
	case 7:
		return "$((" + s.arithmetic() + "))"
	case 8:
		return "$[" + s.arithmetic() + "]"
	case 9:
		return s.one("*.txt", "?", "src/*", "[ab].txt", "*", "~", "~/x", "~nobody", "~+", "*.nosuch")
	case 10:
		return s.one("{a,b}", "{1..3}", "x{a,"+s.sub()+"}", "{a,{b,c}}", "a{,b}")
	case 11:
		return s.one("<(", ">(") + s.inner() + "\n)"
	case 12:
		return s.one("$'a\\nb'", "$'\\x41'", "$'\\''", "$'\\u00e9'", "a\\ b", "a\\\nb", "\"\\$x\"", "\"\\`ls\\`\"", "'\"'", "\"'\"", "a#b", "\\#", "\"a\\\nb\"")
	case 13:
		return s.one("-n", "-rf", "--", "-x", "-o", "--flag=v")
	case 14:
		return s.one("\\;", "+", "{}", "\\&\\&", "'|'")
	}
	return s.one("a", "b", "a.txt", "src", "main", s.literal())
}

// sub is a substitution.
func (s *scribe) sub() string {
	if s.depth > 3 {
		return "$(id)"
	}
	switch s.IntN(5) {
	case 0:
		s.depth++
		out := "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(s.simple()) + "`"
		s.depth--
		s.docs = nil
		return out
	case 1:
		return "$( " + s.inner() + "\n)"
	case 2:
		return "$(<" + s.one("a.txt", s.literal()) + ")"
	}
	return "$(" + s.literal() + " " + s.one("a", "b") + ")"
}

func (s *scribe) quoted(text string) string {
	if s.chance(25) {
		return "\"" + strings.NewReplacer("\\", "\\\\", "\"", "\\\"", "`", "\\`").Replace(text) + "\""
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func (s *scribe) arithmetic() string {
	return s.one("1", "1 + 2", "x", "x = 1", "a["+s.sub()+"]", s.sub(), "x++", "$x", "y=x", "${x:-1}")
}

func (s *scribe) assignment() string {
	return s.one(
		s.one("x", "y", "z", "a[0]", "e")+s.one("=", "+=")+s.one(s.literal(), "", s.word(), "'"+s.literal()+" a'", "'a["+s.sub()+"]'"),
		"a=("+s.words(2)+")", "A=1", "NODE_ENV=x", "x="+s.literal(), "PATH=/bin", "a["+s.one("0", "1", s.sub())+"]=1",
	)
}

func (s *scribe) target() string {
	return s.one("out", "a.txt", "src/out", "../o/out", "\"o ut\"", "/dev/null", "$x", "~/out", "ou\\t", "'out'", "out{a,b}", "*.txt", "$(id)", "/w/out", "src/../out")
}

func (s *scribe) redirect(percent int) string {
	if !s.chance(percent) {
		return ""
	}
	if s.chance(25) && s.depth < 3 {
		delim := s.one("EOF", "'EOF'", "\\EOF", "E\"O\"F")
		dash := s.one("", "", "-")
		s.docs = append(s.docs, "text $x "+s.one("", s.flat(), "`id`", "\\$(id)", "${x:-$(id)}")+"\nEOF\n")
		return " <<" + dash + delim
	}
	op := s.one(">", ">>", ">|", "2>", "&>", ">&", "<", "<>", "2>&1 >", "&>>", "1>", "{fd}>", "3>")
	switch {
	case op == "<" && s.chance(50):
		return " < a.txt"
	case s.chance(15):
		return " <<< " + s.word()
	case s.chance(15):
		return s.one(" 2>&1", " >&2", " 2>/dev/null", " >&-")
	}
	return " " + op + " " + s.target()
}

// flat is a substitution on one line.
func (s *scribe) flat() string { return "$(" + s.literal() + " a)" }

// mutate changes a command line a little, or puts two together.
func (s *scribe) mutate(text, other string) string {
	for range 1 + s.IntN(3) {
		at := 0
		if len(text) > 0 {
			at = s.IntN(len(text) + 1)
		}
		end := min(len(text), at+s.IntN(4))
		switch s.IntN(12) {
		case 0:
			text = text[:at] + s.one("\\", "'", "\"", "$", "`", "\n", ";", "&", "|", "(", ")", "{", "}", "#", " ", "<", ">", "*", "~", "!", "\\\n", "$(", "${", "<(", "$'", "&&", "||", ";;", "|&", "[", "]", "=", ",") + text[at:]
		case 1:
			text = text[:at] + text[end:]
		case 2:
			text = text[:at] + s.word() + text[at:]
		case 3:
			text = s.one("( ", "{ ", "! ", "time ", "if ", "x=1; ", "cd src; ", "timeout 1 ", "env ", "eval ") + text + s.one("", "\n)", "\n}", "; fi", "\nthen :; fi", " &", "; id")
		case 4:
			text += s.one("; ", " && ", " | ", "\n", " & ", " || ") + other
		case 5:
			text = text[:at] + other + text[at:]
		case 6:
			text = s.one("bash -c ", "sh -c ", "eval ", "trap ") + s.quoted(text)
		case 7:
			text = "echo \"$(" + text + "\n)\""
		case 8:
			text = s.one("f() { ", "for i in 1 2; do ", "while id; do ", "case a in a) ") + text + s.one("\n}; f", "\ndone", "\nbreak; done", "\n;; esac")
		case 9:
			text = "cat <<EOF\n$(" + text + "\n)\nEOF"
		case 10:
			text = strings.Replace(text, " ", s.one("\t", "\\\n ", "  ", " \"\" ", "$x ", "${x} "), 1+s.IntN(2))
		case 11:
			text = strings.Replace(text, s.literal(), s.program(), 1)
		}
		s.docs = nil
	}
	return text
}
