package workspace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/korean"
	xunicode "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// MaxText is the size in bytes of the largest file that is held in memory: the
// limit for edits, and for comparing a write with what it replaces. Larger files
// can be read in pages.
const MaxText = 10 << 20

const (
	headSize   = 8 << 10  // what is looked at to tell text from binary
	detectSize = 64 << 10 // what is looked at to tell the encoding of a stream
)

// ErrBinary is content that is not text.
var ErrBinary = errors.New("not a text file")

// Encoding names how a text file stores its characters.
type Encoding string

// The encodings. Byte order marks belong to the encoding, not to the text.
const (
	UTF8        Encoding = "utf-8"
	UTF8Mark    Encoding = "utf-8 with byte order mark"
	UTF16LE     Encoding = "utf-16le"
	UTF16BE     Encoding = "utf-16be"
	EUCKR       Encoding = "euc-kr" // with the extensions of code page 949
	Windows1252 Encoding = "windows-1252"
)

var marks = []struct {
	enc  Encoding
	mark string
}{
	{UTF8Mark, "\xef\xbb\xbf"},
	{UTF16LE, "\xff\xfe"},
	{UTF16BE, "\xfe\xff"},
}

func (e Encoding) mark() string {
	for _, m := range marks {
		if m.enc == e {
			return m.mark
		}
	}
	return ""
}

// codec returns how to convert from and to e, nil for UTF-8.
func (e Encoding) codec() encoding.Encoding {
	switch e {
	case UTF16LE:
		return xunicode.UTF16(xunicode.LittleEndian, xunicode.IgnoreBOM)
	case UTF16BE:
		return xunicode.UTF16(xunicode.BigEndian, xunicode.IgnoreBOM)
	case EUCKR:
		return korean.EUCKR
	case Windows1252:
		return charmap.Windows1252
	}
	return others[e]
}

// detect tells the encoding of a file by its first bytes: a byte order mark,
// valid UTF-8, else Korean or western European text when it looks like it, else
// UTF-8 with invalid bytes. More is set when head is not the whole file.
func detect(head []byte, more bool) (Encoding, error) {
	if bytes.HasPrefix(head, []byte("\xff\xfe\x00\x00")) { // UTF-32
		return "", ErrBinary
	}
	for _, m := range marks {
		if bytes.HasPrefix(head, []byte(m.mark)) {
			return m.enc, nil
		}
	}
	if isBinary(head[:min(len(head), headSize)]) {
		return "", ErrBinary
	}
	if more {
		head = wholeRunes(head)
	}
	switch {
	case utf8.Valid(head) || mostlyUTF8(head):
		return UTF8, nil
	case looksKorean(head, more):
		return EUCKR, nil
	case looksWestern(head):
		return Windows1252, nil
	}
	return UTF8, nil
}

// DetectStart is [detect] for who has at least the first 64 KiB of a file, or all
// of it: it looks at no more, so that it tells what a [TextReader] tells.
func DetectStart(data []byte) (Encoding, error) {
	return detect(data[:min(len(data), detectSize)], len(data) >= detectSize)
}

// isBinary reports whether bytes are not text: a NUL, or more than a tenth of
// them control characters other than \b to \r and escape.
func isBinary(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	return controls(head)*10 > len(head)
}

// controls counts the control characters that [isBinary] means, eight bytes at a
// time: every file that is searched comes through here.
func controls(b []byte) (n int) {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	count := func(x uint64) int {
		low := x &^ high
		// The high bit of each byte of low+(0x80-c)*ones tells if it is at least c.
		blank := (low + (0x80-'\b')*ones) &^ (low + (0x80-'\r'-1)*ones)
		escape := (low + (0x80-0x1b)*ones) &^ (low + (0x80-0x1c)*ones)
		plain := low + (0x80-' ')*ones | blank | escape
		return bits.OnesCount64((^plain | (low + ones)) & high &^ x)
	}
	for ; len(b) >= 8; b = b[8:] {
		n += count(binary.LittleEndian.Uint64(b))
	}
	rest := [8]byte{' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '}
	copy(rest[:], b)
	return n + count(binary.LittleEndian.Uint64(rest[:]))
}

