package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"dure/agent"
)

// The tree that is searched: files of all sizes, 200 MB of them.
const (
	treeBytes   = 200_000_000
	treeFolder  = 64  // files in a folder
	needleEvery = 400 // files; one of them has what is looked for
)

// search measures the search tool, as long as the model waits for it, and rg on
// the same files.
func search(b *bench) ([]Figure, error) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		if required("rg") {
			return nil, errors.New("rg is required and not installed")
		}
		return nil, skipped("rg is not installed")
	}
	home, err := b.home()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	work := filepath.Join(home, "work")
	if err := plant(work); err != nil {
		return nil, fmt.Errorf("writing the tree: %w", err)
	}
	var figures []Figure
	for _, p := range []struct{ name, pattern string }{
		{"literal", "needle_in_the_haystack"},
		{"words in either case", "(?i)needle_in|haystacks_of"},
		{"no literal", `[x-z]{4}[0-9]{5}[x-z]{4}`},
	} {
		ours, theirs, err := b.compare(home, rg, p.pattern)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		figures = append(figures,
			Figure{What: p.name, Unit: "ms", Spread: spreadOf(ours)},
			Figure{What: p.name + ", rg", Unit: "ms", Spread: spreadOf(theirs)},
			Figure{What: p.name + ", to rg", Unit: "×", Aim: searchRatio, Spread: ratio(spreadOf(ours), spreadOf(theirs).Min)},
		)
	}
	return figures, nil
}

// compare searches in turns, so that both meet the same machine. Both must find
// the same files.
func (b *bench) compare(home, rg, pattern string) (ours, theirs []float64, err error) {
	srv, err := serveCall("Grep", map[string]any{"pattern": pattern, "head_limit": 0})
	if err != nil {
		return nil, nil, err
	}
	defer srv.close()
	for i := range max(3, b.runs) + 1 {
		ms, found, err := b.grep(home, srv)
		if err != nil {
			return nil, nil, err
		}
		s, err := measure(b.ctx, run{
			dir: filepath.Join(home, "work"), env: environ(home, ""), keep: true,
			argv: []string{rg, "--no-config", "--files-with-matches", "--sort", "none", "-e", pattern, "."},
		})
		if err != nil {
			return nil, nil, err
		}
		if want := bytes.Count(s.Out, []byte("\n")); found != want {
			return nil, nil, fmt.Errorf("found %d files where rg finds %d", found, want)
		}
		if i > 0 { // the first one reads the files from the disk
			ours, theirs = append(ours, ms), append(theirs, wallMS(s))
		}
	}
	return ours, theirs, nil
}

// grep has the model search, and returns how long its call took and how many
// files it named.
func (b *bench) grep(home string, srv *server) (ms float64, found int, err error) {
	s, err := measure(b.ctx, run{
		dir: filepath.Join(home, "work"), env: environ(home, srv.url()), keep: true,
		argv: []string{b.binary, "-p", "--dangerously-skip-permissions", "--model", scripted, "--output-format", "ndjson", "Search."},
	})
	if err != nil {
		return 0, 0, err
	}
	lines := bufio.NewScanner(bytes.NewReader(s.Out))
	lines.Buffer(nil, maxKept)
	for lines.Scan() {
		var e agent.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return 0, 0, fmt.Errorf("reading an event: %w", err)
		}
		if f, ok := e.Body.(agent.CallFinished); ok {
			if f.Result.Failed() {
				return 0, 0, fmt.Errorf("searching: %s", f.Result.Unfenced())
			}
			return float64(max(1, f.Millis)), strings.Count(f.Result.Unfenced(), ".go"), nil
		}
	}
	return 0, 0, errors.New("the search was never called")
}

// plant writes the tree.
func plant(dir string) error {
	written := 0
	for i := 0; written < treeBytes; i++ {
		folder := filepath.Join(dir, fmt.Sprintf("part%03d", i/treeFolder))
		if i%treeFolder == 0 {
			if err := os.Mkdir(folder, 0o700); err != nil {
				return err
			}
		}
		text := prose(i, 1000+i*7919%75_000)
		if i%needleEvery == needleEvery/2 {
			text += "// a needle_in_the_haystack of xyzx01234zyxz\n"
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("file%05d.go", i)), []byte(text), 0o600); err != nil {
			return err
		}
		written += len(text)
	}
	return nil
}
