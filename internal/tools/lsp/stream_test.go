package lsp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"dure/internal/safety/workspace"
)

// nowhere is a file system that nobody asks.
type nowhere struct{ workspace.FS }

// Reading a message never takes more memory than came, nor more than the bound.
func FuzzReadMessage(f *testing.F) {
	f.Add([]byte("Content-Length: 2\r\n\r\n{}"))
	f.Add([]byte("content-length:2\r\nContent-Type: x\r\n\r\n{}Content-Length: 1\r\n\r\n7"))
	f.Add([]byte("Content-Length: 99999999\r\n\r\n"))
	f.Add([]byte("\r\n\r\n"))
	f.Add([]byte(strings.Repeat("x: y\r\n", 1000)))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		for {
			m, err := readMessage(r)
			if err != nil {
				return
			}
			if len(m) > len(data) {
				t.Fatalf("a message of %d bytes out of %d", len(m), len(data))
			}
		}
	})
}

// A path survives the way to an address and back.
func FuzzAddress(f *testing.F) {
	f.Add("home/kim/새 폴더/a#b?.go")
	f.Add("a%2F/../b")
	f.Fuzz(func(t *testing.T, path string) {
		if strings.ContainsRune(path, 0) {
			return
		}
		path = "/" + strings.TrimLeft(path, "/")
		if got := pathOf(uriOf(path, false), false); got != path {
			t.Errorf("%q came back as %q", path, got)
		}
	})
}

// Of a list no more is decoded than is kept.
func TestDiagnosticsAreBounded(t *testing.T) {
	for list, want := range map[string]int{
		"[" + strings.Repeat("{},", 100_000) + "{}]": maxFindings,
		`[{"message":"m"},{}]`:                       2,
		"[]":                                         0,
		"null":                                       0,
	} {
		var p publishParams
		err := json.Unmarshal([]byte(`{"diagnostics":`+list+`}`), &p)
		if err != nil || len(p.Diagnostics) != want || cap(p.Diagnostics) > 2*maxFindings {
			t.Errorf("%.30s: %d of %d, %v", list, len(p.Diagnostics), cap(p.Diagnostics), err)
		}
	}
	var p publishParams
	if err := json.Unmarshal([]byte(`{"diagnostics":{}}`), &p); err == nil {
		t.Error("an object was taken for a list")
	}
}
