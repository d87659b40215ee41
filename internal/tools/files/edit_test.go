package files

import (
	"errors"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/safety/workspace"
)

func TestReplace(t *testing.T) {
	for _, c := range []struct {
		name, content, old, new string
		all                     bool
		want                    string
		n                       int
		note                    string // the beginning of it
	}{
		{"plain", "a b c", "b", "x", false, "a x c", 1, ""},
		{"all", "a b a", "a", "x", true, "x b x", 2, ""},
		{"all of one", "a b", "b", "", true, "a ", 1, ""},
		{"CRLF kept", "a\r\nb\r\nc\r\n", "a\nb", "1\n2\n3", false, "1\r\n2\r\n3\r\nc\r\n", 1, ""},
		{"CRLF given", "a\r\nb\r\n", "a\r\nb", "1\r\n2", false, "1\r\n2\r\n", 1, ""},
		{"CRLF given, LF kept", "a\nb\n", "a\r\nb", "1\r\n2", false, "1\n2\n", 1, ""},
		{"CRLF, line end removed", "a\r\nb\r\n", "a\n", "", false, "b\r\n", 1, ""},
		{"mixed, by its own line end", "a\r\nb\nc\r\n", "b\nc", "1\n2", false, "a\r\n1\n2\r\n", 1, ""},
		{"mixed, by the line end behind", "a\r\nb\nc\r\n", "c", "1\n2", false, "a\r\nb\n1\r\n2\r\n", 1, ""},
		{"mixed, by the line end before", "a\r\nb\nc", "c", "1\n2", false, "a\r\nb\n1\n2", 1, ""},
		{"lone CR is a character", "a\rb", "\r", "\n", false, "a\nb", 1, ""},

		{"line numbers", "func f() {\n\treturn\n}\n", "1\tfunc f() {\n2\t\treturn\n", "1\tfunc g() {\n2\t\treturn\n", false, "func g() {\n\treturn\n}\n", 1, "(Line numbers"},
		{"line numbers, new without", "a\nb\n", "    1→a\n    2→b", "c", false, "c\n", 1, "(Line numbers"},
		{"numbers that are text", "1\ta\n2\tb\n", "1\ta\n2\tb", "x", false, "x\n", 1, ""},
		{"space at line ends of the file", "if x {  \n\ty\t\n}\n", "if x {\n\ty\n}", "z", false, "z\n", 1, "(Space"},
		{"space at line ends of old", "a\nb\nc\n", "a  \nb \n", "x\n", false, "x\nc\n", 1, "(Space"},
		{"no line end at the end", "a\nb", "b\n", "c\n", false, "a\nc", 1, "(Space"},
		{"space, in CRLF", "a \r\nb\r\n", "a\nb", "c\nd", false, "c\r\nd\r\n", 1, "(Space"},
	} {
		got, n, note, err := replace(c.content, c.old, c.new, c.all)
		if err != nil || got != c.want || n != c.n || !strings.HasPrefix(note, c.note) || (note == "") != (c.note == "") {
			t.Errorf("%s: %q, %d, %q, %v", c.name, got, n, note, err)
		}
	}
}

