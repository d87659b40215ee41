package frontmatter

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// nodes writes what a document consists of, with the places.
func nodes(n *yaml.Node) string {
	if n == nil {
		return "nothing"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %q %d:%d\n", n.Kind, n.ShortTag(), n.Value, n.Line, n.Column)
	for _, c := range n.Content {
		b.WriteString(nodes(c))
	}
	return b.String()
}

// What is read without YAML is what YAML reads.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{
		"name: a\n", "name: a-b\ndescription: Does this, and that (always).\nallowed-tools: Read Grep\n", "a: b\na: c\n", "a: yes\n", "y: x\n",
		"a: b: c\n", "a: b #c\n", "a: b\n  c\n", "a: - b\n", "a:  b\n", "name: a", "a: b\n\n", "a: it's \"so\"\n", "a: b, c\n", "a: x=<y>!\n", "a: nan\n", "a: b ---\n", "a: =\n", "a: 40\n", "a: 040\n", "a: 1_0\n", "a: 0\n",
		"a: true\nb: false\nc: True\n", "a: 가나, 다 라. b\n", "a: 가:\n", "가: a\n", "a: 가 \n", "a: \u3131\n", "a: b\xff\n",
		"a:\n  b: c\n  d: 4\ne: f\n", "a:\n  b: c\na:\n  b: c\n", "a:\n  b: c\n  b: d\n", "a:\n", "a:\nb: c\n", "b: c\na:\n", "a:\nb:\n  c: d\n",
		"a:\n   b: c\n", "a:\n  b: c\n    d: e\n", "a:\n  b:\n", "a:\n  b:\n    c: d\n", "a: b\n  c: d\n", "  a: b\n", "a:\n b: c\n", "a: \n  b: c\n", "y:\n  b: c\n",
		"a:\n\n  b: c\n", "a:\n  b: c\n\n", "a:\n  - b: c\n", "a:\n  b: c\n d: e\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, head string) {
		got := plain(head)
		if got == nil || hidden(head) != nil {
			return
		}
		want, fault := readYAML(head)
		if fault != nil || nodes(got) != nodes(want) {
			t.Errorf("%q: %v\n%s\nand not\n%s", head, fault, nodes(got), nodes(want))
		}
	})
}

// What most files have is read without YAML: the program's own agents are, at every start.
func TestPlainFields(t *testing.T) {
	for _, head := range []string{
		"name: a-b\ndescription: Does this, and that (always).\nallowed-tools: Read Grep Bash(git diff *)\n",
		"name: a\nmaxTurns: 40\nomitClaudeMd: true\nmetadata:\n  ko: 바뀐 곳을 검토합니다. 틀린 결과, 경쟁 상태를 찾습니다\n  since: 3\ncolor: blue\n",
	} {
		want, fault := readYAML(head)
		if fault != nil {
			t.Fatal(fault)
		}
		if got := plain(head); nodes(got) != nodes(want) {
			t.Errorf("%q:\n%s\nand not\n%s", head, nodes(got), nodes(want))
		}
	}
}

func BenchmarkParse(b *testing.B) {
	data := []byte("---\nname: review-code\ndescription: Reviews the changes of a branch for bugs and gaps. Use it before a merge.\nallowed-tools: Read Grep Glob\n---\n# Review\n\nLook at each file.\n")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}
