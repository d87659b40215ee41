//go:build linux

package shell

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"dure/internal/prooftest"
)

// Whatever program bash starts for a command line, the reading of that command line
// names, or it says that it cannot tell. Command lines are written at random and made
// of the cases of the policy; DURE_SEED repeats a run, DURE_LONG=1 takes a minute and
// DURE_FUZZTIME (a Go duration) as long as one likes.
func TestOracle(t *testing.T) {
	o := newOracle(t)
	seed, limit := oracleRun(t)
	s := newScribe(t, seed)
	seeds := oracleSeeds(t)
	began, looked, total, wrong := time.Now(), 0, 0, 0
	for time.Since(began) < limit {
		var batch []string
		for len(batch) < 100 {
			total++
			text := s.script()
			switch s.IntN(4) {
			case 0:
				text = s.mutate(text, seeds[s.IntN(len(seeds))])
			case 1:
				text = s.mutate(seeds[s.IntN(len(seeds))], seeds[s.IntN(len(seeds))])
			}
			text = oraclePlaced(text, len(batch))
			e := oracleRead(text, len(batch))
			if len(text) < 2000 && e.Unreadable == "" && e.Unparsed == "" && e.Destructive == "" {
				batch = append(batch, text)
			}
		}
		for n, r := range o.run(t, batch) {
			looked++
			if what := missed(oracleRead(batch[n], n), r); what != "" {
				least := batch[n]
				if wrong++; wrong <= 5 {
					least = o.least(t, least, n)
				}
				t.Errorf("seed %d: %s\nbut the reading of this does not say so:\n%s\n(least form of %q)\n%+v", seed, what, least, batch[n], oracleRead(least, n).Commands)
			}
		}
		if t.Failed() && os.Getenv("DURE_KEEPGOING") == "" {
			break
		}
	}
	took := time.Since(began).Seconds()
	t.Logf("seed %d: %d command lines, %d of them readable and run, %.0f of those a second", seed, total, looked, float64(looked)/took)
	if looked*20 < total {
		t.Errorf("only %d of %d command lines could be read", looked, total)
	}
}

// oracleRun returns the seed of a run and how long it takes.
func oracleRun(t *testing.T) (uint64, time.Duration) {
	t.Helper()
	seed, limit := uint64(1), time.Second
	if prooftest.Long() {
		limit = time.Minute
	}
	if v := os.Getenv("DURE_FUZZTIME"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatalf("DURE_FUZZTIME: %v", err)
		}
		seed, limit = uint64(time.Now().UnixNano()), d
	}
	if v := os.Getenv("DURE_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("DURE_SEED: %v", err)
		}
		seed = n
	}
	return seed, limit
}

// oracleSeeds are the command lines of the policy's cases and all that was found
// before.
func oracleSeeds(t *testing.T) []string {
	t.Helper()
	var seeds []string
	for _, name := range []string{"attacks", "everyday", "more"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "app", "testdata", "policy", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			var c struct {
				Tool  string
				Input struct{ Command any }
			}
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatal(err)
			}
			if text, ok := c.Input.Command.(string); ok && c.Tool == "Bash" && !strings.Contains(text, "${FILL:") {
				seeds = append(seeds, text)
			}
		}
	}
	for _, c := range readCounterexamples(t) {
		seeds = append(seeds, c.text)
	}
	return seeds
}

// oraclePlaced puts the folders of the n-th command line in place of those of a case.
func oraclePlaced(text string, n int) string {
	at := oraclePlace(n)
	return strings.NewReplacer("${W}", at+"/d", "${O}", at+"/o", "${H}", at+"/h", "${P}", at+"/d-evil", "/w/0/", at+"/").Replace(text)
}

// least makes a counterexample smaller as long as it is one.
func (o *oracle) least(t *testing.T, text string, n int) string {
	t.Helper()
	text = strings.ReplaceAll(text, oraclePlace(n)+"/", "/w/0/")
	wrong := func(s string) bool {
		e := oracleRead(s, 0)
		return e.Unreadable == "" && e.Unparsed == "" && e.Destructive == "" && missed(e, o.run(t, []string{s})[0]) != ""
	}
	began := time.Now()
	for size := len(text) / 2; size > 0; {
		shorter := ""
		for at := 0; at+size <= len(text) && shorter == "" && time.Since(began) < 10*time.Second; at++ {
			if s := text[:at] + text[at+size:]; wrong(s) {
				shorter = s
			}
		}
		if shorter == "" {
			size /= 2
			continue
		}
		text = shorter
		size = min(size, len(text)/2)
	}
	return text
}
