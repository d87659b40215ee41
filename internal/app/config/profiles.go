package config

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"dure/agent"
	"dure/internal/knowledge/prompt"
)

// Profile is what a kind of work has of its own. A nil field is as in the profile
// that it rests on, and in the end as in the settings for all work.
type Profile struct {
	Base         *string        `json:"base,omitempty"` // of a profile that is not built in
	Model        *string        `json:"model,omitempty"`
	Fallback     *string        `json:"fallbackModel,omitempty"` // names, separated by commas
	Effort       *string        `json:"effort,omitempty"`
	Steps        *int           `json:"steps,omitempty"`
	Mode         *string        `json:"mode,omitempty"`
	Plan         *string        `json:"plan,omitempty"` // as plan.mode
	Budget       *ProfileBudget `json:"budget,omitempty"`
	Verification *bool          `json:"verification,omitempty"` // the agent is to prove what it did
	Tools        *[]string      `json:"tools,omitempty"`        // names, group:NAME, read-only or all
	Prompt       *string        `json:"prompt,omitempty"`       // in the place of what dure says of itself and of how to work
	Append       *string        `json:"append,omitempty"`       // behind it
}

// ProfileBudget is [Budget] as far as a profile says.
type ProfileBudget struct {
	Dollars *float64 `json:"usd"`
	Tokens  *int64   `json:"tokens"`
}

// Person is what agents are told of their user.
type Person struct {
	Name  string `json:"name,omitempty"`
	About string `json:"about,omitempty"`
}

// builtInProfiles are the kinds of work that there always are. Chat reads, looks
// things up and plans; it changes nothing unless its tools are said otherwise.
func builtInProfiles() map[string]Profile {
	yes, no := true, false
	reading := []string{"read-only", "group:planning"}
	return map[string]Profile{
		"chat":   {Tools: &reading, Verification: &no},
		"cowork": {Verification: &yes}, "code": {Verification: &yes}, "finance": {Verification: &yes},
	}
}

// ProfileNames returns the names of the profiles, sorted.
func (c Config) ProfileNames() []string {
	all := builtInProfiles()
	maps.Copy(all, c.Profiles)
	return slices.Sorted(maps.Keys(all))
}

// maxBases is how many profiles one rests on at most.
const maxBases = 8

// profile returns a profile over all that it rests on, and the built-in one at the
// end; "" = there is none.
func (c Config) profile(name string) (p Profile, kind string) {
	builtIn := builtInProfiles()
	for range maxBases {
		p = p.over(c.Profiles[name])
		if last, ok := builtIn[name]; ok {
			return p.over(last), name
		}
		base := c.Profiles[name].Base
		if base == nil {
			return p, ""
		}
		name = *base
	}
	return p, ""
}

// over returns p with what it does not say as in base.
func (p Profile) over(base Profile) Profile {
	return Profile{
		Base: cmp.Or(p.Base, base.Base), Model: cmp.Or(p.Model, base.Model), Fallback: cmp.Or(p.Fallback, base.Fallback),
		Effort: cmp.Or(p.Effort, base.Effort), Steps: cmp.Or(p.Steps, base.Steps), Mode: cmp.Or(p.Mode, base.Mode), Plan: cmp.Or(p.Plan, base.Plan),
		Budget: cmp.Or(p.Budget, base.Budget), Verification: cmp.Or(p.Verification, base.Verification),
		Tools: cmp.Or(p.Tools, base.Tools), Prompt: cmp.Or(p.Prompt, base.Prompt), Append: cmp.Or(p.Append, base.Append),
	}
}