func TestReplaceExplains(t *testing.T) {
	file := "package p\n\nfunc area(w, h int) int {\n\t// it's \"exact\" - really\n\treturn w * h\n}\n\nfunc double(x int) int {\n\treturn 2 * x\n}\n"
	for _, c := range []struct {
		name, old, new string
		want           string // a part of the message
		code           agent.ErrorCode
	}{
		{"twice", "int {", "x", "old_string occurs 2 times, on lines 3, 8", ErrEditAmbiguous},
		{"overlapping", "\t", "x", "on lines 4, 5, 9", ErrEditAmbiguous},
		{"blanks for a tab", "    return w * h", "x", "the indentation, or space at the ends of lines, differs. Its line 1 begins with 4 spaces, the file's with 1 tab.\nLine 5 and on:\n\treturn w * h", ErrEditNoMatch},
		{"space between", "return  w*h", "x", "and nothing like it", ErrEditNoMatch},
		{"two blanks", "return  2 *  x", "x", "the space between words differs", ErrEditNoMatch},
		{"typographic", "// it’s “exact” – really", "x", "typographic quotes, dashes or spaces differ", ErrEditNoMatch},
		{"case", "RETURN W * H", "x", "upper and lower case differ", ErrEditNoMatch},
		{"escaped", `it's \"exact\"`, "x", "it is escaped", ErrEditNoMatch},
		{"escaped line end", `w * h\n}`, "x", "it is escaped", ErrEditNoMatch},
		{"line numbers that do not fit", "8\treturn 7", "x", "its lines begin with line numbers", ErrEditNoMatch},
		{"made already", "return w + h", "return w * h", "but new_string does, on line 5", ErrEditNoMatch},
		{"nearest", "func area(w, h int) int {\n\t// other\n\treturn w * h\n}", "x", "2 of 4 lines are alike from line 3 on. Its line 2 is \"\\t// other\", the file's is \"\\t// it's \\\"exact\\\" - really\".", ErrEditNoMatch},
		{"nothing alike", "completely different", "x", "and nothing like it", ErrEditNoMatch},
		{"only line ends", "int {\n\treturn", "int {\r\n\treturn", "differ in their line ends only", ErrEditSame},
	} {
		got, _, _, err := replace(file, c.old, c.new, false)
		te, ok := errors.AsType[*agent.ToolError](err)
		if !ok || te.Code != c.code || !strings.Contains(te.Message, c.want) || te.Suggestion == "" || len(te.Message) > 1000 || got != "" {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestEdit(t *testing.T) {
	d := newDesk(t)
	d.put("f", "one\ntwo\ntwo\n")
	edit := func(old, new string) in { return in{"file_path": "f", "old_string": old, "new_string": new} }
	d.want("edit", edit("one", "1"), "E_FILE_NOT_READ: WS/f exists and has not been read in this session\nRead it first, then repeat the call.")
	d.do("read", in{"file_path": "f"})
	d.want("edit", edit("one", "one"), "E_EDIT_NO_CHANGE: old_string and new_string are the same\nGive the new text in new_string.")
	d.want("edit", edit("two", "2"), "E_EDIT_AMBIGUOUS: old_string occurs 2 times, on lines 2, 3\nAdd lines around it until it is unique, or set replace_all.")
	d.want("edit", edit("", "2"), "E_TOOL_INPUT: old_string is empty, and WS/f is not\nGive the text to replace, or use the write tool to replace all of the file.")
	if d.get("f") != "one\ntwo\ntwo\n" {
		t.Error("changed by edits that failed")
	}
	d.want("edit", edit("1\tone\n2\ttwo", "1\tone\n2\t2"), "Edited f: +1 -1 lines.\n(Line numbers were taken off old_string; leave them out.)\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n two")
	d.want("edit", in{"file_path": "f", "old_string": "two\n", "new_string": "", "replace_all": true}, "Edited f: +0 -1 lines.\n@@ -1,3 +1,2 @@\n one\n 2\n-two")
	d.put("f", "someone else\n")
	d.want("edit", edit("someone", "who"), "E_FILE_CHANGED: WS/f has changed since it was read: someone else, or a command, wrote to it\nRead it again, then repeat the change on what it contains now.")

	d.want("edit", in{"file_path": "sub/new", "old_string": "", "new_string": "x\n"}, "Created sub/new (1 line).")
	d.want("edit", in{"file_path": "sub/news", "old_string": "a", "new_string": "b"}, "E_FILE_NOT_FOUND: WS/sub/news does not exist\nDid you mean sub/new?")
	d.want("edit", in{"file_path": "sub", "old_string": "a", "new_string": "b"}, "E_FILE_TYPE: WS/sub is a folder\nList it with the list tool, or name a file in it.")
	d.put("bin", "a\x00")
	d.want("edit", in{"file_path": "bin", "old_string": "a", "new_string": "b"}, "E_FILE_BINARY: WS/bin is not a text file\nUse a command that understands its format.")
}

// Hostile edits neither take long nor make much.
func TestReplaceIsBounded(t *testing.T) {
	start := time.Now()
	same := strings.Repeat("a\n", 1<<20)
	if _, _, _, err := replace(same, strings.Repeat("a\n", 1<<16)+"b\n", "x", false); err == nil {
		t.Error("found")
	}
	if _, _, _, err := replace(same, "a", strings.Repeat("b", 1000), true); err == nil {
		t.Error("a file of 1 GiB was made")
	}
	if _, _, _, err := replace(strings.Repeat("a\r\nb\n", 1<<18), "b", "c\nd", true); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

func FuzzEdit(f *testing.F) {
	for _, s := range [][3]string{
		{"a\nb\n", "a", "x"},
		{"a\r\nb\r\n", "a\nb", "x\ny"},
		{"a\r\nb\n", "b", "x\ny"},
		{"\xff\xfea\x00\n\x00", "a", "두"},
		{"caf\xe9 olé \n", "café", "x"},
		{"if x { \n}\n", "if x {\n}", "y"},
		{"a\nb\n", "1\ta\n2\tb", "1\tc"},
		{"aaa", "aa", "b"},
		{"0", "1\t", "x"},
		{"\tx\n", "    x", "y"},
		{"a\n", "", "x"},
		{"두레\xff", "레", "x"},
	} {
		f.Add([]byte(s[0]), s[1], s[2], false)
		f.Add([]byte(s[0]), s[1], s[2], true)
	}
	f.Fuzz(func(t *testing.T, data []byte, old, new string, all bool) {
		text, err := workspace.DecodeText(data)
		if err != nil {
			return
		}
		ch := &change{path: "/f", info: nil, before: text.Content, after: text.Content}
		n, err := ch.edit(editInput{Old: &old, New: &new, All: all})
		if err != nil {
			if ch.after != text.Content {
				t.Fatalf("a failing edit changed %q to %q", text.Content, ch.after)
			}
			if te, ok := errors.AsType[*agent.ToolError](err); !ok || te.Suggestion == "" || len(te.Message) > 1000 {
				t.Fatalf("%v", err)
			}
			return
		}
		if old != "" {
			checkEdit(t, text.Content, old, new, all, n, ch.after)
		}
		if back, err := text.Encode(ch.after); err == nil && !text.Damaged {
			again, err := workspace.DecodeText(back)
			// What the new text makes of the file is another matter: it may no
			// longer look like what it was.
			if err == nil && again.Encoding == text.Encoding && !again.Damaged && again.Content != ch.after {
				t.Fatalf("%q is stored as %q", ch.after, again.Content)
			}
		}
	})
}

// checkEdit compares an edit with the simplest way to make it.
func checkEdit(t *testing.T, before, old, new string, all bool, n int, after string) {
	t.Helper()
	lf := func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
	if strings.Contains(old+new, "\r") || strings.Contains(lf(before), "\r") {
		return // a CR may become part of a line end
	}
	exact := strings.Count(lf(before), old)
	if exact == 0 {
		if n != 1 && !all {
			t.Fatalf("%d places were mended", n)
		}
		return
	}
	if !all && (exact != 1 || n != 1) || all && n != exact {
		t.Fatalf("%d replaced, of %d", n, exact)
	}
	if want := strings.ReplaceAll(lf(before), old, new); lf(after) != want {
		t.Fatalf("got %q, want %q", after, want)
	}
	switch ends := workspace.LineEndsOf(before); {
	case ends == workspace.LF && strings.Contains(after, "\r"), ends == workspace.CRLF && workspace.LineEndsOf(after) == workspace.Mixed:
		t.Fatalf("line ends of %q became %q", before, after)
	}
}

func BenchmarkReplace(b *testing.B) {
	content := count(1, 5000)
	for b.Loop() {
		if _, _, _, err := replace(content, "line 4000\n", "LINE\n", false); err != nil {
			b.Fatal(err)
		}
	}
}
