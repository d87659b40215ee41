package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/extend/bundle/swarms"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// flags are the flags of the root command, as they were given.
type flags struct {
	print, interactive, partial, verbose, debug bool
	output                                      string
	schemaText                                  string
	schema                                      json.RawMessage // not a flag: what schemaText says
	last                                        bool
	resume                                      string
	model, fallback, effort, profile, mode      string
	skip, trust, scratch, plain, version        bool
	allow, deny                                 list
	maxTurns                                    int
	budget                                      app.Budget
	sessionID, name, appendText, appendFile     string
	system                                      bool // a text replaces what dure says
	systemText, systemFile                      string
	addDirs, pluginDirs, serverless, servers    []string
	onlyServers                                 bool
	settings, baseURL, dialect, durability      string
	server                                      string
	sandbox                                     string
	agent, agents                               string
	code                                        *swarms.Code // not a flag
	host                                        sdkFlags

	setup, setupOnly, maintain bool

	here bool // of sessions

	awaits  bool   // not a flag: nobody watches, and the first request waits for servers
	workdir string // not a flag: where the program runs
	began   string // not a flag: where it began to, of which the flags were said

	takeover bool   // of resume
	fork     bool   // of resume: go on in a copy
	forkAt   string // of resume: in a copy up to there
}

// pick is the value of --resume without one.
const pick = "\x00pick"