// Work returns what holds for a kind of work.
// What a flag, a variable or the administrator says for all work is stronger than a
// profile; so is what a repository says of modes, plans, steps and budgets to tighten
// them.
func (c Config) Work(name string) (prompt.Work, error) {
	p, kind := c.profile(name)
	if kind == "" {
		list := strings.Join(c.ProfileNames(), ", ")
		return prompt.Work{}, &agent.Problem{
			Code: agent.ProblemUsage, Message: fmt.Sprintf("--profile: %q is none of: %s", name, list),
			Fix: "name another one with --profile", Args: map[string]string{"flag": "--profile", "value": name, "wanted": list},
		}
	}
	w := prompt.Work{Profile: agent.Profile{
		Name: name, Kind: kind, Fallback: c.Fallback, Effort: c.Effort, Steps: c.MaxSteps, Mode: c.Mode, Plan: c.Plan.Mode,
		Dollars: c.Budget.Dollars, Tokens: c.Budget.Tokens,
	}}
	general := func(key string) bool { o := c.Origins[key]; return o.Explicit() || o.Layer == Managed }
	tight := func(key string) bool {
		o := c.Origins[key]
		return general(key) || o.Layer == Project || o.Layer == Local
	}
	set(&w.Model, p.Model, false)
	set(&w.Effort, p.Effort, general("effort"))
	set(&w.Steps, p.Steps, tight("maxSteps"))
	if p.Fallback != nil && !general("fallbackModel") {
		w.Fallback = names(*p.Fallback)
	}
	const mode = "permissions.defaultMode"
	if p.Mode != nil && (!tight(mode) || !general(mode) && loosens(string(c.Mode), agent.Mode(*p.Mode))) && !(c.NoBypass && *p.Mode == string(agent.ModeBypass)) {
		w.Mode = agent.Mode(*p.Mode)
	}
	if p.Plan != nil && !tight("plan.mode") {
		w.Plan = agent.PlanMode(*p.Plan)
	}
	if w.Plan == agent.PlanOff {
		w.Plan = ""
	}
	if p.Budget != nil {
		set(&w.Dollars, p.Budget.Dollars, tight("budget.usd"))
		set(&w.Tokens, p.Budget.Tokens, tight("budget.tokens"))
	}
	set(&w.Verify, p.Verification, false)
	w.Verify = w.Verify && c.Verification.in(kind)
	if p.Tools != nil {
		w.Tools = *p.Tools
	}
	set(&w.Prompt, p.Prompt, false)
	set(&w.Append, p.Append, false)
	return w, nil
}

// set sets to what a profile says, unless something else is stronger.
func set[T any](to, from *T, weaker bool) {
	if from != nil && !weaker {
		*to = *from
	}
}

// names are those of a list with commas.
func names(list string) (all []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			all = append(all, name)
		}
	}
	return all
}

// The bounds of what goes into prompts, in bytes and entries.
const (
	maxPrompt  = 64 << 10
	maxAbout   = 4000
	maxMarkets = 20
)

