// Package config makes one plain struct of the layers of settings: built-in
// values, the user's file, the project's two files, --settings, environment,
// flags, and above all of them what the machine's administrator manages.
//
// It keeps where each value comes from, refuses what it cannot read with the
// place of the fault, and takes from a repository only what cannot harm its
// user. It is the one package that knows names of environment variables and
// places of settings; files and environment reach it through [Sources], so that
// it has no side effects. It never writes. It starts no goroutines.
package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/keys/secret"
	"dure/internal/extend/hooks"
	"dure/internal/frontend/telemetry"
	"dure/internal/kernel/session"
	"dure/internal/knowledge/prompt"
	"dure/internal/models/registry"
	"dure/internal/safety/guard"
	"dure/internal/safety/sandbox/boxes"
)

// Sources is where settings come from.
type Sources struct {
	ReadFile func(path string) ([]byte, error)      // required; config.ReadFile
	ReadDir  func(path string) ([]string, error)    // names of what is in a folder; nil = those of the disk
	Stat     func(path string) (fs.FileInfo, error) // for [Changed]; nil = os.Stat
	Getenv   func(name string) string               // nil = an empty environment
	UserHome string                                 // the user's home folder; "" = none is known
	Workdir  string                                 // absolute; the project
	OS       string                                 // as runtime.GOOS
	Language string                                 // what the locale asks for: en or ko; "" = en
	Settings string                                 // of the command line: a file, or a JSON object
	Flags    Values                                 // what other flags say
	Driver   string                                 // of a program that drives this one, for the administrator's layer, in JSON: what restricts holds

	// Only are the layers of files that are read, of User, Project and Local; nil = all. Those
	// of an administrator are read in any case.
	Only []Layer

	// Trusted says that the user trusts the project's folder with what it brings
	// now: its files may then permit as well. They still decide neither where keys
	// are sent nor how commands are confined, and choose no mode that asks less.
	Trusted bool

	said *[]statement // what each layer says is kept here; nil = it is not
}

// Values are settings by their paths, as [encoding/json] writes them.
type Values map[string]any

// written is what the values say.
func (v Values) written() *written {
	root := &written{}
	for _, path := range slices.Sorted(maps.Keys(v)) {
		to := root
		for word := range strings.SplitSeq(path, ".") {
			to = to.kid(word)
		}
		to.raw, _ = json.Marshal(v[path]) // texts, numbers, switches, and lists of them
	}
	return root
}

// Config is what the layers say together. Zero values of Limits are left to
// the packages that they are for.
type Config struct {
	Home string // the user's configuration; absolute
	Data string // sessions and everything else that is written; absolute

	Model      string
	BaseURL    string      // "" = the provider's own
	Key        secret.Text // of Anthropic
	AuthToken  secret.Text // of Anthropic, sent as a bearer token
	Mode       agent.Mode
	Allow      []Rule
	Deny       []Rule
	Ask        []Rule
	AddDirs    []string                    // absolute
	SafeVars   []string                    // assignments before a command that allow rules match past, beside the usual ones
	MaxSteps   int                         // of a turn; 0 = no limit
	Dialect    string                      // claude or dure
	Durability string                      // barrier, always or os
	Notify     string                      // how a user who is away is told: off, bell, terminal or system
	Language   string                      // en or ko
	Providers  map[string]registry.Setting // the user's own, and changes to the known ones
	Models     []agent.ModelInfo           // entries beyond the catalog's own
	Fallback   []string                    // models to ask when the first has failed for good
	Effort     string                      // how much a model thinks: low, medium or high; "" = as it does by itself
	ToolSearch int                         // percent of the window that listed tools of others may take up; -1 = all are listed
	SmallModel string                      // for digests and the like; "" = a small one of the same provider
	Profile    string                      // kind of work: chat, cowork, code, finance, or one of the user's own
	Profiles   map[string]Profile
	NoAI       bool // no model is asked, and no tool offered that needs one
	Network    Network
	Search     Search
	Updates    Updates
	ScrubEnv   []string // variables that processes do not inherit
	Limits     Limits
	Budget     Budget
	Compact    Compact
	Retention  Retention

	Extend       Extend
	Env          map[string]secret.Text // variables for commands
	Memory       Memory
	User         Person
	Investment   *prompt.Investment // nil = none is known
	Mirror       string             // see MirrorSDK
	NoTaskState  bool               // agents note nothing, and nothing of it is carried on
	Context      Context
	Reflexion    Reflexion
	Plan         Plan
	Verification Verification
	Worktree     Worktree
	Lanes        map[string]session.LaneConfig // by name
	Telemetry    telemetry.Settings

	Hooks hooks.Settings
	MCP   MCP

	NoCheckpoints bool // files are not kept, and cannot be put back

	ManagedOnly bool // allow rules and grants of others than the administrator do not count
	NoBypass    bool // mode bypassPermissions is switched off
	Sandbox     boxes.Settings
	Trust       string          // [TrustAsk] or [TrustNever]
	Trusted     bool            // what the project brings is in force
	Patterns    []guard.Pattern // of secrets, beside the usual ones

	// Borrowed are the files of .claude folders that were read, and Skipped those that
	// could not be.
	Borrowed, Skipped []string

	// Inert is what the layers say and what is not in force, in the order in which
	// it stands; at most 1,000 of it, and how many more.
	Inert []Inert

	// Origins says for each setting that has a value which layer gave it, by
	// the setting's name in a file.
	Origins map[string]Origin

	// Notes are for the user: keys that mean nothing, and what was not taken
	// from a repository.
	Notes []agent.Note
}

