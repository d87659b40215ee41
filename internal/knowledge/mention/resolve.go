package mention

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"dure/internal/safety/workspace"
)

// Limits of what is attached, unless Config says otherwise.
const (
	MaxFile    = 32 << 10  // bytes of one file
	MaxTotal   = 128 << 10 // bytes of all files of one text
	MaxEntries = 200       // of a folder
	maxRead    = 4 << 20   // bytes of a file that are read to find lines in it
	maxPlaces  = 3         // of a symbol
)

// Why something is not attached.
const (
	Missing    = "missing"    // there is nothing of that name
	Outside    = "outside"    // it is not in the workspace, or a link leads out of it
	Secret     = "secret"     // it may hold credentials
	Denied     = "denied"     // a rule keeps it from being read
	Binary     = "binary"     // it is not text, and no picture or document
	NoLines    = "no-lines"   // it has fewer lines
	Full       = "full"       // the texts that are attached are too many
	Unreadable = "unreadable" // the system does not let it be read
)

// An Attachment is what became of a mention.
type Attachment struct {
	Mention
	Path      string `json:"path,omitempty"`  // below the root, with slashes
	Bytes     int    `json:"bytes,omitempty"` // of Text
	Chars     int    `json:"chars,omitempty"`
	Truncated bool   `json:"truncated,omitempty"` // Text is the beginning
	Refused   string `json:"refused,omitempty"`   // why it is not attached; "" = it is

	// Media is the type of a picture or document, which the caller attaches.
	Media string `json:"media,omitempty"`
	Text  string `json:"-"`
}

// A Place is where a symbol is declared: lines of a file below the root, with slashes.
type Place struct {
	Path        string
	First, Last int
}

// Config says how to reach the workspace. Paths are absolute.
type Config struct {
	Root string // required; a folder

	// Required. Read returns the first limit bytes of a regular file, and whether
	// there are more.
	Real    func(path string) (string, error) // follows every link
	Stat    func(path string) (fs.FileInfo, error)
	Read    func(path string, limit int) (data []byte, more bool, err error)
	ReadDir func(path string) ([]fs.DirEntry, error)

	Ignored func(path string) bool     // by the repository; nil = nothing is
	Secret  func(path string) bool     // nil = nothing is
	Find    func(name string) []string // paths of files by their last element; nil = bare names stand for files in Root only

	// Denied reports whether a rule keeps a path from being read; explicit says that a
	// person has written it with an @, and no file. nil = none does.
	Denied func(path string, explicit bool) bool

	// Symbols returns where a symbol is declared, by the first of its names that is; nil =
	// symbols are named only. Session describes a session; nil = likewise.
	Symbols func(names []string) []Place
	Session func(id string) (text string, ok bool)

	// Resource returns the first of the readings of a mention of a resource that there is,
	// or why it is not to be read; foreign says that no person has written it. nil = there
	// are none.
	Resource func(readings []string, foreign bool) (name, refused string)

	// Clean makes text fit to be shown to a model, or says why it must not be; nil = it
	// is as it is.
	Clean func(text string) (string, error)

	File, Total, Entries int // limits; 0 = the defaults
}

// Resolve returns what mentions stand for, in their order. A bare name of which it is
// not certain what it means is left out. What is named twice is attached once.
// Those with @ come first when there is not room for all.
func Resolve(ctx context.Context, c Config, mentions []Mention) ([]Attachment, error) {
	if !filepath.IsAbs(c.Root) || c.Real == nil || c.Stat == nil || c.Read == nil || c.ReadDir == nil {
		return nil, errors.New("resolving mentions: no access to files")
	}
	root, err := c.Real(c.Root)
	if err != nil {
		return nil, fmt.Errorf("resolving mentions: %w", err)
	}
	for limit, d := range map[*int]int{&c.File: MaxFile, &c.Total: MaxTotal, &c.Entries: MaxEntries} {
		if *limit <= 0 {
			*limit = d
		}
	}
	r := resolver{Config: c, root: root, left: c.Total, seen: map[string]bool{}}
	for _, explicit := range []bool{true, false} {
		for _, m := range mentions[:min(len(mentions), maxMentions)] {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if m.Explicit == explicit {
				r.resolve(m)
			}
		}
	}
	slices.SortStableFunc(r.done, func(a, b Attachment) int { return a.start - b.start })
	return r.done, nil
}

type resolver struct {
	Config
	root string
	left int
	seen map[string]bool
	done []Attachment

	foreign bool // the mention that is resolved is
}

func (r *resolver) resolve(m Mention) {
	r.foreign = m.Foreign
	if m.Kind != Path {
		r.other(m)
		return
	}
	why := Missing
	for _, name := range append([]string{m.Name}, m.others...) {
		full, info, refused := r.locate(name, m.Explicit)
		if refused == "" {
			m.Name = name
			r.attach(Attachment{Mention: m}, full, info)
			return
		}
		if why == Missing {
			why = refused
		}
	}
	for _, part := range m.parts {
		part.Foreign = m.Foreign
		r.resolve(part)
	}
	switch {
	case !m.Explicit:
	case why == Missing && symbolPattern().MatchString(m.Name) && m.First == 0:
		m.Kind, m.others = Symbol, readings(m.Name)
		r.other(m)
	default:
		r.add(Attachment{Mention: m, Refused: why})
	}
}