func (p *program) define(f *pflag.FlagSet) {
	t, v := p.text, &p.flags
	f.BoolVarP(&v.print, "print", "p", false, t.Say(text.FlagPrint))
	f.StringVar(&v.output, "output-format", "", t.Say(text.FlagOutput))
	f.StringVar(&v.schemaText, "json-schema", "", t.Say(text.FlagSchema))
	f.BoolVar(&v.partial, "include-partial-messages", false, t.Say(text.FlagPartial))
	f.BoolVarP(&v.last, "continue", "c", false, t.Say(text.FlagContinue))
	f.StringVarP(&v.resume, "resume", "r", "", t.Say(text.FlagResume))
	f.Lookup("resume").NoOptDefVal = pick
	f.BoolVar(&v.takeover, "takeover", false, t.Say(text.FlagTakeover))
	f.BoolVar(&v.fork, "fork-session", false, t.Say(text.FlagForkSession))
	f.StringVar(&v.forkAt, "resume-session-at", "", t.Say(text.FlagResumeAt))
	f.StringVar(&v.model, "model", "", t.Say(text.FlagModel))
	f.StringVar(&v.fallback, "fallback-model", "", t.Say(text.FlagFallback))
	f.StringVar(&v.effort, "effort", "", t.Say(text.FlagEffort))
	f.StringVar(&v.profile, "profile", "", t.Say(text.FlagProfile))
	f.StringVar(&v.agent, "agent", "", t.Say(text.FlagAgent))
	f.StringVar(&v.agents, "agents", "", t.Say(text.FlagAgents))
	f.StringVar(&v.mode, "permission-mode", "", t.Say(text.FlagMode))
	f.BoolVar(&v.skip, "dangerously-skip-permissions", false, t.Say(text.FlagSkip))
	f.StringVar(&v.sandbox, "sandbox", "", t.Say(text.FlagSandbox))
	f.BoolVar(&v.trust, "trust", false, t.Say(text.FlagTrust))
	for _, name := range []string{"allow", "allowedTools", "allowed-tools"} {
		f.Var(&v.allow, name, t.Say(text.FlagAllow))
	}
	for _, name := range []string{"deny", "disallowedTools", "disallowed-tools"} {
		f.Var(&v.deny, name, t.Say(text.FlagDeny))
	}
	f.IntVar(&v.maxTurns, "max-turns", 0, t.Say(text.FlagMaxTurns))
	f.Float64Var(&v.budget.Dollars, "max-budget-usd", 0, t.Say(text.FlagBudget))
	f.Int64Var(&v.budget.Tokens, "max-budget-tokens", 0, t.Say(text.FlagTokens))
	f.StringVar(&v.sessionID, "session-id", "", t.Say(text.FlagSessionID))
	f.StringVarP(&v.name, "name", "n", "", t.Say(text.FlagName))
	f.StringVar(&v.systemText, "system-prompt", "", t.Say(text.FlagSystem))
	f.StringVar(&v.systemFile, "system-prompt-file", "", t.Say(text.FlagSystemFile))
	f.StringVar(&v.appendText, "append-system-prompt", "", t.Say(text.FlagAppend))
	f.StringVar(&v.appendFile, "append-system-prompt-file", "", t.Say(text.FlagAppendFile))
	f.StringArrayVar(&v.addDirs, "add-dir", nil, t.Say(text.FlagAddDir))
	f.StringArrayVar(&v.pluginDirs, "plugin-dir", nil, t.Say(text.FlagPluginDir))
	f.StringArrayVar(&v.servers, "mcp-config", nil, t.Say(text.FlagMCPConfig))
	f.BoolVar(&v.onlyServers, "strict-mcp-config", false, t.Say(text.FlagMCPStrict))
	f.StringVar(&v.baseURL, "base-url", "", t.Say(text.FlagBaseURL))
	f.StringVar(&v.dialect, "tool-dialect", "", t.Say(text.FlagDialect))
	f.StringVar(&v.durability, "durability", "", t.Say(text.FlagDurability))
	f.BoolVar(&v.scratch, "scratch", false, t.Say(text.FlagScratch))
	f.BoolVar(&v.plain, "no-auto-context", false, t.Say(text.FlagPlain))
	f.BoolVar(&v.scratch, "no-session-persistence", false, t.Say(text.FlagScratch))
	f.BoolVar(&v.setup, "init", false, t.Say(text.FlagInit))
	f.BoolVar(&v.setupOnly, "init-only", false, t.Say(text.FlagInitOnly))
	f.BoolVar(&v.maintain, "maintenance", false, t.Say(text.FlagMaintenance))
	f.BoolVarP(&v.interactive, "interactive", "i", false, t.Say(text.FlagInteractive))
	f.BoolVar(&v.verbose, "verbose", false, t.Say(text.FlagVerbose))
	f.BoolVarP(&v.version, "version", "v", false, t.Say(text.FlagVersion))
	p.defineHost(f)
	for _, name := range []string{"allowedTools", "allowed-tools", "disallowedTools", "disallowed-tools", "no-session-persistence"} {
		f.Lookup(name).Hidden = true // other spellings
	}
	f.SortFlags = false
}

// shared defines the flags that every command has.
func (p *program) shared(f *pflag.FlagSet) {
	f.StringVar(&p.flags.settings, "settings", "", p.text.Say(text.FlagSettings))
	f.StringVar(&p.flags.server, "server", "", p.text.Say(text.FlagServer))
	f.BoolVar(&p.flags.debug, "debug", false, p.text.Say(text.FlagDebug))
	f.BoolP("help", "h", false, p.text.Say(text.FlagHelp))
	f.SortFlags = false
}

// trigger is what Setup hooks are to make ready for; "" = nothing.
func (f flags) trigger() string {
	switch {
	case f.setup, f.setupOnly:
		return "init"
	case f.maintain:
		return "maintenance"
	}
	return ""
}

// app returns the flags that settings are made of.
func (f flags) app() app.Flags {
	var system *string
	if f.system {
		system = &f.systemText
	}
	a := app.Flags{
		System: system,
		Model:  f.model, Mode: f.mode, Skip: f.skip, Trust: f.trust, Sandbox: f.sandbox, Allow: f.allow, Deny: f.deny, BaseURL: f.baseURL,
		Fallback: f.fallback, Agent: f.agent, Agents: f.agents, Code: f.code, Profile: f.profile, Effort: f.effort,
		Settings: f.settings, Driver: f.host.managed, Dialect: f.dialect, Durability: f.durability,
		Elsewhere: f.workdir != f.began,
		AddDirs:   f.addDirs, PluginDirs: f.pluginDirs, ServerlessDirs: f.serverless, Servers: f.servers, OnlyServers: f.onlyServers, AwaitServers: f.awaits, SystemAppend: f.appendText, Scratch: f.scratch, PlainOff: f.plain, Budget: f.budget,
	}
	f.host.into(&a)
	a.Hosted, a.Skills = f.linesFrom(), f.host.skills
	return a
}