// Network says how, and how far, the program reaches out. It holds for models
// and web tools, not for what commands do.
type Network struct {
	Mode       NetworkMode
	Proxy      secret.Text // http, https, socks5 or socks5h; "" = that of the environment
	NoProxy    string      // hosts that are reached without it, as in NO_PROXY
	CA         string      // file of certificates that are trusted beside the system's; absolute
	AllowHosts []string    // in internal mode: hosts, *.domains and networks beside this machine
}

// NetworkMode is a network mode.
type NetworkMode string

// The network modes.
const (
	External NetworkMode = "external" // any provider, and public web pages
	Internal NetworkMode = "internal" // this machine, and the hosts that are named
	Offline  NetworkMode = "off"      // this machine, and no web tools
)

// Search is the endpoint of web searches. Without a kind there are none.
type Search struct {
	Kind   string `json:"kind,omitempty"` // brave, searxng, tavily, json
	URL    string `json:"url,omitempty"`
	KeyEnv string `json:"keyEnv,omitempty"` // variable that holds the key
}

// Updates say whether a newer version is looked for: never without being asked.
type Updates struct {
	Check bool   `json:"check,omitempty"`
	URL   string `json:"url,omitempty"` // of a JSON object with a member "version"
}

// Budget bounds what a session and its children use, from when it is opened. Zero
// fields do not.
type Budget struct {
	Dollars float64 `json:"usd,omitempty"`
	Tokens  int64   `json:"tokens,omitempty"`
}

// Compact says how conversations are shortened.
type Compact struct {
	Auto      bool    // when they come close to the window
	Threshold float64 // share of the window; 0 = built in
	Strategy  string  // truncate-tools, truncate-oldest, summarize or hybrid; "" = what it takes
	Recent    int     // newest messages that stay; 0 = built in
}

// Retention says when sessions are old.
type Retention struct {
	Days int  // without a change; 0 = never
	Auto bool // they are deleted without a question
}

// Limits bound waiting.
type Limits struct {
	Retries int           // of a request; 0 = built in
	Header  time.Duration // until an answer begins; 0 = built in
	Idle    time.Duration // without a byte of an answer; 0 = built in
	Ping    time.Duration // while only pings arrive; 0 = built in
}

// Layer names one source of settings.
type Layer string

// The layers, weakest first.
const (
	BuiltIn     Layer = "built-in"
	User        Layer = "user"
	Project     Layer = "project"
	Local       Layer = "local"
	Inline      Layer = "--settings"
	Environment Layer = "environment"
	Flags       Layer = "flag"
	Managed     Layer = "managed"
)

// Origin is where a value comes from.
type Origin struct {
	Layer Layer  `json:"layer"`
	Where string `json:"where,omitempty"` // file, variable or flag
}

// BuiltIn reports whether nobody has chosen the value.
func (o Origin) BuiltIn() bool { return o.Layer == BuiltIn }

// Explicit reports whether the value was chosen for this run.
func (o Origin) Explicit() bool { return o.Layer == Flags || o.Layer == Environment }

func (o Origin) String() string { return o.shown().String() }

func (o Origin) shown() query.SettingOrigin {
	return query.SettingOrigin{Layer: string(o.Layer), Where: o.Where}
}

// Hash names the settings that a session is opened with. Secrets hide themselves from it.
func (c Config) Hash() string {
	data, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Checkpoints is where the snapshots of a session are kept.
func (c Config) Checkpoints(session string) string {
	return filepath.Join(c.Data, "checkpoints", session)
}