// other resolves what is no path.
func (r *resolver) other(m Mention) {
	a := Attachment{Mention: m}
	switch {
	case m.Kind == Symbol && r.Symbols != nil:
		places := r.Symbols(append([]string{m.Name}, m.others...))
		if len(places) == 0 {
			a.Refused = Missing
			break
		}
		for _, p := range places[:min(len(places), maxPlaces)] {
			r.place(m, p)
		}
		return
	case m.Kind == Resource && r.Resource != nil:
		if name, why := r.Resource(append([]string{m.Name}, m.others...), m.Foreign); why != "" {
			a.Refused = why
		} else {
			a.Name = name
		}
	case m.Kind == Resource:
		a.Refused = Missing
	case m.Kind == Session && m.Foreign:
		a.Refused = Denied
	case m.Kind == Session && r.Session != nil:
		text, ok := r.Session(m.Name)
		if a.Text = text; !ok {
			a.Refused = Missing
			break
		}
		r.clean(&a)
	}
	r.add(a)
}

// place attaches the lines that declare a symbol.
func (r *resolver) place(m Mention, p Place) {
	full, info, refused := r.look(filepath.Join(r.root, filepath.FromSlash(p.Path)), m.Explicit)
	if refused != "" {
		r.add(Attachment{Mention: m, Refused: refused})
		return
	}
	m.First, m.Last = max(p.First, 1), max(p.Last, p.First, 1)
	r.attach(Attachment{Mention: m}, full, info)
}

// clean makes the text of an attachment fit to be shown, and short enough.
func (r *resolver) clean(a *Attachment) {
	if r.Clean != nil {
		text, err := r.Clean(a.Text)
		if err != nil {
			a.Text, a.Refused = "", Unreadable
			return
		}
		a.Text = text
	}
	r.fit(a)
}

func (r *resolver) add(a Attachment) {
	key := fmt.Sprint(a.Kind, "\x00", a.Path, "\x00", a.First, "\x00", a.Last)
	if a.Path == "" {
		key += "\x00" + a.Name
	}
	if !r.seen[key] {
		r.seen[key] = true
		r.done = append(r.done, a)
	}
}

