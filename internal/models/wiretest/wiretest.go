// Package wiretest is what the tests of all adapters share, and what the encoder
// of each of them has to pass. It belongs to tests alone.
package wiretest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"dure/agent"
	"dure/internal/models/wire"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Golden compares got with a file.
func Golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}

// Drain asks a model and returns what it said.
func Drain(ctx context.Context, m agent.Model, r agent.Request) (deltas []agent.Delta, final *agent.Answer, err error) {
	for d, err := range m.Stream(ctx, r) {
		if err != nil {
			return deltas, nil, err
		}
		deltas, final = append(deltas, d), d.Final
	}
	return deltas, final, nil
}

// Describe writes deltas as a text that can be read.
func Describe(deltas []agent.Delta, err error) []byte {
	var b bytes.Buffer
	for _, d := range deltas {
		switch d.Kind {
		case agent.DeltaUsage:
			fmt.Fprintf(&b, "usage %+v\n", *d.Usage)
		case agent.DeltaFinal:
			final, _ := json.MarshalIndent(d.Final, "", "  ")
			fmt.Fprintf(&b, "final %s\n", final)
		default:
			fmt.Fprintf(&b, "%s %d", d.Kind, d.Index)
			for _, s := range []string{d.CallID, d.Tool} {
				if s != "" {
					fmt.Fprintf(&b, " %s", s)
				}
			}
			if d.Text != "" {
				fmt.Fprintf(&b, " %q", d.Text)
			}
			b.WriteByte('\n')
		}
	}
	if e, ok := errors.AsType[*agent.ModelError](err); ok {
		fmt.Fprintf(&b, "error %v code=%q request=%q after=%v\n", err, e.Code, e.RequestID, e.RetryAfter)
	} else if err != nil {
		fmt.Fprintf(&b, "error %v\n", err)
	}
	return b.Bytes()
}

// An Encoder writes requests.
type Encoder interface {
	Encode(agent.Request) ([]byte, error)
}

// MustEncode returns the body of a request, which has to be JSON.
func MustEncode(t testing.TB, m Encoder, r agent.Request) []byte {
	t.Helper()
	b, err := m.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b) {
		t.Fatalf("no valid JSON: %s", b)
	}
	return b
}

// Encoding is an encoder under test, and what it is to encode.
type Encoding struct {
	// New returns a model that has seen nothing, and its encoder.
	New func() (Encoder, func(agent.Request) (*wire.Payload, error))

	Talk  []agent.Message // 61 messages or more: a user's, then calls and results in turn
	Short []agent.Message // another conversation
	Tools []agent.Spec
	Names map[string]string
}

func said(text string) agent.Message {
	return agent.Message{Role: agent.User, Blocks: []agent.Block{{Type: agent.TextBlock, Text: text}}}
}

// Reuse asserts that what an encoder remembers changes no request.
func (e Encoding) Reuse(t *testing.T) {
	used, _ := e.New()
	all := e.Talk[:17:17]
	fork := append(all[:5:5], said("another way"))
	other := map[string]string{"bash__exec": "Shell"}
	requests := []agent.Request{
		{Messages: all[:3], Names: e.Names, Tools: e.Tools},
		{Messages: all[:5], Names: e.Names, Tools: e.Tools},
		{Messages: fork, Names: e.Names, Tools: e.Tools, System: []agent.Section{{Text: "new"}}},
		{Messages: all, Names: e.Names, Tools: e.Tools[:1]},
		{Messages: all[:3], Names: other},
		{Messages: fork, Names: other, Tail: "t"},
		{Messages: e.Short, Names: e.Names},
		{Messages: all[4:], Names: e.Names},
		{Messages: all, Names: e.Names},
	}
	for i, r := range append(requests, requests...) {
		fresh, _ := e.New()
		got, want := MustEncode(t, used, r), MustEncode(t, fresh, r)
		if !bytes.Equal(got, want) {
			t.Errorf("request %d:\ngot  %s\nwant %s", i, got, want)
		}
	}
}

// Forks asserts that conversations with one beginning can be encoded at once.
func (e Encoding) Forks(t *testing.T) {
	_, encode := e.New()
	var wg sync.WaitGroup
	for g := range 4 {
		mine := append(e.Talk[:41:41], said(fmt.Sprint("fork ", g)))
		wg.Go(func() {
			for step := 1; step <= len(mine); step++ {
				r := agent.Request{Messages: mine[:step], Tools: e.Tools}
				p, err := encode(r)
				if err != nil {
					t.Error(err)
					return
				}
				got, _ := io.ReadAll(p.Reader())
				fresh, _ := e.New()
				if want, _ := fresh.Encode(r); !bytes.Equal(got, want) || p.Size() != int64(len(want)) {
					t.Errorf("fork %d, step %d differs", g, step)
				}
			}
		})
	}
	wg.Wait()
}

// Stored asserts that a request which was stored and read again is written as before.
func (e Encoding) Stored(t *testing.T, live agent.Request) {
	stored, err := json.Marshal(live)
	if err != nil {
		t.Fatal(err)
	}
	var resumed agent.Request
	if err := json.Unmarshal(stored, &resumed); err != nil {
		t.Fatal(err)
	}
	one, _ := e.New()
	other, _ := e.New()
	if got, want := MustEncode(t, one, resumed), MustEncode(t, other, live); !bytes.Equal(got, want) {
		t.Errorf("resumed: %s\nlive:    %s", got, want)
	}
}

// Known asserts that a conversation which was sent before is written again with so many
// allocations at most.
func (e Encoding) Known(t *testing.T, all []agent.Message, most float64) {
	m, encode := e.New()
	MustEncode(t, m, agent.Request{Messages: all, Tools: e.Tools})
	allocs := testing.AllocsPerRun(20, func() {
		if _, err := encode(agent.Request{Messages: all, Tools: e.Tools, Tail: "now"}); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > most {
		t.Errorf("%v allocations to send %d known messages again", allocs, len(all))
	}
}

// Growing measures the last step of a conversation that has grown by a call at a time.
func (e Encoding) Growing(b *testing.B, all []agent.Message) {
	m, encode := e.New()
	r := agent.Request{System: []agent.Section{{Text: strings.Repeat("Rules. ", 500), Cache: true}}, Tools: e.Tools, Names: e.Names, Tail: "now"}
	for end := 1; end < len(all); end += 2 {
		r.Messages = all[:end]
		MustEncode(b, m, r)
	}
	r.Messages = slices.Clone(all)
	size := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		p, err := encode(r)
		if err != nil {
			b.Fatal(err)
		}
		size = p.Size()
	}
	b.ReportMetric(float64(size), "bytes/request")
}
