package files

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

//go:embed read.md
var readText string

// Limits of one page.
const (
	readBudget = 12_000   // characters of a result
	readBody   = 11_500   // of it for lines; the rest is for remarks
	readLines  = 2_000    // lines, unless the call says fewer
	readLine   = 2_000    // characters of one line
	readAhead  = 64 << 20 // bytes behind the page in which lines are counted; then they are estimated
	lineBytes  = readLine * utf8.UTFMax
)

type readInput struct {
	Path     string    `json:"file_path"`
	Offset   kit.Whole `json:"offset"`
	Limit    kit.Whole `json:"limit"`
	MaxBytes kit.Whole `json:"max_bytes"`
	Encoding string    `json:"encoding"`
	Pages    string    `json:"pages"`
}

func (f *files) read() agent.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name:        "file-system__read",
			Description: kit.Describe(readText),
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"file_path":{"type":"string"},` +
				`"offset":{"type":"integer","minimum":0,"description":"first line, from 1"},` +
				`"limit":{"type":"integer","minimum":1,"description":"lines"},` +
				`"max_bytes":{"type":"integer","minimum":1},` +
				`"encoding":{"type":"string"},` +
				`"pages":{"type":"string","description":"of a PDF: \"1-5,8\", at most 20"}},` +
				`"required":["file_path"],"additionalProperties":false}`),
			Class: agent.Read, Group: "files", Risk: agent.RiskLow, Limit: fileLimit, Budget: readBudget,
			Aliases: map[string]string{
				"path": "file_path", "file": "file_path", "filePath": "file_path", "filename": "file_path",
				"maxBytes": "max_bytes", "start_line": "offset",
			},
		},
		Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
			in, err := kit.Decode[readInput](c)
			if err != nil || strings.HasPrefix(in.Path, handlePrefix) {
				return agent.Effects{}, err
			}
			path, err := f.pin(tc, c, in.Path)
			return agent.Effects{Reads: []string{path}}, err
		},
		Does: f.runRead,
	}
}

func (f *files) runRead(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
	in, err := kit.Decode[readInput](c)
	if err != nil {
		return agent.Result{}, err
	}
	v, err := f.view(ctx, tc, c, in)
	if err != nil {
		return agent.Result{}, err
	}
	r := agent.OK(v.text)
	r.Blocks, r.Output = v.blocks, v.output
	r.Files = v.files
	return r, nil
}

// view is what a call shows of one file.
type view struct {
	text   string
	blocks []agent.Block // images and documents
	output json.RawMessage
	files  []agent.FileState
	more   bool // there was no room for all of what was asked for
}

// view shows a file, and remembers that the session has seen it.
func (f *files) view(ctx context.Context, tc agent.ToolContext, c agent.Call, in readInput) (*view, error) {
	path, handle, err := f.spilled(in.Path)
	if err != nil {
		return nil, err
	}
	name, fsys := in.Path, workspace.FS(f.Workspace)
	if !handle {
		fsys = f.FS
		if name, path, err = f.arrive(tc, c, in.Path); err != nil {
			return nil, err
		}
	}
	v, state, err := f.showFile(ctx, fsys, name, path, in)
	if err != nil {
		if be, ok := errors.AsType[*binaryError](err); ok {
			return nil, kit.Refuse(ErrFileBinary, kit.Name(name)+" is "+be.kind()+" and cannot be shown as text", "Use a command that understands its format.")
		}
		return nil, f.explain(tc, name, err)
	}
	if !handle {
		f.Tracker.Saw(path, state)
		v.files = []agent.FileState{{Path: path, SHA256: state.SHA256}}
	}
	return v, nil
}

// showFile opens a file and shows it as what it is.
func (f *files) showFile(ctx context.Context, fsys workspace.FS, name, path string, in readInput) (*view, workspace.State, error) {
	var none workspace.State
	enc, ok := workspace.EncodingNamed(in.Encoding)
	if in.Encoding != "" && !ok {
		return nil, none, kit.Refuse(agent.ErrInput, "the encoding "+kit.Quote(in.Encoding, 40)+" is not known", "Leave it out, or use one of "+strings.Join(workspace.EncodingNames(), ", ")+".")
	}
	file, err := fsys.Open(path)
	if err != nil {
		return nil, none, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, none, err
	}
	head := make([]byte, 16)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, none, err
	}
	all := io.MultiReader(bytes.NewReader(head[:n]), file)
	if enc == "" {
		if show, most := f.formOf(head[:n], name); show != nil {
			data, err := io.ReadAll(io.LimitReader(all, most+1))
			if err != nil {
				return nil, none, err
			}
			state := workspace.StateOf(info, data)
			if int64(len(data)) > most {
				return nil, none, kit.Refuse(ErrFileLarge, fmt.Sprintf("%s is larger than %d MiB", kit.Name(name), most>>20), "Use a command that understands its format.")
			}
			v, err := show(ctx, name, data, in)
			if !errors.Is(err, errNotThis) {
				return v, state, err
			}
			all = bytes.NewReader(data)
		}
	}
	if in.Pages != "" {
		return nil, none, kit.Refuse(agent.ErrInput, kit.Name(name)+" is no PDF, and has no pages", "Use offset and limit.")
	}
	p, state, err := readPage(ctx, all, info, enc, in)
	if err != nil {
		return nil, none, err
	}
	v, err := p.view(name)
	if err == nil {
		v.output = p.output(name)
	}
	return v, state, err
}

// errNotThis is a file that is not what it looks like: it is text, or nothing.
var errNotThis = errors.New("not of this form")

// show makes a view of a file whose whole content is data.
type show func(ctx context.Context, name string, data []byte, in readInput) (*view, error)

// formOf returns how a file that is more than text is shown, and how large it
// may be: images and PDF by their first bytes, notebooks by their name.
func (f *files) formOf(head []byte, name string) (how show, most int64) {
	switch {
	case imageType(head) != "":
		return f.showImage, maxImage
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return f.showPDF, maxPDF
	case strings.EqualFold(filepath.Ext(name), ".ipynb"):
		return f.showNotebook, workspace.MaxText
	}
	return nil, 0
}

// readPage reads the lines that a call asks for, and the state of the file.
func readPage(ctx context.Context, file io.Reader, info fs.FileInfo, enc workspace.Encoding, in readInput) (*page, workspace.State, error) {
	// What fits is read at once: the state of the file is then that of what was
	// shown. Some files do not tell their size.
	data, err := io.ReadAll(io.LimitReader(file, min(max(info.Size(), 0), workspace.MaxText)+1))
	if err != nil {
		return nil, workspace.State{}, err
	}
	state := workspace.State{Size: info.Size(), ModTime: info.ModTime()}
	raw := &counter{r: io.MultiReader(bytes.NewReader(data), file)}
	var text *workspace.TextReader
	damaged := false
	if int64(len(data)) <= info.Size() && len(data) <= workspace.MaxText {
		state = workspace.StateOf(info, data)
		t, err := workspace.DecodeTextAs(data, enc)
		if err != nil {
			return nil, state, asBinary(err, data, info.Size())
		}
		text = &workspace.TextReader{Reader: strings.NewReader(t.Content), Encoding: t.Encoding}
		damaged = t.Damaged && t.Encoding != workspace.UTF8 // there each page tells
	} else {
		text = &workspace.TextReader{}
		if err := text.ResetAs(raw, enc); err != nil {
			return nil, state, asBinary(err, data, info.Size())
		}
	}
	p := newPage(in, text.Encoding)
	p.invalid, p.told = damaged, enc != ""
	if err := p.fill(ctx, text, raw, info.Size()); err != nil {
		return nil, state, err
	}
	return p, state, nil
}

// pageOf shows a part of a text that was made of a file, without line numbers.
func pageOf(ctx context.Context, text string, in readInput) (*page, error) {
	p := newPage(in, workspace.UTF8)
	p.bare = true
	return p, p.fill(ctx, strings.NewReader(text), &counter{}, int64(len(text)))
}

// view is the page as the model reads it.
func (p *page) view(name string) (*view, error) {
	if p.first > 1 && p.shown == 0 {
		return nil, kit.Refuse(agent.ErrInput,
			fmt.Sprintf("%s has %s; offset %d is behind its end", kit.Name(name), plural(p.total, "line"), p.first), "Use a smaller offset.")
	}
	return &view{text: p.result(), more: p.cut}, nil
}

// counter counts what is read through it.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// page is a part of a file.
type page struct {
	first, limit, room int // what was asked for: line, lines, characters

	shown    int // lines
	total    int // lines of the file
	about    bool
	bare     bool            // show no line numbers
	told     bool            // the call named the encoding
	cut      bool            // a line was left out for lack of room
	plain    strings.Builder // the lines
	numbered strings.Builder // the lines with their numbers
	enc      workspace.Encoding
	invalid  bool
}

func newPage(in readInput, enc workspace.Encoding) *page {
	p := &page{first: max(int(in.Offset), 1), limit: readLines, room: readBody, enc: enc}
	if in.Limit > 0 {
		p.limit = min(int(in.Limit), readLines)
	}
	if in.MaxBytes > 0 {
		p.room = min(int(in.MaxBytes), readBody)
	}
	return p
}

// fill reads the page from text, and counts the lines behind it. Raw counts the
// bytes of the file that have been read, of size.
func (p *page) fill(ctx context.Context, text io.Reader, raw *counter, size int64) error {
	b := bufio.NewReaderSize(text, 64<<10)
	line, dropped, err := make([]byte, 0, 256), 0, error(nil)
	for full := false; !full; {
		if p.total%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, dropped, err = readLineOf(ctx, b, line[:0])
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil && len(line) == 0 {
			return nil
		}
		p.total++
		if p.total >= p.first {
			full = !p.add(line, dropped)
		}
		if err != nil {
			return nil
		}
	}
	return p.count(ctx, b, raw, size)
}

// readLineOf appends the next line to dst, as far as a page may show it, with
// its end, and says how many bytes were dropped. The error is io.EOF when the
// line has no end.
func readLineOf(ctx context.Context, b *bufio.Reader, dst []byte) (line []byte, dropped int, err error) {
	for {
		piece, err := b.ReadSlice('\n')
		keep := min(len(piece), lineBytes-len(dst))
		dst = append(dst, piece[:keep]...)
		dropped += len(piece) - keep
		if !errors.Is(err, bufio.ErrBufferFull) {
			return dst, dropped, err
		}
		if ctx.Err() != nil {
			return dst, dropped, ctx.Err()
		}
	}
}

// add appends a line to the page. It reports false when there is no room for it.
func (p *page) add(line []byte, dropped int) bool {
	s := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
	if !utf8.ValidString(s) {
		if dropped > 0 {
			s = s[:len(s)-incomplete(s)]
		}
		valid := strings.ToValidUTF8(s, "\uFFFD")
		p.invalid = p.invalid || valid != s
		s = valid
	}
	chars := utf8.RuneCountInString(s)
	if chars > readLine || dropped > 0 {
		at := 0
		for range min(readLine, chars) {
			_, n := utf8.DecodeRuneInString(s[at:])
			at += n
		}
		s = fmt.Sprintf("%s… [%d more bytes in this line]", s[:at], len(s)-at+dropped)
		chars = utf8.RuneCountInString(s)
	}
	number := ""
	if !p.bare {
		number = fmt.Sprintf("%d\t", p.total)
	}
	need := chars + len(number) + 1
	if p.shown == p.limit {
		return false
	}
	if p.shown > 0 && need > p.room {
		p.cut = true
		return false
	}
	if p.shown++; p.shown > 1 {
		p.plain.WriteByte('\n')
		p.numbered.WriteByte('\n')
	}
	p.plain.WriteString(s)
	p.numbered.WriteString(number + s)
	p.room -= need
	return true
}

// incomplete returns how many bytes at the end of s begin a character.
func incomplete(s string) int {
	for i := 1; i <= min(utf8.UTFMax, len(s)); i++ {
		if utf8.RuneStart(s[len(s)-i]) {
			if !utf8.FullRuneInString(s[len(s)-i:]) {
				return i
			}
			break
		}
	}
	return 0
}

// count counts the lines behind the page. Of a file that is too large for that
// it estimates them by what has been seen.
func (p *page) count(ctx context.Context, r io.Reader, raw *counter, size int64) error {
	buf := make([]byte, 256<<10)
	last := byte('\n')
	for seen := 0; seen < readAhead; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(buf)
		p.total += bytes.Count(buf[:n], []byte("\n"))
		if n > 0 {
			last = buf[n-1]
		}
		seen += n
		if errors.Is(err, io.EOF) {
			if last != '\n' {
				p.total++
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
	if raw.n > 0 && size > raw.n {
		p.total = int(float64(p.total) * float64(size) / float64(raw.n))
	}
	p.about = true
	return nil
}

// result is the page as the model reads it.
func (p *page) result() string {
	var notes []string
	if end := p.first + p.shown - 1; p.shown == 0 {
		notes = append(notes, "[the file is empty]")
	} else if end < p.total || p.first > 1 {
		total := fmt.Sprint(p.total)
		if p.about {
			total = "about " + total
		}
		note := fmt.Sprintf("[lines %d-%d of %s", p.first, end, total)
		if end < p.total {
			note += fmt.Sprintf("; continue with offset %d", end+1)
		}
		notes = append(notes, note+"]")
	}
	plain := p.enc == workspace.UTF8 || p.enc == workspace.UTF8Mark
	switch {
	case p.invalid && p.told:
		notes = append(notes, fmt.Sprintf("[what is not valid %s is shown as \uFFFD]", p.enc))
	case p.invalid && !plain:
		notes = append(notes, fmt.Sprintf("[the file is damaged %s: what is not valid is shown as \uFFFD, and it cannot be edited]", p.enc))
	case p.invalid:
		notes = append(notes, fmt.Sprintf("[bytes that are not valid %s are shown as \uFFFD]", workspace.UTF8))
	}
	if p.told && p.enc != workspace.UTF8 {
		notes = append(notes, fmt.Sprintf("[read as %s]", p.enc))
	} else if p.enc != workspace.UTF8 && (plain || !p.invalid) {
		notes = append(notes, fmt.Sprintf("[stored as %s; writes and edits keep that]", p.enc))
	}
	if len(notes) == 0 {
		return p.numbered.String()
	}
	if p.shown > 0 {
		p.numbered.WriteByte('\n')
	}
	return p.numbered.String() + strings.Join(notes, "\n")
}

// output is the page for hooks and hosts.
func (p *page) output(name string) json.RawMessage {
	type file struct {
		FilePath   string `json:"filePath"`
		Content    string `json:"content"`
		NumLines   int    `json:"numLines"`
		StartLine  int    `json:"startLine"`
		TotalLines int    `json:"totalLines"`
	}
	return kit.Structured(struct {
		Type string `json:"type"`
		File file   `json:"file"`
	}{"text", file{name, p.plain.String(), p.shown, p.first, p.total}})
}

// binaryError is a file that is not text.
type binaryError struct {
	head []byte
	size int64
}

func (e *binaryError) Error() string { return "not a text file" }

// asBinary replaces [workspace.ErrBinary].
func asBinary(err error, head []byte, size int64) error {
	if !errors.Is(err, workspace.ErrBinary) {
		return err
	}
	return &binaryError{head[:min(len(head), 16)], size}
}

// kind names the format of a file by its first bytes.
func (e *binaryError) kind() string {
	name := "a binary file"
	for _, k := range []struct{ magic, name string }{
		{"\x89PNG", "a PNG image"},
		{"\xff\xd8\xff", "a JPEG image"},
		{"GIF8", "a GIF image"},
		{"RIFF", "a RIFF file (a WebP image, sound or video)"},
		{"%PDF", "a PDF document"},
		{"PK\x03\x04", "a ZIP archive (or an office document)"},
		{"\x1f\x8b", "a gzip archive"},
		{"\x7fELF", "an ELF program"},
		{"SQLite format 3", "an SQLite database"},
	} {
		if strings.HasPrefix(string(e.head), k.magic) {
			name = k.name
		}
	}
	return fmt.Sprintf("%s of %d bytes", name, e.size)
}