// check finds what no setting can say.
func (p *program) check(cmd *cobra.Command) error {
	f := p.flags
	formats := []string{string(cli.FormatText), string(cli.FormatJSON), string(cli.FormatNDJSON), formatStream}
	if err := p.checkHost(cmd.Flags()); err != nil {
		return err
	}
	if err := p.checkEffort(); err != nil {
		return err
	}
	switch {
	case f.output != "" && f.output != formatStream && !slices.Contains(formats, f.output):
		want := p.text.Say(text.WantOneOf, "list", strings.Join(formats, ", "))
		return p.usage(p.text.Say(text.BadValue, "flag", "--output-format", "value", f.output, "wanted", want), "")
	case cmd.Flags().Changed("max-turns") && f.maxTurns < 1:
		return p.usage(p.text.Say(text.BadValue, "flag", "--max-turns", "value", f.maxTurns, "wanted", p.text.Say(text.WantNumber)), "")
	case cmd.Flags().Changed("max-budget-usd") && !(f.budget.Dollars > 0 && f.budget.Dollars <= 1e9):
		return p.usage(p.text.Say(text.BadValue, "flag", "--max-budget-usd", "value", f.budget.Dollars, "wanted", p.text.Say(text.WantAmount)), "")
	case cmd.Flags().Changed("max-budget-tokens") && f.budget.Tokens < 1:
		return p.usage(p.text.Say(text.BadValue, "flag", "--max-budget-tokens", "value", f.budget.Tokens, "wanted", p.text.Say(text.WantNumber)), "")
	case f.last && f.resume != "":
		return p.usage(p.text.Say(text.Exclusive, "one", "--continue", "other", "--resume"), "")
	case f.takeover && !f.last && f.resume == "":
		return p.usage(p.text.Say(text.FlagTakeover), "")
	case (f.fork || f.forkAt != "") && !f.last && f.resume == "":
		one := "--fork-session"
		if !f.fork {
			one = "--resume-session-at"
		}
		return p.usage(p.text.Say(text.OnlyWith, "one", one, "other", "--resume"), "")
	case f.maintain && (f.setup || f.setupOnly):
		return p.usage(p.text.Say(text.Exclusive, "one", "--maintenance", "other", "--init"), "")
	case f.setupOnly && f.interactive:
		return p.usage(p.text.Say(text.Exclusive, "one", "--init-only", "other", "--interactive"), "")
	case f.print && f.interactive:
		return p.usage(p.text.Say(text.Exclusive, "one", "--print", "other", "--interactive"), "")
	case f.sessionID != "" && (f.last || f.resume != "") && !f.fork && f.forkAt == "":
		return p.usage(p.text.Say(text.Exclusive, "one", "--session-id", "other", "--resume"), "")
	case cmd.Flags().Changed("session-id") && !newID().MatchString(f.sessionID):
		return p.usage(p.text.Say(text.BadValue, "flag", "--session-id", "value", f.sessionID, "wanted", p.text.Say(text.WantNewID)), "")
	}
	for i, dir := range slices.Concat(f.addDirs, f.pluginDirs, f.serverless) {
		path, flag := dir, "--add-dir"
		switch {
		case i >= len(f.addDirs)+len(f.pluginDirs):
			flag = "--plugin-dir-no-mcp"
		case i >= len(f.addDirs):
			flag = "--plugin-dir"
		}
		if rest, ok := strings.CutPrefix(dir, "~/"); ok { // as settings understand it
			home, _ := os.UserHomeDir()
			path = filepath.Join(home, rest)
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return p.usage(p.text.Say(text.BadValue, "flag", flag, "value", dir, "wanted", p.text.Say(text.WantFolder)), "")
		}
	}
	return nil
}

