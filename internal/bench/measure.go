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

// runLimit ends a run that hangs.
const runLimit = 3 * time.Minute

// A Sample is what one run of the binary took, with everything it started.
type Sample struct {
	Wall time.Duration `json:"wall"`
	CPU  time.Duration `json:"cpu"`  // user and system
	Peak int64         `json:"peak"` // bytes resident at most, in its largest process
}

// measure runs the binary in dir with the given environment and nothing else in
// it. A run that fails is an error that quotes what it said.
//
// The run is started by a small process in between ([runOne]): a child begins
// with its parent's peak as its own, and this process holds the model's server.
func measure(ctx context.Context, dir string, env []string, binary string, args ...string) (Sample, error) {
	self, err := os.Executable()
	if err != nil {
		return Sample{}, fmt.Errorf("finding this program: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, slices.Concat([]string{runOneArg, binary}, args)...)
	cmd.Dir, cmd.Env = dir, env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return Sample{}, fmt.Errorf("running %s: %w\n%s", args, err, stderr.Bytes())
	}
	var s Sample
	if err := json.Unmarshal(stdout.Bytes(), &s); err != nil {
		return Sample{}, fmt.Errorf("reading the measurement of %s: %w", args, err)
	}
	return s, nil
}

// runOneArg makes this program run the command that follows it, and print the
// Sample.
const runOneArg = "-run-one"

func runOne(argv []string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	err := cmd.Run()
	s := Sample{Wall: time.Since(start)}
	if err != nil {
		return err
	}
	var ok bool
	if s.CPU, s.Peak, ok = resources(cmd.ProcessState); !ok {
		return errors.New("this platform does not tell what a process took")
	}
	return json.NewEncoder(os.Stdout).Encode(s)
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
	slices.Sort(v)
	mid := v[len(v)/2]
	if len(v)%2 == 0 {
		mid = (v[len(v)/2-1] + mid) / 2
	}
	return Spread{mid, v[0], v[len(v)-1]}
}

// The figures of a sample, in the units of the table.
func wallMS(s Sample) float64 { return s.Wall.Seconds() * 1000 }
func cpuMS(s Sample) float64  { return s.CPU.Seconds() * 1000 }
func peakMB(s Sample) float64 { return float64(s.Peak) / 1e6 }
