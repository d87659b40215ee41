package cli

import (
	"bufio"
	"context"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/base/near"
	"dure/internal/frontend/text"
)

// Servers lists the servers of the working folder, or shows the one of a name; "" = all.
func (c *CLI) Servers(ctx context.Context, name string, asJSON bool) error {
	r, err := client.Query[query.ServerReport](ctx, c.Client, query.ListServers{})
	if err != nil {
		return err
	}
	if name == "" {
		return c.put(r, asJSON, func(w *bufio.Writer) { writeLines(w, serverList(c.Text, r, c.columns())) })
	}
	info, err := findServer(r, name)
	if err != nil {
		return err
	}
	return c.put(info, asJSON, func(w *bufio.Writer) { writeLines(w, serverLines(c.Text, info)) })
}

// findServer returns the server of a name that counts.
func findServer(r query.ServerReport, name string) (query.ServerInfo, error) {
	i := slices.IndexFunc(r.Servers, func(s query.ServerInfo) bool { return s.Name == name })
	if i >= 0 {
		return r.Servers[i], nil
	}
	var names []string
	for _, s := range r.Servers {
		names = append(names, s.Name)
	}
	fix := "dure mcp list"
	if like := near.Nearest(name, names); like != "" {
		fix = "dure mcp get " + like
	}
	shown := text.Cut(text.OneLine(name), 60)
	return query.ServerInfo{}, &agent.Problem{
		Code: agent.ProblemServer, Message: "server " + shown + ": there is no such server", Fix: fix,
		Args: map[string]string{"name": shown, "error": "there is no such server", "fix": fix},
	}
}

// serverList is a report as people read it: a line for each server.
func serverList(t text.Catalog, r query.ServerReport, columns int) (lines []string) {
	var rows [][]string
	for _, s := range r.Servers {
		rows = append(rows, []string{text.ExactLine(s.Name), serverState(t, s), t.Word("scope." + s.Scope), text.ExactLine(bounded(s.Run))})
	}
	if len(rows) > 0 {
		const least = 24
		squeeze(rows, 3, columns, least)
		lines = rowLines(rows)
	} else {
		lines = []string{t.Say(text.ServersNone)}
	}
	for _, s := range r.Servers {
		lines = append(lines, serverOffers(t, s)...)
		if fix := serverFix(t, s); fix != "" && s.State != "off" {
			lines = append(lines, text.OneLine(s.Name)+": "+fix)
		}
	}
	return append(lines, serverFaults(t, r)...)
}

func serverFaults(t text.Catalog, r query.ServerReport) (lines []string) {
	for _, f := range r.Faults {
		source := text.OneLine(f.Source)
		if f.Server != "" {
			source += ": " + text.OneLine(f.Server)
		}
		l := t.Say(text.ServersFault, "source", source, "message", t.Phrase(text.OneLine(bounded(f.Message))))
		if f.Fix != "" {
			l += " – " + t.Phrase(text.OneLine(bounded(f.Fix)))
		}
		lines = append(lines, l)
	}
	return lines
}

// serverState is whether a server is used, with the reason.
func serverState(t text.Catalog, s query.ServerInfo) string {
	state := t.Word("server." + s.State)
	if s.Why != "" {
		state += " (" + t.Phrase(text.OneLine(bounded(s.Why))) + ")"
	}
	return state
}

// serverFix is what to do so that a server is used; "" = nothing.
func serverFix(t text.Catalog, s query.ServerInfo) string {
	fix := map[string]text.Key{
		"waiting": text.ServerFixWaiting, "changed": text.ServerFixWaiting, "untrusted": text.ServerFixUntrusted,
		"off": text.ServerFixOff, "rejected": text.ServerFixRejected,
	}[s.State]
	if fix == 0 {
		return ""
	}
	return t.Say(fix, "name", text.OneLine(s.Name))
}

