package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// bench is what a case measures with.
type bench struct {
	ctx     context.Context
	scratch string
	binary  string
	runs    int
}

// cases are the figures of docs/benchmarks.md, in their order.
var cases = []struct {
	name    string
	measure func(*bench) ([]Figure, error)
}{
	{"version", version},
	{"one-turn hello", hello},
	{"50 steps, each a shell command", steps50},
	{"1,000 steps", steps1000},
	{"800 KB in small deltas", stream},
	{"5 MB of tool output", output},
	{"first request", request},
}

func version(b *bench) ([]Figure, error) {
	home, err := b.home()
	if err != nil {
		return nil, err
	}
	s, err := repeat(b.runs*2, func() (Sample, error) {
		return measure(b.ctx, home, environ(home, ""), b.binary, "version")
	})
	if err != nil {
		return nil, err
	}
	return []Figure{
		{What: "wall", Unit: "ms", Aim: 10, Spread: spread(s, wallMS)},
		{What: "peak", Unit: "MB", Spread: spread(s, peakMB)},
	}, nil
}

func hello(b *bench) ([]Figure, error) {
	s, err := b.task(b.runs*2, talk("Hello."))
	if err != nil {
		return nil, err
	}
	return []Figure{
		{What: "wall", Unit: "ms", Aim: 25, Spread: spread(s, wallMS)},
		{What: "CPU", Unit: "ms", Spread: spread(s, cpuMS)},
		{What: "peak", Unit: "MB", Aim: 40, Spread: spread(s, peakMB)},
	}, nil
}

func steps50(b *bench) ([]Figure, error) {
	const n = 50
	one, err := b.task(b.runs, talk("Hello."))
	if err != nil {
		return nil, err
	}
	s, err := b.task(b.runs, shell(n, "true"))
	if err != nil {
		return nil, err
	}
	// What a step costs is what the run took beyond a run without steps.
	wall, cpu := spread(one, wallMS).Median, spread(one, cpuMS).Median
	return []Figure{
		{What: "wall a step", Unit: "ms", Aim: 4, Spread: spread(s, func(s Sample) float64 { return (wallMS(s) - wall) / n })},
		{What: "CPU a step", Unit: "ms", Aim: 4, Spread: spread(s, func(s Sample) float64 { return (cpuMS(s) - cpu) / n })},
		{What: "peak", Unit: "MB", Aim: 50, Spread: spread(s, peakMB)},
	}, nil
}

func steps1000(b *bench) ([]Figure, error) {
	few, err := b.task(b.few(), shell(100, "true"))
	if err != nil {
		return nil, err
	}
	many, err := b.task(b.few(), shell(1000, "true"))
	if err != nil {
		return nil, err
	}
	return []Figure{
		{What: "wall a step", Unit: "ms", Spread: spread(many, func(s Sample) float64 { return wallMS(s) / 1000 })},
		{What: "peak after 100", Unit: "MB", Spread: spread(few, peakMB)},
		{What: "peak after 1,000", Unit: "MB", Aim: 50, Spread: spread(many, peakMB)},
	}, nil
}

func stream(b *bench) ([]Figure, error) {
	const size = 800_000
	s, err := b.task(b.few(), talk(strings.Repeat("word", size/4)))
	if err != nil {
		return nil, err
	}
	return []Figure{
		{What: "wall", Unit: "ms", Aim: 600, Spread: spread(s, wallMS)},
		{What: "CPU", Unit: "ms", Spread: spread(s, cpuMS)},
		{What: "peak", Unit: "MB", Aim: 50, Spread: spread(s, peakMB)},
	}, nil
}

func output(b *bench) ([]Figure, error) {
	const lines = 5_000_000 / 50
	s, err := b.task(b.few(), shell(1, fmt.Sprintf("yes 'fifty characters, newline included, all the same.' | head -n %d", lines)))
	if err != nil {
		return nil, err
	}
	return []Figure{
		{What: "wall", Unit: "ms", Spread: spread(s, wallMS)},
		{What: "peak", Unit: "MB", Aim: 45, Spread: spread(s, peakMB)},
	}, nil
}

func request(b *bench) ([]Figure, error) {
	srv, err := serve(talk("Hello."), false)
	if err != nil {
		return nil, err
	}
	defer srv.close()
	if _, err := b.once(srv); err != nil {
		return nil, err
	}
	size := float64(srv.lastRequest()) / 1000
	return []Figure{{What: "size", Unit: "KB", Aim: 16, Spread: Spread{size, size, size}}}, nil
}

// few is the number of runs of the cases that take long.
func (b *bench) few() int { return max(1, b.runs/5) }

// task measures n runs of a task in print mode, each with a home of its own,
// against one scripted model.
func (b *bench) task(n int, replies []reply) ([]Sample, error) {
	srv, err := serve(replies, true)
	if err != nil {
		return nil, err
	}
	defer srv.close()
	return repeat(n, func() (Sample, error) { return b.once(srv) })
}

func (b *bench) once(srv *server) (Sample, error) {
	home, err := b.home()
	if err != nil {
		return Sample{}, err
	}
	defer os.RemoveAll(home)
	return measure(b.ctx, filepath.Join(home, "work"), environ(home, srv.url()), b.binary,
		"-p", "--dangerously-skip-permissions", "--model", srv.model(), "Do the task.")
}

// home makes a folder with an empty workspace in it.
func (b *bench) home() (string, error) {
	home, err := os.MkdirTemp(b.scratch, "home-")
	if err == nil {
		err = os.Mkdir(filepath.Join(home, "work"), 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("making a home: %w", err)
	}
	return home, nil
}

// environ is all that the binary finds in its environment.
func environ(home, url string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "DURE_HOME=" + filepath.Join(home, "dure"),
		"TMPDIR=" + home, "LANG=C.UTF-8", "ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=bench",
	}
}

// A reply is one answer of the scripted model: it runs a command, or says
// something and ends the turn.
type reply struct {
	text    string
	command string
}

// talk is a script that says text.
func talk(text string) []reply { return []reply{{text: text}} }

// shell is a script of n commands, one a step, and a last word.
func shell(n int, command string) []reply {
	var all []reply
	for range n {
		all = append(all, reply{command: command})
	}
	return append(all, reply{text: "Done after " + strconv.Itoa(n) + "."})
}
