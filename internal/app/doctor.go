package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/base/hosts"
	"dure/internal/base/keys"
	"dure/internal/extend/mcp/servers"
	"dure/internal/frontend/text"
	"dure/internal/knowledge/memory"
	"dure/internal/safety/sandbox"
	"dure/internal/tools/lsp"
)

// What a diagnosis waits for, and from where on it warns.
const (
	endpointPatience = 5 * time.Second
	proxyPatience    = 3 * time.Second
	keychainPatience = 2 * time.Second
	maxSkew          = 5 * time.Minute // of clocks: signatures are refused from there on
	lowDisk          = 1 << 30         // bytes
	fullDisk         = 50 << 20
)

// The states of a finding.
const (
	good = "ok"
	warn = "warn"
	bad  = "fail"
)

// args are the names in a finding.
type args = map[string]string

// diagnosis is a list of findings while it is made.
type diagnosis struct {
	app   *App
	group string
	list  []query.Finding
}

// diagnose looks at everything that a run needs.
func (a *App) diagnose(ctx context.Context) []query.Finding {
	d := &diagnosis{app: a}
	d.group = "configured"
	d.settings()
	d.memory()
	d.servers()
	d.models()
	d.outside()
	d.group = "reachable"
	d.reach(ctx)
	d.group = "enforced"
	d.limits()
	d.group = "programs"
	d.programs()
	d.group = "machine"
	d.disk()
	return d.list
}

// say adds a finding. Its English is that of the catalog.
func (d *diagnosis) say(name, state, code string, a args) {
	f := query.Finding{Group: d.group, Name: name, State: state, Code: code, Args: a}
	_, f.Detail, f.Fix = text.For("en").Finding(f)
	d.list = append(d.list, f)
}

// fault adds what went wrong.
func (d *diagnosis) fault(name string, err error) {
	f := query.Finding{Group: d.group, Name: name, State: bad, Detail: err.Error()}
	if p := agent.ProblemOf(err); p != nil {
		f.Code, f.Detail, f.Fix, f.Args = "problem."+string(p.Code), p.Message, p.Fix, p.Args
	}
	d.list = append(d.list, f)
}

// origin says where a setting comes from.
func (d *diagnosis) origin(key string) string {
	o, ok := d.app.cfg.Origins[key]
	if !ok {
		return string(config.BuiltIn)
	}
	return o.String()
}

func (d *diagnosis) settings() {
	cfg := d.app.cfg
	d.say("version", good, "version", args{"version": cmp.Or(d.app.opts.Version, "?")})
	files := map[string]bool{}
	for _, o := range cfg.Origins {
		switch o.Layer {
		case config.User, config.Project, config.Local, config.Managed, config.Inline:
			files[cmp.Or(o.Where, string(o.Layer))] = true
		}
	}
	project := filepath.Join(d.app.opts.Workdir, ".dure")
	for _, path := range []string{
		filepath.Join(cfg.Home, "settings.json"), filepath.Join(project, "settings.json"), filepath.Join(project, "settings.local.json"),
	} {
		if _, err := os.Stat(path); err == nil {
			files[path] = true // it may say nothing that means anything
		}
	}
	if d.app.opts.Flags.Settings != "" && len(files) == 0 {
		files[string(config.Inline)] = true
	}
	if len(files) > 0 {
		d.say("settings", good, "settings.files", args{"files": strings.Join(slices.Sorted(maps.Keys(files)), ", ")})
	} else {
		d.say("settings", good, "settings.none", args{"path": filepath.Join(cfg.Home, "settings.json")})
	}
	for _, n := range cfg.Notes {
		state := warn
		if n.Level == "info" {
			state = good
		}
		d.say("note", state, "settings.note", args{"text": n.Text})
	}
	if err := probeFolder(cfg.Data); err != nil {
		d.say("data", bad, "data.fail", args{"path": cfg.Data, "error": err.Error()})
	} else {
		d.say("data", good, "data.ok", args{"path": cfg.Data})
	}
}

// memory says which instruction files a model gets in this folder.
func (d *diagnosis) memory() {
	r := d.app.memory.Report(query.ListMemory{})
	active := 0
	for _, f := range r.Files {
		if f.State == string(memory.Active) {
			active++
		}
	}
	switch {
	case r.Off:
		d.say("memory", good, "memory.off", args{"where": d.origin("memory.enabled")})
	case active == 0:
		d.say("memory", good, "memory.none", args{"path": filepath.Join(r.Root, "AGENTS.md")})
	default:
		d.say("memory", good, "memory.ok", args{"n": strconv.Itoa(active), "chars": strconv.Itoa(r.Chars)})
	}
	for _, f := range r.Findings {
		f.Group, f.Name = d.group, "memory"
		d.list = append(d.list, f)
	}
}

