package config

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// Sandbox is how commands are confined, beyond what is built in.
type Sandbox struct {
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
	Limits SandboxLimits
}

// SandboxLimits bound each command. 0 = built in; negative = none.
type SandboxLimits struct {
	Processes int   // and threads, at a time
	OpenFiles int   // of a process
	Memory    int64 // bytes of a process
	FileSize  int64 // bytes of a file that is written
}

// What happens with folders that nobody has decided on.
const (
	TrustAsk   = "ask"   // the user is asked
	TrustNever = "never" // nothing of a repository is put in force, whoever trusts it
)

// A Pattern is a form of secret that results are cleaned of.
type Pattern struct {
	Name string `json:"name"` // of what stands in its place
	Expr string `json:"pattern"`
}

// FileSandbox is [Sandbox] as a file writes it: sizes as "512MiB" or "4GiB".
type FileSandbox struct {
	Mode        *string      `json:"mode"` // auto or off
	ManagedOnly *bool        `json:"managedOnly"`
	Write       []string     `json:"write"`
	AllowRead   []string     `json:"allowRead"`
	DenyRead    []string     `json:"denyRead"`
	Protect     []string     `json:"protect"`
	Env         []string     `json:"env"`
	Network     *FileHosts   `json:"network"`
	Limits      *FileConfine `json:"limits"`
}

// FileHosts are the hosts of [Sandbox] as a file writes them.
type FileHosts struct {
	Allow        []string `json:"allow"`
	Deny         []string `json:"deny"`
	AllowPrivate *bool    `json:"allowPrivate"`
}

// FileConfine are [SandboxLimits] as a file writes them.
type FileConfine struct {
	Processes *int    `json:"processes"`
	OpenFiles *int    `json:"openFiles"`
	Memory    *string `json:"memory"`
	FileSize  *string `json:"fileSize"`
}

// FileTrust says what is done about folders.
type FileTrust struct {
	Mode *string `json:"mode"`
}

// FileGuard is what results are cleaned of, beyond what is built in.
type FileGuard struct {
	Patterns []Pattern `json:"patterns"`
}

// confine applies what holds for commands.
func (l *loader) confine(ly layer, s Settings) error {
	if v := s.Sandbox; v != nil {
		for _, step := range []func(layer, FileSandbox) error{l.sandboxMode, l.sandboxPaths, l.sandboxHosts, l.sandboxEnv, l.sandboxLimits} {
			if err := step(ly, *v); err != nil {
				return err
			}
		}
	}
	if s.Trust != nil && s.Trust.Mode != nil {
		modes := []string{TrustAsk, TrustNever}
		if !slices.Contains(modes, *s.Trust.Mode) {
			return l.invalid(ly, "trust.mode", *s.Trust.Mode, modes)
		}
		l.set(ly, "trust.mode", l.cfg.Trust != *s.Trust.Mode)
		l.cfg.Trust = *s.Trust.Mode
	}
	return l.patterns(ly, s)
}

func (l *loader) sandboxMode(ly layer, v FileSandbox) error {
	if v.ManagedOnly != nil && *v.ManagedOnly && ly.kind != Managed {
		l.note("warn", fmt.Sprintf("%s: %s is for administrators", ly.place(ly.where("sandbox.managedOnly")), "sandbox.managedOnly"))
	}
	if v.Mode == nil {
		return nil
	}
	modes := []string{"auto", "off"}
	if !slices.Contains(modes, *v.Mode) {
		return l.invalid(ly, "sandbox.mode", *v.Mode, modes)
	}
	off := *v.Mode == "off"
	l.set(ly, "sandbox.mode", l.cfg.Sandbox.Off != off)
	l.cfg.Sandbox.Off = off
	return nil
}

