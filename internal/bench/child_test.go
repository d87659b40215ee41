package main

import (
	"os"
	"path/filepath"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
)

// world gives the children of a benchmark a home of their own, and a model.
func world(t *testing.T, url string) (work string) {
	t.Helper()
	home := t.TempDir()
	work = filepath.Join(home, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("DURE_HOME", filepath.Join(home, "dure"))
	t.Setenv("ANTHROPIC_BASE_URL", url)
	t.Setenv("ANTHROPIC_API_KEY", "bench")
	return work
}

// What is written as a long session is one: its seals hold, its requests can be
// built again, and it opens with its last turn.
func TestFilledSessionIsSound(t *testing.T) {
	work := world(t, nowhere)
	out, err := fillChild([]string{work, "2000000"})
	if err != nil {
		t.Fatal(err)
	}
	if f := out.(filled); f.Bytes < 2_000_000 || f.Bytes > 3_000_000 {
		t.Errorf("the log has %d bytes", f.Bytes)
	}
	seen, err := openChild([]string{work})
	if err != nil {
		t.Fatal(err)
	}
	if got := seen.(opened).Answer; got != "Done with turn 4." {
		t.Errorf("the last turn says %q", got)
	}
	a, err := program(work)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	seals, err := client.Query[agent.SealReport](t.Context(), a.Client(), agent.VerifySeals{Session: longID})
	if err != nil || !seals.OK || seals.Seals != 4 {
		t.Errorf("the seals: %+v, %v", seals, err)
	}
	again, err := client.Query[agent.ReplayReport](t.Context(), a.Client(), query.VerifyReplay{Session: longID})
	if err != nil || !again.OK || again.Requests != 4*(turnSteps+1) {
		t.Errorf("the replay: %+v, %v", again, err)
	}
}

func TestCrowd(t *testing.T) {
	srv, err := serveSlowly(manyText, manyChunk, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.close()
	work := world(t, srv.url())
	out, err := manyChild([]string{work, "5"})
	if err != nil {
		t.Fatal(err)
	}
	got := out.(crowd)
	// Which live events a reader gets depends on how fast it is.
	if got.Sessions != 5 || got.Live < 1 || got.Live > 5 || got.Stored < 5*5 || got.Shown > 5 {
		t.Errorf("seen: %+v", got)
	}
}

func TestChildrenThatDoNotExist(t *testing.T) {
	if err := runChild([]string{"nothing"}); err == nil {
		t.Error("a task that does not exist was done")
	}
}
