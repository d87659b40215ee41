// Package release looks for newer versions of the program, where the settings want it. It
// starts no goroutines.
package release

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"dure/agent/query"
	"dure/internal/base/hosts"
	"dure/internal/base/record"
	"dure/internal/kernel/plug"
)

// The limits of looking for a newer version.
const (
	every      = 24 * time.Hour
	patience   = 3 * time.Second
	maxUpdate  = 64 << 10 // bytes of the answer
	maxVersion = 64       // bytes of a version
)

// File is the usual name of the file that keeps what the last look has found.
const File = "update.json"

// Config says where newer versions are looked for.
type Config struct {
	Check   bool   // nobody looks without it
	URL     string // "" = nowhere
	Version string // of this program
	Path    string // of the file that keeps what was found
	Scratch bool   // nothing is kept

	Transport http.RoundTripper
	May       func(*url.URL) bool // whether the network mode lets an address be asked
	Logger    *slog.Logger
}

// Extension looks for newer versions. It is safe for concurrent use.
type Extension struct {
	plug.NoSession
	cfg Config
}

// New returns the extension.
func New(cfg Config) *Extension { return &Extension{cfg: cfg} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "updates" }

// Answers returns the query that the extension answers.
func (x *Extension) Answers() []plug.Answer { return []plug.Answer{plug.Storeless(x.find)} }

// find takes three seconds at most.
func (x *Extension) find(ctx context.Context, q query.FindUpdate) (query.Update, error) {
	u := query.Update{Version: x.cfg.Version, Off: !x.cfg.Check || x.cfg.URL == "", URL: hosts.Shown(x.cfg.URL)}
	last := x.last()
	age := time.Since(last.Checked)
	switch {
	case !x.cfg.Check, u.Off && !q.Known:
		return u, nil
	case q.Known, !q.Now && age >= 0 && age < every:
		u.Newer = x.newer(last.Version)
		return u, nil
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	version, err := x.ask(asking)
	now := found{Checked: time.Now(), Version: cmp.Or(version, last.Version)}
	if !x.cfg.Scratch && asking.Err() == nil {
		data, werr := json.Marshal(now)
		if werr == nil {
			werr = record.Write(x.cfg.Path, data)
		}
		if werr != nil {
			x.cfg.Logger.Debug("keeping the newest version", "error", werr)
		}
	}
	if err != nil && ctx.Err() != nil {
		return u, context.Cause(ctx)
	}
	if err != nil {
		u.Error = err.Error()
	}
	u.Newer = x.newer(version)
	return u, nil
}

// found is what the last look has found.
type found struct {
	Checked time.Time `json:"checked"`
	Version string    `json:"version"`
}

func (x *Extension) newer(version string) string {
	if compareVersions(version, x.cfg.Version) > 0 {
		return version
	}
	return ""
}

func (x *Extension) ask(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, x.cfg.URL, nil)
	if err != nil {
		return "", errors.New("it is no address")
	}
	req.Header.Set("User-Agent", "dure/"+x.cfg.Version)
	if !x.cfg.May(req.URL) {
		return "", hosts.ErrFar
	}
	asker := http.Client{Transport: x.cfg.Transport, CheckRedirect: hosts.Redirects(x.cfg.May)}
	resp, err := asker.Do(req)
	if err != nil {
		return "", errors.New(hosts.Cause(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("it answers %s", resp.Status)
	}
	var answer struct {
		Version string `json:"version"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxUpdate)).Decode(&answer); err != nil {
		return "", errors.New("its answer is no JSON")
	}
	if _, ok := parseVersion(answer.Version); !ok {
		return "", errors.New("its answer has no version")
	}
	return answer.Version, nil
}

// last is what was remembered; the zero value when that means nothing.
func (x *Extension) last() found {
	var u found
	data, err := os.ReadFile(x.cfg.Path)
	if err != nil || json.Unmarshal(data, &u) != nil {
		return found{}
	}
	return u
}

// version is a semantic version: three numbers, and what comes before the release.
type version struct {
	numbers [3]int
	pre     []string
}

// parseVersion reads a version as semver 2.0 writes it; a v in front is allowed,
// and what stands behind a plus does not count.
func parseVersion(s string) (version, bool) {
	var v version
	if len(s) > maxVersion {
		return v, false
	}
	s, _, _ = strings.Cut(strings.TrimPrefix(s, "v"), "+")
	s, pre, hasPre := strings.Cut(s, "-")
	parts := strings.Split(s, ".")
	if len(parts) != len(v.numbers) {
		return v, false
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 31)
		if err != nil {
			return v, false
		}
		v.numbers[i] = int(n)
	}
	if hasPre {
		v.pre = strings.Split(pre, ".")
		for _, p := range v.pre {
			if p == "" || strings.ContainsFunc(p, func(r rune) bool {
				return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
			}) {
				return v, false
			}
		}
	}
	return v, true
}

// compareVersions orders two versions by precedence. One that cannot be read is
// older than all others.
func compareVersions(a, b string) int {
	x, okX := parseVersion(a)
	y, okY := parseVersion(b)
	if !okX || !okY {
		return boolean(okX) - boolean(okY)
	}
	for i := range x.numbers {
		if c := cmp.Compare(x.numbers[i], y.numbers[i]); c != 0 {
			return c
		}
	}
	if len(x.pre) == 0 || len(y.pre) == 0 {
		return boolean(len(x.pre) == 0) - boolean(len(y.pre) == 0) // the release comes last
	}
	for i := range min(len(x.pre), len(y.pre)) {
		if c := comparePre(x.pre[i], y.pre[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x.pre), len(y.pre))
}

// comparePre orders numbers as numbers, and in front of words.
func comparePre(a, b string) int {
	n, errN := strconv.ParseUint(a, 10, 63)
	m, errM := strconv.ParseUint(b, 10, 63)
	if errN == nil && errM == nil {
		return cmp.Compare(n, m)
	}
	if errN == nil || errM == nil {
		return boolean(errM == nil) - boolean(errN == nil)
	}
	return cmp.Compare(a, b)
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