func (l *loader) sandboxPaths(ly layer, v FileSandbox) error {
	box := &l.cfg.Sandbox
	for _, f := range []struct {
		key  string
		from []string
		to   *[]string
	}{
		{"sandbox.write", v.Write, &box.Write},
		{"sandbox.allowRead", v.AllowRead, &box.AllowRead},
		{"sandbox.denyRead", v.DenyRead, &box.DenyRead},
		{"sandbox.protect", v.Protect, &box.Protect},
	} {
		var paths []string
		for i, path := range f.from {
			if path == "" || len(path) > 4096 || strings.ContainsAny(path, "*?\x00") {
				return l.invalidItem(ly, f.key, i, path, "a path; patterns are not understood here")
			}
			if path == "~" {
				path = "~/"
			}
			full := l.absolute(path)
			if strings.HasPrefix(path, "~") && full == filepath.Join(l.src.Workdir, path) {
				return l.invalidItem(ly, f.key, i, path, "a path; ~ stands for no folder here")
			}
			l.set(ly, f.key, false)
			paths = append(paths, full)
		}
		*f.to = union(*f.to, paths)
	}
	return nil
}

func (l *loader) sandboxHosts(ly layer, v FileSandbox) error {
	n := v.Network
	if n == nil {
		return nil
	}
	for _, f := range []struct {
		key  string
		from []string
		to   *[]string
	}{
		{"sandbox.network.allow", n.Allow, &l.cfg.Sandbox.AllowHosts},
		{"sandbox.network.deny", n.Deny, &l.cfg.Sandbox.DenyHosts},
	} {
		var hosts []string
		for i, host := range f.from {
			if !isTarget(host) {
				return l.invalidItem(ly, f.key, i, host, "a host, *.a.domain, an address or a network, with :port if need be, or *")
			}
			l.set(ly, f.key, false)
			hosts = append(hosts, strings.ToLower(host))
		}
		*f.to = union(*f.to, hosts)
	}
	if n.AllowPrivate != nil {
		l.set(ly, "sandbox.network.allowPrivate", l.cfg.Sandbox.AllowPrivate != *n.AllowPrivate)
		l.cfg.Sandbox.AllowPrivate = *n.AllowPrivate
	}
	return nil
}

// isTarget is [isHost] with a port, and the star for all.
func isTarget(s string) bool {
	if s == "*" || isHost(s) {
		return true
	}
	at := strings.LastIndexByte(s, ':')
	if at < 0 {
		return false
	}
	port, err := strconv.ParseUint(s[at+1:], 10, 16)
	host, bracketed := strings.CutPrefix(s[:at], "[")
	if bracketed {
		var closed bool
		if host, closed = strings.CutSuffix(host, "]"); !closed {
			return false
		}
	} else if strings.Contains(host, ":") {
		return false
	}
	return err == nil && port > 0 && !strings.Contains(host, "/") && isHost(host)
}

var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
})

func (l *loader) sandboxEnv(ly layer, v FileSandbox) error {
	for i, name := range v.Env {
		if !variable().MatchString(name) {
			return l.invalidItem(ly, "sandbox.env", i, name, "the name of a variable")
		}
		l.set(ly, "sandbox.env", false)
	}
	l.cfg.Sandbox.Env = union(l.cfg.Sandbox.Env, v.Env)
	return nil
}

func (l *loader) sandboxLimits(ly layer, v FileSandbox) error {
	if v.Limits == nil {
		return nil
	}
	to := &l.cfg.Sandbox.Limits
	for _, f := range []struct {
		key   string
		value *int
		to    *int
	}{
		{"sandbox.limits.processes", v.Limits.Processes, &to.Processes},
		{"sandbox.limits.openFiles", v.Limits.OpenFiles, &to.OpenFiles},
	} {
		if f.value == nil {
			continue
		}
		if *f.value < -1 || *f.value > 1<<20 {
			return l.invalid(ly, f.key, strconv.Itoa(*f.value), []string{"-1 (no limit)", "0 (the usual one)", "a number up to 1048576"})
		}
		l.set(ly, f.key, *f.to != *f.value)
		*f.to = *f.value
	}
	for _, f := range []struct {
		key   string
		value *string
		to    *int64
	}{
		{"sandbox.limits.memory", v.Limits.Memory, &to.Memory},
		{"sandbox.limits.fileSize", v.Limits.FileSize, &to.FileSize},
	} {
		if f.value == nil {
			continue
		}
		n, err := size(*f.value)
		if err != nil {
			return l.invalid(ly, f.key, *f.value, []string{"none", "a size from 1MiB to 1024GiB"})
		}
		l.set(ly, f.key, *f.to != n)
		*f.to = n
	}
	return nil
}