var profileName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`) })

// profiles applies what kinds of work have of their own. Whether those that are named
// exist is known when all layers have spoken, see [loader.checkProfiles].
func (l *loader) profiles(e entry) error {
	var all map[string]Profile
	if err := e.decode(&all); err != nil {
		return err
	}
	ly := e.ly
	if !ly.own() {
		all = l.restrictProfiles(ly, all)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		key := "profiles." + name
		if !profileName().MatchString(name) {
			return ly.problem(ly.where(key), fmt.Sprintf("a profile is called %q", clip(name, maxText)), "Use small letters, digits and hyphens, at most 32 of them.")
		}
		p := all[name]
		if p.Model != nil && *p.Model == "" {
			p.Model = nil
		}
		if err := l.profile(ly, key, p); err != nil {
			return err
		}
		if l.cfg.Profiles == nil {
			l.cfg.Profiles = map[string]Profile{}
		}
		l.set(ly, key, true)
		if p.Model != nil {
			l.set(ly, key+".model", true)
		}
		l.cfg.Profiles[name] = p.over(l.cfg.Profiles[name])
		l.said[key] = ly
	}
	return nil
}

// sayProfile keeps who has named the profile: whether there is one is known later.
func (l *loader) sayProfile(e entry, _ bool) { l.said["profile"] = e.ly }

// profile checks one.
func (l *loader) profile(ly layer, key string, p Profile) error {
	if p.Model != nil && !isName(*p.Model) {
		return l.invalid(ly, key+".model", *p.Model, "the name of a model")
	}
	if p.Fallback != nil && slices.ContainsFunc(names(*p.Fallback), func(n string) bool { return !isName(n) }) {
		return l.invalid(ly, key+".fallbackModel", *p.Fallback, "names of models, separated by commas")
	}
	if p.Effort != nil && !slices.Contains(efforts, *p.Effort) {
		return l.invalid(ly, key+".effort", *p.Effort, strings.Join(efforts, ", "))
	}
	if p.Steps != nil && *p.Steps < 0 {
		return l.invalid(ly, key+".steps", fmt.Sprint(*p.Steps), "0, a positive number")
	}
	if p.Mode != nil && !slices.Contains(modes, *p.Mode) {
		return l.invalid(ly, key+".mode", *p.Mode, strings.Join(modes, ", "))
	}
	if p.Plan != nil && !slices.Contains(planModes, *p.Plan) {
		return l.invalid(ly, key+".plan", *p.Plan, strings.Join(planModes, ", "))
	}
	if b := p.Budget; b != nil {
		if d := b.Dollars; d != nil && !(*d >= 0 && *d <= maxDollars) {
			return l.invalid(ly, key+".budget.usd", fmt.Sprint(*d), "0, an amount of US dollars")
		}
		if n := b.Tokens; n != nil && *n < 0 {
			return l.invalid(ly, key+".budget.tokens", fmt.Sprint(*n), "0, a positive number")
		}
	}
	if p.Tools != nil {
		for i, name := range *p.Tools {
			if !isName(name) {
				return l.invalidItem(ly, key+".tools", i, name, "the name of a tool, group:NAME, read-only, all")
			}
		}
	}
	for field, text := range map[string]*string{"prompt": p.Prompt, "append": p.Append} {
		if text != nil && len(*text) > maxPrompt {
			return ly.problem(ly.where(key+"."+field), fmt.Sprintf("%s.%s is larger than %d bytes", key, field, maxPrompt), "")
		}
	}
	return nil
}

// efforts are the values of effort.
var efforts = []string{"low", "medium", "high"}

// user applies what is told of the user.
func (l *loader) user(e entry) error {
	var p Person
	if err := e.decode(&p); err != nil {
		return err
	}
	if len(p.Name) > maxText || strings.ContainsFunc(p.Name, unicode.IsControl) {
		return l.invalid(e.ly, "user.name", clip(p.Name, maxText), fmt.Sprintf("a line of at most %d bytes", maxText))
	}
	if len(p.About) > maxAbout {
		return l.invalid(e.ly, "user.about", clip(p.About, maxText), fmt.Sprintf("a text of at most %d bytes", maxAbout))
	}
	e.set(l.cfg.User != p)
	l.cfg.User = p
	return nil
}

// How users invest.
var (
	risks       = []string{"conservative", "moderate", "aggressive"}
	compliances = []string{"retail", "professional", "institutional"}
)

func (l *loader) investment(e entry) error {
	var v *prompt.Investment
	if err := e.decode(&v); err != nil {
		return err
	}
	switch {
	case v.Risk != "" && !slices.Contains(risks, v.Risk):
		return l.invalid(e.ly, "investment.riskTolerance", v.Risk, strings.Join(risks, ", "))
	case v.Compliance != "" && !slices.Contains(compliances, v.Compliance):
		return l.invalid(e.ly, "investment.complianceLevel", v.Compliance, strings.Join(compliances, ", "))
	case len(v.Markets) > maxMarkets:
		return e.ly.problem(e.ly.where("investment.preferredMarkets"), fmt.Sprintf("there are more than %d markets", maxMarkets), "")
	}
	for i, m := range v.Markets {
		if !isName(m) {
			return l.invalidItem(e.ly, "investment.preferredMarkets", i, m, "the name of a market")
		}
	}
	e.set(true)
	l.cfg.Investment = v
	return nil
}

// checkProfiles finds profiles that are named and not there.
func (l *loader) checkProfiles() error {
	all := l.cfg.ProfileNames()
	for _, name := range slices.Sorted(maps.Keys(l.cfg.Profiles)) {
		key, base := "profiles."+name, l.cfg.Profiles[name].Base
		if _, kind := l.cfg.profile(name); kind != "" {
			continue
		}
		ly := l.said[key]
		if base == nil {
			return ly.problem(ly.where(key), fmt.Sprintf("there is no profile %s", name),
				fmt.Sprintf("Write one of %s, or say on which of them the new one rests: \"base\": \"code\".", strings.Join(slices.Sorted(maps.Keys(builtInProfiles())), ", ")))
		}
		return l.invalid(ly, key+".base", *base, strings.Join(slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == name }), ", "))
	}
	if !slices.Contains(all, l.cfg.Profile) {
		return l.invalid(l.said["profile"], "profile", l.cfg.Profile, strings.Join(all, ", "))
	}
	return nil
}

// restrictProfiles takes out of profiles what a repository may not decide: which
// tools there are, which mode holds, what may be spent. It may choose the model and
// the effort of profiles that exist, and add to prompts when it is trusted.
func (l *loader) restrictProfiles(ly layer, own map[string]Profile) map[string]Profile {
	drop := func(key string) { l.inert(ly, key, ly.where(key), Foreign, "") }
	taken := map[string]Profile{}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		p, key := own[name], "profiles."+name
		if _, known := builtInProfiles()[name]; !known && l.cfg.Profiles[name].Base == nil {
			drop(key)
			continue
		}
		kept := Profile{Model: p.Model, Effort: p.Effort, Append: p.Append}
		for field, said := range map[string]bool{
			"base": p.Base != nil, "fallbackModel": p.Fallback != nil, "steps": p.Steps != nil, "mode": p.Mode != nil, "plan": p.Plan != nil,
			"budget": p.Budget != nil, "verification": p.Verification != nil, "tools": p.Tools != nil, "prompt": p.Prompt != nil,
		} {
			if said {
				drop(key + "." + field)
			}
		}
		if p.Append != nil && !l.permits(ly) {
			l.inert(ly, key+".append", ly.where(key+".append"), Untrusted, clip(*p.Append, maxText))
			kept.Append = nil
		}
		if kept != (Profile{}) {
			taken[name] = kept
		}
	}
	return taken
}
