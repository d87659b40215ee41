package exthost

import (
	"bytes"
	"context"
	_ "embed" // what a worker runs
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/internal/extend/bundle/exthost/bundler"
	"dure/internal/safety/sandbox"
)

//go:embed worker.js
var workerCode string

// A module is a bundled module of JavaScript or TypeScript.
type module struct {
	entry string
	code  string // base64
	hash  string
	files []bundler.File
	sure  time.Time // files that were written before do not change without another time
}

// Bundling says why a module could not be made.
type Bundling struct {
	Entry  string
	Faults []bundler.Fault
}

func (b *Bundling) Error() string {
	lines := make([]string, len(b.Faults))
	for i, f := range b.Faults {
		lines[i] = f.Error()
	}
	return "bundling " + b.Entry + ": " + strings.Join(lines, "\n")
}

// coarsest is how coarse the times of files may be.
const coarsest = 2 * time.Second

// modules are those of a bundle that were made.
type modules struct {
	host *Host
	mu   sync.Mutex
	made map[string]*module
	turn chan struct{} // one is made at a time
}

func newModules(h *Host) *modules {
	return &modules{host: h, made: map[string]*module{}, turn: make(chan struct{}, 1)}
}

// get returns a module as its files are now.
func (m *modules) get(ctx context.Context, entry string) (*module, error) {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	m.mu.Lock()
	old := m.made[entry]
	m.mu.Unlock()
	root, err := os.OpenRoot(m.host.c.Root)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of the bundle: %w", err)
	}
	defer root.Close()
	if old != nil && bundler.Same(root, old.files, old.sure) {
		return old, nil
	}
	sure := time.Now().Add(-coarsest)
	out, err := m.host.bundle(ctx, entry)
	if err != nil {
		return nil, err
	}
	if f := m.host.c.Approve; f != nil && (old == nil || old.hash != out.Hash) {
		if err := f(entry, out.Hash); err != nil {
			return nil, fmt.Errorf("%s is not run: %w", entry, err)
		}
	}
	made := &module{entry: entry, code: base64.StdEncoding.EncodeToString([]byte(out.Code)), hash: out.Hash, files: out.Files, sure: sure}
	m.mu.Lock()
	m.made[entry] = made
	m.mu.Unlock()
	return made, nil
}

// bundleMemory is what bundling may take, in bytes of data.
const bundleMemory = 1 << 30

// bundle bundles in a process of its own: what can be done to it ends that alone.
func (h *Host) bundle(ctx context.Context, entry string) (bundler.Output, error) {
	var none bundler.Output
	self, err := h.self()
	if err != nil {
		return none, err
	}
	job, err := json.Marshal(bundler.Job{Root: h.c.Root, Entry: entry, Memory: bundleMemory})
	if err != nil {
		return none, fmt.Errorf("writing what to bundle: %w", err)
	}
	grant := sandbox.Grant{ReadOnly: true, Reads: append(slices.Clone(h.c.Grant.Reads), self)}
	out, errs := &held{most: h.c.Limits.Answer}, &tail{}
	limit := h.c.Limits.Start * 3 / 4 // the rest is for loading
	exit, err := h.c.Box.Run(ctx, sandbox.Cmd{
		Argv: []string{self, bundler.Arg}, Dir: h.c.Root, In: bytes.NewReader(job), Out: out, Err: errs,
		Timeout: limit, Grant: grant,
	})
	switch {
	case err != nil:
		return none, fmt.Errorf("bundling %s: %w", entry, err)
	case exit.Interrupted() && ctx.Err() != nil:
		return none, context.Cause(ctx)
	case exit.TimedOut:
		return none, &Bundling{entry, []bundler.Fault{{File: entry, Text: fmt.Sprintf("it takes longer than %v", limit)}}}
	case out.cut:
		return none, &Bundling{entry, []bundler.Fault{{File: entry, Text: fmt.Sprintf("it makes more than %d bytes", out.most)}}}
	case exit.Code != 0:
		return none, &Bundling{entry, []bundler.Fault{{File: entry, Text: "the program that bundles gave up: " + firstLine(errs.String())}}}
	}
	var made bundler.Output
	if err := json.Unmarshal(out.b, &made); err != nil {
		return none, fmt.Errorf("bundling %s: reading the answer: %w", entry, err)
	}
	if len(made.Faults) > 0 {
		return none, &Bundling{entry, made.Faults}
	}
	return made, nil
}

func (h *Host) self() (string, error) {
	if h.c.Self != "" {
		return h.c.Self, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("looking for this program: %w", err)
	}
	return self, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// held keeps what is written to it, up to a bound.
type held struct {
	most int
	b    []byte
	cut  bool
}

func (h *held) Write(p []byte) (int, error) {
	n := min(len(p), h.most-len(h.b))
	h.b = append(h.b, p[:n]...)
	h.cut = h.cut || n < len(p)
	return len(p), nil
}

// errNoNode says that there is nothing to run modules with.
var errNoNode = errors.New("there is no Node.js on this machine, in which the code runs: install version 20 or newer")

// nodeArgv is how a worker for modules is started.
func (h *Host) nodeArgv() ([]string, error) {
	if h.c.Node == nil {
		return nil, errNoNode
	}
	node, err := h.c.Node()
	if err != nil || node == "" {
		return nil, errors.Join(errNoNode, err)
	}
	heap := fmt.Sprintf("--max-old-space-size=%d", max(h.c.Limits.Memory>>20*3/4, 16))
	argv := []string{node, "--no-warnings", "--disable-wasm-trap-handler", heap, "-e", workerCode}
	return h.bounded(argv), nil
}

// bounded has the system bound the memory of a program where it can: the shell sets the
// limit and becomes the program.
func (h *Host) bounded(argv []string) []string {
	const shell = "/bin/sh"
	if runtime.GOOS != "linux" {
		return argv
	}
	return append([]string{shell, "-c", `ulimit -d "$1" && shift && exec "$@"`, shell, fmt.Sprint(h.c.Limits.Memory >> 10)}, argv...)
}
