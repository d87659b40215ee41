package files

import (
	"strings"
	"testing"
)

// What stands for a secret in a result gets into no file; what a file has itself
// is text like any other.
func TestMasks(t *testing.T) {
	const mask = "[redacted:github-token]"
	d := newDesk(t)
	d.files.Masked = func(s string) bool { return strings.Contains(s, mask) }
	d.open()
	secret := "a = 1\ntoken = " + strings.Repeat("x", 8) + "\nb = 2\n"
	book := `{"cells":[{"cell_type":"code","id":"c1","metadata":{},"outputs":[],"execution_count":null,"source":["1"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`
	refused := func(name string) string {
		return "E_FILE_MASKED: the text has " + mask + ", which is not in WS/" + name + ": it stands for a secret that you are not shown\n" +
			"Leave the line with the secret alone, and change what is around it; or ask the user to make this change."
	}
	for _, tt := range []struct {
		name, file, before, tool string
		input                    in
		want, after              string
	}{
		{"write over", "a.ini", secret, "write", in{"content": "a = 2\ntoken = " + mask + "\n"}, refused("a.ini"), secret},
		{"write a new file", "b.ini", "", "write", in{"content": "token = " + mask}, refused("b.ini"), "(missing)"},
		{"edit the mask in", "c.ini", secret, "edit", in{"old_string": "a = 1\n", "new_string": "a = 1\n" + mask}, refused("c.ini"), secret},
		{"look for the mask", "d.ini", secret, "edit", in{"old_string": "token = " + mask, "new_string": "token = 1"}, refused("d.ini"), secret},
		{"around the secret", "e.ini", secret, "edit", in{"old_string": "a = 1", "new_string": "a = 3"}, "Edited e.ini: +1 -1 lines.", strings.Replace(secret, "a = 1", "a = 3", 1)},
		{"several edits", "f.ini", secret, "multi-edit", in{"edits": []in{{"old_string": "a = 1", "new_string": "a = 3"}, {"old_string": "b = 2", "new_string": mask}}}, refused("f.ini"), secret},
		{"a mask of the file's own", "g.md", "The guard writes " + mask + ".\n", "edit", in{"old_string": "The guard writes " + mask, "new_string": "It shows " + mask}, "Edited g.md: +1 -1 lines.", "It shows " + mask + ".\n"},
		{"once more than the file has it", "h.md", mask + "\n", "edit", in{"old_string": mask, "new_string": mask + mask}, refused("h.md"), mask + "\n"},
		{"notebook", "i.ipynb", book, "notebook__edit", in{"cell_id": "c1", "new_source": "x = '" + mask + "'"}, refused("i.ipynb"), book},
	} {
		path := "file_path"
		if tt.tool == "notebook__edit" {
			path = "notebook_path"
		}
		if tt.before != "" {
			d.put(tt.file, tt.before)
			d.do("read", in{"file_path": tt.file})
		}
		tt.input[path] = tt.file
		if got, _, _ := strings.Cut(d.text(tt.tool, tt.input), "\n@@"); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %s\n-- want\n%s", tt.name, got, tt.want)
		}
		if got := d.get(tt.file); got != tt.after {
			t.Errorf("%s: the file is %q", tt.name, got)
		}
	}
	d.put("p.ini", secret)
	d.do("read", in{"file_path": "p.ini"})
	for name, patch := range map[string]string{
		"added":      " a = 1\n+" + mask + "\n token = xxxxxxxx\n",
		"looked for": " a = 1\n-token = " + mask + "\n+token = 1\n",
	} {
		got := d.text("patch", in{"patch": "*** Begin Patch\n*** Update File: p.ini\n@@\n" + patch + "*** End Patch\n"})
		if !strings.HasPrefix(got, "E_FILE_MASKED: ") || d.get("p.ini") != secret {
			t.Errorf("patch, %s: %s", name, got)
		}
	}
}
