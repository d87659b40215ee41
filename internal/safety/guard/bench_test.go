package guard

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// source is the text of this package, over and over: ordinary code, and as full of
// what looks like the beginning of a secret as code can be.
func source(tb testing.TB, size int) string {
	tb.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		tb.Fatal(err)
	}
	var b strings.Builder
	for b.Len() < size {
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				tb.Fatal(err)
			}
			b.Write(text)
		}
	}
	return b.String()[:size]
}

// logs are lines as servers write them.
func logs(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "2026-03-%02dT12:%02d:%02d.%06dZ INFO  request done id=%016x status=200 took=%dms bytes=%d addr=10.0.%d.%d:%d ts=17%011d\n",
			i%28+1, i%60, i*7%60, i*7919%1_000_000, uint64(i)*0x9e3779b97f4a7c15, i%500, i*31%100_000, i%256, i*3%256, 30_000+i%9_000, i*104_729)
		if i%10 == 0 {
			fmt.Fprintf(&b, "  at com.example.app.Handler$%d.call(Handler.java:%d) user=%d token_type: bearer\n", i%9, i%400, i)
		}
	}
	return b.String()[:size]
}

func BenchmarkRedact(b *testing.B) {
	korean := strings.Repeat("두레는 여럿이 함께 일하는 모임이다. 계좌 없이도 된다: 열두 명.\n", 20_000)
	for _, bb := range []struct{ name, text string }{{"source", source(b, 4<<20)}, {"logs", logs(4 << 20)}, {"korean", korean}} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := io.Copy(io.Discard, newFilter(strings.NewReader(bb.text), scope{financial: true})); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
