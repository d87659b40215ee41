package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/auth"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// users are those who may come in with tokens of their own.
func (p *program) users() *auth.Users {
	return auth.OpenUsers(filepath.Join(p.opened.Config().Home, auth.UsersFile))
}

// userCommand has what is done with users of the server.
func (p *program) userCommand() *cobra.Command {
	user := &cobra.Command{Use: "user", Short: p.text.Say(text.HelpServeUser), Args: p.atMost(0), RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	scope := string(auth.Write)
	add := p.command("add NAME", text.HelpServeUserAdd, 1, func(ctx context.Context, c *cli.CLI, args []string, asJSON bool) error {
		added, err := p.changeUser(ctx, c, query.ChangeUser{Do: query.UserAdd, Name: strings.Join(args, ""), Scope: scope})
		if err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(p.out).Encode(added)
		}
		_, err = io.WriteString(p.out, added.Token+"\n")
		return err
	})
	add.Flags().StringVar(&scope, "scope", scope, p.text.Say(text.FlagServeScope))
	complete(add, "scope", values("metrics", "read", "write", "admin"))
	remove := p.command("remove NAME", text.HelpServeUserRemove, 1, func(ctx context.Context, c *cli.CLI, args []string, _ bool) error {
		_, err := p.changeUser(ctx, c, query.ChangeUser{Do: query.UserRemove, Name: strings.Join(args, "")})
		return err
	})
	list := p.command("list", text.HelpServeUserList, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		all, err := client.Query[[]query.User](ctx, c.Client, query.ListUsers{})
		if err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(p.out).Encode(all)
		}
		for _, u := range all {
			if _, err := fmt.Fprintf(p.out, "%s\t%s\t%s\n", u.Name, u.Scope, u.Created.Format(time.DateOnly)); err != nil {
				return err
			}
		}
		return nil
	})
	user.AddCommand(add, list, remove)
	return user
}

func (p *program) changeUser(ctx context.Context, c *cli.CLI, q query.ChangeUser) (query.NewUser, error) {
	changed, err := client.Query[query.NewUser](ctx, c.Client, q)
	if pr := agent.ProblemOf(err); pr != nil && pr.Code == agent.ProblemUsage {
		err = p.usage(pr.Message, "")
	}
	return changed, err
}

// certificate is what a server is known by.
type certificate struct {
	tls   *tls.Config       // nil = there is none
	hosts func(string) bool // the names that it is for
}

// certified reads the certificate that the command line names. Without one there is no TLS.
func (p *program) certified(o serving) (certificate, error) {
	switch {
	case o.cert == "" && o.key == "":
		return certificate{}, nil
	case o.cert == "" || o.key == "":
		return certificate{}, p.usage(p.text.Say(text.ServePair), "")
	}
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	var leaf *x509.Certificate
	if err == nil {
		leaf, err = x509.ParseCertificate(pair.Certificate[0])
	}
	if err != nil {
		return certificate{}, p.usage("--tls-cert, --tls-key: "+err.Error(), "")
	}
	return certificate{
		// Streams and deadlines are those of the first version of HTTP.
		tls:   &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}},
		hosts: func(host string) bool { return leaf.VerifyHostname(host) == nil },
	}, nil
}

// beyond listens where others can reach it: with TLS alone, and for users alone.
func (p *program) beyond(ctx context.Context, o serving) (net.Listener, error) {
	all, err := p.users().List()
	if err != nil {
		return nil, err
	}
	if o.cert == "" || len(all) == 0 {
		return nil, p.usage(p.text.Say(text.ServeOthers, "addr", o.addr), p.text.Say(text.ServeBeyond))
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.addr)
	if taken := p.portTaken("--addr", o.addr, err); taken != nil {
		return nil, taken
	}
	if err != nil {
		return nil, p.usage("--addr: "+o.addr+": "+err.Error(), "")
	}
	return l, nil
}

// isLocal reports whether an address is one of this machine that others cannot reach.
func isLocal(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err != nil || auth.IsLoopback(host)
}
