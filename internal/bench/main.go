// Command bench measures what the harness itself costs: the whole binary as a
// process of its own, over loopback, with a scripted model that answers at once.
// It prints the table of docs/benchmarks.md, and keeps it there.
//
// It builds ./cmd/dure as a release is built, gives it an empty home and an
// environment of nothing else, and removes both. What no command of the binary
// shows it measures in a child of its own, which builds the program in process.
// It contacts nothing but the scripted model here, whose goroutines end with it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) > 2 {
		if inner := inner[os.Args[1]]; inner != nil {
			if err := inner(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := start(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// arguments are those of a part of this program. The type keeps its parts apart from all other
// functions that take texts, for TestOneGate.
type arguments []string

// inner are the arguments with which this program runs itself.
var inner = map[string]func(argv arguments) error{
	runOneArg:  func(argv arguments) error { return runOne(argv, false) },
	runKeepArg: func(argv arguments) error { return runOne(argv, true) },
	childArg:   runChild,
	serverArg:  serveTools,
}

func start(ctx context.Context) error {
	runs := flag.Int("n", 10, "runs of each case; the long ones take a fifth of them")
	asJSON := flag.Bool("json", false, "print JSON rather than Markdown")
	only := flag.String("only", "", "only cases whose names contain this")
	check := flag.Float64("check", 0, "fail when a time is over its aim times this, or another figure over its own; 0 = never")
	dir := flag.String("dir", os.TempDir(), "where homes are made; on a real disk, or barriers cost nothing")
	page := flag.String("write", "", "a page, such as docs/benchmarks.md, whose last section the table replaces")
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
	b := bench{ctx: ctx, scratch: scratch, binary: binary, runs: *runs}
	if err := report.measure(&b, func(name string) bool { return strings.Contains(name, *only) }); err != nil {
		return err
	}
	// What disturbed a case is gone a minute later; what made it slow is not.
	for range again {
		over := report.takeOver(*check)
		if len(over) == 0 {
			break
		}
		fmt.Fprintf(os.Stderr, "bench: over the aims, measured again: %s\n", strings.Join(over, ", "))
		if err := report.measure(&b, func(name string) bool { return slices.Contains(over, name) }); err != nil {
			return err
		}
	}
	report.LoadAfter = load()
	if *page != "" {
		if err := keep(*page, report); err != nil {
			return err
		}
	}
	if err := show(report, *asJSON); err != nil {
		return err
	}
	return verdict(report, *check)
}

// again is how often a case that is over its aims is measured once more.
const again = 2

// takeOver takes out all figures of the cases of which one is over its limit, and
// returns the names of these cases.
func (r *Report) takeOver(slack float64) (names []string) {
	for _, f := range r.Figures {
		if f.over(slack) && !slices.Contains(names, f.Case) {
			names = append(names, f.Case)
		}
	}
	r.Figures = slices.DeleteFunc(r.Figures, func(f Figure) bool { return slices.Contains(names, f.Case) })
	return names
}

// measure adds the figures of the cases that are wanted.
func (r *Report) measure(b *bench, wanted func(name string) bool) error {
	for _, c := range cases {
		if !wanted(c.name) {
			continue
		}
		begun := load()
		figures, err := c.measure(b)
		if errors.Is(err, errSkipped) {
			figures, err = []Figure{{What: err.Error()}}, nil
		}
		if err != nil {
			return fmt.Errorf("case %q: %w", c.name, err)
		}
		for _, f := range figures {
			f.Case, f.Load = c.name, begun
			r.Figures = append(r.Figures, f)
		}
	}
	return nil
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

// keep replaces what stands below the last heading of a page with the table.
func keep(page string, r Report) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("reading %s: %w", page, err)
	}
	head := strings.LastIndex(string(old), "\n## ")
	if head < 0 {
		return fmt.Errorf("reading %s: it has no section for the figures", page)
	}
	end := strings.Index(string(old[head+1:]), "\n")
	if end < 0 {
		end = len(old) - head - 1
	}
	text := string(old[:head+1+end]) + "\n\n" + r.Markdown()
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", page, err)
	}
	return nil
}

// verdict is an error that names the figures that are over their aims.
func verdict(r Report, slack float64) error {
	var over []string
	for _, f := range r.Figures {
		if f.over(slack) {
			over = append(over, fmt.Sprintf("%s, %s: %s %s is over %s", f.Case, f.What, number(f.Median), f.Unit, number(f.limit(slack))))
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
