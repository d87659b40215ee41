package registry

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"dure/agent"
)

func TestEmbeddedCatalog(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range New(nil).All() {
		names := append([]string{m.ID}, m.Aliases...)
		for _, n := range names {
			if seen[n] || n != strings.ToLower(n) || n == "" {
				t.Errorf("%s: the name %q is empty, not lower case, or taken", m.ID, n)
			}
			seen[n] = true
		}
		if m.Provider == "" || m.Name == "" || m.Window < 100_000 || m.MaxOut < 1000 || m.MaxOut > m.Window {
			t.Errorf("%s: incomplete: %+v", m.ID, m)
		}
		if p := m.Price; p != nil {
			for list := p; list != nil; list = list.Long {
				rates := []float64{}
				for _, r := range []*float64{list.CacheRead, list.Input, list.CacheWrite, list.CacheHour} {
					if r != nil {
						rates = append(rates, *r)
					}
				}
				if !slices.IsSorted(rates) || *list.Input > *list.Output {
					t.Errorf("%s: prices are out of order", m.ID)
				}
			}
		}
	}
	for _, want := range []string{"claude-sonnet-4-6", "claude-opus-4-6", "claude-haiku-4-5", "claude-haiku-4-5-20251001", "sonnet", "opus", "haiku", "script"} {
		if !seen[want] {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestEveryFieldOfTheFileIsKnown(t *testing.T) {
	dec := json.NewDecoder(strings.NewReader(string(facts)))
	dec.DisallowUnknownFields()
	var list []agent.ModelInfo
	if err := dec.Decode(&list); err != nil {
		t.Fatal(err)
	}
}

func TestLookup(t *testing.T) {
	c := New(nil)
	for _, x := range []struct{ name, want string }{
		{"claude-sonnet-4-6", "claude-sonnet-4-6"},
		{" Claude-Sonnet-4-6 ", "claude-sonnet-4-6"},
		{"opus", "claude-opus-5-5"},
		{"claude-haiku-4-5-20251001", "claude-haiku-4-5"},
		{"claude-sonnet-4-6-20260217", "claude-sonnet-4-6-20260217"},
		{"script", "script"},
		{"sonnet-20260217", ""},
		{"claude-sonnet-4-6-latest", ""},
		{"", ""},
		{"gpt", ""},
	} {
		m, ok := c.Lookup(x.name)
		if m.ID != x.want || ok != (x.want != "") {
			t.Errorf("%q: got %q, %v, want %q", x.name, m.ID, ok, x.want)
		}
	}
}

func TestCostWithCachePrices(t *testing.T) {
	m, _ := New(nil).Lookup("claude-sonnet-4-6")
	u := agent.Usage{Input: 1000, Output: 500, CacheRead: 100_000, CacheWrite: 3000, CacheHour: 1000}
	// 0.003 + 0.0075 + 0.03 + 2000 × 3.75e-6 + 1000 × 6e-6
	if got := m.Price.Cost(u); got == nil || *got != 54_000_000 {
		t.Errorf("got %v", got)
	}
}

func TestCostOfLongPrompts(t *testing.T) {
	m, _ := New(nil).Lookup("claude-haiku-5-5")
	for _, c := range []struct {
		usage agent.Usage
		want  string
	}{
		{agent.Usage{Input: 10_000, CacheRead: 90_000, Output: 1000}, "$0.0024"},
		{agent.Usage{Input: 10_001, CacheRead: 90_000, Output: 1000}, "$0.0120"},
		{agent.Usage{Input: 200_000, CacheHour: 1, CacheWrite: 1}, "<nil>"}, // not known
	} {
		if got := fmt.Sprint(m.Price.Cost(c.usage)); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.usage, got, c.want)
		}
	}
}

func TestUsersEntries(t *testing.T) {
	mine := []agent.ModelInfo{
		{ID: "qwen3-coder", Provider: "local", Aliases: []string{"sonnet", "q"}, Window: 32768},
		{ID: "Claude-Opus-4-6", Provider: "anthropic", Window: 1},
		{ID: "haiku", Provider: "local", Window: 2},
	}
	c := New(mine)
	mine[0].ID = "changed"
	var got []string
	for _, name := range []string{"q", "sonnet", "claude-opus-4-6", "haiku", "claude-sonnet-5-5"} {
		m, ok := c.Lookup(name)
		got = append(got, fmt.Sprint(m.ID, " ", m.Window, " ", ok))
	}
	want := []string{"qwen3-coder 32768 true", "qwen3-coder 32768 true", "Claude-Opus-4-6 1 true", "haiku 2 true", "claude-sonnet-5-5 1000000 true"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if n, m := len(c.All()), len(New(nil).All()); n != m+2 {
		t.Errorf("%d models, %d without the user's", n, m)
	}
}

func TestNearest(t *testing.T) {
	c := New(nil)
	for _, x := range []struct {
		name string
		want []string
	}{
		{"claude-sonet-4-6", []string{"claude-sonnet-4-6", "claude-sonnet-4-5", "claude-sonnet-5-5"}},
		{"sonet", []string{"claude-sonnet-5-5"}},
		{"scrip", []string{"script"}},
		{"gpt-9-turbo-preview", nil},
		{"", nil},
	} {
		if got := c.Nearest(x.name); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%q: got %q, want %q", x.name, got, x.want)
		}
	}
	c.Nearest(strings.Repeat("a", 1<<20))
}

func TestConcurrentUse(t *testing.T) {
	c := New(nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, ok := c.Lookup("opus"); !ok {
				t.Error("opus is missing")
			}
		})
	}
	wg.Wait()
}
