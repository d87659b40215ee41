// Command bench measures what the harness itself costs: the whole binary as a
// process of its own, over loopback, with a scripted model that answers at once.
// It prints the table of docs/benchmarks.md.
//
// It builds ./cmd/dure as a release is built, gives it an empty home and an
// environment of nothing else, and removes both. It contacts nothing but the
// scripted model in this process, whose goroutines end with it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == runOneArg {
		if err := runOne(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	runs := flag.Int("n", 10, "runs of each case; the long ones take a fifth of them")
	asJSON := flag.Bool("json", false, "print JSON rather than Markdown")
	only := flag.String("only", "", "only cases whose names contain this")
	check := flag.Float64("check", 0, "fail when a figure is more than its aim times this; 0 = never")
	dir := flag.String("dir", os.TempDir(), "where homes are made; on a real disk, or barriers cost nothing")
	flag.Parse()

	scratch, err := os.MkdirTemp(*dir, "dure-bench-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	binary, err := build(ctx, scratch)
	if err != nil {
		return err
	}
	report := Report{Machine: machine(), Load: load(), Disk: disk(scratch), Runs: *runs}
	for _, c := range cases {
		if !strings.Contains(c.name, *only) {
			continue
		}
		b := bench{ctx: ctx, scratch: scratch, binary: binary, runs: *runs}
		figures, err := c.measure(&b)
		if err != nil {
			return fmt.Errorf("case %q: %w", c.name, err)
		}
		for _, f := range figures {
			f.Case = c.name
			report.Figures = append(report.Figures, f)
		}
	}
	if err := show(report, *asJSON); err != nil {
		return err
	}
	return verdict(report, *check)
}

func show(r Report, asJSON bool) error {
	if !asJSON {
		fmt.Print(r.Markdown())
		return nil
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// verdict is an error that names the figures that are over their aims.
func verdict(r Report, slack float64) error {
	if slack <= 0 {
		return nil
	}
	var over []string
	for _, f := range r.Figures {
		if f.over(slack) {
			over = append(over, fmt.Sprintf("%s, %s: %s %s is over %g times %s", f.Case, f.What, number(f.Median), f.Unit, slack, number(f.Aim)))
		}
	}
	if over != nil {
		return fmt.Errorf("over the aims:\n%s", strings.Join(over, "\n"))
	}
	return nil
}

// build makes the binary as it is released.
func build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "dure.exe")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "dure/cmd/dure")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	return binary, nil
}
