package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSpread(t *testing.T) {
	ms := func(v ...int) []Sample {
		var s []Sample
		for _, n := range v {
			s = append(s, Sample{Wall: time.Duration(n) * time.Millisecond})
		}
		return s
	}
	for _, tt := range []struct {
		samples []Sample
		want    Spread
	}{
		{ms(7), Spread{7, 7, 7}},
		{ms(9, 1, 5), Spread{5, 1, 9}},
		{ms(9, 1, 5, 6), Spread{5.5, 1, 9}},
	} {
		if got := spread(tt.samples, wallMS); got != tt.want {
			t.Errorf("spread(%v) = %v, want %v", tt.samples, got, tt.want)
		}
	}
	if got, want := ratio(Spread{6, 4, 9}, 2), (Spread{2, 2, 2}); got != want {
		t.Errorf("to a reference: %v, want %v", got, want)
	}
	if got := ratio(Spread{6, 4, 9}, 0); got != (Spread{}) {
		t.Errorf("to nothing: %v", got)
	}
}

// sample is a report with a figure of every kind.
var sample = Report{
	Machine: "2 × CPU, linux/amd64, go1.26", Load: "0.10 0.20 0.30", LoadAfter: "1.10 0.60 0.40", Disk: "ext4", Runs: 3,
	Figures: []Figure{
		{Case: "version", What: "wall", Unit: "ms", Aim: 10, Load: "0.10 0.20 0.30", Spread: Spread{8.125, 7, 12.04}},
		{Case: "version", What: "peak", Unit: "MB", Load: "0.10 0.20 0.30", Spread: Spread{120.4, 120.4, 120.4}},
		{Case: "request", What: "size", Unit: "KB", Aim: 16, Load: "0.90 0.20 0.30", Spread: Spread{16.5, 16.5, 16.5}},
		{Case: "deltas", What: "a second", Unit: "deltas", Load: "0.90 0.20 0.30", Spread: Spread{1234567, 999, 1300000}},
		{Case: "search", What: "to rg", Unit: "×", Aim: 1.5, Load: "unknown", Spread: Spread{1.25, 1.1, 1.3}},
		{Case: "other", What: "skipped: rg is not installed"},
	},
}

const sampleTable = `2 × CPU, linux/amd64, go1.26; logs on ext4; load before: 0.10 0.20 0.30, after: 1.10 0.60 0.40; median of 3 runs (least to most).

| case    | figure                       | median           | least to most    | aim      | load    |
|---      |---                           |---               |---               |---       |---      |
| version | wall                         | 8.12 ms          | 7 to 12          | ≤ 10 ms  | 0.10    |
|         | peak                         | 120 MB           |                  |          |         |
| request | size                         | 16.5 KB          |                  | ≤ 16 KB  | 0.90    |
| deltas  | a second                     | 1,234,567 deltas | 999 to 1,300,000 |          | 0.90    |
| search  | to rg                        | 1.25 ×           | 1.10 to 1.30     | ≤ 1.50 × | unknown |
| other   | skipped: rg is not installed |                  |                  |          | ?       |
`

func TestMarkdown(t *testing.T) {
	if diff := cmp.Diff(sampleTable, sample.Markdown()); diff != "" {
		t.Errorf("Markdown (-want +got):\n%s", diff)
	}
}

// The table replaces the last section of its page, however often.
func TestKeep(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("# Title\n\n## Method\n\ntext\n\n## Figures\n\nold table\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := keep(page, sample); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("# Title\n\n## Method\n\ntext\n\n## Figures\n\n"+sampleTable, string(got)); diff != "" {
		t.Errorf("the page (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(page, []byte("no section"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := keep(page, sample); err == nil {
		t.Error("a page without a section was taken")
	}
}

// Times may be longer on a slow machine, peaks and ratios have some room.
func TestVerdict(t *testing.T) {
	figures := func(ms, mb, ratio float64) Report {
		return Report{Figures: []Figure{
			{Case: "hello", What: "wall", Unit: "ms", Aim: 25, Spread: Spread{Median: ms}},
			{Case: "hello", What: "peak", Unit: "MB", Aim: 40, Spread: Spread{Median: mb}},
			{Case: "binary", What: "size", Unit: "MB", Aim: 45, Spread: Spread{Median: 44 + ratio}},
			{Case: "hello", What: "CPU", Unit: "ms", Spread: Spread{Median: 1000}},
			{Case: "search", What: "to rg", Unit: "×", Aim: 1.5, Spread: Spread{Median: ratio}},
			{Case: "other", What: "skipped: for a reason"},
		}}
	}
	for _, tt := range []struct {
		r     Report
		slack float64
		want  string
	}{
		{figures(60, 60, 2), 0, ""},
		{figures(60, 40, 1), 3, ""},
		{figures(60, 40, 1), 2, "over the aims:\nhello, wall: 60 ms is over 50"},
		{figures(60, 51, 0.9), 3, ""},
		{figures(60, 53, 2), 3, "over the aims:\nhello, peak: 53 MB is over 52\nbinary, size: 46 MB is over 45\nsearch, to rg: 2 × is over 1.95"},
	} {
		got := ""
		if err := verdict(tt.r, tt.slack); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("with slack %g: %q, want %q", tt.slack, got, tt.want)
		}
	}
}

// A case of which a figure is over is measured again whole, and only then.
func TestTakeOver(t *testing.T) {
	r := Report{Figures: []Figure{
		{Case: "hello", What: "wall", Unit: "ms", Aim: 25, Spread: Spread{Median: 60}},
		{Case: "hello", What: "CPU", Unit: "ms", Spread: Spread{Median: 1000}},
		{Case: "start", What: "wall", Unit: "ms", Aim: 25, Spread: Spread{Median: 20}},
	}}
	for slack, want := range map[float64]string{0: "", 3: "", 2: "hello"} {
		r := Report{Figures: slices.Clone(r.Figures)}
		if got := strings.Join(r.takeOver(slack), ","); got != want || (len(r.Figures) == 3) != (want == "") {
			t.Errorf("with slack %g: %q is measured again, %d figures stay", slack, got, len(r.Figures))
		}
	}
}

func TestProse(t *testing.T) {
	for _, size := range []int{0, 1, 79, 80, 30_000} {
		if got := len(prose(3, size)); got != size {
			t.Errorf("%d bytes were asked for, %d came", size, got)
		}
	}
	if prose(1, 500) == prose(2, 500) {
		t.Error("two seeds give the same text")
	}
}

// What a run prints is kept up to the bound, and read to its end.
func TestHead(t *testing.T) {
	var h head
	n, err := io.Copy(&h, strings.NewReader(strings.Repeat("x", maxKept+10)))
	if err != nil || n != maxKept+10 || len(h.kept) != maxKept {
		t.Errorf("took %d bytes (%v) and kept %d", n, err, len(h.kept))
	}
}

// The text of a piece is found in every wire format, so that the reference reads
// what the adapters read.
func TestPlainClientReadsAllFormats(t *testing.T) {
	const n = 50
	srv, err := serve(talk(strings.Repeat("word", n)), true)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.close()
	for _, w := range wires {
		text, err := plainText(srv.url() + w.path)
		if err != nil || text != strings.Repeat("word", n) {
			t.Errorf("%s: %d bytes, %v", w.name, len(text), err)
		}
	}
}
