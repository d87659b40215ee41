package code

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"dure/internal/tools/kit"
)

// finding is a mistake at a place.
type finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Message string `json:"message"`
}

// findings is what an output says is wrong: the first of each, once.
type findings struct {
	errors []finding
	tests  []string

	moreErrors, moreTests int
	seen                  map[string]bool

	// What lines before said.
	said  string    // the message of an error whose place follows
	file  string    // a line that is a file name, and whose mistakes follow
	frame [2]string // file and line where a Python program was
}

// The shapes of lines, by who writes them. Paths end with an extension, so that
// times of the day are none.
type shapes struct {
	place   *regexp.Regexp // file:line[:column]: message   go, gcc, clang, mypy, pytest, javac, swift
	kotlin  *regexp.Regexp // e: file:line:column message   kotlinc
	parens  *regexp.Regexp // file(line,column): error message   tsc, msbuild
	bracket *regexp.Regexp // [ERROR] file:[line,column] message   maven
	arrow   *regexp.Regexp //   --> file:line:column, after error: message   rustc
	panics  *regexp.Regexp // thread 'x' panicked at file:line:column:   rust
	python  *regexp.Regexp //   File "file", line n   python
	raised  *regexp.Regexp // SomeError: message, after where that was   python
	said    *regexp.Regexp // error[E0001]: message
	path    *regexp.Regexp // file   eslint
	below   *regexp.Regexp //   line:column  error  message   eslint
	tests   []*regexp.Regexp
}

var shapesOf = sync.OnceValue(func() shapes {
	const file = `((?:[A-Za-z]:[\\/])?[^\s:()\[\]"'<>|]*[^\s:()\[\]"'<>|.]\.[A-Za-z]\w*)`
	re := regexp.MustCompile
	s := shapes{
		place:   re(`^\s*(?:vet: )?` + file + `:(\d+)(?::\d+)?:\s+(\S.*)$`),
		kotlin:  re(`^e: (?:file://)?` + file + `:(\d+):\d+:? (.*)$`),
		parens:  re(`^\s*` + file + `\((\d+),\d+\):\s*((?:fatal )?error\b.*)$`),
		bracket: re(`^\[ERROR\]\s+` + file + `:\[(\d+),\d+\]\s*(.*)$`),
		arrow:   re(`^\s*--> ` + file + `:(\d+):\d+`),
		panics:  re(`^(thread '.*' .*panicked) at ` + file + `:(\d+):\d+:`),
		python:  re(`^\s*File "([^"]+)", line (\d+)`),
		raised:  re(`^(?:[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt))(?:: .*)?$`),
		said:    re(`^(?:error(?:\[\w+\])?: .*)$`),
		path:    re(`^\S.*\.\w+$`),
		below:   re(`^\s+(\d+):\d+\s+(error\s+.*)$`),
	}
	for _, t := range []string{
		`^\s*--- FAIL: (\S+)`,                         // go
		`^FAIL\s+(\S+ \[(?:build|setup) failed\])`,    // go
		`^test (\S+) \.\.\. FAILED`,                   // cargo
		`^(?:FAILED|ERROR) (\S+\.py\S*)`,              // pytest
		`^(?:FAIL|ERROR): (\w+ \([\w.]+\))`,           // unittest
		`^\s*● (.+ › .+)$`,                            // jest
		`^\s*(?:✖|×) (.+?)(?: \(?[\d.]+ ?ms\)?)?$`,    // node, vitest
		`^not ok \d+ -? ?(.+)$`,                       // tap
		`^\[ERROR\]\s+(\S+)(?:\s.*)?<<< (?:FAIL|ERR)`, // maven
		`^(\S+ > .+) FAILED$`,                         // gradle
		`^\s*Failed (\S+) \[`,                         // dotnet
		`^rspec (\S+:\d+)`,                            // rspec
	} {
		s.tests = append(s.tests, re(t))
	}
	return s
})

// find reads an output.
func find(output string) findings {
	f := findings{seen: map[string]bool{}}
	s := shapesOf()
	for line := range strings.Lines(strings.ToValidUTF8(output, "\uFFFD")) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || len(line) > maxLine {
			continue
		}
		if !f.test(s, line) {
			f.mistake(s, line)
		}
	}
	return f
}

func (f *findings) test(s shapes, line string) bool {
	for _, re := range s.tests {
		if m := re.FindStringSubmatch(line); m != nil {
			if name := strings.TrimSpace(m[1]); !f.known("test " + name) {
				if len(f.tests) == maxFindings {
					f.moreTests++
				} else {
					f.tests = append(f.tests, kit.Cut(name, 200))
				}
			}
			return true
		}
	}
	return false
}

func (f *findings) mistake(s shapes, line string) {
	if m := s.arrow.FindStringSubmatch(line); m != nil {
		if f.said != "" {
			f.add(m[1], m[2], f.said)
			f.said = ""
		}
		return
	}
	if m := s.panics.FindStringSubmatch(line); m != nil {
		f.add(m[2], m[3], m[1])
		return
	}
	if m := s.python.FindStringSubmatch(line); m != nil {
		f.frame = [2]string{m[1], m[2]}
		return
	}
	for _, re := range []*regexp.Regexp{s.parens, s.bracket, s.kotlin, s.place} {
		if m := re.FindStringSubmatch(line); m != nil {
			f.add(m[1], m[2], m[3])
			return
		}
	}
	switch m := s.below.FindStringSubmatch(line); {
	case m != nil && f.file != "":
		f.add(f.file, m[1], m[2])
	case f.frame[0] != "" && s.raised.MatchString(line):
		f.add(f.frame[0], f.frame[1], line)
	case s.said.MatchString(line):
		f.said = line
	case s.path.MatchString(line):
		f.file = line
	}
}

// add records a mistake. Warnings and remarks are none.
func (f *findings) add(file, line, message string) {
	n, err := strconv.Atoi(line)
	message = strings.Join(strings.Fields(message), " ")
	lower := strings.ToLower(message)
	for _, lesser := range []string{"warning", "note:", "info:", "in function", "remark:"} {
		if strings.HasPrefix(lower, lesser) {
			return
		}
	}
	if err != nil || f.known(file+":"+line+" "+message) {
		return
	}
	if len(f.errors) == maxFindings {
		f.moreErrors++
		return
	}
	f.errors = append(f.errors, finding{kit.Cut(file, 300), n, kit.Cut(message, 300)})
}

// maxSeen is how many different lines are told apart.
const maxSeen = 10_000

func (f *findings) known(what string) bool {
	if f.seen[what] || len(f.seen) >= maxSeen {
		return true
	}
	f.seen[what] = true
	return false
}

// String lists what was found for the model.
func (f findings) String() string {
	var b strings.Builder
	if len(f.tests) > 0 {
		b.WriteString("failing tests:\n")
		for _, t := range f.tests {
			b.WriteString("  " + t + "\n")
		}
	}
	if f.moreTests > 0 {
		fmt.Fprintf(&b, "  [%d more]\n", f.moreTests)
	}
	if len(f.errors) > 0 {
		b.WriteString("errors:\n")
		for _, e := range f.errors {
			fmt.Fprintf(&b, "  %s:%d: %s\n", e.File, e.Line, e.Message)
		}
	}
	if f.moreErrors > 0 {
		fmt.Fprintf(&b, "  [%d more]\n", f.moreErrors)
	}
	return b.String()
}
