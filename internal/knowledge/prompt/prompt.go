// Package prompt writes the system prompt: the one place for text that tells a
// model what it is and how to work here. A prompt has fifteen sections; those that
// say something for a session are put together within a budget, what stays the same
// for all sessions first.
//
// The same input gives the same bytes, so that providers can cache it. The package
// does no I/O and starts no goroutines.
package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"dure/agent"
	"dure/agent/query"
)

// Kinds are the built-in kinds of work.
var Kinds = []string{"chat", "cowork", "code", "finance"}

// Context is what a prompt is written from. Zero fields say nothing.
type Context struct {
	Kind   string // one of [Kinds]; "" = code
	Verify bool   // the agent is to prove what it did

	Tools []string // canonical names of those that the model has
	Model agent.ModelInfo

	Language string // en or ko: to be answered in; "" = that of the user
	User     string // what the user is called
	About    string // what the user says of himself
	Channel  string // where answers are read: terminal, ...
	Chat     string // who reads them: direct, group

	Investment *Investment // nil = none is known

	// Custom is the user's own text. With Replace it stands in for what dure says of
	// itself and of how to work and answer; limits, tools and surroundings stay.
	Replace bool
	Custom  string

	Memory  bool // texts that nobody has said may come into the conversation
	Workdir string
	Extra   []string  // further folders that the session may work in
	Git     bool      // Workdir is in a git repository
	OS      string    // linux, darwin, windows
	Shell   string    // name of the shell that commands run in
	Opened  time.Time // when the session began; not the current time, which would break the cache

	Count func(text string) int // estimates tokens; nil = a token for three bytes
}

// Investment is how a user invests.
type Investment struct {
	Risk       string   `json:"riskTolerance,omitempty"` // conservative, moderate or aggressive; "" = not known
	Markets    []string `json:"preferredMarkets,omitempty"`
	Compliance string   `json:"complianceLevel,omitempty"` // retail, professional or institutional; "" = retail
}

// Work is a kind of work. Prompt and Append are texts of the user's own.
type Work struct {
	agent.Profile
	Prompt, Append string
}

// Prompt is a system prompt with what was left out of it.
type Prompt struct {
	Sections []query.PromptSection // in the order in which the model reads them
	Budget   int                   // tokens; 0 = no limit
	Tokens   int                   // of the sections that are kept
}

// TooLong is the error of a prompt whose required sections do not fit.
type TooLong struct{ Tokens, Budget int }

func (e *TooLong) Error() string {
	return fmt.Sprintf("the required sections of the system prompt have about %d tokens, and %d fit", e.Tokens, e.Budget)
}

// Build writes a prompt of at most budget tokens, as they are estimated; 0 = no
// limit. Sections that do not fit are left out, those of the lowest priority first.
// When the required ones alone do not fit, it returns them and a [*TooLong].
func Build(c Context, budget int) (Prompt, error) {
	if c.Count == nil {
		c.Count = func(text string) int { return (len(text) + 2) / 3 }
	}
	if c.Kind == "" {
		c.Kind = "code"
	}
	p := Prompt{Budget: budget}
	tags := c.tags()
	for _, d := range definitions {
		if c.Replace && d.ours {
			continue
		}
		text := d.write(c, tags)
		if text == "" {
			continue
		}
		if d.title != "" {
			text = "# " + d.title + "\n" + text
		}
		s := query.PromptSection{ID: d.id, Title: d.name(), Content: text, Priority: d.priority, Required: d.required, Tokens: c.Count(text)}
		p.Sections = append(p.Sections, s)
		p.Tokens += s.Tokens
	}
	return p, p.fit()
}

// fit leaves out what is too much.
func (p *Prompt) fit() error {
	if p.Budget <= 0 {
		return nil
	}
	for p.Tokens > p.Budget {
		least := -1
		for i, s := range p.Sections {
			if !s.Required && !s.Dropped && (least < 0 || s.Priority <= p.Sections[least].Priority) {
				least = i
			}
		}
		if least < 0 {
			return &TooLong{p.Tokens, p.Budget}
		}
		p.Sections[least].Dropped = true
		p.Tokens -= p.Sections[least].Tokens
	}
	return nil
}

// System returns the sections that are kept, the last one with a cache mark.
func (p Prompt) System() []agent.Section {
	var all []agent.Section
	for _, s := range p.Sections {
		if !s.Dropped {
			all = append(all, agent.Section{Name: s.ID, Text: s.Content})
		}
	}
	if len(all) > 0 {
		all[len(all)-1].Cache = true
	}
	return all
}

// Hash is the SHA-256 of the JSON of sections, in hexadecimal.
func Hash(system []agent.Section) string {
	data, err := json.Marshal(system)
	if err != nil {
		panic(err) // texts and truth values
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// tags are the words that lines of the texts may depend on.
func (c Context) tags() map[string]bool {
	tags := map[string]bool{c.Kind: true, "verify": c.Verify, "no-images": c.Model.ID != "" && !c.Model.Images}
	for _, t := range c.Tools {
		tags[t] = true
	}
	tags["any"] = c.Language != "en" && c.Language != "ko"
	tags[c.Language] = true
	i := c.investment()
	if i.Compliance == "" {
		i.Compliance = "retail"
	}
	tags[i.Risk], tags[i.Compliance] = true, true
	return tags
}

func (c Context) investment() Investment {
	if c.Investment == nil {
		return Investment{}
	}
	return *c.Investment
}

// finance reports whether the work is about money.
func (c Context) finance() bool { return c.Kind == "finance" || c.Investment != nil }