// servers says which servers the sessions of this folder have, if anybody names some.
func (d *diagnosis) servers() {
	known, faults := d.app.serversIn(d.app.opts.Workdir)
	var ready, waiting []string
	for _, k := range known {
		switch k.State {
		case servers.Ready:
			ready = append(ready, servers.Clip(k.Name))
		case servers.Waiting, servers.Changed:
			waiting = append(waiting, servers.Clip(k.Name))
		case servers.Broken:
			d.say("mcp", warn, "mcp.broken", args{"name": servers.Clip(k.Name), "error": k.Why})
		}
	}
	if len(ready) > 0 {
		d.say("mcp", good, "mcp.ok", args{"list": strings.Join(ready, ", ")})
	}
	if len(waiting) > 0 {
		d.say("mcp", warn, "mcp.waiting", args{"list": strings.Join(waiting, ", ")})
	}
	for _, f := range faults {
		d.say("mcp", warn, "settings.note", args{"text": f.Error()})
	}
}

// probeFolder writes a file where sessions are kept, and removes it.
func probeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString("probe")
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// models says which model is asked, where, and with which key.
func (d *diagnosis) models() {
	a := d.app
	d.say("profile", good, "profile", args{"profile": a.cfg.Profile, "where": d.origin("profile")})
	p, info, err := a.usualProvider()
	if err != nil {
		d.fault("model", err)
	} else {
		if rerr := a.reachable(p); rerr != nil {
			d.fault("model", rerr)
		} else {
			state, code := good, "model.ok"
			if info.Price == nil && !p.Local {
				state, code = warn, "model.price"
			}
			d.say("model", state, code, args{"model": info.ID, "provider": p.Title, "where": d.origin("model")})
		}
		d.say("provider", good, "provider", args{"provider": p.Title, "url": hosts.Shown(p.URL), "type": p.Type})
		d.key(p)
	}
	if len(a.cfg.Fallback) == 0 {
		d.say("fallback", good, "fallback.none", nil)
	}
	for _, name := range a.cfg.Fallback {
		if _, err := a.model(name); err != nil {
			d.say("fallback", warn, "fallback.bad", args{"model": name, "error": err.Error()})
		} else {
			d.say("fallback", good, "fallback.ok", args{"models": name})
		}
	}
}

func (d *diagnosis) key(p provider) {
	if _, err := d.app.keyed(p); err != nil {
		d.fault("key", err)
		return
	}
	_, from, _ := d.app.key(p) // keyed has reported it
	switch {
	case from != "":
		d.say("key", good, "key.ok", args{"provider": p.Title, "where": from})
	case d.app.bearer(p) != "":
		d.say("key", good, "key.ok", args{"provider": p.Title, "where": d.origin("authToken")})
	default:
		d.say("key", good, "key.needless", nil)
	}
}

// outside says how the program may reach out.
func (d *diagnosis) outside() {
	a, cfg := d.app, d.app.cfg
	switch cfg.Network.Mode {
	case config.Internal:
		d.say("network", good, "network.internal", args{"hosts": cmp.Or(strings.Join(cfg.Network.AllowHosts, ", "), "-")})
	case config.Offline:
		d.say("network", good, "network.off", nil)
	default:
		d.say("network", good, "network.external", nil)
	}
	if p, _, err := a.usualProvider(); err == nil {
		if u, err := url.Parse(p.URL); err == nil && u.Host != "" {
			via, err := a.proxyOf(p.URL)
			switch {
			case err != nil:
				d.say("proxy", bad, "proxy.bad", args{"error": hosts.Cause(err)})
			case via == nil:
				d.say("proxy", good, "proxy.none", args{"host": u.Hostname()})
			default:
				d.say("proxy", good, "proxy.set", args{"host": u.Hostname(), "proxy": hosts.Shown(via.String()), "where": d.proxyOrigin()})
			}
		}
	}
	if cfg.Network.CA != "" {
		d.say("certificates", good, "ca.file", args{"path": cfg.Network.CA})
	} else {
		d.say("certificates", good, "ca.system", nil)
	}
	if cfg.NoAI {
		d.say("ai", warn, "ai.off", args{"where": d.origin("ai")})
	} else {
		d.say("ai", good, "ai.on", nil)
	}
	switch s := cfg.Search; {
	case s.Kind == "":
		d.say("search", good, "search.none", nil)
	case s.KeyEnv != "" && strings.TrimSpace(getenv(a.opts.Environ)(s.KeyEnv)) == "":
		d.say("search", warn, "search.key", args{"kind": s.Kind, "variable": s.KeyEnv})
	default:
		d.say("search", good, "search.ok", args{"kind": s.Kind, "url": cmp.Or(hosts.Shown(s.URL), "-")})
	}
	if u := cfg.Updates; u.Check {
		d.say("updates", good, "updates.on", args{"url": hosts.Shown(u.URL)})
	} else {
		d.say("updates", good, "updates.off", nil)
	}
}

