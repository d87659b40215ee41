// Package boxes makes what confines commands by the settings of a person, and explains it. It
// starts no goroutines.
package boxes

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/sandbox/egress"
)

// Settings are how commands are confined, beyond what is built in.
type Settings struct {
	Off         bool // nothing is confined
	ManagedOnly bool // only the administrator loosens anything

	Write     []string // folders that may be written beside the workspace; absolute
	AllowRead []string // what may be read of what is hidden; absolute
	DenyRead  []string // what is hidden; absolute
	Protect   []string // what stays as it is, in the workspace too; absolute

	// Hosts that commands reach, and do not: a name, *.domain, an address or a
	// network, each but the last also with :port; "*" = every public one. A denial
	// is stronger.
	AllowHosts, DenyHosts []string
	AllowPrivate          bool // the names may lead into private networks

	Env    []string // variables that commands inherit although they are taken for secrets
	Limits sandbox.Limits
}

// Config is what the extension needs of the program.
type Config struct {
	Settings
	Extra                []string // further folders that count as part of the workspace
	Home, Data, UserHome string   // folders of the program and of the user
	Environ              []string
	Temp                 func() string // the folder for output that does not fit into memory
	Forget               bool          // nothing is kept: caches go with the machine's temporary files
	Mechanisms           []string      // that may confine; nil = all
	Logger               *slog.Logger

	Proxy     func(*http.Request) (*url.URL, error)                        // the way that the user has
	Plugins   func(workdir string) (reads, writes []string)                // folders of plugins
	Protected func(root, workdir string, writable []string) (own []string) // settings of the user in what commands may write

	// Here opens the working folder, and returns its root. Reads says what a command line
	// would do there.
	Workdir string
	Here    func() (root string, reads func(command string) agent.Effects, err error)
	Bypass  bool            // every call is allowed
	Where   string          // the setting that says whether commands are confined
	Env     func() []string // of commands
	Grant   func(agent.Effects) sandbox.Grant
	Refused func([]sandbox.Denial) string
}

// Extension makes boxes.
type Extension struct {
	plug.NoSession
	cfg Config
}

// New returns the extension.
func New(c Config) *Extension { return &Extension{cfg: c} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "sandbox" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{plug.Storeless(x.Explain), plug.Storeless(x.run)}
}

// Findings says what confines commands here: it is tried out.
func (x *Extension) Findings(ctx context.Context) []query.Finding {
	l := query.Findings{Group: query.Enforced}
	r, err := x.Explain(ctx, query.ExplainSandbox{})
	switch {
	case err != nil:
		l.Fault("sandbox", err)
	case r.Level == string(sandbox.None) && x.cfg.Bypass:
		l.Add("sandbox", query.Warn, "sandbox.bypass")
	case r.Off:
		l.Add("sandbox", query.Warn, "sandbox.off", "where", x.cfg.Where)
	case r.Level == string(sandbox.Full):
		l.Add("sandbox", query.Good, "sandbox.full", "mechanism", r.Mechanism)
	default:
		l.Add("sandbox", query.Warn, "sandbox."+r.Level, "mechanism", r.Mechanism)
	}
	return l.List
}

// Box returns what starts the commands of a session, and says how far it confines them. What
// denied returns is asked for at the first command: rules forbid to read and to change it.
func (x *Extension) Box(root, workdir string, denied func() (reads, edits []string)) (*sandbox.Box, func() string) {
	if x.cfg.Off {
		return sandbox.New(sandbox.Config{Temp: x.cfg.Temp()}), func() string { return string(sandbox.None) }
	}
	c := x.confinement(root, workdir)
	box := sandbox.New(sandbox.Config{
		Temp: x.cfg.Temp(), Confine: &c, Mechanisms: x.cfg.Mechanisms,
		Prepare: func(c *sandbox.Confinement) ([]string, error) {
			if denied != nil {
				reads, edits := denied()
				c.Hide, c.Protect = append(c.Hide, reads...), append(c.Protect, edits...)
			}
			return x.caches(c, root)
		},
	})
	return box, sync.OnceValue(func() string { return string(box.Explain().Level) })
}

// Hidden are the files and folders that commands do not see.
func (x *Extension) Hidden() []string {
	return append(sandbox.Hidden(x.cfg.UserHome, x.cfg.Environ), x.cfg.Home, x.cfg.Data)
}

