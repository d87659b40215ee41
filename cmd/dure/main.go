// Command dure is an agent that works in a repository: it reads and changes
// files, runs commands, asks where it has to, and keeps a log of every step.
//
// This package turns the command line into calls of the packages below it. It
// reads arguments, environment and terminals, and decides nothing else. The
// exit codes stand in docs/errors.md.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"

	_ "dure/cmd/dure/tuning" // before a library reads its variable
	"dure/internal/app"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// version is set by the linker for releases.
var version = "0.1.0"

func main() { os.Exit(run(os.Args[1:])) }

// run does what the arguments ask for and returns the exit code.
func run(args []string) int {
	p := &program{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		text: text.For(text.Language(os.Getenv)), asJSON: wantsJSON(args),
	}
	if len(args) == 1 && (args[0] == "version" || args[0] == "--version" || args[0] == "-v") {
		return p.exit(p.sayVersion(args[0])) // without building anything
	}
	collectLater()
	if len(args) == 1 && args[0] == app.WorkerCommand { // nobody types it
		if err := app.ServeAgent(context.Background(), p.in, p.out); err != nil {
			fmt.Fprintln(p.err, err)
			return 1
		}
		return 0
	}
	p.signals = make(chan os.Signal, 2)
	defer signal.Stop(p.signals)
	root := p.root()
	root.SetArgs(normalise(args))
	return p.exit(root.ExecuteContext(context.Background()))
}

// exit shows err, if nobody has, and returns its exit code.
func (p *program) exit(err error) int {
	cli.Report(p.err, p.text, err, p.asJSON)
	return cli.ExitCode(err)
}

// wantsJSON reports whether a command line asks for JSON. It has to be known
// before the line is understood, because that may be what goes wrong.
func wantsJSON(args []string) bool {
	for i, a := range args {
		if a == "--" {
			return false
		}
		format, ok := strings.CutPrefix(a, "--output-format=")
		if a == "--output-format" && i+1 < len(args) {
			format, ok = args[i+1], true
		}
		if a == "--json" || a == "--json=true" || ok && (format == string(cli.FormatJSON) || format == string(cli.FormatNDJSON)) {
			return true
		}
	}
	return false
}

// printVersion writes the version; scripts read the first word.
func (p *program) printVersion(asJSON bool) error {
	v := buildVersion()
	if asJSON {
		_, err := fmt.Fprintf(p.out, `{"version":%q,"commit":%q,"go":%q,"os":%q,"arch":%q}`+"\n",
			v.version, v.commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	}
	line := v.version + " (dure) " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	if v.commit != "" {
		line += " " + v.commit
	}
	_, err := io.WriteString(p.out, line+"\n")
	return err
}

type build struct{ version, commit string }

// buildVersion adds what the compiler has recorded of the source.
func buildVersion() build {
	b := build{version: version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		const short = 12
		if s.Key == "vcs.revision" {
			b.commit = s.Value[:min(len(s.Value), short)]
		}
	}
	return b
}
