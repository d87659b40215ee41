// Package demo shows the program at work in a sample repository with a failing test, with a
// scripted model. Only the model is made up: what it says goes over the wire, and everything
// else is the program itself. The model's server is its only goroutine.
package demo

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/frontend/text"
	"dure/internal/models/registry"
	"dure/internal/models/script"
	"dure/internal/safety/sandbox"
)

// The samples. Their files end in .txt, so that no tool takes them for a part
// of this module.
//
//go:embed go sh
var samples embed.FS

// sample is a small repository with a failing test.
type sample struct {
	name    string   // folder of its files
	file    string   // the one with the mistake
	test    string   // the one that finds it
	command []string // runs the test
	old     string   // what the script replaces in file
	new     string   // ... and what it puts there
}

var goSample = sample{
	name: "go", file: "split.go", test: "split_test.go", command: []string{"go", "test", "./..."},
	old: "\t\tshares[i] = total / n\n",
	new: "\t\tshares[i] = total / n\n\t\tif i < total%n {\n\t\t\tshares[i]++\n\t\t}\n",
}

// shSample is for machines without Go.
var shSample = sample{
	name: "sh", file: "split.sh", test: "test.sh", command: []string{"sh", "test.sh"},
	old: "\t\techo $(($1 / $2))\n",
	new: "\t\techo $(($1 / $2 + (i < $1 % $2)))\n",
}

// Demo is a session with a scripted model in a sample repository.
type Demo struct {
	*app.App
	Dir    string // the sample, in the system's folder for temporary files
	URL    string // of the scripted model
	Task   string
	WithGo bool

	text   text.Catalog
	sample sample
	before string
	env    []string
	server *script.Server
}

// New writes the sample and starts the scripted model, which is spoken to in
// one of the formats of [script.Wires]. o is completed with what leads to both; the
// caller closes the demo.
func New(o app.Options, wire string) (*Demo, error) {
	t := text.For(o.Language)
	d := &Demo{Task: t.Say(text.DemoTask), text: t, sample: shSample, env: environment(o.Environ)}
	if sandbox.Find("go") != "" {
		d.sample, d.WithGo = goSample, true
	} else if sandbox.Find("sh") == "" {
		return nil, &agent.Problem{Code: agent.ProblemUsage, Message: t.Say(text.DemoNoTools), Fix: t.Say(text.DemoNoToolsFix)}
	}
	dir, err := os.MkdirTemp("", "dure-demo-")
	if err != nil {
		return nil, &agent.Problem{
			Code: agent.ProblemHome, Message: "nothing can be written in the folder for temporary files: " + err.Error(),
			Fix: "Name another one with TMPDIR.", Args: map[string]string{"path": os.TempDir(), "error": err.Error()}, Err: err,
		}
	}
	d.Dir = dir
	if err := d.start(o, wire); err != nil {
		return nil, errors.Join(err, d.Remove())
	}
	return d, nil
}

func (d *Demo) start(o app.Options, wire string) (err error) {
	if err = d.write(); err != nil {
		return fmt.Errorf("writing the sample: %w", err)
	}
	d.server, err = script.NewServer(d.script(), script.Options{Keep: -1})
	if err != nil {
		return err
	}
	d.URL = d.server.URL()
	o.Workdir, o.Environ = d.Dir, d.env
	o.Flags.BaseURL, o.Flags.Model, o.Flags.Dialect = d.URL, "script", "claude"
	if wire != script.Wires[0] {
		o.Flags.BaseURL, o.Flags.Model = "", "demo/script"
		o.Flags.Providers = map[string]registry.Setting{"demo": {Type: wire, BaseURL: d.URL}}
	}
	o.Flags.NoReflexion = true // its task is no task
	o.Flags.Mode, o.Flags.Allow = string(agent.ModeAcceptEdits), []string{"Bash"}
	if d.App, err = app.New(o); err != nil {
		return errors.Join(err, d.server.Close())
	}
	return nil
}

// environment is the environment of the demo: no key leaves the machine, and the
// sample's test needs no network and no settings of the user's modules.
func environment(environ []string) []string {
	return append(slices.Clone(environ),
		"ANTHROPIC_API_KEY=demo", "ANTHROPIC_AUTH_TOKEN=", "ANTHROPIC_MODEL=", "DURE_MODEL=",
		"GOFLAGS=-vet=off", "GOWORK=off", "GOPROXY=off", "GOTOOLCHAIN=local", "GO111MODULE=on",
	)
}

func (d *Demo) write() error {
	root := d.sample.name
	files, err := samples.ReadDir(root)
	if err != nil {
		return err
	}
	for _, f := range files {
		data, err := samples.ReadFile(root + "/" + f.Name())
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(f.Name(), ".txt")
		if name == d.sample.file {
			d.before = string(data)
		}
		if err := os.WriteFile(filepath.Join(d.Dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the session and the scripted model. The sample stays.
func (d *Demo) Close() error { return errors.Join(d.App.Close(), d.server.Close()) }

// Remove deletes the sample.
func (d *Demo) Remove() error { return os.RemoveAll(d.Dir) }

// Report is what came of a demo, looked up afterwards and outside the
// session.
type Report struct {
	Diff    string // of the file with the mistake; "" = it is as it was
	Passes  bool
	Output  string // of the test, when it fails
	Session agent.SessionInfo
	Log     string // folder
	Seals   agent.SealReport
	Replay  agent.ReplayReport
}

// OK reports whether the demo did what it shows.
func (r Report) OK() bool {
	return r.Diff != "" && r.Passes && r.Seals.OK && r.Replay.OK
}

// Report looks at the sample and the log.
func (d *Demo) Report(ctx context.Context) (r Report, err error) {
	after, err := os.ReadFile(filepath.Join(d.Dir, d.sample.file))
	if err != nil {
		return r, fmt.Errorf("reading the sample: %w", err)
	}
	_, r.Diff, _ = strings.Cut(string(diff.Diff(d.sample.file, []byte(d.before), d.sample.file, after)), "\n")
	if r.Passes, r.Output, err = d.runTest(ctx); err != nil {
		return r, err
	}
	c := d.Client()
	if r.Session, err = client.Query[agent.SessionInfo](ctx, c, agent.FindSession{Workdir: d.Dir}); err != nil {
		return r, err
	}
	if logs, _ := filepath.Glob(filepath.Join(d.Config().Data, "sessions", "*", r.Session.ID)); len(logs) == 1 {
		r.Log = logs[0]
	}
	if r.Seals, err = client.Query[agent.SealReport](ctx, c, agent.VerifySeals{Session: r.Session.ID}); err != nil {
		return r, err
	}
	r.Replay, err = client.Query[agent.ReplayReport](ctx, c, query.VerifyReplay{Session: r.Session.ID})
	return r, err
}

// runTest runs the sample's test outside the session.
func (d *Demo) runTest(ctx context.Context) (passes bool, output string, err error) {
	box := sandbox.New(sandbox.Config{})
	var out bytes.Buffer
	const limit = time.Minute
	exit, err := box.Run(ctx, sandbox.Cmd{Argv: d.sample.command, Dir: d.Dir, Env: d.env, Out: &out, Timeout: limit})
	return err == nil && exit.Code == 0, out.String(), errors.Join(err, box.Close())
}

// shell returns the command that runs the test, as a model writes it.
func (s sample) shell() string {
	command := strings.Join(s.command, " ")
	if runtime.GOOS != "windows" {
		command += " 2>&1"
	}
	return command
}
