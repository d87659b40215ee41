package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"dure/agent"
	"dure/client"
	"dure/internal/app"
	"dure/internal/cli"
	"dure/internal/text"
)

// program is one run of the command.
type program struct {
	in, out, err *os.File
	text         text.Catalog
	signals      chan os.Signal // nothing comes before watch

	flags  flags
	opened *app.App
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
	home, _ := os.UserHomeDir() // settings say what is missing without it
	var logger *slog.Logger
	if p.flags.debug {
		logger = slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	a, err := app.New(app.Options{
		Flags: p.flags.app(), Environ: os.Environ(), UserHome: home, Workdir: workdir,
		Language: p.text.Language(), Version: version, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	p.text = text.For(a.Config().Language)
	p.flags.workdir = workdir
	p.opened = a
	return a, nil
}

// with runs f on the built program and closes that.
func (p *program) with(f func(*cli.CLI) error) error {
	a, err := p.open()
	if err != nil {
		return err
	}
	return errors.Join(f(p.cli(a)), a.Close())
}

func (p *program) cli(a *app.App) *cli.CLI {
	return p.cliOf(a.Client())
}

func (p *program) cliOf(c client.Client) *cli.CLI {
	return cli.New(cli.Config{
		Client: c, Text: p.text, In: p.in, Out: p.out, Err: p.err, Signals: p.signals, Now: time.Now,
	})
}

// terminal returns the terminal that the program runs in.
func (p *program) terminal() cli.Terminal {
	return cli.OpenTerminal(p.in, p.out, os.Getenv("TERM"), os.Getenv("NO_COLOR"))
}

// interactive reports whether somebody sits in front of the program.
func (p *program) interactive() bool { return cli.IsTerminal(p.in) && cli.IsTerminal(p.out) }

// columns returns the width of the terminal that errors go to.
func (p *program) columns() int {
	w, _, err := term.GetSize(int(p.err.Fd()))
	if err != nil {
		return 0
	}
	return w
}

// progress reports whether a line may come and go on standard error.
func (p *program) progress() bool {
	return cli.IsTerminal(p.err) && os.Getenv("TERM") != "dumb"
}

// watch takes interrupts and termination into our own hands. Until then they
// end the program, which has nothing to lose and may be waiting for input.
func (p *program) watch() { signal.Notify(p.signals, os.Interrupt, syscall.SIGTERM) }

// signalled returns a context that ends with the first signal, for what has no
// turn to interrupt.
func (p *program) signalled(ctx context.Context) (context.Context, func()) {
	p.watch()
	ctx, cancel := context.WithCancelCause(ctx)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case s := <-p.signals:
			code := cli.ExitInterrupted
			if s != os.Interrupt {
				code = cli.ExitTerminated
			}
			cancel(&cli.Exited{Code: code, Err: errors.New("a signal came")})
		case <-done:
		}
	}()
	return ctx, func() {
		close(done)
		<-stopped
		cancel(nil)
	}
}
