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
	"log/slog"
	"time"

	"dure/agent"
)

// Sources is where settings come from.
type Sources struct {
	ReadFile func(path string) ([]byte, error) // required; config.ReadFile
	Getenv   func(name string) string          // nil = an empty environment
	UserHome string                            // the user's home folder; "" = none is known
	Workdir  string                            // absolute; the project
	OS       string                            // as runtime.GOOS
	Language string                            // what the locale asks for: en or ko; "" = en
	Settings string                            // of the command line: a file, or a JSON object
	Flags    Settings                          // what other flags say
}

// Config is what the layers say together. Zero values of Limits are left to
// the packages that they are for.
type Config struct {
	Home string // the user's configuration; absolute
	Data string // sessions and everything else that is written; absolute

	Model      string
	BaseURL    string // "" = the provider's own
	Key        Secret // of Anthropic
	AuthToken  Secret // of Anthropic, sent as a bearer token
	Mode       agent.Mode
	Allow      []Rule
	Deny       []Rule
	Ask        []Rule
	AddDirs    []string            // absolute
	MaxSteps   int                 // of a turn; 0 = no limit
	Dialect    string              // claude or dure
	Durability string              // barrier, always or os
	Language   string              // en or ko
	Providers  map[string]Provider // not used yet but for KeyEnv; a note says so
	Models     []agent.ModelInfo   // entries beyond the catalog's own
	ScrubEnv   []string            // variables that processes do not inherit
	Limits     Limits

	// Origins says for each setting that has a value which layer gave it, by
	// the setting's name in a file.
	Origins map[string]Origin

	// Notes are for the user: keys that mean nothing, and what was not taken
	// from a repository.
	Notes []agent.Note
}

// Limits bound waiting.
type Limits struct {
	Retries int           // of a request; 0 = built in
	Idle    time.Duration // without a byte of an answer; 0 = built in
	Ping    time.Duration // while only pings arrive; 0 = built in
}

// Provider is an endpoint that serves models.
type Provider struct {
	Type    string            `json:"type,omitempty"` // the protocol: anthropic
	BaseURL string            `json:"baseUrl,omitempty"`
	KeyEnv  string            `json:"keyEnv,omitempty"` // variable that holds the key
	Headers map[string]string `json:"headers,omitempty"`
}

// Rule is a permission rule with its source.
type Rule struct {
	Text   string
	Origin Origin
}

// Texts returns the rules without their sources.
func Texts(rules []Rule) []string {
	out := make([]string, len(rules))
	for i, r := range rules {
		out[i] = r.Text
	}
	return out
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

func (o Origin) String() string {
	if o.Where == "" {
		return string(o.Layer)
	}
	return string(o.Layer) + " (" + o.Where + ")"
}

// Secret is a text that no formatting, logging or encoding shows.
type Secret string

const hidden = "(hidden)"

func (s Secret) String() string { return hidden }

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return hidden }

// MarshalText hides the secret from encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the secret from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// Settings is one layer as it stands in a file. A nil field says nothing.
type Settings struct {
	Model          *string             `json:"model"`
	BaseURL        *string             `json:"baseUrl"`
	PermissionMode *string             `json:"permissionMode"`
	Permissions    *Permissions        `json:"permissions"`
	MaxSteps       *int                `json:"maxSteps"`
	Dialect        *string             `json:"dialect"`
	Durability     *string             `json:"durability"`
	Language       *string             `json:"language"`
	Providers      map[string]Provider `json:"providers"`
	Models         []agent.ModelInfo   `json:"models"`
	ScrubEnv       []string            `json:"scrubEnv"`
	Limits         *FileLimits         `json:"limits"`
}

// Permissions are the rules of a layer. DefaultMode is stronger than
// [Settings.PermissionMode] beside it.
type Permissions struct {
	DefaultMode *string  `json:"defaultMode"`
	Allow       []string `json:"allow"`
	Deny        []string `json:"deny"`
	Ask         []string `json:"ask"`
	AddDirs     []string `json:"additionalDirectories"`
}

// FileLimits are [Limits] as a file writes them: durations as "90s" or "5m".
type FileLimits struct {
	Retries *int    `json:"retries"`
	Idle    *string `json:"idle"`
	Ping    *string `json:"ping"`
}