func (d *diagnosis) proxyOrigin() string {
	if d.app.cfg.Network.Proxy != "" {
		return d.origin("network.proxy")
	}
	return string(config.Environment)
}

// proxyOf is the proxy that a request leaves through; nil = none.
func (a *App) proxyOf(raw string) (*url.URL, error) {
	req, err := http.NewRequest(http.MethodHead, raw, nil)
	if err != nil {
		return nil, err
	}
	return proxy(a.cfg.Network, getenv(a.opts.Environ))(req)
}

// reach looks for what is at the other end of a connection.
func (d *diagnosis) reach(ctx context.Context) {
	a := d.app
	p, _, err := a.usualProvider()
	switch {
	case err != nil:
		d.say("endpoint", warn, "endpoint.none", nil)
	case a.reachable(p) != nil:
		d.say("endpoint", warn, "endpoint.closed", args{"why": a.reachable(p).Error()})
	default:
		d.endpoint(ctx, p)
	}
	var local []string
	for _, f := range a.local(ctx) {
		local = append(local, fmt.Sprintf("%s (%d)", f.Base, len(f.Models)))
	}
	if len(local) == 0 {
		d.say("local", good, "local.none", nil)
	} else {
		d.say("local", good, "local.found", args{"list": strings.Join(local, ", ")})
	}
	d.keychain()
}

// endpoint opens a connection and sends nothing that costs.
func (d *diagnosis) endpoint(ctx context.Context, p provider) {
	u, err := url.Parse(p.URL)
	if err == nil && u.Host == "" {
		err = errors.New("it has no host")
	}
	if err != nil {
		d.say("endpoint", bad, "endpoint.bad", args{"url": hosts.Shown(p.URL), "error": err.Error(), "provider": p.Name})
		return
	}
	if via, err := d.app.proxyOf(p.URL); err == nil && via != nil {
		d.proxy(ctx, via)
	}
	ctx, cancel := context.WithTimeout(ctx, endpointPatience)
	defer cancel()
	begun := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, p.URL, nil)
	var resp *http.Response
	if err == nil {
		resp, err = d.app.http.Transport.RoundTrip(req)
	}
	if err != nil {
		if oe, ok := errors.AsType[*net.OpError](err); ok {
			err = oe
		}
		code := "endpoint.fail"
		if s := err.Error(); strings.Contains(s, "tls: ") || strings.Contains(s, "x509: ") {
			code = "endpoint.tls"
		}
		d.say("endpoint", bad, code, args{"url": hosts.Shown(p.URL), "error": err.Error(), "provider": p.Name})
		return
	}
	resp.Body.Close()
	d.say("endpoint", good, "endpoint.ok", args{"url": hosts.Shown(p.URL), "ms": strconv.FormatInt(time.Since(begun).Milliseconds(), 10)})
	d.clock(resp.Header.Get("Date"), time.Now())
}

// clock compares this machine's clock with a Date header.
func (d *diagnosis) clock(date string, now time.Time) {
	theirs, err := http.ParseTime(date)
	if err != nil {
		d.say("clock", good, "clock.unknown", nil)
		return
	}
	skew := now.Sub(theirs).Abs()
	a := args{"seconds": strconv.Itoa(int(skew.Seconds()))}
	if skew > maxSkew {
		d.say("clock", bad, "clock.fail", a)
		return
	}
	d.say("clock", good, "clock.ok", a)
}

// proxy looks whether a proxy takes connections.
func (d *diagnosis) proxy(ctx context.Context, via *url.URL) {
	host := via.Host
	if via.Port() == "" {
		port := map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[via.Scheme]
		host = net.JoinHostPort(via.Hostname(), cmp.Or(port, "80"))
	}
	conn, err := (&net.Dialer{Timeout: proxyPatience}).DialContext(ctx, "tcp", host)
	if err != nil {
		where := "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY"
		if d.app.cfg.Network.Proxy != "" {
			where = "network.proxy"
		}
		d.say("proxy", bad, "proxy.fail", args{"proxy": hosts.Shown(via.String()), "error": err.Error(), "where": where})
		return
	}
	conn.Close()
	d.say("proxy", good, "proxy.ok", args{"proxy": hosts.Shown(via.String())})
}

// keychain asks the keychain for a key that nobody has stored.
func (d *diagnosis) keychain() {
	path := d.app.keys().Path
	if d.app.ring == nil {
		d.say("keychain", good, "keychain.off", args{"path": path})
		return
	}
	answer := make(chan error, 1)
	go func() { // ends with the question; one that is not answered is left behind
		_, err := d.app.ring.Get("no such provider")
		answer <- err
	}()
	var err error
	select {
	case err = <-answer:
	case <-time.After(keychainPatience):
		err = errors.New("it does not answer")
	}
	if err == nil || errors.Is(err, keys.ErrNone) {
		d.say("keychain", good, "keychain.ok", nil)
		return
	}
	d.say("keychain", good, "keychain.none", args{"path": path, "error": err.Error()})
}

