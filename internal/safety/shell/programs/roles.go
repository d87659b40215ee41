package programs

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// A role is what an argument means to the program that gets it.
type role uint8

const (
	roleNone        role = iota
	roleOK               // harmless
	roleAny              // harmless, also when it becomes several words
	roleOther            // known, and not harmless enough for a Kind
	roleChdir            // the folder that it works in
	rolePlace            // a file that is read, in the folder whose project it works on
	roleInner            // flags for a program that it starts
	roleVersion          // the version of a program, or its path
	roleAlone            // it prints about itself, or needs no operand
	roleRead             // a file or a folder that is read
	roleWrite            // one that is written
	roleChange           // one that is read and written
	roleRemove           // one that is removed
	roleList             // a file that names more files or flags
	roleHost             // a host, perhaps with a user and a port
	roleURL              // a URL, or a host
	roleRemote           // host:path, a URL, or a file of ours, that is read
	roleRemoteWrite      // one that is written
	roleRun              // a command line
	roleArgv             // the rest is a command
	roleCode             // a program in a language that is not read
	roleText             // a text in a language that is not read, mostly harmless
	roleDanger           // it lets the program do something else
	roleDestroy          // it destroys what is nobody's to destroy
)

// roleNames are the words of the tables.
var roleNames = [...]string{
	"none", "ok", "any", "other", "chdir", "place", "inner", "version", "alone", "read", "write", "change", "remove", "list", "host", "url", "remote",
	"remote-write", "run", "argv", "code", "text", "danger", "destroy",
}

