package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/control"
	"dure/internal/frontend/control/socket"
	"dure/internal/frontend/serve"
	"dure/internal/frontend/serve/completions"
	"dure/internal/frontend/text"
	"dure/internal/knowledge/mention/browse"
)

// serveVar names the variable with the token of those who are served.
const serveVar = "DURE_SERVE_TOKEN"

// serving is what the command line says about a server.
type serving struct {
	addr    string
	guarded bool
	cert    string
	key     string
	drain   time.Duration
}

// serveCommand serves sessions over HTTP.
func (p *program) serveCommand() *cobra.Command {
	var o serving
	cmd := p.command("serve", text.HelpServe, 0, func(ctx context.Context, _ *cli.CLI, _ []string, asJSON bool) error {
		return p.serveSessions(ctx, o, asJSON)
	})
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if o.drain < 0 || o.drain > maxDrain {
			return p.usage(p.text.Say(text.BadValue, "flag", "--drain", "value", o.drain, "wanted", p.text.Say(text.WantDrain, "most", strings.TrimSuffix(maxDrain.String(), "0m0s"))), "")
		}
		return nil
	}
	f, v, t := cmd.Flags(), &p.flags, p.text
	f.StringVar(&o.addr, "addr", "127.0.0.1:0", t.Say(text.FlagServeAddr))
	f.BoolVar(&o.guarded, "guarded", false, t.Say(text.FlagServeGuarded))
	f.DurationVar(&o.drain, "drain", serve.DrainTime, t.Say(text.FlagServeDrain))
	f.StringVar(&o.cert, "tls-cert", "", t.Say(text.FlagServeCert))
	f.StringVar(&o.key, "tls-key", "", t.Say(text.FlagServeKey))
	f.StringVar(&v.model, "model", "", t.Say(text.FlagModel))
	f.StringVar(&v.mode, "permission-mode", "", t.Say(text.FlagMode))
	f.Var(&v.allow, "allow", t.Say(text.FlagAllow))
	f.Var(&v.deny, "deny", t.Say(text.FlagDeny))
	f.BoolVar(&v.trust, "trust", false, t.Say(text.FlagTrust))
	f.StringArrayVar(&v.addDirs, "add-dir", nil, t.Say(text.FlagAddDir))
	f.SortFlags = false
	cmd.AddCommand(p.userCommand())
	complete(cmd, "addr", values("127.0.0.1:0"))
	complete(cmd, "drain", values())
	local(ownServer, cmd)
	return cmd
}

// maxDrain is how long turns can have at most.
const maxDrain = time.Hour

// serveSessions serves until a signal comes.
func (p *program) serveSessions(ctx context.Context, o serving, asJSON bool) error {
	collectSooner()
	e, err := p.entrance(ctx, o)
	if err != nil {
		return err
	}
	figures := p.opened.Telemetry.Metrics()
	figures.Process()
	p.opened.Telemetry.Begin()
	var s *serve.Server
	desk := completions.New(completions.Config{
		Tags: serve.Tags, Still: serve.Still, Find: func(ctx context.Context, id string) (agent.SessionInfo, error) { return s.Find(ctx, id) },
		Client: p.opened.Shared(), Workdir: p.flags.workdir, Logger: p.logger(),
	})
	s, err = serve.New(serve.Config{
		Routes: append(desk.Routes(), p.sockets()), Meter: figures, Users: p.users(), Hosts: e.hosts, TLS: e.hosts != nil,
		Client: p.opened.Shared(), Token: e.token, Version: version, Workdir: p.flags.workdir, Logger: p.logger(),
		Guarded: o.guarded, Drain: o.drain,
		Files: func(ctx context.Context, session string) (serve.Files, error) {
			info, err := client.Query[agent.SessionInfo](ctx, p.client(), agent.FindSession{Name: session})
			if err != nil {
				return nil, err
			}
			files, err := browse.Open(info, p.opened.Hidden())
			if err != nil {
				return nil, err // and no Files, which would not be nil
			}
			return files, nil
		},
	})
	if err == nil {
		err = p.sayServed(e, o, asJSON)
	}
	if err != nil {
		return errors.Join(err, e.l.Close())
	}
	return s.Serve(ctx, e.l)
}

// entry is where a server is reached, and by whom.
type entry struct {
	l     net.Listener
	token string            // of whoever runs the server; "" = users alone come in
	said  bool              // the token was made, and is to be said
	hosts func(string) bool // names of the certificate; nil = there is no TLS
}

// sockets serve hosts that speak the control protocol. They share the sessions of the server,
// and bring no settings: whoever runs it has decided on those.
func (p *program) sockets() serve.Route {
	all := socket.New(socket.Config{
		Ending: serve.Ending, Full: serve.Full, Still: serve.Still,
		Control: control.Config{
			Version: version, Logger: p.logger(), Text: p.text,
			Start: func(context.Context, control.Begin) (control.Program, error) {
				return control.Program{Client: p.opened.Shared(), Workdir: p.flags.workdir, Mode: p.mode(), Text: p.text}, nil
			},
		},
	})
	return serve.SocketRoute("/v1/control", "control", "A WebSocket with the control protocol, a message of it as a text message.", all.ServeHTTP)
}

// entrance listens, and says who may come in: whoever has the token, or beyond this machine
// the users alone.
func (p *program) entrance(ctx context.Context, o serving) (entry, error) {
	c, err := p.certified(o)
	if err != nil {
		return entry{}, err
	}
	e := entry{hosts: c.hosts}
	if isLocal(o.addr) {
		if e.token, e.said, err = p.token(serveVar); err == nil {
			e.l, err = p.listen(ctx, "--addr", o.addr)
		}
	} else {
		e.l, err = p.beyond(ctx, o)
	}
	if err != nil {
		return entry{}, err
	}
	e.l = serve.Bounded(e.l)
	if c.tls != nil {
		e.l = tls.NewListener(e.l, c.tls)
	}
	return e, nil
}

// served says to programs where a server is.
type served struct {
	URL   string `json:"url"`
	Token string `json:"token,omitempty"` // that was made; "" = the one that was given
}

// sayServed says where the server is, and what clients need.
func (p *program) sayServed(e entry, o serving, asJSON bool) error {
	scheme := "http://"
	if e.hosts != nil {
		scheme = "https://"
	}
	at := served{URL: scheme + e.l.Addr().String()}
	if e.said {
		at.Token = e.token
	}
	var err error
	if asJSON {
		err = json.NewEncoder(p.out).Encode(at)
	} else {
		lines := p.text.Say(text.ServeAt, "url", at.URL) + "\n"
		if e.said {
			lines += p.text.Say(text.ServeToken, "token", e.token) + "\n"
		}
		_, err = p.out.WriteString(lines + p.text.Say(text.ServeStop, "time", o.drain) + "\n")
	}
	if err != nil {
		return fmt.Errorf("saying where the server is: %w", err)
	}
	return nil
}
