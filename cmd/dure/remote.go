package main

import (
	"context"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client"
	"dure/client/remote"
	"dure/internal/frontend/auth"
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

// reaching is how long a server may take to say where it works, and to let sessions go.
const reaching = 10 * time.Second

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

// dial has the server asked that a flag names, about the folder that it works in.
func (p *program) dial() error {
	if p.flags.settings != "" {
		return p.usage(p.text.Say(text.Exclusive, "one", "--server", "other", "--settings"), "")
	}
	u, err := url.Parse(p.flags.server)
	if err != nil || u.Scheme != "https" && !auth.IsLoopback(u.Hostname()) { // where others could read the token
		return p.badValue("--server", p.flags.server, text.WantServer)
	}
	token := os.Getenv(serveVar)
	if token == "" {
		return p.usage(p.text.Say(text.ServerToken, "name", serveVar), "")
	}
	r, err := remote.New(remote.Config{URL: p.flags.server, Token: token, Answer: -1})
	if err != nil {
		return p.badValue("--server", p.flags.server, text.WantServer)
	}
	p.server = r
	ctx, done := context.WithTimeout(context.Background(), reaching)
	defer done()
	s, err := client.Query[query.System](ctx, p.client(), query.DescribeSystem{})
	if err == nil { // else what comes next says what is wrong
		p.flags.workdir = s.Workdir
	}
	return nil
}

// hangUp leaves the sessions that are still open on the server, such as after an interrupt.
func (p *program) hangUp() error {
	ctx, done := context.WithTimeout(context.Background(), reaching)
	defer done()
	return p.server.Shutdown(ctx)
}
