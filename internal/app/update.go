package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dure/internal/base/record"
)

// The bounds of looking for a newer version.
const (
	updateFile     = "update.json"
	updateEvery    = 24 * time.Hour
	updatePatience = 3 * time.Second
	maxUpdate      = 64 << 10 // bytes of the answer
	maxVersion     = 64       // bytes of a version
	maxMoves       = 5        // redirects
)

// update is what the last look has found.
type update struct {
	Checked time.Time `json:"checked"`
	Version string    `json:"version"`
}

// ErrUpdatesOff says that nobody has asked for looking for newer versions.
var ErrUpdatesOff = errors.New("looking for newer versions is off")

// errFar is an address that is not asked.
var errFar = errors.New("the network mode does not let it be asked, or it leads on and on")

// Newer returns the newer version that the last look has found, or "".
func (a *App) Newer() string {
	if !a.cfg.Updates.Check {
		return ""
	}
	return a.newer(a.lastUpdate().Version)
}

func (a *App) newer(version string) string {
	if compareVersions(version, a.opts.Version) > 0 {
		return version
	}
	return ""
}

// LookForUpdate asks for the newest version and remembers it, unless it did so
// less than a day ago and now is false. It returns the newest version if that is
// newer than this one, else "". It takes three seconds at most.
func (a *App) LookForUpdate(ctx context.Context, now bool) (string, error) {
	if !a.cfg.Updates.Check || a.cfg.Updates.URL == "" {
		return "", ErrUpdatesOff
	}
	last := a.lastUpdate()
	if age := time.Since(last.Checked); !now && age >= 0 && age < updateEvery {
		return a.newer(last.Version), nil
	}
	ctx, cancel := context.WithTimeout(ctx, updatePatience)
	defer cancel()
	version, err := a.askVersion(ctx)
	found := update{Checked: time.Now(), Version: cmp.Or(version, last.Version)}
	if !a.opts.Flags.Scratch && ctx.Err() == nil {
		data, werr := json.Marshal(found)
		if werr == nil {
			werr = record.Write(filepath.Join(a.cfg.Data, updateFile), data)
		}
		if werr != nil {
			a.opts.Logger.Debug("keeping the newest version", "error", werr)
		}
	}
	return a.newer(version), err
}

func (a *App) askVersion(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.cfg.Updates.URL, nil)
	if err != nil {
		return "", errors.New("it is no address")
	}
	req.Header.Set("User-Agent", "dure/"+a.opts.Version)
	if !a.near(req.URL) {
		return "", errFar
	}
	client := http.Client{Transport: a.http.Transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) >= maxMoves || !a.near(r.URL) {
			return errFar
		}
		return nil
	}}
	resp, err := client.Do(req)
	if err != nil {
		return "", errors.New(hideURL(err))
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

// lastUpdate is what was remembered; the zero value when that means nothing.
func (a *App) lastUpdate() update {
	var u update
	data, err := os.ReadFile(filepath.Join(a.cfg.Data, updateFile))
	if err != nil || json.Unmarshal(data, &u) != nil {
		return update{}
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

// UpdateURL is where newer versions are looked for, without what may be a secret.
func (a *App) UpdateURL() string { return shown(a.cfg.Updates.URL) }
