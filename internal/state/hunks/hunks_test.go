package hunks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sample = `diff --git a/a.txt b/a.txt
index 1..2 100644
--- a/a.txt
+++ b/a.txt
@@ -1 +1,2 @@ func main() {
 one
+two
@@ -9,2 +10,2 @@
-old
+@@ -1 +1,2 @@
+diff --git a/x b/x
 end
\ No newline at end of file
diff --git a/pic.png b/pic.png
new file mode 100644
Binary files /dev/null and b/pic.png differ
diff --git "a/b\303\244.txt" "b/b\303\244.txt"
deleted file mode 100644
--- "a/b\303\244.txt"
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/two words b/two words
old mode 100644
new mode 100755
`

// What can be chosen of a diff, whatever its lines look like, and what is left of it.
func TestParts(t *testing.T) {
	var names []string
	for _, p := range Split(sample) {
		names = append(names, p.Name())
	}
	want := []string{"a.txt @@ -1 +1,2 @@", "a.txt @@ -9,2 +10,2 @@", "pic.png", "bä.txt @@ -1 +0,0 @@", "two words"}
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
	if all, _, err := Pick(sample, names); err != nil || all != sample {
		t.Errorf("all of it is %v\n%s", err, all)
	}
	some, picked, err := Pick(sample, []string{names[1], names[4]})
	if err != nil || len(picked) != 2 || strings.Contains(some, "+two") || !strings.HasPrefix(some, "diff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -9,2 +10,2 @@\n-old\n") || !strings.HasSuffix(some, "new mode 100755\n") {
		t.Errorf("%v\n%s", err, some)
	}
	if _, _, err := Pick(sample, []string{"a.txt"}); err == nil {
		t.Error("a file that has hunks is no hunk")
	}
	if _, _, err := Pick(sample+sample, names[:1]); err == nil {
		t.Error("a name that two have is taken")
	}
}

func FuzzSplit(f *testing.F) {
	f.Add(sample)
	f.Fuzz(func(t *testing.T, diff string) {
		var names []string
		for _, p := range Split(diff) {
			names = append(names, p.Name())
		}
		_, _, _ = Pick(diff, names)
	})
}
