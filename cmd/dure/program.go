package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"dure/agent"
	"dure/client"
	"dure/client/remote"
	"dure/internal/app"
	"dure/internal/frontend/acp"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// atWrites is called at every write of a log, by tests that end the program there; nil else.
var atWrites func(place string)

// program is one run of the command.
type program struct {
	in, out, err *os.File
	text         text.Catalog
	signals      chan os.Signal // nothing comes before watch
	asJSON       bool           // of the command, and of errors

	flags  flags
	at     *cobra.Command // what runs, or is about to; nil = not known yet
	opened *app.App
	server *remote.Remote // that is asked in the place of opened; nil = none is
	embeds *app.Host      // the program that drives this one; nil = none does
	left   []*app.App     // of other working folders, where the program was before
}

// open builds the program from settings and flags, once.
func (p *program) open() (*app.App, error) {
	if p.opened != nil {
		return p.opened, nil
	}
	workdir, err := os.Getwd()
	if err != nil {
		return nil, &agent.Problem{
			Code: agent.ProblemWorkdir, Message: "the working directory cannot be found: " + err.Error(),
			Fix: "Change to a directory that exists.", Args: map[string]string{"path": ".", "error": err.Error()}, Err: err,
		}
	}
	a, err := p.build(p.flags, workdir)
	if err != nil {
		return nil, err
	}
	p.text = text.For(a.Config().Language)
	p.flags.workdir, p.flags.began = workdir, workdir
	p.opened = a
	if p.flags.server != "" && p.server == nil {
		if err := p.dial(); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// client is what commands ask: the server that a flag names, else the program itself.
func (p *program) client() client.Client {
	if p.server != nil {
		return client.New(p.server)
	}
	return p.opened.Client()
}

// build makes what the program is made of, for a working folder.
func (p *program) build(f flags, workdir string) (*app.App, error) {
	return p.buildFor(f, workdir, acp.Folder{})
}

// buildFor is build for an editor that may have files of the folder open, and terminals.
func (p *program) buildFor(f flags, workdir string, e acp.Folder) (*app.App, error) {
	home, _ := os.UserHomeDir() // settings say what is missing without it
	return app.New(app.Options{
		Flags: f.app(), Environ: os.Environ(), UserHome: home, Workdir: workdir,
		Language: p.text.Language(), Version: version, Logger: p.logger(), Keychain: true, Fault: atWrites, Editor: e.Editor, Terminal: e.Terminal, Host: p.embeds,
	})
}

// logger is where the program says what it does, for whoever mends it.
func (p *program) logger() *slog.Logger {
	if !p.flags.debug {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// with runs f on the built program and closes that.
func (p *program) with(f func(*cli.CLI) error) error {
	if _, err := p.open(); err != nil {
		return err
	}
	err := f(p.cli())
	for _, left := range p.left {
		err = errors.Join(err, left.Close())
	}
	if p.server != nil {
		err = errors.Join(err, p.hangUp())
	}
	return errors.Join(err, p.opened.Close())
}

// move makes the program anew for a working folder, with more folders beside it. What it
// was made of until now is closed at the end.
func (p *program) move(dir string, more []string) (a *app.App, back func(), err error) {
	f := p.flags
	absolute := func(path string) string {
		if path == "" || filepath.IsAbs(path) || strings.HasPrefix(path, "~/") {
			return path
		}
		return filepath.Join(p.flags.workdir, path)
	}
	f.addDirs, f.pluginDirs, f.serverless = slices.Clone(f.addDirs), slices.Clone(f.pluginDirs), slices.Clone(f.serverless)
	for _, list := range [][]string{f.addDirs, f.pluginDirs, f.serverless} {
		for i := range list {
			list[i] = absolute(list[i])
		}
	}
	f.servers = slices.Clone(f.servers)
	for i, s := range f.servers {
		if !strings.HasPrefix(strings.TrimSpace(s), "{") {
			f.servers[i] = absolute(s)
		}
	}
	if !strings.HasPrefix(strings.TrimSpace(f.settings), "{") {
		f.settings = absolute(f.settings)
	}
	f.addDirs, f.workdir = append(f.addDirs, more...), dir
	if a, err = p.build(f, dir); err != nil {
		return nil, nil, err
	}
	was, flags := p.opened, p.flags
	p.left, p.opened, p.flags = append(p.left, was), a, f
	return a, func() {
		p.left[slices.Index(p.left, was)] = a
		p.opened, p.flags = was, flags
	}, nil
}

func (p *program) cli() *cli.CLI { return p.cliOf(p.client()) }

func (p *program) cliOf(c client.Client) *cli.CLI {
	return cli.New(cli.Config{
		Client: c, Text: p.text, In: p.in, Out: p.out, Err: p.err, Signals: p.signals, Now: time.Now,
		Progress: p.progress(), Plain: dumb() || !utf8Locale(), Columns: func() int { return columnsOf(p.out) },
	})
}

// terminal returns the terminal that the program runs in.
func (p *program) terminal() cli.Terminal {
	name, noColor := os.Getenv("TERM"), os.Getenv("NO_COLOR")
	if dumb() {
		name = "dumb"
	}
	if os.Getenv("CLICOLOR") == "0" {
		noColor = "1"
	}
	return cli.OpenTerminal(p.in, p.out, name, noColor)
}

// dumb reports whether the terminal understands no escape sequences, as far as
// anybody says.
func dumb() bool {
	name := os.Getenv("TERM")
	return name == "dumb" || name == "" && runtime.GOOS != "windows"
}

// locale is what the environment says about characters.
func locale() string {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := os.Getenv(name); v != "" {
			return v
		}
	}
	return "C"
}

// utf8Locale reports whether the terminal is sure to show more than ASCII.
func utf8Locale() bool {
	name := strings.ReplaceAll(strings.ToLower(locale()), "-", "")
	return runtime.GOOS == "windows" || strings.HasSuffix(name, "utf8")
}

// interactive reports whether somebody sits in front of the program.
func (p *program) interactive() bool { return cli.IsTerminal(p.in) && cli.IsTerminal(p.out) }

// edits reports whether files can be edited here: an editor is named, somebody sits in front of
// the program, and the files are those of this machine.
func (p *program) edits() bool {
	return p.interactive() && p.server == nil && p.opened.Desktop().Editor() != nil
}

// columns returns the width of the terminal that errors go to.
func (p *program) columns() int {
	return columnsOf(p.err)
}

func columnsOf(f *os.File) int {
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return w
}

// progress reports whether a line may come and go on standard error.
func (p *program) progress() bool {
	return cli.IsTerminal(p.err) && !dumb()
}

// watch takes interrupts and termination into our own hands. Until then they
// end the program, which has nothing to lose and may be waiting for input.
func (p *program) watch() { signal.Notify(p.signals, os.Interrupt, syscall.SIGTERM) }

// signalled returns a context that ends with the first signal, for what has no
// turn to interrupt. A second one ends the program at once: what is in its logs stays, and
// what it has started ends with it, as when it is killed.
func (p *program) signalled(ctx context.Context) (context.Context, func()) {
	p.watch()
	ctx, cancel := context.WithCancelCause(ctx)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case s := <-p.signals:
				code := cli.ExitInterrupted
				if s != os.Interrupt {
					code = cli.ExitTerminated
				}
				if n > 0 {
					os.Exit(code)
				}
				cancel(&cli.Exited{Code: code, Err: errors.New("a signal came")})
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		close(done)
		<-stopped
		cancel(nil)
	}
}
