package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"dure/agent"
	"dure/internal/replay"
	"dure/internal/sandbox"
)

// query answers what the sessions do not.
func (a *App) query(ctx context.Context, q agent.Query) (any, error) {
	switch q := q.(type) {
	case agent.ListModels:
		return a.models.All(), nil
	case agent.VerifyReplay:
		return a.verifyReplay(ctx, q.Session)
	case agent.Diagnose:
		return a.diagnose(ctx), nil
	}
	return nil, fmt.Errorf("query %q: nobody answers it", q.Query())
}

func (a *App) verifyReplay(ctx context.Context, id string) (agent.ReplayReport, error) {
	return replay.Verify(ctx, replay.Config{
		Session: id,
		Events:  a.store.Read(ctx, id, 0), // what is stored now; the session may go on
		Blob: func(ctx context.Context, sha string) (io.ReadCloser, error) {
			return a.store.Blob(ctx, id, sha)
		},
	})
}

// diagnose looks at everything that a run needs.
func (a *App) diagnose(ctx context.Context) []agent.Finding {
	findings := []agent.Finding{
		{Name: "version", State: "ok", Detail: a.opts.Version},
		a.diagnoseSettings(),
		a.diagnoseData(),
		a.diagnoseKey(),
		a.diagnoseModel(),
		a.diagnoseEndpoint(ctx),
		diagnoseProgram("git", "listings of repositories, and their ignore rules", "install git"),
		diagnoseProgram("bash", "commands; sh is used without it", "install bash"),
		{
			Name: "sandbox", State: "warn", Detail: "none: commands run with your own rights once they are allowed",
			Fix: "read each command before you allow it",
		},
	}
	return findings
}

func (a *App) diagnoseSettings() agent.Finding {
	f := agent.Finding{Name: "settings", State: "ok", Detail: "read from " + a.cfg.Home}
	if n := len(a.cfg.Notes); n > 0 {
		f.State, f.Detail = "warn", a.cfg.Notes[0].Text
		if n > 1 {
			f.Detail += fmt.Sprintf(" (and %d more)", n-1)
		}
		f.Fix = "mend or remove it"
	}
	return f
}

// diagnoseData writes a file where sessions are kept, and removes it.
func (a *App) diagnoseData() agent.Finding {
	f := agent.Finding{Name: "data", State: "ok", Detail: a.cfg.Data}
	err := os.MkdirAll(a.cfg.Data, 0o700)
	if err == nil {
		probe := filepath.Join(a.cfg.Data, ".probe")
		if err = os.WriteFile(probe, []byte("probe"), 0o600); err == nil {
			err = os.Remove(probe)
		}
	}
	if err != nil {
		f.State, f.Detail = "fail", err.Error()
		f.Fix = "make the folder writable, or name another one in DURE_HOME"
	}
	return f
}

func (a *App) diagnoseKey() agent.Finding {
	err := a.checkKey()
	if p := agent.ProblemOf(err); p != nil {
		return agent.Finding{Name: "key", State: "fail", Detail: p.Message, Fix: p.Fix}
	}
	for _, name := range []string{"key", "authToken"} {
		if o, ok := a.cfg.Origins[name]; ok {
			return agent.Finding{Name: "key", State: "ok", Detail: "from " + o.String()}
		}
	}
	return agent.Finding{Name: "key", State: "ok", Detail: "none needed: the endpoint is on this machine"}
}

func (a *App) diagnoseModel() agent.Finding {
	info, err := a.info(a.cfg.Model)
	if p := agent.ProblemOf(err); p != nil {
		return agent.Finding{Name: "model", State: "fail", Detail: p.Message, Fix: p.Fix}
	}
	f := agent.Finding{Name: "model", State: "ok", Detail: info.ID + ", from " + a.cfg.Origins["model"].String()}
	if info.Price == nil {
		f.State, f.Detail, f.Fix = "warn", f.Detail+"; its price is unknown", "add it to \"models\" in the settings"
	}
	return f
}

// diagnoseEndpoint opens a connection and sends nothing that costs.
func (a *App) diagnoseEndpoint(ctx context.Context) agent.Finding {
	endpoint := a.cfg.BaseURL
	if endpoint == "" {
		endpoint = "https://api.anthropic.com"
	}
	f := agent.Finding{Name: "endpoint", State: "ok", Detail: endpoint}
	u, err := url.Parse(endpoint)
	if err == nil && u.Host == "" {
		err = errors.New("not a URL with a host")
	}
	if err != nil {
		f.State, f.Detail, f.Fix = "fail", fmt.Sprintf("%s: %v", endpoint, err), "mend baseUrl or ANTHROPIC_BASE_URL"
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, endpoint, nil)
	if err == nil {
		var resp *http.Response
		if resp, err = a.http.Transport.RoundTrip(req); err == nil {
			resp.Body.Close()
			f.Detail += ", reachable"
			return f
		}
	}
	f.State, f.Fix = "fail", "check the network, the proxy, and ANTHROPIC_BASE_URL"
	f.Detail = fmt.Sprintf("%s: %v", endpoint, err)
	if oe, ok := errors.AsType[*net.OpError](err); ok {
		f.Detail = fmt.Sprintf("%s: %v", endpoint, oe)
	}
	return f
}

func diagnoseProgram(name, what, fix string) agent.Finding {
	path := sandbox.Find(name)
	if path == "" {
		return agent.Finding{Name: name, State: "warn", Detail: "not found; it is for " + what, Fix: fix}
	}
	return agent.Finding{Name: name, State: "ok", Detail: path}
}

// getenv looks a variable up in an environment; the last one of a name counts.
func getenv(environ []string) func(string) string {
	env := make(map[string]string, len(environ))
	for _, e := range environ {
		for i := 1; i < len(e); i++ {
			if e[i] == '=' {
				env[e[:i]] = e[i+1:]
				break
			}
		}
	}
	return func(name string) string { return env[name] }
}
