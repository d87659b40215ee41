package skills

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
	"dure/internal/base/frontmatter"
	"dure/internal/safety/shell"
)

// The marks between which the number of a value stands while a command is made ready.
const (
	markOpen  = '\ue000'
	markClose = '\ue001'
)

// errPlace is a variable in a command at a place where no value can be kept from being
// read as a part of it.
var errPlace = errors.New("an argument stands where it could be read as a command: put it between plain words or in quotes, and not behind $(, ${, `, << or #")

// errRuns is an argument that a program would take for a command.
var errRuns = errors.New("with this argument it would run other programs: put no argument where a command is expected, as behind sh -c")

// bind puts the values of variables into a command, each as one piece of a word: whatever
// a value says, the shell reads no part of it as its own.
func bind(command string, v frontmatter.Values, powershell bool) (string, bool, error) {
	if strings.ContainsAny(command, string([]rune{markOpen, markClose, 0})) {
		return "", false, errors.New("the command has characters that no command has")
	}
	var values []string
	v.Quote = func(s string) string {
		values = append(values, s)
		return string(markOpen) + strconv.Itoa(len(values)-1) + string(markClose)
	}
	marked, used := v.Expand(command)
	if len(values) == 0 {
		return marked, used, nil
	}
	bound, err := fill(marked, values, powershell)
	if err == nil && !powershell && !sameRuns(bound, marked, values) {
		err = errRuns
	}
	if err != nil {
		return "", used, err
	}
	return bound, used, nil
}

// sameRuns reports whether a command runs with its values what it runs with others: a
// word may be a command again for the program that gets it, as in sh -c.
func sameRuns(bound, marked string, values []string) bool {
	other, err := fill(marked, slices.Repeat([]string{"x"}, len(values)), false)
	if err != nil {
		return false
	}
	at := shell.Options{Dir: "/"} // any: what is written is counted
	has, wants := shell.Read(bound, at), shell.Read(other, at)
	if slices.ContainsFunc(wants.Commands, readsAgain) && slices.ContainsFunc(values, func(v string) bool { return strings.ContainsFunc(v, special) }) {
		return false
	}
	return len(has.Writes) == len(wants.Writes) && slices.Equal(runs(has.Commands), runs(wants.Commands))
}

// readsAgain reports whether a command gets commands as words of its own.
func readsAgain(c agent.SimpleCommand) bool {
	return len(c.Runs) > 0 && !c.Transparent || strings.Contains(c.Flagged, "code") || slices.ContainsFunc(c.Runs, readsAgain)
}

func special(r rune) bool { return !plain(r) }

// runs are the programs that commands run, each with how many words it gets, and behind
// it what it runs in turn.
func runs(commands []agent.SimpleCommand) (list []string) {
	for _, c := range commands {
		if len(c.Argv) > 0 {
			list = append(list, fmt.Sprint(len(c.Argv), " ", c.Argv[0]))
		}
		list = append(list, runs(c.Runs)...)
	}
	return list
}

// fill puts values in the place of their marks, as the quotes around them want it.
func fill(marked string, values []string, powershell bool) (string, error) {
	var b strings.Builder
	var in byte // the quote that is open
	for i := 0; i < len(marked); {
		c := marked[i]
		rest := marked[i:]
		if strings.HasPrefix(rest, string(markOpen)) {
			end := strings.IndexRune(rest, markClose)
			n, err := strconv.Atoi(rest[len(string(markOpen)):end])
			if err != nil {
				return "", err
			}
			value, err := quoted(values[n], in, powershell)
			if err != nil {
				return "", err
			}
			b.WriteString(value)
			i += end + len(string(markClose))
			continue
		}
		switch {
		case c == '\\' && in != '\'':
			if i+1 == len(marked) || strings.HasPrefix(rest[1:], string(markOpen)) {
				return "", errPlace
			}
			b.WriteString(marked[i : i+2])
			i += 2
			continue
		case in != '\'' && risky(rest, in, i == 0 || strings.IndexByte(" \t\n;&|(", marked[i-1]) >= 0):
			return "", errPlace
		case in == 0 && (c == '"' || c == '\''):
			in = c
		case c == in && in != 0:
			in = 0
		}
		b.WriteByte(c)
		i++
	}
	if in != 0 {
		return "", errPlace
	}
	return b.String(), nil
}

// risky reports whether a piece of a command begins that has rules of its own for what
// stands in it. start says that a word begins.
func risky(rest string, in byte, start bool) bool {
	for _, s := range []string{"$(", "${", "$[", "$'", "`", "<<", "<(", ">("} {
		if strings.HasPrefix(rest, s) && (in == 0 || s[0] != '<' && s[0] != '>' && s != "$'") {
			return true
		}
	}
	return in == 0 && (strings.HasPrefix(rest, `$"`) || start && rest[0] == '#')
}

// quoted writes a value within a quote; 0 = outside of any.
func quoted(value string, in byte, powershell bool) (string, error) {
	if strings.ContainsRune(value, 0) {
		return "", errors.New("an argument has a NUL character")
	}
	if powershell { // its quotes are others
		if strings.IndexFunc(value, func(r rune) bool { return !plain(r) }) >= 0 || value == "" {
			return "", errors.New("for PowerShell, an argument in a command may have letters, digits and ./_-: only")
		}
		return value, nil
	}
	switch in {
	case '\'':
		return strings.ReplaceAll(value, "'", `'\''`), nil
	case '"':
		return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(value), nil
	}
	if value != "" && strings.IndexFunc(value, func(r rune) bool { return !plain(r) }) < 0 {
		return value, nil
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'", nil
}

// plain reports whether a character means nothing to any shell, wherever it stands.
func plain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("./_-:", r)
}
