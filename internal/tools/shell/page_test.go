package shell

import (
	"bytes"
	"strings"
	"testing"

	"dure/internal/safety/sandbox"
)

// Pages of a job, read while it writes, are together what it wrote, and end with
// lines wherever there are any.
func FuzzPages(f *testing.F) {
	f.Add([]byte("one\ntwo\nthree"), uint(4), uint(100))
	f.Add([]byte("a long line of words, with no end "), uint(300), uint(9000))
	f.Add([]byte("-----BEGIN KEY-----\nabc\ndef\n-----END KEY-----\nrest\n"), uint(30), uint(3000))
	f.Add([]byte("-----BEGIN \n0"), uint(30), uint(3012)) // begins within a line
	f.Add([]byte("\xff\xfe\x00\r\r\n\xe2\x82\xac"), uint(2), uint(20000))
	f.Fuzz(func(t *testing.T, text []byte, chunk, times uint) {
		if len(text) == 0 {
			return
		}
		want := bytes.Repeat(text, int(times%40_000)+1)
		want = want[:min(len(want), 100_000)]
		box := sandbox.New(sandbox.Config{Temp: t.TempDir()})
		j := &job{status: running, out: box.NewCapture()}
		defer j.out.Close()
		var got []byte
		look := func() bool {
			page, at, next := j.page(int64(len(got)))
			if at != int64(len(got)) || len(page) > pageBytes || next-at > int64(len(page)) {
				t.Fatalf("page of %d bytes at %d, next %d, want one at %d", len(page), at, next, len(got))
			}
			took := page[:next-at]
			if n := len(took); n > 0 && j.status == running && n < pageBytes-lookBack && took[n-1] != '\n' && took[n-1] != '\r' {
				t.Fatalf("%d bytes that end with %q", n, took[max(0, n-9):])
			}
			got = append(got, took...)
			return len(took) > 0
		}
		step := max(int(chunk%60_000)+1, len(want)/100)
		for rest := want; len(rest) > 0; {
			n := min(step, len(rest))
			_, _ = j.out.Write(rest[:n])
			rest = rest[n:]
			for look() {
			}
		}
		j.status = completed
		for look() {
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("the pages have %d bytes of %d, or others", len(got), len(want))
		}
	})
}

// A secret is in one page as a whole.
func TestPagesKeepSecretsWhole(t *testing.T) {
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("0123456789abcdef\n", 50) + "-----END PRIVATE KEY-----\n"
	token := "sk-" + strings.Repeat("x", 100)
	for name, tt := range map[string]struct{ text, secret string }{
		"in a line":        {strings.Repeat("a line\n", (pageBytes-20)/7) + "token: " + token + "\nend\n", token},
		"in a long line":   {strings.Repeat("words ", (pageBytes-20)/6) + token + " end", token},
		"over lines":       {strings.Repeat("a line\n", (pageBytes-200)/7) + key + "end\n", key},
		"not finished yet": {"a line\n" + key[:300], ""},
	} {
		box := sandbox.New(sandbox.Config{Temp: t.TempDir()})
		j := &job{status: running, out: box.NewCapture()}
		_, _ = j.out.Write([]byte(tt.text))
		first, _, next := j.page(0)
		if tt.secret == "" {
			second, at, again := j.page(next)
			if string(first) != "a line\n" || string(second) != key[:300] || again != at {
				t.Errorf("%s: %q, then %q and on from %d", name, first, second, again)
			}
			continue
		}
		j.status = completed
		second, _, _ := j.page(next)
		if bytes.Contains(first, []byte(tt.secret)) == bytes.Contains(second, []byte(tt.secret)) {
			t.Errorf("%s: cut in two: %.60q | %.60q", name, first[max(0, len(first)-60):], second)
		}
		middle := int64(strings.Index(tt.text, tt.secret) + len(tt.secret)/2)
		if at := j.lineStart(middle); strings.HasPrefix(name, "in") && at > int64(strings.Index(tt.text, tt.secret)) {
			t.Errorf("%s: a page from its middle begins at %d", name, at)
		}
		j.out.Close()
	}
}
