package app

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"path/filepath"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/base/hosts"
	"dure/internal/extend/bundle/exthost"
	"dure/internal/extend/bundle/swarms"
	"dure/internal/extend/bundle/toolkit"
	"dure/internal/extend/hooks"
	"dure/internal/extend/mcp/oauth"
	"dure/internal/extend/swarm"
	"dure/internal/safety/guard"
	"dure/internal/safety/sandbox"
	"dure/internal/state/journal"
	"dure/internal/tools/catalog"
)

// newBundles makes the capability that has the bundles.
func (a *App) newBundles() *swarms.Extension {
	known := sync.OnceValue(catalog.Renamed)
	return swarms.New(swarms.Config{
		Workdir: a.opts.Workdir, Home: a.opts.UserHome, Changesets: filepath.Join(a.cfg.Data, "changesets"), Code: a.opts.Flags.Code, Compiled: a.opts.Extensions,
		Getenv: getenv(a.opts.Environ), Env: a.commandEnv, Redact: a.patterns.Redact, Masked: guard.Masked, Logger: a.opts.Logger,
		Trusts: a.trust.Within, Box: a.ownBox, Post: a.post, Desk: func() (*oauth.Desk, error) { return a.desk() }, Client: a.Client, Reminder: hooks.ReminderOf,
		Builtin:    func(name string) bool { _, ok := known()(name); return ok },
		IsName:     func(name string) bool { return swarm.BadName(name) == "" },
		EntryTools: []string{swarm.HandoffTool, swarm.CoordinateTool, "task__output", "task__stop"},

		UsableServer: func(dir, tool, name string) error { return a.servers.ForBundle(dir, tool, name) },
		Invoke: func(ctx context.Context, p swarms.Place, server, tool string, input json.RawMessage) (agent.Result, error) {
			return a.servers.Of(p.ID).InvokeFor(ctx, p.Catalog, server, tool, input)
		},
		Asks: func(ctx context.Context, p swarms.Place, server, tool string) (bool, error) {
			return a.servers.Of(p.ID).AsksFor(ctx, p.Catalog, server, tool)
		},

		Sessions: func(ctx context.Context, prefix string) iter.Seq2[agent.SessionInfo, error] {
			return func(yield func(agent.SessionInfo, error) bool) {
				if _, err := a.sessions.open(); err != nil {
					yield(agent.SessionInfo{}, err)
					return
				}
				for m, err := range a.sessions.store.List(ctx, journal.Query{Prefix: prefix, Workdir: a.opts.Workdir, Unarchived: true}) {
					if !yield(m.SessionInfo, err) {
						return
					}
				}
			}
		},
		Read: func(ctx context.Context, id string) iter.Seq2[agent.Event, error] {
			return a.sessions.store.Read(ctx, id, 0)
		},
		Park: func(meant func(string) bool) {
			if reg := a.sessions.registry(); reg != nil {
				reg.Park(meant)
			}
		},
	})
}

// ownBox returns what confines programs that no session starts, in the folder of the program,
// that folder without links, and what finds programs outside of it.
func (a *App) ownBox() (box *sandbox.Box, root string, find func(string) string, err error) {
	ws, err := a.workspace()
	if err != nil {
		return nil, "", nil, err
	}
	box, _ = a.boxes.Box(ws.Root(), a.opts.Workdir, nil)
	return box, ws.Root(), sandbox.Outside(ws.Inside), nil
}

// bundleCode puts the tools of a bundle into the catalog of a session.
func (s *assembly) bundleCode(kind string) (*swarms.Session, error) {
	p := swarms.Place{Session: s.b, Catalog: s.offered.Tools, Workspace: s.ws, Box: s.box, Find: s.find}
	if s.known != nil {
		p.Skills = func() (list []toolkit.Skill) {
			for _, k := range s.known.Set.List() {
				if k.Off != "" || k.NoModel {
					continue
				}
				one := toolkit.Skill{Name: k.Name}
				if !k.Bare {
					one.Description = k.Described()
				}
				list = append(list, one)
			}
			return list
		}
	}
	return s.app.Bundles.Begin(p, kind)
}

// maxPosted is the most bytes of an answer that a tool behind an address gives.
const maxPosted = 8 << 20

// post asks a tool behind an address, as far as the network mode lets it. It is not sent
// anywhere else.
func (a *App) post(ctx context.Context, q exthost.Request) (exthost.Response, error) {
	var none exthost.Response
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, q.URL, strings.NewReader(string(q.Body)))
	if err != nil {
		return none, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", q.Key)
	if q.Authorization != "" {
		req.Header.Set("Authorization", q.Authorization)
	}
	by := a.transport.Clone()
	by.DialContext, by.DisableKeepAlives = hosts.Dialer(true), true
	client := &http.Client{
		Transport:     signInWay{a, by},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return none, err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPosted+1))
	return exthost.Response{Status: resp.StatusCode, Body: body}, err
}