// wholeRunes cuts an incomplete UTF-8 sequence off the end.
func wholeRunes(b []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax, len(b)); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// mostlyUTF8 reports whether text that is not valid UTF-8 is damaged UTF-8
// rather than something else: other encodings hardly ever make a valid sequence.
func mostlyUTF8(b []byte) bool {
	valid, invalid := 0, 0
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			invalid++
		case n > 1:
			valid++
		}
		b = b[n:]
	}
	return valid > 0 && valid >= invalid
}

// looksKorean reports whether all of b is EUC-KR and most of what is not ASCII
// in it are syllables in the rows of common ones.
func looksKorean(b []byte, more bool) bool {
	syllables, pairs := 0, 0
	for i := 0; i < len(b); i++ {
		if b[i] < 0x80 {
			continue
		}
		if i+1 == len(b) {
			return more && pairs > 0 && syllables*2 > pairs
		}
		if r, err := korean.EUCKR.NewDecoder().Bytes(b[i : i+2]); err != nil || bytes.ContainsRune(r, utf8.RuneError) || utf8.RuneCount(r) != 1 {
			return false
		}
		pairs++
		if b[i] >= 0xb0 && b[i] <= 0xc8 && b[i+1] >= 0xa1 {
			syllables++
		}
		i++
	}
	return pairs > 0 && syllables*2 > pairs
}

// looksWestern reports whether nine tenths of the bytes that are not ASCII are
// letters beside a letter, or common signs.
func looksWestern(b []byte) bool {
	const signs = "\x80\x82\x84\x85\x91\x92\x93\x94\x95\x96\x97\x99\xa0\xa1\xa3\xa7\xa9\xab\xae\xb0\xb1\xb2\xb3\xb4\xb5\xb7\xbb\xbc\xbd\xbe\xbf"
	high, good := 0, 0
	for i, c := range b {
		if c < 0x80 {
			continue
		}
		high++
		switch c {
		case 0x81, 0x8d, 0x8f, 0x90, 0x9d: // not assigned
			return false
		case 0xd0, 0xde, 0xf0, 0xfe, 0xff, 0xd7, 0xf7: // hardly ever in words
		default:
			beside := i > 0 && asciiLetter(b[i-1]) || i+1 < len(b) && asciiLetter(b[i+1])
			if c >= 0xc0 && beside || strings.IndexByte(signs, c) >= 0 {
				good++
			}
		}
	}
	return high > 0 && good*10 >= high*9
}

func asciiLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// Text is a text file in memory.
type Text struct {
	// Content is the text without byte order mark, with the line ends of the
	// file. It is valid UTF-8 unless Damaged is set.
	Content  string
	Encoding Encoding

	// Damaged means that the file is not valid in its encoding. A damaged UTF-8
	// file has its bytes in Content and is written back exactly; of others,
	// Content has replacement characters, and Encode refuses them.
	Damaged bool
}

// DecodeText reads a text file of at most [MaxText] bytes.
func DecodeText(data []byte) (Text, error) { return DecodeTextAs(data, "") }

// DecodeTextAs is [DecodeText] with an encoding that is given; "" = detected.
func DecodeTextAs(data []byte, enc Encoding) (Text, error) {
	if enc == "" {
		var err error
		if enc, err = detect(data, false); err != nil {
			return Text{}, err
		}
	}
	t := Text{Encoding: enc}
	body := bytes.TrimPrefix(data, []byte(enc.mark()))
	c := enc.codec()
	if c == nil {
		t.Content = string(body)
		t.Damaged = !utf8.Valid(body)
		return t, nil
	}
	decoded, err := c.NewDecoder().Bytes(body)
	if err != nil {
		return Text{}, fmt.Errorf("decoding %s: %w", enc, err)
	}
	if isBinary(decoded[:min(len(decoded), headSize)]) {
		return Text{}, ErrBinary
	}
	t.Content = string(decoded)
	back, err := t.Encode(t.Content)
	t.Damaged = err != nil || !bytes.Equal(back, data)
	return t, nil
}

