package sse

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

type plain struct{ Name, Data string }

// decode returns all events and the error that ended the stream.
func decode(r io.Reader) ([]plain, error) {
	d := NewDecoder(r)
	var events []plain
	for {
		e, err := d.Next()
		if err != nil {
			return events, err
		}
		events = append(events, plain{string(e.Name), string(e.Data)})
	}
}

// reference is the standard's algorithm, written for the whole text at once.
func reference(text string) []plain {
	text = strings.TrimPrefix(text, "\xef\xbb\xbf")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	lines := strings.Split(text, "\n")
	lines = lines[:len(lines)-1] // what follows the last line end is no line

	var events []plain
	var name, data string
	for _, line := range lines {
		if line == "" {
			if data != "" {
				events = append(events, plain{name, strings.TrimSuffix(data, "\n")})
			}
			name, data = "", ""
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data += value + "\n"
		case "event":
			name = value
		}
	}
	return events
}

func TestDecode(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"two events", "event: a\ndata: 1\n\ndata: 2\n\n", "[{a 1} { 2}]"},
		{"crlf", "event: a\r\ndata: 1\r\n\r\n", "[{a 1}]"},
		{"cr", "event: a\rdata: 1\r\rdata: 2\r\r", "[{a 1} { 2}]"},
		{"mixed line ends", "data: 1\r\n\rdata: 2\n\r\ndata: 3\r\n\r\n", "[{ 1} { 2} { 3}]"},
		{"byte order mark", "\xef\xbb\xbfdata: 1\n\n", "[{ 1}]"},
		{"byte order mark only at the start", "data: 1\n\n\xef\xbb\xbfdata: 2\n\n", "[{ 1}]"},
		{"several data lines", "data: 1\ndata:\ndata: 3\n\n", "[{ 1\n\n3}]"},
		{"one space only", "data:  1\n\ndata:2\n\n", "[{  1} { 2}]"},
		{"empty data counts", "data\n\nevent: x\n\ndata:\n\n", "[{ } { }]"},
		{"comments", ": hello\n\n:\ndata: 1\n: more\n\n", "[{ 1}]"},
		{"unknown fields", "foo: bar\ndata: 1\nid: 7\nretry: 10\n\n", "[{ 1}]"},
		{"unfinished event", "data: 1\n\ndata: 2\n", "[{ 1}]"},
		{"unfinished line", "data: 1\n\ndata: 2", "[{ 1}]"},
		{"nothing", "", "[]"},
		{"garbage", "<html>\n<body>\n\n", "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{
				strings.NewReader(c.in),
				iotest.OneByteReader(strings.NewReader(c.in)),
				iotest.DataErrReader(strings.NewReader(c.in)),
			} {
				got, err := decode(r)
				if fmt.Sprint(got) != c.want || err != io.EOF {
					t.Errorf("got %v, %v\nwant %s", got, err, c.want)
				}
			}
		})
	}
}

func TestReaderErrorIsReturnedAfterTheEventsBeforeIt(t *testing.T) {
	broken := errors.New("broken")
	r := io.MultiReader(strings.NewReader("data: 1\n\ndata: 2"), iotest.ErrReader(broken))
	got, err := decode(r)
	if fmt.Sprint(got) != "[{ 1}]" || err != broken {
		t.Errorf("got %v, %v", got, err)
	}
}

type endless struct{ text string }

func (e endless) Read(p []byte) (int, error) { return copy(p, e.text), nil }

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

func TestLimits(t *testing.T) {
	line := strings.Repeat("x", 1000)
	for _, c := range []struct {
		name string
		r    io.Reader
		want error
	}{
		{"a line that never ends", endless{line}, ErrTooLarge},
		{"a comment that never ends", io.MultiReader(strings.NewReader(":"), endless{line}), ErrTooLarge},
		{"an event that never ends", endless{"data: " + line + "\n"}, ErrTooLarge},
		{"a reader that gives nothing", silent{}, io.ErrNoProgress},
	} {
		if got, err := decode(c.r); len(got) != 0 || err != c.want {
			t.Errorf("%s: %d events, %v", c.name, len(got), err)
		}
	}
	big := strings.Repeat("y", 5<<20)
	if got, err := decode(strings.NewReader("data: " + big + "\n\n")); len(got) != 1 || got[0].Data != big || err != io.EOF {
		t.Errorf("5 MiB event: %d events, %v", len(got), err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"event: a\ndata: 1\n\ndata: 2\n\n", "data: 1\r\n\r\n", "data: 1\r\rdata:2\r\n\r", "\xef\xbb\xbfdata: 1\n\n",
		": c\n\ndata\n\ndata:\ndata:\n\n", "event: x\n\n\r\r\n", "data: 1\n\r\ndata: 2\r\n\n",
	} {
		f.Add(s, uint64(0))
		f.Add(s, uint64(0x0101))
	}
	f.Fuzz(func(t *testing.T, text string, cuts uint64) {
		want := fmt.Sprintf("%q", reference(text))
		for _, r := range []io.Reader{strings.NewReader(text), &pieces{text, cuts}} {
			got, err := decode(r)
			if fmt.Sprintf("%q", got) != want || err != io.EOF {
				t.Fatalf("%q\ngot  %q, %v\nwant %s", text, got, err, want)
			}
		}
	})
}

// pieces hands out a text in pieces of 1 to 16 bytes, as cuts says.
type pieces struct {
	rest string
	cuts uint64
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := min(int(p.cuts&15)+1, len(p.rest))
	p.cuts = p.cuts>>4 | p.cuts<<60
	n = copy(b, p.rest[:n])
	p.rest = p.rest[n:]
	return n, nil
}

const delta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"abcd\"}}\n\n"

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	d := NewDecoder(endless{delta}) // the text is cut at the buffer's end: names are odd, sizes are not
	for range 1000 {
		if _, err := d.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(10000, func() { _, _ = d.Next() }); n != 0 {
		t.Errorf("%v allocations an event", n)
	}
}

func BenchmarkNext(b *testing.B) {
	text := strings.Repeat(delta, 10000)
	b.SetBytes(int64(len(delta)))
	b.ReportAllocs()
	d := NewDecoder(strings.NewReader(text))
	for b.Loop() {
		if _, err := d.Next(); err == io.EOF {
			d = NewDecoder(strings.NewReader(text))
		}
	}
}
