package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/frontend/auth"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/mcpserve"
	"dure/internal/frontend/text"
	"dure/internal/tools/catalog"
)

// tokenVar names the variable with the token of clients.
const tokenVar = "DURE_MCP_TOKEN"

// mcpServeCommand lends the program's tools, and sessions, to other agents.
func (p *program) mcpServeCommand() *cobra.Command {
	var addr, sessions string
	var tools list
	answers := false
	cmd := &cobra.Command{
		Use: "serve", Short: p.text.Say(text.HelpMCPServe), Args: p.atMost(0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			scopes := []string{string(mcpserve.None), string(mcpserve.Own), string(mcpserve.Folder)}
			if !slices.Contains(scopes, sessions) {
				want := p.text.Say(text.WantOneOf, "list", strings.Join(scopes, ", "))
				return p.usage(p.text.Say(text.BadValue, "flag", "--sessions", "value", sessions, "wanted", want), "")
			}
			ctx, done := p.signalled(cmd.Context())
			defer done()
			return p.with(func(*cli.CLI) error {
				s, err := p.mcpServer(ctx, tools, mcpserve.Scope(sessions), answers)
				if err != nil {
					return err
				}
				if addr == "" {
					err = s.Run(ctx, p.in, p.out)
				} else {
					err = p.serveHTTP(ctx, s, addr)
				}
				err = errors.Join(err, s.Close())
				if cause := context.Cause(ctx); cause != nil {
					return cause
				}
				return err
			})
		},
	}
	f, v, t := cmd.Flags(), &p.flags, p.text
	f.StringVar(&addr, "http", "", t.Say(text.FlagServeHTTP))
	f.Var(&tools, "tools", t.Say(text.FlagServeTools))
	f.StringVar(&sessions, "sessions", string(mcpserve.Own), t.Say(text.FlagServeSessions))
	f.BoolVar(&answers, "client-answers", false, t.Say(text.FlagServeAnswers))
	f.StringVar(&v.mode, "permission-mode", "", t.Say(text.FlagMode))
	f.Var(&v.allow, "allow", t.Say(text.FlagAllow))
	f.Var(&v.deny, "deny", t.Say(text.FlagDeny))
	f.BoolVar(&v.trust, "trust", false, t.Say(text.FlagTrust))
	f.StringArrayVar(&v.addDirs, "add-dir", nil, t.Say(text.FlagAddDir))
	f.SortFlags = false
	complete(cmd, "http", values("127.0.0.1:0"))
	complete(cmd, "sessions", values(string(mcpserve.None), string(mcpserve.Own), string(mcpserve.Folder)))
	complete(cmd, "tools", values())
	local(ownOutput, cmd)
	return cmd
}

// mcpServer makes the server of the program.
func (p *program) mcpServer(ctx context.Context, only []string, scope mcpserve.Scope, answers bool) (*mcpserve.Server, error) {
	tools, err := client.Query[[]agent.Spec](ctx, p.opened.Client(), query.ListLendable{Only: only})
	if err != nil {
		return nil, err
	}
	return mcpserve.New(ctx, mcpserve.Config{
		Client: p.client(), Text: p.text, Version: version, Workdir: p.flags.workdir, Logger: p.logger(),
		Tools: tools, Name: catalog.Dialect(p.opened.Config().Dialect).Name, Read: app.ReadTool, Sessions: scope, Answers: answers,
		Lend: func(ctx context.Context, title string, asks bool) (mcpserve.Lent, error) {
			l, err := p.opened.Embedding.Lend(ctx, title, asks)
			if err != nil {
				return nil, err // and no Lent, which would not be nil
			}
			return l, nil
		},
	})
}

// serveHTTP serves clients at an address of this machine, and says at which one and what
// they need.
func (p *program) serveHTTP(ctx context.Context, s *mcpserve.Server, addr string) error {
	l, err := p.listen(ctx, "--http", addr)
	if err != nil {
		return err
	}
	token, said, err := p.token(tokenVar)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	lines := p.text.Say(text.ServeAt, "url", "http://"+l.Addr().String()+mcpserve.Path) + "\n"
	if said {
		lines += p.text.Say(text.ServeToken, "token", token) + "\n"
	}
	if _, err := io.WriteString(p.err, lines); err != nil {
		return errors.Join(fmt.Errorf("saying where the server is: %w", err), l.Close())
	}
	return s.Serve(ctx, l, token)
}

// listen listens at an address of this machine, which a flag has named.
func (p *program) listen(ctx context.Context, flag, addr string) (net.Listener, error) {
	l, err := auth.Listen(ctx, addr)
	if taken := p.portTaken(flag, addr, err); taken != nil {
		return nil, taken
	}
	if err != nil {
		return nil, &agent.Problem{
			Code: agent.ProblemUsage, Message: flag + ": " + err.Error(), Err: err, Fix: p.text.Say(text.ServeReach),
			Args: map[string]string{"flag": flag, "value": addr, "wanted": p.text.Say(text.ServeReach)},
		}
	}
	return l, nil
}

// portTaken says that somebody else listens at an address, where that is what an error says.
func (p *program) portTaken(flag, addr string, err error) error {
	const windows = syscall.Errno(10048) // what Windows calls it
	if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, windows) {
		return nil
	}
	host, port, _ := net.SplitHostPort(addr) // it could be listened at
	return p.usage(p.text.Say(text.PortTaken, "flag", flag, "port", port), p.text.Say(text.FixPortTaken, "flag", flag, "free", net.JoinHostPort(host, "0")))
}

// token returns the token of clients: that of a variable or, to be said, a new one.
func (p *program) token(name string) (token string, said bool, err error) {
	token = os.Getenv(name)
	if token == "" {
		return auth.NewToken(), true, nil
	}
	if auth.CheckToken(token) != nil {
		return "", false, p.usage(p.text.Say(text.ServeShort, "name", name, "n", auth.MinToken), "")
	}
	return token, false, nil
}