// limits says what holds whatever a model wants.
// sandbox says what confines commands here: it is tried out.
func (d *diagnosis) sandbox() {
	cfg := d.app.cfg
	r, err := d.app.ExplainSandbox("")
	switch {
	case err != nil:
		d.fault("sandbox", err)
	case r.Level == string(sandbox.None) && cfg.Mode == agent.ModeBypass:
		d.say("sandbox", warn, "sandbox.bypass", nil)
	case r.Off:
		d.say("sandbox", warn, "sandbox.off", args{"where": d.origin("sandbox.mode")})
	case r.Level == string(sandbox.Full):
		d.say("sandbox", good, "sandbox.full", args{"mechanism": r.Mechanism})
	default:
		d.say("sandbox", warn, "sandbox."+r.Level, args{"mechanism": r.Mechanism})
	}
	if hosts := cfg.Sandbox.AllowHosts; len(hosts) > 0 {
		d.say("egress", good, "egress.hosts", args{"list": strings.Join(hosts, ", ")})
	} else {
		d.say("egress", good, "egress.none", nil)
	}
	if os.Geteuid() == 0 {
		d.say("root", warn, "root", nil)
	}
	d.trust()
}

// trust says whether what the folder brings counts.
func (d *diagnosis) trust() {
	f, err := d.app.Folder(d.app.opts.Workdir)
	switch {
	case err != nil:
		d.fault("trust", err)
	case d.app.cfg.Trusted:
		d.say("trust", good, "trust.yes", args{"path": f.Path})
	case f.State.Nothing:
		d.say("trust", good, "trust.nothing", args{"path": f.Path})
	case f.Stale() != nil:
		d.say("trust", warn, "trust.stale", args{"path": f.Path, "list": text.Some(f.Stale())})
	default:
		d.say("trust", warn, "trust.no", args{"path": f.Path, "n": strconv.Itoa(len(f.Files))})
	}
}

func (d *diagnosis) limits() {
	cfg := d.app.cfg
	d.sandbox()
	state := good
	if cfg.Mode == agent.ModeBypass {
		state = warn
	}
	d.say("mode", state, "mode."+cmp.Or(string(cfg.Mode), string(agent.ModeDefault)), args{"where": d.origin("permissions.defaultMode")})
	d.say("rules", good, "rules", args{
		"allow": strconv.Itoa(len(cfg.Allow)), "ask": strconv.Itoa(len(cfg.Ask)), "deny": strconv.Itoa(len(cfg.Deny)),
	})
	d.say("folders", good, "folders", args{"list": strings.Join(append([]string{d.app.opts.Workdir}, cfg.AddDirs...), ", ")})
}

// programs says which programs are there that dure can use.
func (d *diagnosis) programs() {
	for _, name := range []string{"git", "bash"} {
		switch path := sandbox.Find(name); {
		case path != "":
			d.say(name, good, "program.ok", args{"path": path})
		default:
			d.say(name, warn, "program."+name, nil)
		}
	}
	var servers []string
	for _, s := range lsp.Defaults() {
		if sandbox.Find(s.Argv[0]) != "" {
			servers = append(servers, s.Name)
		}
	}
	if len(servers) == 0 {
		d.say("servers", good, "servers.none", nil)
	} else {
		d.say("servers", good, "servers.ok", args{"list": strings.Join(servers, ", ")})
	}
	if sandbox.HasPTY() {
		d.say("pty", good, "pty.ok", nil)
	} else {
		d.say("pty", good, "pty.none", nil)
	}
}

func (d *diagnosis) disk() {
	path := d.app.cfg.Data
	for {
		if _, err := os.Stat(path); err == nil || filepath.Dir(path) == path {
			break
		}
		path = filepath.Dir(path)
	}
	free, err := freeSpace(path)
	if err != nil {
		d.say("disk", warn, "disk.unknown", args{"error": err.Error()})
		return
	}
	a := args{"path": path, "free": size(free)}
	switch {
	case free < fullDisk:
		d.say("disk", bad, "disk.low", a)
	case free < lowDisk:
		d.say("disk", warn, "disk.low", a)
	default:
		d.say("disk", good, "disk.ok", a)
	}
}

// size is a number of bytes for people.
func size(n uint64) string {
	const unit = 1024
	if n < unit*unit {
		return fmt.Sprintf("%d KiB", n/unit)
	}
	if n < unit*unit*unit {
		return fmt.Sprintf("%d MiB", n/unit/unit)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/unit/unit/unit)
}
