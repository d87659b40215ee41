package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/internal/cli"
	"dure/internal/serve"
	"dure/internal/serve/completions"
	"dure/internal/text"
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
			return p.usage(p.text.Say(text.BadValue, "flag", "--drain", "value", o.drain, "wanted", p.text.Say(text.WantTime)), "")
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
	return cmd
}

// maxDrain is how long turns can have at most.
const maxDrain = time.Hour

// serveSessions serves until a signal comes.
func (p *program) serveSessions(ctx context.Context, o serving, asJSON bool) error {
	l, token, hosts, said, err := p.entrance(ctx, o)
	if err != nil {
		return err
	}
	figures := p.opened.Metrics()
	figures.Process()
	var s *serve.Server
	desk := completions.New(completions.Config{
		Tags: serve.Tags, Find: func(ctx context.Context, id string) (agent.SessionInfo, error) { return s.Find(ctx, id) },
		Client: p.opened.Shared(), Workdir: p.flags.workdir, Logger: p.opened.Logger(),
	})
	s, err = serve.New(serve.Config{
		Routes: desk.Routes(), Meter: figures, Users: p.users(), Hosts: hosts, TLS: hosts != nil,
		Client: p.opened.Shared(), Token: token, Version: version, Workdir: p.flags.workdir, Logger: p.opened.Logger(),
		Guarded: o.guarded, Drain: o.drain,
		Files: func(ctx context.Context, session string) (serve.Files, error) {
			files, err := p.opened.SessionFiles(ctx, session)
			if err != nil {
				return nil, err // and no Files, which would not be nil
			}
			return files, nil
		},
	})
	if err == nil {
		err = p.sayServed(l, token, said, o, asJSON)
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return s.Serve(ctx, l)
}

// entrance listens, and says who may come in: whoever has the token, or beyond this machine
// the users alone.
func (p *program) entrance(ctx context.Context, o serving) (l net.Listener, token string, hosts func(string) bool, said bool, err error) {
	if !isLocal(o.addr) {
		l, hosts, err = p.beyond(ctx, o)
		return l, "", hosts, false, err
	}
	if l, err = p.listen(ctx, "--addr", o.addr); err != nil {
		return nil, "", nil, false, err
	}
	if token, said, err = p.token(serveVar); err != nil {
		return nil, "", nil, false, errors.Join(err, l.Close())
	}
	return l, token, nil, said, nil
}

// served says to programs where a server is.
type served struct {
	URL   string `json:"url"`
	Token string `json:"token,omitempty"` // that was made; "" = the one that was given
}

// sayServed says where the server is, and what clients need.
func (p *program) sayServed(l net.Listener, token string, said bool, o serving, asJSON bool) error {
	scheme := "http://"
	if !isLocal(o.addr) {
		scheme = "https://"
	}
	at := served{URL: scheme + l.Addr().String()}
	if said {
		at.Token = token
	}
	var err error
	if asJSON {
		err = json.NewEncoder(p.out).Encode(at)
	} else {
		lines := p.text.Say(text.ServeAt, "url", at.URL) + "\n"
		if said {
			lines += p.text.Say(text.ServeToken, "token", token) + "\n"
		}
		_, err = p.out.WriteString(lines + p.text.Say(text.ServeStop, "time", o.drain) + "\n")
	}
	if err != nil {
		return fmt.Errorf("saying where the server is: %w", err)
	}
	return nil
}
