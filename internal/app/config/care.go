package config

import (
	"fmt"
	"slices"
)

// Context says what is read with an input.
type Context struct {
	Auto bool // files that are named without an @
}

// Reflexion says what is learnt from past tasks.
type Reflexion struct {
	Enabled           bool
	EvaluateOnSuccess bool // also what went well; otherwise what has failed only
	MaxEntries        int  // past tasks whose lessons a session begins with
}

// Verification says after which changes files are looked at once more.
type Verification struct {
	Enabled bool
	Cowork  bool // in profile cowork, and those that rest on it
	Code    bool // in profile code, and those that rest on it
}

// in reports whether a profile of a kind may verify changes.
func (v Verification) in(kind string) bool {
	return v.Enabled && (kind != "cowork" || v.Cowork) && (kind != "code" || v.Code)
}

// FileContext is [Context] as a file writes it.
type FileContext struct {
	Auto *bool `json:"auto"`
}

// FileReflexion is [Reflexion] as a file writes it.
type FileReflexion struct {
	Enabled           *bool `json:"enabled"`
	EvaluateOnSuccess *bool `json:"evaluateOnSuccess"`
	MaxEntries        *int  `json:"maxEntries"`
}

// FileVerification is [Verification] as a file writes it.
type FileVerification struct {
	Enabled *bool `json:"enabled"`
	Cowork  *bool `json:"cowork"`
	Code    *bool `json:"code"`
}

// maxLessons bounds reflexion.maxEntries.
const maxLessons = 50

// care applies what is done around a turn without being asked for.
func (l *loader) care(ly layer, s Settings) error {
	c, r, v := s.Context, s.Reflexion, s.Verification
	if c == nil {
		c = new(FileContext)
	}
	if r == nil {
		r = new(FileReflexion)
	}
	if v == nil {
		v = new(FileVerification)
	}
	for _, f := range []struct {
		key   string
		value *bool
		to    *bool
	}{
		{"context.auto", c.Auto, &l.cfg.Context.Auto},
		{"reflexion.enabled", r.Enabled, &l.cfg.Reflexion.Enabled},
		{"reflexion.evaluateOnSuccess", r.EvaluateOnSuccess, &l.cfg.Reflexion.EvaluateOnSuccess},
		{"verification.enabled", v.Enabled, &l.cfg.Verification.Enabled},
		{"verification.cowork", v.Cowork, &l.cfg.Verification.Cowork},
		{"verification.code", v.Code, &l.cfg.Verification.Code},
	} {
		if f.value != nil {
			l.set(ly, f.key, *f.to != *f.value)
			*f.to = *f.value
		}
	}
	if n := r.MaxEntries; n != nil {
		if *n < 0 || *n > maxLessons {
			return l.invalid(ly, "reflexion.maxEntries", fmt.Sprint(*n), []string{fmt.Sprintf("a number from 0 to %d", maxLessons)})
		}
		l.set(ly, "reflexion.maxEntries", l.cfg.Reflexion.MaxEntries != *n)
		l.cfg.Reflexion.MaxEntries = *n
	}
	if t := s.Transcripts; t != nil && t.Mirror != nil {
		if !slices.Contains(mirrorings, *t.Mirror) {
			return l.invalid(ly, "transcripts.mirror", *t.Mirror, mirrorings)
		}
		l.set(ly, "transcripts.mirror", l.cfg.Mirror != *t.Mirror)
		l.cfg.Mirror = *t.Mirror
	}
	return nil
}

// When sessions are also written where programs for agent sessions look for them.
const (
	MirrorOff = "off"
	MirrorSDK = "sdk" // those that such a program drives
	MirrorAll = "all"
)

var mirrorings = []string{MirrorOff, MirrorSDK, MirrorAll}

// FileTranscripts says which sessions are mirrored, as a file writes it.
type FileTranscripts struct {
	Mirror *string `json:"mirror"`
}

// restrictCare lets a repository switch off what costs, and reads, unasked, and leave on
// what protects: nothing else.
func (l *loader) restrictCare(s *Settings, drop func(key string)) {
	if s.Transcripts != nil {
		drop("transcripts.mirror")
		s.Transcripts = nil
	}
	if s.Context != nil && on(s.Context.Auto) && !l.cfg.Context.Auto {
		drop("context.auto")
		s.Context = nil
	}
	if r := s.Reflexion; r != nil {
		own := *r
		if on(own.Enabled) && !l.cfg.Reflexion.Enabled {
			drop("reflexion.enabled")
			own.Enabled = nil
		}
		if on(own.EvaluateOnSuccess) && !l.cfg.Reflexion.EvaluateOnSuccess {
			drop("reflexion.evaluateOnSuccess")
			own.EvaluateOnSuccess = nil
		}
		if own.MaxEntries != nil && *own.MaxEntries > l.cfg.Reflexion.MaxEntries {
			drop("reflexion.maxEntries")
			own.MaxEntries = nil
		}
		s.Reflexion = &own
	}
	if v := s.Verification; v != nil {
		own := *v
		for _, f := range []struct {
			key   string
			value **bool
		}{{"verification.enabled", &own.Enabled}, {"verification.cowork", &own.Cowork}, {"verification.code", &own.Code}} {
			if *f.value != nil && !**f.value {
				drop(f.key)
				*f.value = nil
			}
		}
		s.Verification = &own
	}
}
