package prooftest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// heard is a test that only says how it ended.
type heard struct {
	testing.TB
	end string
}

func (h *heard) Logf(string, ...any)   {}
func (h *heard) Fatal(...any)          { h.over("failed") }
func (h *heard) Fatalf(string, ...any) { h.over("failed") }
func (h *heard) Skip(...any)           { h.over("skipped") }
func (h *heard) Skipf(string, ...any)  { h.over("skipped") }

func (h *heard) over(how string) {
	h.end = how
	runtime.Goexit()
}

// ended says how a test ends.
func ended(t *testing.T, test func(testing.TB)) string {
	h := &heard{TB: t, end: "passed"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(h)
	}()
	<-done
	return h.end
}

func TestSample(t *testing.T) {
	cases := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	for _, tt := range []struct {
		long  string
		cases []int
		every int
		keep  func(int) bool
		want  []int
	}{
		{"1", cases, 4, nil, cases},
		{"", cases, 4, nil, []int{0, 4, 8}},
		{"", cases, 100, nil, []int{0}},
		{"", cases, 4, func(n int) bool { return n == 3 || n == 4 }, []int{0, 3, 4, 6}},
		{"", cases, 100, func(n int) bool { return n == 0 }, []int{0, 1}},
		{"", cases[:1], 100, nil, []int{0}},
	} {
		t.Setenv("DURE_LONG", tt.long)
		if got := Sample(t, tt.cases, tt.every, tt.keep); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v", tt, got)
		}
	}
	for _, long := range []string{"", "1"} {
		t.Setenv("DURE_LONG", long)
		if end := ended(t, func(h testing.TB) { Sample(h, []int{}, 4, nil) }); end != "failed" {
			t.Errorf("long %q: of no cases, a sample has %s", long, end)
		}
		if end := ended(t, func(h testing.TB) { Sample(h, cases, 0, nil) }); end != "failed" {
			t.Errorf("long %q: of none of the cases, a sample has %s", long, end)
		}
	}
}

func TestLacking(t *testing.T) {
	for _, tt := range []struct{ require, what, want string }{
		{"", "git", "skipped"}, {"bash,go", "git", "skipped"}, {"bash,git", "git", "failed"}, {"git-lfs", "git", "skipped"},
	} {
		t.Setenv("DURE_REQUIRE", tt.require)
		if end := ended(t, func(h testing.TB) { Lacking(h, tt.what, errors.New("gone")) }); end != tt.want {
			t.Errorf("%+v: %s", tt, end)
		}
	}
	const none = "no-program-is-named-like-this"
	for require, want := range map[string]string{"": "skipped", none: "failed"} {
		t.Setenv("DURE_REQUIRE", require)
		if end := ended(t, func(h testing.TB) { Program(h, none) }); end != want {
			t.Errorf("a program that is missing, %q required: %s", require, end)
		}
	}
}

func TestLink(t *testing.T) {
	want := "failed"
	if runtime.GOOS == "windows" {
		want = "skipped"
	}
	for err, want := range map[error]string{nil: "passed", fmt.Errorf("refused"): want} {
		if end := ended(t, func(h testing.TB) { Link(h, err) }); end != want {
			t.Errorf("%v: %s", err, end)
		}
	}
}
