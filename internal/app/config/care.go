package config

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

// maxLessons bounds reflexion.maxEntries.
const maxLessons = 50

// When sessions are also written where programs for agent sessions look for them.
const (
	MirrorOff = "off"
	MirrorSDK = "sdk" // those that such a program drives
	MirrorAll = "all"
)
