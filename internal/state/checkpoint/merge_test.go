package checkpoint

import "testing"

func TestMerge(t *testing.T) {
	for name, c := range map[string]struct{ origin, ours, theirs, want, marked string }{
		"nothing":            {"a\n", "a\n", "a\n", "a\n", ""},
		"one side":           {"a\nb\n", "a\nx\n", "a\nb\n", "a\nx\n", ""},
		"far from another":   {"a\nb\nc\nd\n", "x\nb\nc\nd\n", "a\nb\nc\ny\n", "x\nb\nc\ny\n", ""},
		"the same":           {"a\nb\n", "a\nx\n", "a\nx\n", "a\nx\n", ""},
		"overlap":            {"a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n", "", "a\n<<<<<<< o\nx\n=======\ny\n>>>>>>> t\nc\n"},
		"touching":           {"a\nb\nc\n", "a\nx\nc\n", "a\nb\ny\n", "", "a\n<<<<<<< o\nx\nc\n=======\nb\ny\n>>>>>>> t\n"},
		"both at the end":    {"a\n", "a\nx", "a\ny\n", "", "a\n<<<<<<< o\nx\n=======\ny\n>>>>>>> t\n"},
		"emptied":            {"a\nb\n", "", "a\nx\n", "", "<<<<<<< o\n=======\na\nx\n>>>>>>> t\n"},
		"without an end":     {"a\nb\nc\nd", "x\nb\nc\nd", "a\nb\nc\nd\ne", "x\nb\nc\nd\ne", ""},
		"into what is empty": {"", "a\n", "", "a\n", ""},
	} {
		got, clean := merge3([]byte(c.origin), []byte(c.ours), []byte(c.theirs), nil)
		equal(t, name, string(got), c.want)
		if clean != (c.marked == "") {
			t.Errorf("%s: clean is %v", name, clean)
		}
		if !clean {
			got, _ = merge3([]byte(c.origin), []byte(c.ours), []byte(c.theirs), &sides{"o", "t"})
			equal(t, name+", marked", string(got), c.marked)
		}
	}
}

// Any three texts are merged without a word lost: what only one side has changed
// comes out, and where both say the same so does that.
func FuzzMerge(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nx\nc\n", "a\nb\ny\n")
	f.Add("a\nb", "", "b\n")
	f.Fuzz(func(t *testing.T, o, a, b string) {
		if len(o)+len(a)+len(b) > 4<<10 {
			return
		}
		for _, c := range [][4]string{{o, a, o, a}, {o, o, b, b}, {o, a, a, a}} {
			got, clean := merge3([]byte(c[0]), []byte(c[1]), []byte(c[2]), nil)
			if !clean || string(got) != c[3] {
				t.Errorf("merge of %q, %q, %q is %q, %v", c[0], c[1], c[2], got, clean)
			}
		}
		x, cleanX := merge3([]byte(o), []byte(a), []byte(b), nil)
		y, cleanY := merge3([]byte(o), []byte(b), []byte(a), nil)
		if cleanX != cleanY || string(x) != string(y) {
			t.Errorf("merged the other way round, %q is %q", x, y)
		}
		merge3([]byte(o), []byte(a), []byte(b), &sides{"a", "b"})
	})
}
