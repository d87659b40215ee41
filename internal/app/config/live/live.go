// Package live holds the settings that a program reads again when their files change: the
// permissions and hooks. It starts no goroutines.
package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/base/jsonc"
	"dure/internal/safety/policy"
	"dure/internal/safety/trust"
)

// Settings are the settings as they are now. They are safe for concurrent use.
type Settings struct {
	trusted bool

	mu      sync.Mutex
	src     config.Sources
	stamp   config.Stamp
	cfg     config.Config
	files   []policy.File
	policy  policy.Config // of both
	version int           // counts changes
}

// Open reads the settings. trusted says that what the folder brings is trusted for this run.
func Open(src config.Sources, trusted bool) (*Settings, error) {
	s := &Settings{trusted: trusted, src: src}
	s.stamp, _ = config.Changed(src, config.Stamp{}) // before they are read
	var err error
	s.cfg, s.files, err = s.load(src)
	s.policy = Policy(s.cfg, s.files...)
	return s, err
}

// Source is where the settings are read from.
func (s *Settings) Source() config.Sources {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.src
}

// Now returns the settings as they are now, and their version. What cannot be read denies
// every call until somebody fixes it.
func (s *Settings) Now() (config.Config, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again()
	return s.cfg, s.version
}

// Policy returns what the settings of now and the policy files say of permissions, and their
// version.
func (s *Settings) Policy() (policy.Config, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again()
	return s.policy, s.version
}

// again reads settings that have changed. mu is held.
func (s *Settings) again() {
	stamp, changed := config.Changed(s.src, s.stamp)
	if !changed {
		return
	}
	s.stamp = stamp
	s.version++
	cfg, files, err := s.load(s.src)
	if err == nil {
		err = cfg.Lost(s.cfg)
	}
	if err != nil {
		cfg, files = s.cfg.Closed(err), s.files
	}
	s.cfg, s.files, s.policy = cfg, files, Policy(cfg, files...)
}

// load reads the settings and policy files, and refuses rules that cannot be honoured.
func (s *Settings) load(src config.Sources) (cfg config.Config, files []policy.File, err error) {
	if cfg, err = read(src, s.trusted); err != nil {
		return cfg, nil, err
	}
	if files, err = policyFiles(cfg); err == nil {
		err = Check(&cfg, files...)
	}
	return cfg, files, err
}

// read reads the settings, with what a trusted folder brings. trusted says that it is, for
// this run.
func read(src config.Sources, trusted bool) (config.Config, error) {
	cfg, err := config.Load(src)
	if err != nil {
		return cfg, err
	}
	if !trusted {
		content, state, err := trust.In(cfg.Data).Look(src.Workdir)
		if err != nil {
			cfg.Notes = append(cfg.Notes, agent.Note{Level: "warn", Text: err.Error()})
		}
		if err != nil || !state.Trusted {
			return cfg, nil
		}
		src.ReadFile = content.Under(src.Workdir, src.ReadFile) // what was judged
	}
	src.Trusted = true
	return config.Load(src)
}

// changeable are the settings that are in force at once when they change.
var changeable = []string{"permissions", "hooks", "disableAllHooks"}

// Put puts settings over those of the command line, for as long as the program runs: an object
// takes the place of what it names, and null takes it away. What cannot be changed while
// sessions run is refused, with all of them. Without keep, it only says what would be refused.
func (s *Settings) Put(settings json.RawMessage, keep bool) error {
	var more map[string]json.RawMessage
	if err := json.Unmarshal(settings, &more); err != nil || more == nil {
		return errors.New("the settings have to be an object")
	}
	not := slices.DeleteFunc(slices.Sorted(maps.Keys(more)), func(key string) bool { return slices.Contains(changeable, key) })
	if len(not) > 0 {
		return fmt.Errorf("%s cannot be changed while a session runs; %s can", strings.Join(not, ", "), strings.Join(changeable, ", "))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again() // what has changed elsewhere is not for this to tell
	merged, err := Merge(s.src.Workdir, s.src.Settings, settings)
	if err != nil {
		return err
	}
	src := s.src
	src.Settings = merged
	stamp, _ := config.Changed(src, config.Stamp{}) // before they are read
	cfg, files, err := s.load(src)
	if err != nil || !keep {
		return err
	}
	s.src, s.cfg, s.files, s.policy, s.stamp = src, cfg, files, Policy(cfg, files...), stamp
	s.version++
	return nil
}

// Merge puts an object of settings over others: a file, an object as text, or nothing. Objects
// are merged, all else takes the place of what was there, and null takes it away.
func Merge(workdir, base string, over json.RawMessage) (string, error) {
	under, data := map[string]any{}, []byte(strings.TrimSpace(base))
	if len(data) > 0 && data[0] != '{' {
		path := base
		if !filepath.IsAbs(path) {
			path = filepath.Join(workdir, path)
		}
		var err error
		if data, err = config.ReadFile(path); err == nil {
			data, err = jsonc.Plain(data)
		}
		if err != nil {
			return "", fmt.Errorf("the settings of the command line: %w", err)
		}
	}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &under); err != nil {
			return "", fmt.Errorf("the settings of the command line: %w", err)
		}
	}
	var more map[string]any
	if err := json.Unmarshal(over, &more); err != nil {
		return "", fmt.Errorf("the settings: %w", err)
	}
	data, err := json.Marshal(merged(under, more))
	if err != nil {
		return "", err
	}
	return string(data), nil
}

func merged(under, over map[string]any) map[string]any {
	for k, v := range over {
		inner, ok := v.(map[string]any)
		below, has := under[k].(map[string]any)
		switch {
		case v == nil:
			delete(under, k)
		case ok && has:
			under[k] = merged(below, inner)
		default:
			under[k] = v
		}
	}
	return under
}