// locate returns where a name leads in the workspace.
func (r *resolver) locate(name string, explicit bool) (full string, info fs.FileInfo, refused string) {
	if strings.ContainsRune(name, 0) || strings.HasPrefix(name, "~") {
		return "", nil, Outside
	}
	full = filepath.FromSlash(name)
	if !filepath.IsAbs(full) {
		full = filepath.Join(r.Root, full)
	}
	full, info, refused = r.look(filepath.Clean(full), explicit)
	if refused != Missing || r.Find == nil || explicit || strings.ContainsAny(name, `/\`) {
		return full, info, refused
	}
	if found := r.Find(name); len(found) == 1 {
		return r.look(filepath.Clean(found[0]), explicit)
	}
	return "", nil, Missing
}

// look describes what is at a path, if it lies in the workspace before and after its
// links are followed. It tells nothing of what lies elsewhere.
func (r *resolver) look(full string, explicit bool) (string, fs.FileInfo, string) {
	if !within(r.Root, full) && !within(r.root, full) {
		return "", nil, Outside
	}
	if why := r.kept(full, explicit); why != "" {
		return "", nil, why
	}
	real, err := r.Real(full)
	if err != nil {
		return "", nil, Missing
	}
	if !within(r.root, real) {
		return "", nil, Outside
	}
	if why := r.kept(real, explicit); why != "" {
		return "", nil, why
	}
	info, err := r.Stat(real)
	if err != nil {
		return "", nil, Missing
	}
	return real, info, ""
}

// kept says why a path is not to be read; "" = it may be.
func (r *resolver) kept(path string, explicit bool) string {
	switch {
	case r.Secret != nil && r.Secret(path):
		return Secret
	case r.Denied != nil && r.Denied(path, explicit && !r.foreign):
		return Denied
	}
	return ""
}

func within(top, p string) bool {
	rel, err := filepath.Rel(top, p)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// media are the types that the caller attaches as they are.
var media = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".pdf": "application/pdf",
}

// attach reads a file or a folder that was found.
func (r *resolver) attach(a Attachment, real string, info fs.FileInfo) {
	rel, _ := filepath.Rel(r.root, real)
	a.Path = filepath.ToSlash(rel)
	if !a.Explicit && (info.IsDir() || r.Ignored != nil && r.Ignored(real)) {
		return
	}
	if info.IsDir() {
		a.Kind, a.First, a.Last = Folder, 0, 0
	}
	if r.seen[fmt.Sprint(a.Kind, "\x00", a.Path, "\x00", a.First, "\x00", a.Last)] {
		return
	}
	switch a.Media = media[strings.ToLower(filepath.Ext(real))]; {
	case info.IsDir():
		a.Media = ""
		r.listing(&a, real)
	case !info.Mode().IsRegular():
		a.Media, a.Refused = "", Unreadable
	case a.Media == "":
		r.file(&a, real)
	}
	if a.Refused == "" && a.Media == "" {
		r.clean(&a)
	}
	r.add(a)
}

// file reads the lines of a file that are wanted.
func (r *resolver) file(a *Attachment, real string) {
	limit := r.File + 1
	if a.First > 0 {
		limit = maxRead
	}
	data, more, err := r.Read(real, limit)
	if err != nil {
		a.Refused = Unreadable
		return
	}
	if more {
		if n := bytes.LastIndexByte(data, '\n'); n > 0 {
			data = data[:n+1]
		}
		for i := 0; i < utf8.UTFMax && !utf8.Valid(data) && len(data) > 0 && utf8.Valid(data[:len(data)-1-i]); i++ {
			data = data[:len(data)-1-i]
		}
	}
	t, err := workspace.DecodeText(data)
	if err != nil || t.Damaged || strings.ContainsRune(t.Content, 0) {
		a.Refused = Binary
		return
	}
	a.Text, a.Truncated = t.Content, more
	if a.First > 0 {
		var whole bool
		a.Text, whole = cutLines(t.Content, a.First, a.Last)
		a.Truncated = more && !whole
		if a.Text == "" {
			a.Refused = NoLines
		}
	}
}

// cutLines returns lines first to last of a text, and whether it has the last.
func cutLines(text string, first, last int) (string, bool) {
	start, n := 0, 1
	for i := range len(text) {
		if text[i] != '\n' {
			continue
		}
		if n++; n == first {
			start = i + 1
		}
		if n == last+1 {
			return text[start : i+1], true
		}
	}
	if n < first {
		return "", false
	}
	return text[start:], n == last
}

// listing names what is in a folder, folders with a slash, without what is ignored
// or secret.
func (r *resolver) listing(a *Attachment, real string) {
	entries, err := r.ReadDir(real)
	if err != nil {
		a.Refused = Unreadable
		return
	}
	var names []string
	for _, e := range entries {
		full := filepath.Join(real, e.Name())
		if r.Ignored != nil && r.Ignored(full) || r.kept(full, a.Explicit) != "" {
			continue
		}
		if len(names) == r.Entries {
			a.Truncated = true
			break
		}
		name := strings.Map(func(c rune) rune {
			if c < ' ' || c == 0x7f {
				return '?'
			}
			return c
		}, e.Name())
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	a.Text = strings.Join(names, "\n")
}

// fit shortens a text to what there is room for.
func (r *resolver) fit(a *Attachment) {
	limit := min(r.File, r.left)
	if len(a.Text) > limit {
		if r.left < r.File && r.left < 1024 {
			a.Text, a.Refused = "", Full
			return
		}
		cut := a.Text[:limit]
		for !utf8.ValidString(cut) && cut != "" {
			cut = cut[:len(cut)-1]
		}
		if n := strings.LastIndexByte(cut, '\n'); n > 0 {
			cut = cut[:n+1]
		}
		a.Text, a.Truncated = cut, true
	}
	a.Bytes, a.Chars = len(a.Text), utf8.RuneCountInString(a.Text)
	r.left -= a.Bytes
}

var labels = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)<(\s*/?\s*attached\b)`) })

// Render returns the texts of attachments between labels, as data for a model.
func Render(attachments []Attachment) string {
	var b strings.Builder
	for _, a := range attachments {
		what, name := "file", path.Clean(a.Path)
		switch a.Kind {
		case Folder:
			what = "folder"
		case Session:
			what, name = "session", a.Name
		case Resource:
			what, name = "resource", a.Name
		}
		if a.Refused != "" || a.Media != "" || a.Path == "" && a.Text == "" {
			continue
		}
		fmt.Fprintf(&b, "<attached %s=\"%s\"", what, quote(name))
		if a.First > 0 {
			fmt.Fprintf(&b, " lines=\"%d-%d\"", a.First, a.Last)
		}
		if a.Truncated {
			b.WriteString(" truncated=\"true\"")
		}
		fmt.Fprintf(&b, ">\n%s\n</attached>\n", labels().ReplaceAllString(strings.TrimRight(a.Text, "\n"), "&lt;$1"))
	}
	return b.String()
}

// Notes returns what a model should know of mentions of which it reads no text, as a
// list between labels: "" = there is none. reason puts a state into words.
func Notes(attachments []Attachment, reason func(Attachment) string) string {
	var b strings.Builder
	for _, a := range attachments {
		if why := reason(a); why != "" {
			fmt.Fprintf(&b, "- %s \"%s\": %s\n", a.Kind, quote(a.Name), why)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "<attached-notes>\n" + b.String() + "</attached-notes>\n"
}

// quote is a path as the value of an attribute.
func quote(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
	return strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;").Replace(s)
}