// size reads a number of bytes; "none" is -1.
func size(s string) (int64, error) {
	if s == "none" {
		return -1, nil
	}
	for unit, shift := range map[string]uint{"MiB": 20, "GiB": 30} {
		number, ok := strings.CutSuffix(s, unit)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 20)
		if err != nil || n == 0 || n<<shift > 1<<40 {
			break
		}
		return int64(n << shift), nil
	}
	return 0, errors.New("not a size")
}

// Bounds of patterns.
const (
	maxPatterns = 100
	maxExpr     = 1000 // bytes
)

var patternName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)
})

// patterns adds what results are cleaned of.
func (l *loader) patterns(ly layer, s Settings) error {
	if s.Guard == nil {
		return nil
	}
	for i, p := range s.Guard.Patterns {
		p.Name = cmp.Or(p.Name, "custom")
		expr, err := regexp.Compile(p.Expr)
		switch {
		case !patternName().MatchString(p.Name):
			return l.invalidItem(ly, "guard.patterns", i, p.Name, "a name of small letters, digits, - and _")
		case err != nil || p.Expr == "" || len(p.Expr) > maxExpr || strings.ContainsFunc(p.Expr, unicode.IsControl):
			return l.invalidItem(ly, "guard.patterns", i, p.Expr, fmt.Sprintf("a regular expression of at most %d bytes", maxExpr))
		case expr.MatchString(""):
			return l.invalidItem(ly, "guard.patterns", i, p.Expr, "a regular expression that does not fit the empty text")
		case len(l.cfg.Patterns) >= maxPatterns:
			return l.invalidItem(ly, "guard.patterns", i, p.Expr, fmt.Sprintf("one of at most %d patterns", maxPatterns))
		}
		l.set(ly, "guard.patterns", false)
		if !slices.Contains(l.cfg.Patterns, p) {
			l.cfg.Patterns = append(l.cfg.Patterns, p)
		}
	}
	return nil
}

// restrictSandbox takes out of s what loosens the confinement of commands: a
// repository may only tighten it, also one that is trusted.
func (l *loader) restrictSandbox(s *Settings, drop func(key string)) {
	v := s.Sandbox
	if v == nil {
		return
	}
	tight := FileSandbox{Mode: v.Mode, DenyRead: v.DenyRead, Protect: v.Protect}
	if v.Mode != nil && *v.Mode == "off" {
		drop("sandbox.mode")
		tight.Mode = nil
	}
	n := FileHosts{}
	if v.Network != nil {
		n = *v.Network
		tight.Network = &FileHosts{Deny: n.Deny}
	}
	if n.AllowPrivate != nil && !*n.AllowPrivate {
		tight.Network.AllowPrivate, n.AllowPrivate = n.AllowPrivate, nil
	}
	for _, f := range []struct {
		key   string
		given bool
	}{
		{"sandbox.managedOnly", v.ManagedOnly != nil},
		{"sandbox.write", len(v.Write) > 0},
		{"sandbox.allowRead", len(v.AllowRead) > 0},
		{"sandbox.env", len(v.Env) > 0},
		{"sandbox.limits", v.Limits != nil},
		{"sandbox.network.allow", len(n.Allow) > 0},
		{"sandbox.network.allowPrivate", n.AllowPrivate != nil},
	} {
		if f.given {
			drop(f.key)
		}
	}
	s.Sandbox = &tight
}
