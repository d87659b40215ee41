package verify

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// mark is the byte order mark of UTF-8.
var mark = []byte("\xef\xbb\xbf")

// Findings says what a change has broken in a file of a name, each in one line. What was
// not right before is nobody's fault now; a file that was not there before was right.
func Findings(name string, before, after []byte, there bool) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	text := utf8.Valid(before)
	switch {
	case there && text && !utf8.Valid(after):
		add("it was valid UTF-8 before and is not now")
	case there && text && len(before) > 0 && !isBinary(before) && isBinary(after):
		add("it has a NUL byte now: it was text before")
	}
	if there && len(before) > 0 && len(after) > 0 {
		switch had, has := bytes.HasPrefix(before, mark), bytes.HasPrefix(after, mark); {
		case had && !has:
			add("it began with a byte order mark before and does not now")
		case has && !had:
			add("it begins with a byte order mark now")
		}
	}
	if old, now := lineEnds(before), lineEnds(after); there && text && (old == crlf && (now == mixed || now == lf) || old == lf && (now == mixed || now == crlf)) {
		add("its lines ended with %s before and end with %s now", old, now)
	}
	if n := conflict(after); n > 0 && conflict(before) == 0 && text {
		add("line %d: a mark of an unresolved merge", n)
	}
	if check := parsers[strings.ToLower(filepath.Ext(name))]; check != nil && !lenient(name) && !isBinary(after) && len(bytes.TrimSpace(after)) > 0 {
		if why := check(after); why != "" && (!there || len(bytes.TrimSpace(before)) == 0 || check(before) == "") {
			if there {
				add("it parsed before and does not now: %s", why)
			} else {
				add("it does not parse: %s", why)
			}
		}
	}
	return lines
}

func isBinary(b []byte) bool { return bytes.IndexByte(b, 0) >= 0 }

// ends is how the lines of a text end.
type ends string

const (
	none  ends = "nothing"
	lf    ends = "LF"
	crlf  ends = "CRLF"
	mixed ends = "LF and CRLF"
)

func lineEnds(b []byte) ends {
	all := bytes.Count(b, []byte("\n"))
	switch n := bytes.Count(b, []byte("\r\n")); {
	case all == 0:
		return none
	case n == 0:
		return lf
	case n == all:
		return crlf
	}
	return mixed
}

// conflict returns the line of the first mark of a merge that nobody has resolved; 0 =
// there is none. A line of equals signs alone is a heading.
func conflict(b []byte) int {
	n, first, stage := 0, 0, 0
	for line := range bytes.Lines(b) {
		n++
		switch line = bytes.TrimRight(line, "\r\n"); {
		case bytes.HasPrefix(line, []byte("<<<<<<< ")):
			first, stage = n, 1
		case stage == 1 && bytes.Equal(line, []byte("=======")):
			stage = 2
		case stage == 2 && bytes.HasPrefix(line, []byte(">>>>>>> ")):
			return first
		}
	}
	return 0
}

// lenient reports whether a file has the end of a format of which it takes more than
// the format allows: comments in JSON.
func lenient(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "tsconfig") || strings.HasPrefix(name, "jsconfig") || strings.HasPrefix(name, ".") ||
		name == "settings.json" || name == "launch.json" || name == "tasks.json" || name == "devcontainer.json"
}

// parsers say where a text does not fit its format; "" = it does.
var parsers = map[string]func([]byte) string{
	".go": goFault, ".json": jsonFault, ".ipynb": jsonFault, ".webmanifest": jsonFault,
	".xml": xmlFault, ".svg": xmlFault, ".xsd": xmlFault, ".csproj": xmlFault, ".plist": xmlFault,
}

func goFault(b []byte) string {
	_, err := parser.ParseFile(token.NewFileSet(), "", b, parser.SkipObjectResolution)
	if err == nil {
		return ""
	}
	if list, ok := errors.AsType[scanner.ErrorList](err); ok && len(list) > 0 {
		return clip(fmt.Sprintf("line %d: %s", list[0].Pos.Line, list[0].Msg))
	}
	return clip(err.Error())
}

func jsonFault(b []byte) string {
	b = bytes.TrimPrefix(b, mark)
	var v json.RawMessage
	err := json.Unmarshal(b, &v)
	if err == nil {
		return ""
	}
	if se, ok := errors.AsType[*json.SyntaxError](err); ok {
		at := min(max(se.Offset, 0), int64(len(b)))
		return clip(fmt.Sprintf("line %d: %s", bytes.Count(b[:at], []byte("\n"))+1, se.Error()))
	}
	return clip(err.Error())
}

func xmlFault(b []byte) string {
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(b, mark)))
	d.Entity = xml.HTMLEntity
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // only its structure counts
	for {
		_, err := d.Token()
		switch se, ok := errors.AsType[*xml.SyntaxError](err); {
		case err == io.EOF:
			return ""
		case ok:
			return clip(fmt.Sprintf("line %d: %s", se.Line, se.Msg))
		case err != nil:
			return clip(err.Error())
		}
	}
}

// clip bounds what a parser says: it quotes the file. It is one line.
func clip(s string) string {
	const most = 200
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}
