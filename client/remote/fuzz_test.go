package remote

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// all reads messages until they end.
func all(from io.Reader) (list []message, lines int, err error) {
	err = messages(from, func() { lines++ }, func(m message) error {
		list = append(list, m)
		return nil
	})
	return list, lines, err
}

// FuzzMessages has any bytes be a stream of events: what is read of it does not depend on how
// it comes, and is in it.
func FuzzMessages(f *testing.F) {
	for _, s := range []string{
		"", "\n", ":\n\n", "data: a\n\n", "event: end\ndata: {}\n\n", "id: 1\ndata: {\"v\":1}\n\n", "data\n\n", "data:\n\n", "data: a\ndata: b\n\n", "data: a\r\n\r\n",
		"retry: 1000\n\n", "data: a", "event: x\n\ndata: y\n\n", "\xef\xbb\xbfdata: a\n\n", "data:  a\n\n", ": a\ndata: a\n\n", "data: a\n\n\n\n", "\x00\xff\n\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		whole, lines, err := all(bytes.NewReader(data))
		if !errors.Is(err, errLost) {
			t.Errorf("at the end: %v", err)
		}
		bits, again, err := all(iotest.OneByteReader(bytes.NewReader(data)))
		if !errors.Is(err, errLost) || lines != again || !slices.Equal(whole, bits) {
			t.Errorf("by bytes: %+v, %d lines, %v; at once: %+v, %d lines", bits, again, err, whole, lines)
		}
		for _, m := range whole {
			if m.data == "" || strings.ContainsRune(m.event, '\n') || !strings.Contains(string(data), m.event) {
				t.Errorf("a message of nothing: %+v", m)
			}
			for l := range strings.SplitSeq(m.data, "\n") {
				if !strings.Contains(string(data), l) {
					t.Errorf("%q is not in it", l)
				}
			}
		}
		stop := errors.New("enough")
		n := 0
		err = messages(bytes.NewReader(data), func() {}, func(message) error { n++; return stop })
		if len(whole) > 0 && (n != 1 || !errors.Is(err, stop)) {
			t.Errorf("it goes on after an error: %d, %v", n, err)
		}
		_ = problemOf(data, "500") // whatever is said, it is an error, and no panic
	})
}
