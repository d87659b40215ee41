package main

import (
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
}

func TestMarkdown(t *testing.T) {
	r := Report{
		Machine: "2 × CPU, linux/amd64, go1.26", Load: "0.10 0.20 0.30", Disk: "ext4", Runs: 3,
		Figures: []Figure{
			{Case: "version", What: "wall", Unit: "ms", Aim: 10, Spread: Spread{8.125, 7, 12.04}},
			{Case: "version", What: "peak", Unit: "MB", Spread: Spread{120.4, 120.4, 120.4}},
			{Case: "request", What: "size", Unit: "KB", Aim: 16, Spread: Spread{16.5, 16.5, 16.5}},
		},
	}
	const want = `2 × CPU, linux/amd64, go1.26; logs on ext4; load before: 0.10 0.20 0.30; median of 3 runs (least to most).

| case    | figure | median  | least to most | aim     |
|---      |---     |---      |---            |---      |
| version | wall   | 8.12 ms | 7 to 12       | ≤ 10 ms |
|         | peak   | 120 MB  |               |         |
| request | size   | 16.5 KB |               | ≤ 16 KB |
`
	if diff := cmp.Diff(want, r.Markdown()); diff != "" {
		t.Errorf("Markdown (-want +got):\n%s", diff)
	}
}

func TestVerdict(t *testing.T) {
	r := Report{Figures: []Figure{
		{Case: "hello", What: "wall", Unit: "ms", Aim: 25, Spread: Spread{Median: 60}},
		{Case: "hello", What: "peak", Unit: "MB", Spread: Spread{Median: 60}},
	}}
	if err := verdict(r, 0); err != nil {
		t.Errorf("without a limit: %v", err)
	}
	if err := verdict(r, 3); err != nil {
		t.Errorf("within the limit: %v", err)
	}
	const want = "over the aims:\nhello, wall: 60 ms is over 2 times 25"
	if err := verdict(r, 2); err == nil || err.Error() != want {
		t.Errorf("over the limit: %v, want %s", err, want)
	}
}