// role notes what an argument means. flag is "" for an operand.
func (r *reading) role(as role, flag string, w Word) {
	switch as {
	case roleAny:
	case roleNone, roleOK:
		r.harmless(w)
	case roleOther, roleDanger:
		if as == roleDanger && flag == "" {
			r.flag("an operand")
		}
		r.odd = true
		r.harmless(w)
		if as == roleDanger {
			r.suspect(w.Text)
		}
	case roleChdir:
		r.odd = true
		if r.known(w) {
			r.dir = r.at(w.Text)
			r.use.Dir = r.dir
		}
	case rolePlace:
		r.odd = true
		r.reads(w)
		if w.Known {
			r.use.Dir = r.at(w.Text)
		}
	case roleVersion:
		r.odd = true
		if r.known(w) && strings.ContainsAny(w.Text, `/\`) {
			r.flag(flag)
		}
	case roleInner:
		r.odd = true
		if r.known(w) {
			r.inner(flag, w.Text)
		}
	case roleAlone:
		r.alone = true
		r.module = r.module || flag == "-m"
		r.harmless(w)
	case roleRead:
		r.reads(w)
	case roleWrite:
		r.writes(w)
	case roleChange:
		r.reads(w)
		r.writes(w)
	case roleRemove:
		r.removes(w)
	case roleList:
		r.odd = true
		r.reads(w)
	case roleHost:
		r.host(w)
	case roleURL:
		r.url(w)
	case roleRemote, roleRemoteWrite:
		r.remote(w, as == roleRemoteWrite)
	case roleRun:
		if w.Known && w.Text == "" {
			return
		}
		r.use.Scripts = append(r.use.Scripts, w)
		r.known(w)
	case roleCode:
		r.use.Flagged = "inline code"
		r.odd, r.alone = true, true
		r.hint(w.Text, false)
	case roleText:
		r.odd = true
		r.harmless(w)
		r.talk(w.Text)
	case roleDestroy:
		r.destroy(strings.TrimSpace(r.program + " " + flag))
	case roleArgv:
		r.runs([]Word{w})
	}
}

// innerFlags are those of compilers and linkers that only say how they work: what
// they leave out, and the values of variables.
var innerFlags = []string{
	"-s", "-w", "-X", "-v", "-N", "-l", "-m", "-S", "-W", "-D", "-A", "-F", "-I", "-H", "-g", "-O", "-c", "-p", "-d", "-std", "-live", "-race", "-dwarf",
	"-shared", "-static", "-pie", "-buildid", "-compressdwarf", "-linkmode", "-extldflags", "-spectre", "-trimpath",
}

// inner flags what is passed on to a program that is started, unless every flag in
// it is known. A pattern of packages may stand before the first.
func (r *reading) inner(flag, text string) {
	text = strings.NewReplacer("'", " ", `"`, " ").Replace(text)
	if _, after, ok := strings.Cut(text, "="); ok && !strings.HasPrefix(strings.TrimLeft(text, " "), "-") {
		text = after
	}
	for word := range strings.FieldsSeq(text) {
		if !strings.HasPrefix(word, "-") {
			continue
		}
		name, value, _ := strings.Cut("-"+strings.TrimLeft(word, "-"), "=")
		if name == "-extldflags" && strings.HasPrefix(value, "-") {
			name, _, _ = strings.Cut(value, "=")
		}
		if !slices.Contains(innerFlags, name) {
			r.flag(strings.TrimSpace(flag + " " + name))
		}
	}
}

func (r *reading) destroy(what string) {
	if r.use.Destructive == "" {
		r.use.Destructive = what
	}
}

// harmless notes a word that only matters when it may become several.
func (r *reading) harmless(w Word) {
	if !w.Known && !w.One {
		r.unreadable(w)
	}
}

// host notes a host: user@host, host:port, [::1]:80.
func (r *reading) host(w Word) {
	if !r.known(w) {
		return
	}
	h := w.Text[strings.LastIndexByte(w.Text, '@')+1:]
	if h != "" {
		r.use.Hosts = append(r.use.Hosts, h)
	}
}

// url notes the host of a URL, or the file that it names. What has no scheme is
// a host with a path.
func (r *reading) url(w Word) {
	if !r.known(w) || w.Text == "" {
		return
	}
	scheme, rest, ok := cutScheme(w.Text)
	if !ok {
		h, _, _ := strings.Cut(w.Text, "/")
		r.host(Word{Text: h, Known: true})
		return
	}
	if strings.EqualFold(scheme, "file") {
		r.reads(Word{Text: filePath(rest), Known: true})
		r.flag("file URL")
		return
	}
	r.authority(w, rest)
}

// authority notes the host and port of a URL, of which rest follows the scheme.
// Readers of URLs differ on a backslash: to some it ends the host, to others it
// belongs to the user's name.
func (r *reading) authority(w Word, rest string) {
	a := authority(rest)
	if before, _, _ := strings.Cut(rest, "/"); strings.IndexByte(before, '\\') >= 0 {
		r.unreadable(w)
		r.host(Word{Text: before, Known: true}) // what follows the last @
	}
	r.host(Word{Text: a, Known: true})
}

// cutScheme splits a URL after its scheme and the slashes.
func cutScheme(s string) (scheme, rest string, ok bool) {
	i := strings.Index(s, "://")
	if i <= 0 {
		if len(s) > 5 && strings.EqualFold(s[:5], "file:") {
			return "file", s[5:], true
		}
		return "", s, false
	}
	for _, c := range s[:i] {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.') {
			return "", s, false
		}
	}
	return s[:i], s[i+3:], true
}

// authority is the host and port of what follows a scheme.
func authority(rest string) string {
	if i := strings.IndexAny(rest, `/\?#`); i >= 0 {
		rest = rest[:i]
	}
	return rest[strings.LastIndexByte(rest, '@')+1:]
}

// filePath is the path of a file URL after its slashes; a host before it, which
// can only be this machine, is dropped.
func filePath(rest string) string {
	if i := strings.IndexByte(rest, '/'); i > 0 {
		rest = rest[i:]
	}
	if p, err := url.PathUnescape(rest); err == nil {
		return p
	}
	return rest
}

// remote notes host:path, or a file of ours. A colon counts only before the
// first slash, and not as that of a drive.
func (r *reading) remote(w Word, writes bool) {
	if !r.known(w) || w.Text == "" {
		return
	}
	if scheme, rest, ok := cutScheme(w.Text); ok {
		if strings.EqualFold(scheme, "file") {
			r.local(filePath(rest), writes)
			return
		}
		r.authority(w, rest)
		return
	}
	if h, ok := remoteHost(w.Text); ok {
		r.host(Word{Text: h, Known: true})
		return
	}
	r.local(w.Text, writes)
}

func (r *reading) local(p string, writes bool) {
	w := Word{Text: p, Known: true}
	if writes {
		r.writes(w)
		return
	}
	r.reads(w)
}

// remoteHost is the host of [user@]host:path. Brackets hold an IPv6 address.
func remoteHost(s string) (string, bool) {
	if at := strings.Index(s, "["); at >= 0 && (at == 0 || s[at-1] == '@') {
		if end := strings.Index(s, "]:"); end > at {
			return s[at : end+1], true
		}
	}
	colon := strings.IndexByte(s, ':')
	if colon <= 0 || strings.IndexByte(s[:colon], '/') >= 0 {
		return "", false
	}
	if colon == 1 && len(s) > 2 && s[2] == '\\' {
		return "", false
	}
	return s[:colon], true
}

// critical notes what is put to the user before it is removed, as far as the text
// alone tells: the root and what stands directly in it, the home folder, and what
// stands below a folder that is not known.
func (r *reading) critical(w Word) {
	if r.use.Critical != "" {
		return
	}
	if why := critical(w); why != "" {
		r.use.Critical = why
	}
}

func critical(w Word) string {
	t := strings.ReplaceAll(w.Text, "\\", "/")
	if !w.Known {
		t = strings.NewReplacer(`"`, "", `'`, "").Replace(w.Text)
		if strings.ContainsAny(t, "$`") && (strings.HasSuffix(t, "/") || strings.HasSuffix(t, "/*") ||
			strings.HasSuffix(t, "/.*") || strings.HasSuffix(t, "/{*,.*}")) {
			return "removes what is in " + w.Text
		}
	}
	switch {
	case t == "~" || strings.HasPrefix(t, "~") && strings.Trim(t[strings.IndexAny(t+"/", "/"):], "/.*") == "":
		return "removes a home folder"
	case t == "$HOME" || t == "${HOME}":
		return "removes the home folder"
	case len(t) >= 2 && t[1] == ':' && strings.Count(path.Clean("/"+t[2:]), "/") <= 1:
		return "removes a drive, or what stands directly in it"
	case !strings.HasPrefix(t, "/"):
		return ""
	}
	clean := path.Clean(t)
	if clean == "/" {
		return "removes the root folder"
	}
	if strings.IndexByte(clean[1:], '/') < 0 {
		return "removes " + clean + ", which stands directly in the root folder"
	}
	return ""
}
