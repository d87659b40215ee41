package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/cli"
	"dure/internal/text"
)

// flags are the flags of the root command, as they were given.
type flags struct {
	print, interactive, partial, verbose, debug bool
	output                                      string
	last                                        bool
	resume                                      string
	model, mode                                 string
	skip, scratch, version                      bool
	allow, deny                                 list
	maxTurns                                    int
	sessionID, name, appendText                 string
	addDirs                                     []string
	settings, baseURL, dialect, durability      string

	here, verify bool // of sessions, of replay

	workdir string // not a flag: where the program runs
}

// pick is the value of --resume without one.
const pick = "\x00pick"

func (p *program) define(f *pflag.FlagSet) {
	t, v := p.text, &p.flags
	f.BoolVarP(&v.print, "print", "p", false, t.Say(text.FlagPrint))
	f.StringVar(&v.output, "output-format", "", t.Say(text.FlagOutput))
	f.BoolVar(&v.partial, "include-partial-messages", false, t.Say(text.FlagPartial))
	f.BoolVarP(&v.last, "continue", "c", false, t.Say(text.FlagContinue))
	f.StringVarP(&v.resume, "resume", "r", "", t.Say(text.FlagResume))
	f.Lookup("resume").NoOptDefVal = pick
	f.StringVar(&v.model, "model", "", t.Say(text.FlagModel))
	f.StringVar(&v.mode, "permission-mode", "", t.Say(text.FlagMode))
	f.BoolVar(&v.skip, "dangerously-skip-permissions", false, t.Say(text.FlagSkip))
	for _, name := range []string{"allow", "allowedTools", "allowed-tools"} {
		f.Var(&v.allow, name, t.Say(text.FlagAllow))
	}
	for _, name := range []string{"deny", "disallowedTools", "disallowed-tools"} {
		f.Var(&v.deny, name, t.Say(text.FlagDeny))
	}
	f.IntVar(&v.maxTurns, "max-turns", 0, t.Say(text.FlagMaxTurns))
	f.StringVar(&v.sessionID, "session-id", "", t.Say(text.FlagSessionID))
	f.StringVarP(&v.name, "name", "n", "", t.Say(text.FlagName))
	f.StringVar(&v.appendText, "append-system-prompt", "", t.Say(text.FlagAppend))
	f.StringArrayVar(&v.addDirs, "add-dir", nil, t.Say(text.FlagAddDir))
	f.StringVar(&v.baseURL, "base-url", "", t.Say(text.FlagBaseURL))
	f.StringVar(&v.dialect, "tool-dialect", "", t.Say(text.FlagDialect))
	f.StringVar(&v.durability, "durability", "", t.Say(text.FlagDurability))
	f.BoolVar(&v.scratch, "scratch", false, t.Say(text.FlagScratch))
	f.BoolVar(&v.scratch, "no-session-persistence", false, t.Say(text.FlagScratch))
	f.BoolVarP(&v.interactive, "interactive", "i", false, t.Say(text.FlagInteractive))
	f.BoolVar(&v.verbose, "verbose", false, t.Say(text.FlagVerbose))
	f.BoolVarP(&v.version, "version", "v", false, t.Say(text.FlagVersion))
	for _, name := range []string{"allowedTools", "allowed-tools", "disallowedTools", "disallowed-tools", "no-session-persistence"} {
		f.Lookup(name).Hidden = true // other spellings
	}
	f.SortFlags = false
}

// shared defines the flags that every command has.
func (p *program) shared(f *pflag.FlagSet) {
	f.StringVar(&p.flags.settings, "settings", "", p.text.Say(text.FlagSettings))
	f.BoolVar(&p.flags.debug, "debug", false, p.text.Say(text.FlagDebug))
	f.BoolP("help", "h", false, p.text.Say(text.FlagHelp))
	f.SortFlags = false
}

// app returns the flags that settings are made of.
func (f flags) app() app.Flags {
	return app.Flags{
		Model: f.model, Mode: f.mode, Skip: f.skip, Allow: f.allow, Deny: f.deny, BaseURL: f.baseURL,
		Settings: f.settings, Dialect: f.dialect, Durability: f.durability,
		AddDirs: f.addDirs, SystemAppend: f.appendText, Scratch: f.scratch,
	}
}

// check finds what no setting can say.
func (p *program) check(cmd *cobra.Command) error {
	f := p.flags
	formats := []string{string(cli.FormatText), string(cli.FormatJSON), string(cli.FormatNDJSON)}
	switch {
	case f.output == "stream-json":
		return p.usage(p.text.Say(text.StreamJSON), "")
	case f.output != "" && !slices.Contains(formats, f.output):
		want := p.text.Say(text.WantOneOf, "list", strings.Join(formats, ", "))
		return p.usage(p.text.Say(text.BadValue, "flag", "--output-format", "value", f.output, "wanted", want), "")
	case cmd.Flags().Changed("max-turns") && f.maxTurns < 1:
		return p.usage(p.text.Say(text.BadValue, "flag", "--max-turns", "value", f.maxTurns, "wanted", p.text.Say(text.WantNumber)), "")
	case f.last && f.resume != "":
		return p.usage(p.text.Say(text.Exclusive, "one", "--continue", "other", "--resume"), "")
	case f.print && f.interactive:
		return p.usage(p.text.Say(text.Exclusive, "one", "--print", "other", "--interactive"), "")
	case f.sessionID != "" && (f.last || f.resume != ""):
		return p.usage(p.text.Say(text.Exclusive, "one", "--session-id", "other", "--resume"), "")
	case cmd.Flags().Changed("session-id") && !newID.MatchString(f.sessionID):
		return p.usage(p.text.Say(text.BadValue, "flag", "--session-id", "value", f.sessionID, "wanted", p.text.Say(text.WantNewID)), "")
	}
	for _, dir := range f.addDirs {
		path := dir
		if rest, ok := strings.CutPrefix(dir, "~/"); ok { // as settings understand it
			home, _ := os.UserHomeDir()
			path = filepath.Join(home, rest)
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return p.usage(p.text.Say(text.BadValue, "flag", "--add-dir", "value", dir, "wanted", p.text.Say(text.WantFolder)), "")
		}
	}
	return nil
}

// newID is what a session may be called.
var newID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// usage returns a problem with the command line. Its words are in the user's
// language already; fix may be "".
func (p *program) usage(message, fix string) error {
	if fix == "" {
		fix = p.text.Say(text.FixUsage)
	}
	return &agent.Problem{Code: agent.ProblemUsage, Message: message, Fix: fix}
}

// flagError says what is wrong with a flag, and which one may have been meant.
func (p *program) flagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := e.GetSpecifiedName()
		given := "--" + name
		if e.GetSpecifiedShortnames() != "" {
			given = "-" + name
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		fix := p.text.Say(text.FixUsage)
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
		case "bool":
			want = p.text.Say(text.WantBool)
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