// serverLines is all that is known of a server. What it says of itself is shown so that
// nothing of it is hidden.
func serverLines(t text.Catalog, s query.ServerInfo) []string {
	lines := []string{text.ExactLine(s.Name) + "  " + s.Type, "  " + text.ExactLine(s.Run)}
	add := func(k text.Key, list []string) {
		if len(list) > 0 {
			lines = append(lines, "  "+t.Say(k, "list", text.ExactLine(strings.Join(list, ", "))))
		}
	}
	add(text.ServerEnv, s.Env)
	add(text.ServerHeaders, s.Headers)
	add(text.ServerVars, s.Vars)
	lines = append(lines,
		"  "+t.Say(text.ServerFrom, "source", text.OneLine(s.Source), "scope", t.Word("scope."+s.Scope)),
		"  "+t.Say(text.ServerState, "state", serverState(t, s)))
	for _, l := range serverOffers(t, s) {
		lines = append(lines, "  "+l)
	}
	for _, l := range s.Left {
		lines = append(lines, "  "+text.ExactLine(bounded(l)))
	}
	if fix := serverFix(t, s); fix != "" {
		lines = append(lines, "  "+fix)
	}
	return lines
}

// serverOffers says what a server offers that is connected.
func serverOffers(t text.Catalog, s query.ServerInfo) (lines []string) {
	if s.State == "connected" {
		lines = append(lines, text.OneLine(s.Name)+": "+t.Say(text.ServerHas, "tools", s.Tools, "prompts", s.Prompts, "resources", s.Resources))
	}
	if len(s.Withheld) > 0 {
		lines = append(lines, t.Say(text.ServerWithheld, "list", text.ExactLine(bounded(strings.Join(s.Withheld, ", "))), "name", text.OneLine(s.Name)))
	}
	return lines
}

// forAll say of the state of a server whether a thing that is done to all of them, where
// none is named, is done to it. Off are those too that nobody has agreed to yet. Each yes
// is for one server.
var forAll = map[string]func(state string) bool{
	"enable":  func(state string) bool { return state == "off" },
	"disable": func(state string) bool { return state != "off" },
	"reconnect": func(state string) bool {
		return slices.Contains([]string{"connecting", "connected", "failed", "login"}, state)
	},
}

// changeServers does it, and says how it stands with all servers then. What does not work
// with one is told, and the others are changed nevertheless.
func (ch *chat) changeServers(ctx context.Context, do string) ([]string, error) {
	list := query.ListServers{Session: ch.sess.Info.ID}
	r, err := client.Query[query.ServerReport](ctx, ch.Client, list)
	if err != nil {
		return nil, err
	}
	for _, s := range r.Servers {
		if !forAll[do](s.State) {
			continue
		}
		asked[query.ServerInfo](ctx, ch, query.ChangeServer{Session: list.Session, Do: do, Server: s.Name})
	}
	r, err = client.Query[query.ServerReport](ctx, ch.Client, list)
	return serverList(ch.Text, r, ch.s.usable()-2), err
}

// slashServers lists the servers of the session, shows one, or changes one.
func (ch *chat) slashServers(ctx context.Context, arg string) {
	words := strings.Fields(arg)
	var lines []string
	var err error
	switch {
	case len(words) == 2:
		var s query.ServerInfo
		if s, err = client.Query[query.ServerInfo](ctx, ch.Client, query.ChangeServer{Session: ch.sess.Info.ID, Do: strings.ToLower(words[0]), Server: words[1]}); err == nil {
			lines = serverLines(ch.Text, s)
		}
	case len(words) > 2:
		ch.v.note(yellow, ch.usageOf(ctx, "mcp"))
		return
	case len(words) == 1 && forAll[strings.ToLower(words[0])] != nil:
		lines, err = ch.changeServers(ctx, strings.ToLower(words[0]))
	default:
		var r query.ServerReport
		r, err = client.Query[query.ServerReport](ctx, ch.Client, query.ListServers{Session: ch.sess.Info.ID})
		lines = serverList(ch.Text, r, ch.s.usable()-2)
		if err == nil && len(words) == 1 {
			var s query.ServerInfo
			if s, err = findServer(r, words[0]); err == nil {
				lines = serverLines(ch.Text, s)
			}
		}
	}
	if ch.failed(err) {
		return
	}
	ch.notes(lines)
}
