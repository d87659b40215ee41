package repair_test

import (
	"fmt"
	"strings"
	"testing"

	"dure/internal/state/archive/repair"
)

// BenchmarkCheck reads a transcript of about 20 MB.
func BenchmarkCheck(b *testing.B) {
	var s strings.Builder
	out := strings.Repeat("some output of a command, line by line\\n", 100)
	for i := range 4000 {
		fmt.Fprintf(&s, `{"id":"u%d","role":"user","content":"go on"}`+"\n", i)
		fmt.Fprintf(&s, `{"id":"a%d","role":"assistant","content":[{"type":"text","text":"look"},{"type":"tool_use","id":"c%d","name":"read","input":{"path":"a"}}]}`+"\n", i, i)
		fmt.Fprintf(&s, `{"id":"r%d","role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":"%s"}]}`+"\n", i, i, out)
	}
	data := s.String()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := repair.Check(strings.NewReader(data), int64(len(data)), repair.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
