package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

func count(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	d := newDesk(t)
	d.put("two", "first\nsecond\n")
	d.put("open", "a\r\nb")
	d.put("empty", "")
	d.put("blank", "\n\n")
	d.put("long", count(1, 5000))
	d.put("wide", strings.Repeat("두", 2500)+"\nshort\n")
	d.put("latin", "caf\xe9\n")
	d.put("broken", "두레 \xff!\n")
	d.put("half", "\xff\xfeH\x00i")
	d.put("picture", "\x89PNG\r\n\x1a\n\x00\x00")
	d.put("data", "a\x00b")
	d.put("src/server.go", "package src\n")
	d.put("src/util.go", "package src\n")
	d.put("server_test.go", "x")
	d.put(filepath.Join(d.out, "blob"), count(1, 3))

	for _, c := range []struct {
		input in
		want  string
	}{
		{in{"file_path": "two"}, "1\tfirst\n2\tsecond"},
		{in{"file_path": filepath.Join(d.ws, "two"), "offset": 0}, "1\tfirst\n2\tsecond"},
		{in{"file_path": "two", "offset": 2}, "2\tsecond\n[lines 2-2 of 2]"},
		{in{"file_path": "two", "limit": 1}, "1\tfirst\n[lines 1-1 of 2; continue with offset 2]"},
		{in{"file_path": "two", "max_bytes": 5}, "1\tfirst\n[lines 1-1 of 2; continue with offset 2]"},
		{in{"file_path": "two", "offset": 3}, "E_TOOL_INPUT: WS/two has 2 lines; offset 3 is behind its end\nUse a smaller offset."},
		{in{"file_path": "open"}, "1\ta\n2\tb"},
		{in{"file_path": "empty"}, "[the file is empty]"},
		{in{"file_path": "blank"}, "1\t\n2\t"},
		{in{"file_path": "long", "offset": 4999, "limit": 9}, "4999\tline 4999\n5000\tline 5000\n[lines 4999-5000 of 5000]"},
		{in{"file_path": "wide"}, "1\t" + strings.Repeat("두", 2000) + "… [1500 more bytes in this line]\n2\tshort"},
		{in{"file_path": "latin"}, "1\tcafé\n[stored as windows-1252; writes and edits keep that]"},
		{in{"file_path": "broken"}, "1\t두레 \uFFFD!\n[bytes that are not valid utf-8 are shown as \uFFFD]"},
		{in{"file_path": "half"}, "1\tH\uFFFD\n[the file is damaged utf-16le: what is not valid is shown as \uFFFD, and it cannot be edited]"},
		{in{"file_path": "picture"}, "E_FILE_BINARY: WS/picture is a PNG image of 10 bytes and cannot be decoded: unexpected EOF\nThe file may be damaged; look at it with a command."},
		{in{"file_path": "data"}, "E_FILE_BINARY: WS/data is a binary file of 3 bytes and cannot be shown as text\nUse a command that understands its format."},
		{in{"file_path": "src"}, "E_FILE_TYPE: WS/src is a folder\nList it with the list tool, or name a file in it."},
		{in{"file_path": "server.go"}, "E_FILE_NOT_FOUND: WS/server.go does not exist\nDid you mean src/server.go?"},
		{in{"file_path": "src/utils.go"}, "E_FILE_NOT_FOUND: WS/src/utils.go does not exist\nDid you mean src/util.go?"},
		{in{"file_path": "src/server.ts"}, "E_FILE_NOT_FOUND: WS/src/server.ts does not exist\nDid you mean src/server.go?"},
		{in{"file_path": "no/such/place"}, "E_FILE_NOT_FOUND: WS/no/such/place does not exist, nor does the folder WS/no/such\nLook for it with the glob or list tool."},
		{in{"file_path": "output:abc123"}, "1\tline 1\n2\tline 2\n3\tline 3"},
		{in{"file_path": "output:other"}, "E_FILE_NOT_FOUND: there is no output with the handle \"output:other\"\nUse a handle exactly as a result names it."},
	} {
		d.want("read", c.input, c.want)
	}
}