// confinement is what commands may touch in a workspace.
func (x *Extension) confinement(root, workdir string) sandbox.Confinement {
	reads, writes := x.cfg.Plugins(workdir)
	writable := slices.Concat(x.cfg.Write, writes)
	net := sandbox.NetOff // of commands whose own plan names no host
	if len(x.cfg.AllowHosts) > 0 {
		net = sandbox.NetProxy
	}
	return sandbox.Confinement{
		Roots:        []string{root, workdir},
		Extra:        slices.Clone(x.cfg.Extra),
		Writable:     writable,
		Protect:      append(slices.Clone(x.cfg.Protect), x.cfg.Protected(root, workdir, writable)...),
		ProtectNames: sandbox.ProtectNames(), PresentNames: sandbox.PresentNames(),
		Hide:   append(x.Hidden(), x.cfg.DenyRead...),
		Read:   slices.Concat(x.cfg.AllowRead, reads),
		Net:    net,
		Egress: x.Egress(),
		Limits: x.cfg.Limits,
	}
}

// Egress says which hosts confined commands reach, by the way that the user has.
func (x *Extension) Egress() egress.Config {
	return egress.Config{
		Allow: slices.Clone(x.cfg.AllowHosts), Deny: slices.Clone(x.cfg.DenyHosts), AllowPrivate: x.cfg.AllowPrivate,
		Upstream: func(host string) *url.URL {
			if x.cfg.Proxy == nil {
				return nil
			}
			u, err := x.cfg.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: host}})
			if err != nil {
				return nil
			}
			return u
		},
	}
}

// caches makes the caches that confined toolchains have in a workspace, and lets
// them write there.
func (x *Extension) caches(c *sandbox.Confinement, root string) ([]string, error) {
	if x.cfg.UserHome == "" {
		return nil, nil
	}
	parent := filepath.Join(x.cfg.Data, "caches")
	if x.cfg.Forget {
		parent = filepath.Join(os.TempDir(), "dure-caches-"+filepath.Base(sandbox.CacheDir("", x.cfg.Data)))
	}
	dir := sandbox.CacheDir(parent, root)
	prepared, err := sandbox.PrepareCaches(sandbox.CacheConfig{
		Dir: dir, Roots: slices.Concat(c.Roots, c.Extra), Home: x.cfg.UserHome, Env: x.cfg.Environ, Net: c.Net, GOOS: runtime.GOOS,
	})
	if err != nil {
		return nil, err
	}
	c.Writable = append(c.Writable, prepared.Writable...)
	c.Read = append(c.Read, prepared.Read...)
	c.Layers = prepared.Layers
	if err := sandbox.PruneCaches(parent, dir, time.Now()); err != nil {
		x.cfg.Logger.Debug("removing old caches", "error", err)
	}
	return prepared.Set, nil
}

// Explain says what confines the commands of a session in the working folder, and with a
// command what it could touch. It starts a harmless process to find out.
func (x *Extension) Explain(_ context.Context, q query.ExplainSandbox) (query.SandboxReport, error) {
	root, reads, err := x.cfg.Here()
	if err != nil {
		return query.SandboxReport{}, err
	}
	box, _ := x.Box(root, x.cfg.Workdir, nil)
	defer box.Close()
	r := box.Explain()
	out := query.SandboxReport{
		Off: x.cfg.Off, Level: string(r.Level), Mechanism: r.Mechanism, Parts: append([]sandbox.Part{}, r.Parts...),
		Enforced: append([]string{}, r.Enforced...), Missing: append([]string{}, r.Missing...), Mend: append([]string{}, r.Mend...),
	}
	if q.Command == "" {
		return out, nil
	}
	e := reads(q.Command)
	out.Effects = &e
	out.Mounts, err = box.ExplainCmd(sandbox.Cmd{Argv: []string{"sh", "-c", q.Command}, Dir: x.cfg.Workdir, Grant: x.cfg.Grant(e)})
	if err != nil {
		return out, fmt.Errorf("explaining what a command could touch: %w", err)
	}
	return out, nil
}

// run runs a program of the user's own choice as a tool would.
func (x *Extension) run(ctx context.Context, q query.RunConfined) (query.ConfinedRun, error) {
	if len(q.Argv) == 0 {
		return query.ConfinedRun{}, &agent.Problem{Code: agent.ProblemUsage, Message: "there is no program to run", Fix: "name a program"}
	}
	root, _, err := x.cfg.Here()
	if err != nil {
		return query.ConfinedRun{}, err
	}
	box, _ := x.Box(root, x.cfg.Workdir, nil)
	defer box.Close()
	exit, err := box.Run(ctx, sandbox.Cmd{Argv: q.Argv, Dir: x.cfg.Workdir, Env: x.cfg.Env(), In: q.In, Out: q.Out, Err: q.Err})
	if err != nil {
		return query.ConfinedRun{}, &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("running %s: %v", q.Argv[0], err), Err: err,
			Fix: "check that the program exists, and what dure sandbox explain says",
		}
	}
	return query.ConfinedRun{Code: exit.Code, Refused: x.cfg.Refused(exit.Denied)}, nil
}
