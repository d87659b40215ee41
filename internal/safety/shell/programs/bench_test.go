package programs

import "testing"

func BenchmarkLook(b *testing.B) {
	for _, line := range []string{
		"ls -la src",
		"grep -rn --include='*.go' foo internal",
		"git log --oneline -5 main..dev",
		"find . -name '*.go' -type f",
		"sed -n 1,40p a.go",
		"rm -rf build",
		"npm run build",
		"timeout 30 go test ./...",
		"curl -sSL https://example.com/a",
		"git commit -m 'x y z'",
		"nobody knows this",
	} {
		c := Call{words(line)}
		b.Run(line, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Look(c)
			}
		})
	}
}

func BenchmarkIndex(b *testing.B) {
	for b.Loop() {
		readTables()
	}
}

func BenchmarkTables(b *testing.B) {
	for b.Loop() {
		x := readTables()
		for _, e := range x.entries {
			e.get()
		}
	}
}
