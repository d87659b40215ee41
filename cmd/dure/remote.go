package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client/remote"
	"dure/internal/frontend/text"
)

// Why commands work on this machine only. Queries that are local have reasons of their own.
const (
	ownTask    = "a task is run with the flags and settings of this machine"
	ownOutput  = "it serves the program that started it"
	ownServer  = "it is a server itself"
	ownProgram = "the code of the bundle runs in this program"
	ownTimes   = "it waits in this program for the times of its schedules"
)

// localReason is the annotation of a command that a server cannot be asked for.
const localReason = "local"

// local marks commands that work on this machine only.
func local(reason string, commands ...*cobra.Command) {
	for _, cmd := range commands {
		cmd.Annotations = map[string]string{localReason: reason}
	}
}

// localAs marks commands that ask a local query.
func localAs(name string, commands ...*cobra.Command) {
	local(query.AccessTo(name).Local, commands...)
}

// refuseLocal is an error for a command that works on this machine only, if another program
// is to be asked. A reason of "" refuses nothing.
func (p *program) refuseLocal(cmd *cobra.Command, reason string) error {
	if p.flags.server == "" || reason == "" {
		return nil
	}
	return p.usage(p.text.Say(text.LocalCommand, "command", cmd.CommandPath(), "reason", p.text.Phrase(reason)), p.text.Say(text.FixLocalCommand))
}

// dial returns the server that a flag names.
func (p *program) dial() (*remote.Remote, error) {
	if p.flags.settings != "" {
		return nil, p.usage(p.text.Say(text.Exclusive, "one", "--server", "other", "--settings"), "")
	}
	token := os.Getenv(serveVar)
	if token == "" {
		return nil, p.usage(p.text.Say(text.ServerToken, "name", serveVar), "")
	}
	r, err := remote.New(remote.Config{URL: p.flags.server, Token: token, Answer: -1})
	if err != nil {
		return nil, p.badValue("--server", p.flags.server, text.WantServer)
	}
	return r, nil
}

// hangUp leaves the sessions that are still open on the server, such as after an interrupt.
func (p *program) hangUp() error {
	ctx, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	return p.server.Shutdown(ctx)
}
