package shell

import (
	"path"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"dure/internal/safety/shell/programs"
)

// redirections are what those of one command come to.
type redirections struct {
	state   *state
	input   bool   // one of them is what the command reads as its input
	script  string // the text that it reads, if that is in the command line
	known   bool   // script is all that it reads
	lasting bool   // exec made them those of the shell
}

// redirects follows the redirections of a command.
func (w *walker) redirects(st *state, rs []*syntax.Redirect) *redirections {
	in := &redirections{state: st}
	for _, r := range rs {
		w.redirect(in, r)
	}
	return in
}

func (w *walker) redirect(in *redirections, r *syntax.Redirect) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		w.differs("{fd}>")
		name, _, sub := strings.Cut(strings.Trim(r.N.Value, "{}"), "[")
		if sub {
			w.unreadable("which variable " + r.N.Value + " is")
		}
		in.state = w.assign(in.state, name, "", value{kind: digits}, false)
	}
	reads := r.N == nil || r.N.Value == "0"
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		w.hereDocument(in, r, reads)
	case syntax.WordHdoc:
		w.differs("<<<")
		text, _, known := w.value(in.state, r.Word)
		if reads {
			in.input, in.script, in.known = true, text, known
			w.told = append(w.told, text)
			w.piped = true
		}
	case syntax.RdrIn:
		w.readFrom(in, r, reads)
	case syntax.RdrInOut:
		w.target(in.state, r, true, true)
		w.piped = w.piped || reads
	case syntax.DplIn:
		w.closing(r)
		text, _, known := w.value(in.state, r.Word)
		if reads {
			in.input, in.known = true, false
			w.piped = text != "-" || !known
		}
		if !known || !isNumber(strings.TrimSuffix(text, "-")) && text != "-" {
			w.unreadable("what " + r.Op.String() + w.written(r.Word) + " reads")
		}
	case syntax.DplOut:
		w.closing(r)
		text, _, known := w.value(in.state, r.Word)
		if r.N != nil && reads { // 0>&1
			in.input, w.piped = true, true
		}
		if known && (isNumber(strings.TrimSuffix(text, "-")) || text == "-") {
			return
		}
		w.differs(">&")
		w.target(in.state, r, false, true)
	default: // > >> >| &> &>>
		if r.Op == syntax.RdrAll || r.Op == syntax.AppAll {
			w.differs("&>")
		}
		w.target(in.state, r, false, true)
	}
}

// closing looks for >&- with more behind it: bash ends the redirection there, and
// takes the rest for a word of its own.
func (w *walker) closing(r *syntax.Redirect) {
	if text := w.written(r.Word); len(text) > 1 && text[0] == '-' {
		w.unparsed("where a redirection in it ends is doubtful")
	}
}

func (w *walker) hereDocument(in *redirections, r *syntax.Redirect, reads bool) {
	if r.Hdoc != nil && !quotedWord(r.Word) {
		text := w.written(r.Hdoc)
		text = text[:max(strings.LastIndexByte(text, '\n'), 0)] // without the line that ends it
		if stop, _, _ := w.value(in.state, r.Word); hasLine(text, stop) ||
			strings.Contains(text, "\\\n") && (strings.Contains(text, "$(") || strings.Contains(text, "`")) {
			w.unparsed("where a here-document in it ends is doubtful")
		}
		for _, p := range r.Hdoc.Parts {
			if _, ok := p.(*syntax.Lit); !ok {
				f := field{w: w, st: in.state, from: r.Hdoc, into: &argv{}}
				f.quoted(p)
			}
		}
	}
	if reads {
		in.input = true
		in.script, in.known = w.document(in.state, r)
		w.told = append(w.told, in.script)
		w.piped = true
	}
}

// hasLine says whether a line of a text is the given one, leading tabs aside.
func hasLine(text, line string) bool {
	for l := range strings.SplitSeq(text, "\n") {
		if strings.TrimLeft(l, "\t") == line {
			return line != "" || l != text
		}
	}
	return false
}

func (w *walker) readFrom(in *redirections, r *syntax.Redirect, reads bool) {
	stream := w.target(in.state, r, true, false)
	if reads {
		in.input, in.known = true, false
		w.piped = stream
	}
}

// target notes the file or host that a redirection names. It says whether that is
// something whose content nobody knows beforehand.
func (w *walker) target(st *state, r *syntax.Redirect, reads, writes bool) (stream bool) {
	var a argv
	w.word(st, r.Word, &a)
	if len(a.list) != 1 || !a.list[0].Known || a.mark(0)&pattern != 0 {
		w.unreadable("the target of " + r.Op.String() + w.written(r.Word))
		return true
	}
	text := a.list[0].Text
	if a.mark(0)&(pipeIn|pipeOut) != 0 {
		return true
	}
	if host, ok := socket(text); ok {
		w.differs(text)
		if !w.remote {
			w.eff.Hosts = append(w.eff.Hosts, host)
		}
		return true
	}
	if text == "" {
		return false // it fails
	}
	if reads {
		w.eff.Reads = append(w.eff.Reads, w.led(w.touch(st, nil, text), nil)...)
	}
	if writes {
		if programs.DiskDevice(text) {
			w.destroys("what is on " + text)
		}
		n := len(w.eff.Writes)
		w.eff.Writes = append(w.eff.Writes, w.led(w.touch(st, nil, text), nil)...)
		w.changed = append(w.changed, w.eff.Writes[n:]...)
	}
	return device(text) && text != "/dev/null" && text != "/dev/zero"
}

// socket returns the host of bash's /dev/tcp/host/port.
func socket(p string) (string, bool) {
	rest, ok := strings.CutPrefix(p, "/dev/tcp/")
	if !ok {
		rest, ok = strings.CutPrefix(p, "/dev/udp/")
	}
	if !ok {
		return "", false
	}
	host, port, ok := strings.Cut(rest, "/")
	if !ok || host == "" {
		return "", false
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port, true
}

// device says whether a path is one of the descriptors of the process, or takes
// everything and keeps nothing.
func device(p string) bool {
	switch p {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero":
		return true
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if n, ok := strings.CutPrefix(p, dir); ok && isNumber(n) {
			return true
		}
	}
	return false
}

// touch adds where a path leads to a list.
func (w *walker) touch(st *state, to []string, p string) []string {
	if w.remote || p == "" || device(p) {
		return to
	}
	if device(path.Clean(p)) && !strings.Contains(p, "..") {
		return to
	}
	at := st.under(p)
	if at == nil {
		w.unreadable("in which folder " + p + " is")
		return to
	}
	w.through(st, p)
	for _, p := range at {
		to = append(to, filepath.FromSlash(p))
	}
	return to
}

// through notes the folders that a path leaves by "..": one that is a link leads
// elsewhere than the text says.
func (w *walker) through(st *state, p string) {
	for i := 0; ; {
		k := strings.Index(p[i:], "/..")
		if k < 0 {
			return
		}
		i += k
		end := i + len("/..")
		if end < len(p) && p[end] != '/' {
			i = end
			continue
		}
		if head := path.Clean(p[:i]); p[:i] != "" && head != ".." && !strings.HasSuffix(head, "/..") && head != "." && head != "/" {
			for _, at := range st.under(head) {
				w.passed = append(w.passed, filepath.FromSlash(at))
			}
		}
		i = end
	}
}
