package workspace

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const (
	koreanText  = "\xbe\xc8\xb3\xe7\xc7\xcf\xbc\xbc\xbf\xe4"           // 안녕하세요
	utf16Text   = "\xff\xfeH\x00i\x00\n\x00"                           // Hi
	westernText = "Stra\xdfe nach M\xfcnchen \x96 caf\xe9 \x93oui\x94" // Straße nach München – café “oui”
)

func TestDecodeText(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       Text
		err        error
	}{
		{"empty", "", Text{Encoding: UTF8}, nil},
		{"ASCII", "a\r\nb\n", Text{Content: "a\r\nb\n", Encoding: UTF8}, nil},
		{"UTF-8", "두레 ☕", Text{Content: "두레 ☕", Encoding: UTF8}, nil},
		{"mark", "\xef\xbb\xbfx", Text{Content: "x", Encoding: UTF8Mark}, nil},
		{"UTF-16 little", utf16Text, Text{Content: "Hi\n", Encoding: UTF16LE}, nil},
		{"UTF-16 big", "\xfe\xff\xb4\x50\x00\n", Text{Content: "두\n", Encoding: UTF16BE}, nil},
		{"UTF-16 half", "\xff\xfeH\x00i", Text{Content: "H\uFFFD", Encoding: UTF16LE, Damaged: true}, nil},
		{"UTF-16 lone surrogate", "\xff\xfe\x00\xd8H\x00", Text{Content: "\uFFFDH", Encoding: UTF16LE, Damaged: true}, nil},
		{"Korean", koreanText + " ok", Text{Content: "안녕하세요 ok", Encoding: EUCKR}, nil},
		{"western", westernText, Text{Content: "Straße nach München – café “oui”", Encoding: Windows1252}, nil},
		{"damaged UTF-8", "두레 \xff!", Text{Content: "두레 \xff!", Encoding: UTF8, Damaged: true}, nil},
		{"neither", "abc\xff\xfe\xfd", Text{Content: "abc\xff\xfe\xfd", Encoding: UTF8, Damaged: true}, nil},
		{"colours", "\x1b[31mred\x1b[0m", Text{Content: "\x1b[31mred\x1b[0m", Encoding: UTF8}, nil},
		{"NUL", "a\x00b", Text{}, ErrBinary},
		{"control", "\x01\x02\x03\x04abc", Text{}, ErrBinary},
		{"UTF-32", "\xff\xfe\x00\x00a\x00\x00\x00", Text{}, ErrBinary},
		{"UTF-16 of nothing", "\xff\xfe\x01\x00\x02\x00", Text{}, ErrBinary},
	} {
		got, err := DecodeText([]byte(c.data))
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
		if err != nil || got.Damaged && got.Encoding != UTF8 {
			continue
		}
		if back, err := got.Encode(got.Content); err != nil || string(back) != c.data {
			t.Errorf("%s: back to %q, %v", c.name, back, err)
		}
	}
}

func TestEncodeSaysWhatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		enc  Encoding
		text string
		want rune
	}{{EUCKR, "안녕 🙂", '🙂'}, {Windows1252, "naïve 두", '두'}, {UTF16LE, "a\xffb", '\uFFFD'}} {
		_, err := Text{Encoding: c.enc}.Encode(c.text)
		if ee, ok := errors.AsType[*EncodeError](err); !ok || ee.Rune != c.want {
			t.Errorf("%s: %v", c.enc, err)
		}
	}
	if _, err := (Text{Encoding: UTF16BE, Damaged: true}).Encode("x"); err == nil {
		t.Error("a damaged file was encoded")
	}
}

func TestLineEndsOf(t *testing.T) {
	for s, want := range map[string]LineEnds{"": NoEnds, "a\r": NoEnds, "a\n": LF, "a\r\nb\r\n": CRLF, "a\r\nb\n": Mixed} {
		if got := LineEndsOf(s); got != want {
			t.Errorf("%q: %s", s, got)
		}
	}
}

func TestTextReader(t *testing.T) {
	long := strings.Repeat("두레 마을\n", 20_000) // its first 64 KiB end inside a character
	for name, c := range map[string]struct{ data, want string }{
		"short":  {"\xef\xbb\xbfabc", "abc"},
		"long":   {"x" + long, "x" + long},
		"UTF-16": {utf16Text, "Hi\n"},
		"Korean": {strings.Repeat(koreanText+"\n", 10_000), strings.Repeat("안녕하세요\n", 10_000)},
		"odd":    {"x" + strings.Repeat(koreanText, 10_000), "x" + strings.Repeat("안녕하세요", 10_000)},
		"empty":  {"", ""},
	} {
		r, err := NewTextReader(iotest.HalfReader(strings.NewReader(c.data)))
		must(t, err)
		if got, err := io.ReadAll(r); err != nil || string(got) != c.want {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if _, err := NewTextReader(bytes.NewReader(make([]byte, 100))); !errors.Is(err, ErrBinary) {
		t.Error(err)
	}
	if _, err := NewTextReader(iotest.ErrReader(io.ErrClosedPipe)); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// What is read as text and not damaged can be written back to the same bytes.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a\r\nb", "\xef\xbb\xbfx", utf16Text, koreanText, westernText, "\xfe\xff\xd8\x00", "abc\xff", "\xff\xfe\xff\xfe", "\x80\x81"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := DecodeText(data)
		if err != nil {
			return
		}
		back, err := text.Encode(text.Content)
		switch {
		case text.Damaged && text.Encoding != UTF8 && text.Encoding != UTF8Mark:
			if err == nil {
				t.Fatalf("damaged %s text was encoded", text.Encoding)
			}
		case err != nil || !bytes.Equal(back, data):
			t.Fatalf("%s: %q became %q, %v", text.Encoding, data, back, err)
		}
		if len(data) > detectSize {
			return
		}
		r, err := NewTextReader(bytes.NewReader(data))
		if err != nil || r.Encoding != text.Encoding {
			t.Fatalf("streamed: %v", err)
		}
		if streamed, err := io.ReadAll(r); err != nil || string(streamed) != text.Content {
			t.Fatalf("streamed: %q, %v; want %q", streamed, err, text.Content)
		}
	})
}

// What is counted eight bytes at a time is what is counted one by one.
func TestControls(t *testing.T) {
	for c := range 256 {
		one := 0
		if (c < '\b' || c > '\r' && c < ' ' || c == 0x7f) && c != 0x1b {
			one = 1
		}
		for n := 1; n < 20; n++ {
			for _, other := range []byte{' ', '\t', '\r', 0x1b, 0x80, 0xff} {
				b := bytes.Repeat([]byte{other}, n)
				for i := range b {
					b[i] = byte(c)
					if got, want := controls(b), one*(i+1); got != want {
						t.Fatalf("%q: %d, want %d", b, got, want)
					}
				}
			}
		}
	}
}
