package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/prooftest"
	"dure/internal/safety/sandbox"
)

// runDemo plays the demo to the end of its turn and reports on it.
func runDemo(t *testing.T, wire string, change func(*Demo)) Report {
	t.Helper()
	home, err := os.UserHomeDir() // where the compiler keeps what it has made
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(app.Options{
		Environ:  append(os.Environ(), "DURE_HOME="+filepath.Join(t.TempDir(), "dure"), "DURE_DURABILITY=os"),
		UserHome: home, Version: "test",
	}, wire)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
	}()
	if change != nil {
		change(d)
	}
	s, err := d.Client().Open(t.Context(), d.Open())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), agent.Prompt{Text: d.Task}); err != nil {
		t.Fatal(err)
	}
	for e, err := range s.Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.Body.(agent.TurnEnded); ok {
			break
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := d.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// need skips a test whose sample is tested with a program that is not here,
// unless DURE_REQUIRE names it.
func need(t *testing.T, program string) {
	t.Helper()
	if sandbox.Find(program) == "" {
		prooftest.Lacking(t, program, "the sample is tested with it")
	}
}

// The demo does what it shows, whatever format its model is spoken to in.
func TestDemo(t *testing.T) {
	t.Parallel()
	need(t, "go")
	for _, wire := range prooftest.Sample(t, script.Wires, len(script.Wires), nil) {
		t.Run(wire, func(t *testing.T) { testDemo(t, wire) })
	}
}

func testDemo(t *testing.T, wire string) {
	r := runDemo(t, wire, nil)
	const want = "--- split.go\n+++ split.go\n@@ -7,6 +7,9 @@\n \tshares := make([]int, n)\n \tfor i := range shares {\n \t\tshares[i] = total / n\n" +
		"+\t\tif i < total%n {\n+\t\t\tshares[i]++\n+\t\t}\n \t}\n \treturn shares\n }\n"
	if !r.OK() || r.Diff != want || r.Replay.Requests != 7 || r.Session.Cost == nil || r.Log == "" {
		t.Errorf("%+v", r)
	}
}

// When the edit does not happen the demo says so: nothing in it is made up but
// the model.
func TestDemoFails(t *testing.T) {
	t.Parallel()
	need(t, "go")
	r := runDemo(t, script.Wires[0], func(d *Demo) {
		other := []byte("package till\n\nfunc Split(total, n int) []int { return nil }\n")
		if err := os.WriteFile(filepath.Join(d.Dir, d.sample.file), other, 0o600); err != nil {
			t.Fatal(err)
		}
		d.before = string(other)
	})
	if r.OK() || r.Diff != "" || r.Passes || r.Output == "" {
		t.Errorf("%+v", r)
	}
}

// The sample for machines without Go is mended by the same script.
func TestShellSample(t *testing.T) {
	t.Parallel()
	need(t, "sh")
	d := &Demo{Dir: t.TempDir(), sample: shSample, env: os.Environ()}
	if err := d.write(); err != nil {
		t.Fatal(err)
	}
	if passes, out, err := d.runTest(t.Context()); passes || err != nil || !strings.Contains(out, "100 cents among 3 people") {
		t.Fatal(passes, out, err)
	}
	path := filepath.Join(d.Dir, d.sample.file)
	mended := strings.Replace(d.before, d.sample.old, d.sample.new, 1)
	if err := os.WriteFile(path, []byte(mended), 0o600); err != nil {
		t.Fatal(err)
	}
	if passes, out, err := d.runTest(t.Context()); !passes || err != nil {
		t.Fatal(out, err)
	}
}