// efforts are the values of --effort; above high there is nothing more here.
var efforts = []string{"low", "medium", "high", "xhigh", "max"}

// checkEffort takes the most that there is for what is above it.
func (p *program) checkEffort() error {
	e := &p.flags.effort
	if *e != "" && !slices.Contains(efforts, *e) {
		return p.usage(p.text.Say(text.BadValue, "flag", "--effort", "value", *e, "wanted", p.text.Say(text.WantOneOf, "list", strings.Join(efforts, ", "))), "")
	}
	if *e == "xhigh" || *e == "max" {
		*e = "high"
	}
	return nil
}

// newID is what a session may be called.
var newID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
})

// usage returns a problem with the command line. Its words are in the user's
// language already; fix may be "".
func (p *program) usage(message, fix string) error {
	if fix == "" {
		fix = p.seeHelp()
	}
	return &agent.Problem{Code: agent.ProblemUsage, Message: message, Fix: fix}
}

// seeHelp says where the command is explained that is running.
func (p *program) seeHelp() string {
	if p.at == nil {
		return p.text.Say(text.FixUsage)
	}
	return p.text.Say(text.SeeHelp, "command", p.at.CommandPath())
}

// flagError says what is wrong with a flag, and which one may have been meant.
func (p *program) flagError(cmd *cobra.Command, err error) error {
	p.at = cmd
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := e.GetSpecifiedName()
		given := "--" + name
		if e.GetSpecifiedShortnames() != "" {
			given = "-" + name
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		fix := p.seeHelp()
		if near := cli.Nearest(given, names); near != "" {
			fix = p.text.Say(text.DidYouMean, "name", near) + " " + fix
		}
		return p.usage(p.text.Say(text.UnknownFlag, "flag", given), fix)
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		name := "--" + e.GetFlag().Name
		return p.usage(p.text.Say(text.NeedsValue, "flag", name), "")
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		name := "--" + e.GetFlag().Name
		want := e.GetFlag().Value.Type()
		switch want {
		case "int":
			want = p.text.Say(text.WantNumber)
			if name == "--max-thinking-tokens" {
				want = p.text.Say(text.WantNone)
			}
		case "int64":
			want = p.text.Say(text.WantWhole)
		case "bool":
			want = p.text.Say(text.WantBool)
		case "duration":
			want = p.text.Say(text.WantTime)
		case "float64":
			want = p.text.Say(text.WantAmount)
			if e.GetFlag().Name == "speed" {
				want = p.text.Say(text.WantSpeed)
			}
		}
		return p.usage(p.text.Say(text.BadValue, "flag", name, "value", e.GetValue(), "wanted", want), "")
	}
	return p.usage(err.Error(), "")
}

// list is a flag that may be given several times, each with several values. A
// comma or a blank separates values, but not within parentheses.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

// Type names the value in the help.
func (l *list) Type() string { return "list" }

// Set adds values.
func (l *list) Set(s string) error {
	depth, start := 0, 0
	add := func(end int) {
		if v := strings.TrimSpace(s[start:end]); v != "" {
			*l = append(*l, v)
		}
		start = end + 1
	}
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',', ' ':
			if depth <= 0 {
				add(i)
			}
		}
	}
	if start < len(s) {
		add(len(s))
	}
	return nil
}

// normalise joins -r and its value: a flag whose value may be missing takes one
// only behind an equals sign.
func normalise(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return append(out, args[i:]...)
		}
		if (a == "-r" || a == "--resume") && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++
			a = "--resume=" + args[i]
		}
		out = append(out, a)
	}
	return out
}
