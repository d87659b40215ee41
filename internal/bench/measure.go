package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"
)

const (
	runLimit = 3 * time.Minute // ends a run that hangs
	maxKept  = 4 << 20         // bytes of what a run printed that are kept
)

// A Sample is what one run of the binary took, with everything it started.
type Sample struct {
	Wall time.Duration `json:"wall"`
	CPU  time.Duration `json:"cpu"`  // user and system
	Peak int64         `json:"peak"` // bytes resident at most, in its largest process
	Out  []byte        `json:"out"`  // what it printed, if that is wanted
}

// A run is one run of a program: of the binary, or of a child of this one.
type run struct {
	dir  string   // where it works
	env  []string // and nothing else
	argv []string
	keep bool // keep what it prints
}

// measure does a run. One that fails is an error that quotes what it said.
//
// The run is started by a small process in between ([runOne]): a child begins
// with its parent's peak as its own, and this process holds the model's server.
func measure(ctx context.Context, r run) (Sample, error) {
	self, err := os.Executable()
	if err != nil {
		return Sample{}, fmt.Errorf("finding this program: %w", err)
	}
	arg := runOneArg
	if r.keep {
		arg = runKeepArg
	}
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, slices.Concat([]string{arg}, r.argv)...)
	cmd.Dir, cmd.Env = r.dir, r.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return Sample{}, fmt.Errorf("running %s: %w\n%s", r.argv[1:], err, stderr.Bytes())
	}
	var s Sample
	if err := json.Unmarshal(stdout.Bytes(), &s); err != nil {
		return Sample{}, fmt.Errorf("reading the measurement of %s: %w", r.argv[1:], err)
	}
	return s, nil
}

// child measures a child of this program and reads what came of it.
func child[T any](ctx context.Context, dir string, env []string, args ...string) (Sample, T, error) {
	var out T
	self, err := os.Executable()
	if err != nil {
		return Sample{}, out, fmt.Errorf("finding this program: %w", err)
	}
	s, err := measure(ctx, run{dir: dir, env: env, argv: slices.Concat([]string{self, childArg}, args), keep: true})
	if err == nil {
		err = json.Unmarshal(s.Out, &out)
	}
	return s, out, err
}

// The arguments that make this program run the command that follows, and print
// the Sample; the second keeps what the command prints.
const (
	runOneArg  = "-run-one"
	runKeepArg = "-run-keep"
)

func runOne(argv []string, keep bool) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	var out head
	if keep {
		cmd.Stdout = &out
	}
	start := time.Now()
	err := cmd.Run()
	s := Sample{Wall: time.Since(start), Out: out.kept}
	if err != nil {
		return err
	}
	var ok bool
	if s.CPU, s.Peak, ok = resources(cmd.ProcessState); !ok {
		return errors.New("this platform does not tell what a process took")
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

// A head keeps the beginning of what is written to it.
type head struct{ kept []byte }

func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), maxKept-len(h.kept))]...)
	return len(p), nil
}

// repeat measures n runs.
func repeat(n int, once func() (Sample, error)) ([]Sample, error) {
	var all []Sample
	for range n {
		s, err := once()
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// A Spread is the median of some runs, with the least and the most.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spread returns the spread of one figure of the samples, which are not empty.
func spread(samples []Sample, figure func(Sample) float64) Spread {
	var v []float64
	for _, s := range samples {
		v = append(v, figure(s))
	}
	return spreadOf(v)
}

// spreadOf returns the spread of values, of which there are some.
func spreadOf(v []float64) Spread {
	v = slices.Sorted(slices.Values(v))
	mid := v[len(v)/2]
	if len(v)%2 == 0 {
		mid = (v[len(v)/2-1] + mid) / 2
	}
	return Spread{mid, v[0], v[len(v)-1]}
}

// exactly is the spread of a figure that does not vary.
func exactly(v float64) Spread { return Spread{v, v, v} }

// ratio compares the fastest runs, which other programs on the machine have
// disturbed least. A reference that took no time is none.
func ratio(ours Spread, reference float64) Spread {
	if reference <= 0 {
		return Spread{}
	}
	return exactly(ours.Min / reference)
}

// The figures of a sample, in the units of the table.
func wallMS(s Sample) float64 { return s.Wall.Seconds() * 1000 }
func cpuMS(s Sample) float64  { return s.CPU.Seconds() * 1000 }
func peakMB(s Sample) float64 { return float64(s.Peak) / 1e6 }