func TestReadOutput(t *testing.T) {
	d := newDesk(t)
	d.put("two", "first\nse\"cond\n")
	r := d.do("read", in{"file_path": "two", "offset": 2})
	var got, want any
	d.check(json.Unmarshal(r.Output, &got))
	d.check(json.Unmarshal([]byte(`{"type":"text","file":{"filePath":"`+d.ws+`/two","content":"se\"cond","numLines":1,"startLine":2,"totalLines":2}}`), &want))
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s", r.Output)
	}
	if len(r.Files) != 1 || r.Files[0].Path != d.ws+"/two" || r.Files[0].SHA256 == "" || r.Files[0].Wrote {
		t.Errorf("%+v", r.Files)
	}
}

// Every page is within the budget, and the pages together are the file.
func TestReadPages(t *testing.T) {
	d := newDesk(t)
	var text strings.Builder
	for i := range 3000 {
		text.WriteString(strings.Repeat("가나다 ", i%37) + "\n")
	}
	d.put("f", text.String())
	var all []string
	for offset, pages := 1, 0; ; pages++ {
		r := d.do("read", in{"file_path": "f", "offset": offset})
		if n := utf8.RuneCountInString(r.Text); n > readBudget || r.Failed() || pages > 50 {
			t.Fatalf("page %d: %d characters, %v", pages, n, r.Error)
		}
		var out struct {
			File struct {
				Content                         string
				NumLines, StartLine, TotalLines int
			}
		}
		d.check(json.Unmarshal(r.Output, &out))
		if out.File.TotalLines != 3000 || out.File.StartLine != offset {
			t.Fatalf("page %d: %+v", pages, out.File.TotalLines)
		}
		all = append(all, out.File.Content)
		if offset += out.File.NumLines; offset > 3000 {
			break
		}
		if want := fmt.Sprintf("continue with offset %d]", offset); !strings.HasSuffix(r.Text, want) {
			t.Fatalf("page %d ends with %s", pages, r.Text[len(r.Text)-80:])
		}
	}
	if strings.Join(all, "\n")+"\n" != text.String() {
		t.Error("the pages are not the file")
	}
}

// A file of ten gigabytes, most of it a hole, is shown without being read whole.
func TestReadGiganticFile(t *testing.T) {
	d := newDesk(t)
	path := filepath.Join(d.ws, "giant")
	d.put("giant", strings.Repeat("0123456789abcde\n", 12<<20/16))
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	d.check(err)
	d.check(f.Truncate(10 << 30))
	f.Close()

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := d.text("read", in{"file_path": "giant", "offset": 100, "limit": 2})
	runtime.ReadMemStats(&after)
	if !strings.HasPrefix(got, "100\t0123456789abcde\n101\t0123456789abcde\n[lines 100-101 of about ") {
		t.Error(got)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("allocated %d MiB", used>>20)
	}
	got = d.text("edit", in{"file_path": "giant", "old_string": "a", "new_string": "b"})
	if !strings.HasPrefix(got, "E_FILE_TOO_LARGE: ") {
		t.Error(got)
	}
}

// One line without end is cut, and not held.
func TestReadEndlessLine(t *testing.T) {
	d := newDesk(t)
	d.put("line", strings.Repeat("x", 12<<20)+"\nlast\n")
	want := "1\t" + strings.Repeat("x", 2000) + fmt.Sprintf("… [%d more bytes in this line]\n2\tlast", 12<<20-2000+1)
	if got := d.text("read", in{"file_path": "line"}); got != want {
		t.Errorf("%d bytes: …%s", len(got), got[max(0, len(got)-100):])
	}
}

func TestReadSpecialFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has neither /dev nor /proc")
	}
	d := newDesk(t)
	d.check(os.Symlink("loop", filepath.Join(d.ws, "loop")))
	for path, want := range map[string]string{
		"/dev/zero": "E_FILE_TYPE: /dev/zero is a device\nOnly regular files can be read and written.",
		"loop":      "E_FILE_ACCESS: WS/loop goes through too many links\nThe links may lead in a circle; name another file.",
	} {
		d.want("read", in{"file_path": path}, want)
	}
	if runtime.GOOS == "linux" { // files that do not tell their size
		if got := d.text("read", in{"file_path": "/proc/self/status", "limit": 1}); !strings.HasPrefix(got, "1\tName:") {
			t.Error(got)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	text := []byte(count(1, 400))
	for b.Loop() {
		p := newPage(readInput{}, "utf-8")
		if err := p.fill(b.Context(), bytes.NewReader(text), &counter{}, int64(len(text))); err != nil {
			b.Fatal(err)
		}
	}
}