// EncodeError is text that the encoding of its file has no place for.
type EncodeError struct {
	Encoding Encoding
	Rune     rune // the first character without a place; 0 = the file is damaged
}

func (e *EncodeError) Error() string {
	if e.Rune == 0 {
		return fmt.Sprintf("the file is not valid %s and could not be written back as it is", e.Encoding)
	}
	return fmt.Sprintf("the file is stored as %s, which has no %q", e.Encoding, e.Rune)
}

// Encode returns the bytes of the file when its text is content.
func (t Text) Encode(content string) ([]byte, error) {
	c := t.Encoding.codec()
	if c == nil {
		return append([]byte(t.Encoding.mark()), content...), nil
	}
	if t.Damaged {
		return nil, &EncodeError{t.Encoding, 0}
	}
	mark := t.Encoding.mark()
	body, err := c.NewEncoder().Bytes([]byte(content))
	if err != nil || !utf8.ValidString(content) {
		return nil, &EncodeError{t.Encoding, t.misfit(content)}
	}
	return append([]byte(mark), body...), nil
}

// misfit returns the first character that t's encoding has no place for.
func (t Text) misfit(content string) rune {
	for _, r := range content {
		if r < 0x80 {
			continue
		}
		if _, err := t.Encoding.codec().NewEncoder().String(string(r)); err != nil {
			return r
		}
	}
	return unicode.ReplacementChar
}

// LineEnds says how the lines of a text end.
type LineEnds string

// The line ends.
const (
	NoEnds LineEnds = "none"
	LF     LineEnds = "LF"
	CRLF   LineEnds = "CRLF"
	Mixed  LineEnds = "mixed"
)

// LineEndsOf counts the line ends of s.
func LineEndsOf(s string) LineEnds {
	all, crlf := strings.Count(s, "\n"), strings.Count(s, "\r\n")
	switch {
	case all == 0:
		return NoEnds
	case crlf == 0:
		return LF
	case crlf == all:
		return CRLF
	}
	return Mixed
}

// TextReader reads a file of any size as UTF-8 without byte order mark. Bytes
// that are not valid stay as they are in UTF-8 files, and become replacement
// characters in others. One reader serves one goroutine.
type TextReader struct {
	io.Reader
	Encoding Encoding

	head []byte
}

// NewTextReader looks at the beginning of r. It returns [ErrBinary] when r is
// not text.
func NewTextReader(r io.Reader) (*TextReader, error) {
	t := &TextReader{}
	if err := t.Reset(r); err != nil {
		return nil, err
	}
	return t, nil
}

// Reset is [NewTextReader] with the memory of a reader that is no longer used.
func (t *TextReader) Reset(r io.Reader) error { return t.ResetAs(r, "") }

// ResetAs is [TextReader.Reset] with an encoding that is given; "" = detected.
func (t *TextReader) ResetAs(r io.Reader, enc Encoding) error {
	if t.head == nil {
		t.head = make([]byte, detectSize)
	}
	n, err := io.ReadFull(r, t.head)
	more := err == nil
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	head := t.head[:n]
	if t.Encoding = enc; enc == "" {
		if t.Encoding, err = detect(head, more); err != nil {
			return err
		}
	}
	t.Reader = io.MultiReader(bytes.NewReader(bytes.TrimPrefix(head, []byte(t.Encoding.mark()))), r)
	if c := t.Encoding.codec(); c != nil {
		t.Reader = transform.NewReader(t.Reader, c.NewDecoder())
	}
	return nil
}
