package config

import (
	"cmp"
	"errors"
	"fmt"
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
func (l *loader) patterns(e entry) error {
	var all []Pattern
	if said, err := e.decode(&all); err != nil || !said {
		return err
	}
	for i, p := range all {
		p.Name = cmp.Or(p.Name, "custom")
		expr, err := regexp.Compile(p.Expr)
		switch {
		case !patternName().MatchString(p.Name):
			return e.invalidItem(i, p.Name, "a name of small letters, digits, - and _")
		case err != nil || p.Expr == "" || len(p.Expr) > maxExpr || strings.ContainsFunc(p.Expr, unicode.IsControl):
			return e.invalidItem(i, p.Expr, fmt.Sprintf("a regular expression of at most %d bytes", maxExpr))
		case expr.MatchString(""):
			return e.invalidItem(i, p.Expr, "a regular expression that does not fit the empty text")
		case len(l.cfg.Patterns) >= maxPatterns:
			return e.invalidItem(i, p.Expr, fmt.Sprintf("one of at most %d patterns", maxPatterns))
		}
		e.set(false)
		if !slices.Contains(l.cfg.Patterns, p) {
			l.cfg.Patterns = append(l.cfg.Patterns, p)
		}
	}
	return nil
}
