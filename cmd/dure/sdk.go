package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dure/agent"
	"dure/client"
	"dure/internal/app"
	"dure/internal/extend/mcp"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/sdk"
	"dure/internal/frontend/text"
	"dure/internal/tools/catalog"
)

// sdkVersion is the version of the protocol of the Agent SDKs that is spoken: they ask
// for it, and want one that they know.
const sdkVersion = "2.1.328"

// The variables by which hosts say what they are.
const (
	entryVar  = "CLAUDE_CODE_ENTRYPOINT"
	hostVar   = "CLAUDE_AGENT_SDK_VERSION"
	statesVar = "CLAUDE_CODE_SDK_READS_SESSION_STATE"
	waitVar   = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS"
)

// formatStream is the format of messages for hosts.
const formatStream = "stream-json"

// sdkFlags are the flags that hosts give.
type sdkFlags struct {
	input           string // format of the input
	replay, hooked  bool
	await, forward  bool
	stores          bool // it keeps a store of sessions
	bypass          bool // permissions may be switched off while it runs
	permissionTool  string
	permissionsFrom string
	tools, sources  string
	thinking        string
	thinkingTokens  int
	managed         string    // settings that only restrict
	managedLater    bool      // initialize brings them
	drops           string    // the message whose turn is all that may be forgotten; "" = any
	skills          *[]string // that models may use, as initialize says; nil = all
	hasTools        bool      // not flags: those were given
	hasSources      bool
	given           bool // how many tokens are thought for
}

// ignoredFlags are the flags of hosts that are accepted and change nothing here, with a
// value that is given by itself; "" = they have one. docs/sdk.md says why of each.
var ignoredFlags = map[string]string{
	"thinking-display": "", "task-budget": "", "betas": "", "debug-file": "", "channels": "",
	"project-config-root": "",
	"prompt-suggestions":  "true", "exclude-dynamic-system-prompt-sections": "true",
	"initialize-fields": "",
}

func (p *program) defineHost(f *pflag.FlagSet) {
	t, v := p.text, &p.flags.host
	f.StringVar(&v.input, "input-format", "", t.Say(text.FlagInputFormat))
	f.BoolVar(&v.replay, "replay-user-messages", false, t.Say(text.FlagReplay))
	f.BoolVar(&v.hooked, "include-hook-events", false, t.Say(text.FlagHookEvents))
	f.BoolVar(&v.await, "await-initialize", false, t.Say(text.FlagHost))
	f.BoolVar(&v.forward, "forward-subagent-text", false, t.Say(text.FlagHost))
	f.BoolVar(&v.stores, "session-mirror", false, t.Say(text.FlagHost))
	f.BoolVar(&v.bypass, "allow-dangerously-skip-permissions", false, t.Say(text.FlagHost))
	f.StringVar(&v.permissionTool, "permission-prompt-tool", "", t.Say(text.FlagHost))
	f.StringVar(&v.permissionsFrom, "permission-prompts", "", t.Say(text.FlagHost))
	f.StringVar(&v.tools, "tools", "", t.Say(text.FlagTools))
	f.StringVar(&v.sources, "setting-sources", "", t.Say(text.FlagSources))
	f.IntVar(&v.thinkingTokens, "max-thinking-tokens", 0, t.Say(text.FlagThinkTokens))
	f.StringVar(&v.thinking, "thinking", "", t.Say(text.FlagHost))
	f.StringVar(&v.managed, "managed-settings", "", t.Say(text.FlagHost))
	f.BoolVar(&v.managedLater, "managed-settings-in-initialize", false, t.Say(text.FlagHost))
	f.StringArrayVar(&p.flags.serverless, "plugin-dir-no-mcp", nil, t.Say(text.FlagHost))
	f.StringVar(&v.drops, "resume-drops-turn", "", t.Say(text.FlagHost))
	hidden := []string{"session-mirror", "plugin-dir-no-mcp", "resume-drops-turn", "managed-settings", "managed-settings-in-initialize", "thinking", "allow-dangerously-skip-permissions", "await-initialize", "forward-subagent-text", "permission-prompt-tool", "permission-prompts"}
	for name, alone := range ignoredFlags {
		f.String(name, "", t.Say(text.FlagHost))
		f.Lookup(name).NoOptDefVal = alone
		hidden = append(hidden, name)
	}
	for _, name := range hidden {
		f.Lookup(name).Hidden = true
	}
}

// sources are the layers that --setting-sources may name.
var sources = []string{string(app.SourceUser), string(app.SourceProject), string(app.SourceLocal)}

// chosen takes over what only its presence tells from what says nothing: which files are
// read, which tools there are, how much is thought.
func (p *program) chosen(f *pflag.FlagSet) error {
	v := &p.flags.host
	v.hasTools, v.hasSources = f.Changed("tools"), f.Changed("setting-sources")
	bad := func(flag, value, want string) error {
		return p.usage(p.text.Say(text.BadValue, "flag", flag, "value", value, "wanted", want), "")
	}
	for _, name := range v.sourceList() {
		if !slices.Contains(sources, name) {
			return bad("--setting-sources", name, p.text.Say(text.WantOneOf, "list", strings.Join(sources, ", ")))
		}
	}
	if v.thinkingTokens < 0 {
		return bad("--max-thinking-tokens", strconv.Itoa(v.thinkingTokens), p.text.Say(text.WantNone))
	}
	thinks := []string{"", "adaptive", "enabled", "disabled"}
	if !slices.Contains(thinks, v.thinking) {
		return bad("--thinking", v.thinking, p.text.Say(text.WantOneOf, "list", strings.Join(thinks[1:], ", ")))
	}
	v.given = f.Changed("max-thinking-tokens")
	return nil
}

// sourceList are the layers that are named.
func (f *sdkFlags) sourceList() []string {
	return strings.FieldsFunc(f.sources, func(r rune) bool { return r == ',' || r == ' ' })
}

// into says what of it the program is built with. A host that names the project among the
// sources trusts its folder, for this run.
func (f *sdkFlags) into(a *app.Flags) {
	if f.hasSources {
		list := f.sourceList()
		a.Sources = &list
		a.Trust = a.Trust || slices.Contains(list, string(app.SourceProject)) || slices.Contains(list, string(app.SourceLocal))
	}
	if f.hasTools {
		var names list
		_ = names.Set(f.tools) // it takes whatever it is given
		only := []string(names)
		a.Tools = &only
	}
	switch {
	case f.thinking == "disabled":
		a.Thinking = new(int)
	case f.given:
		a.Thinking = &f.thinkingTokens
	}
}

// hosted reports whether a program drives this one.
func (f *flags) hosted() bool { return f.output == formatStream || f.host.input == formatStream }

// checkHost finds what is wrong with the flags of hosts.
func (p *program) checkHost(flags *pflag.FlagSet) error {
	f := &p.flags
	if err := p.chosen(flags); err != nil {
		return err
	}
	formats := []string{string(cli.FormatText), formatStream}
	switch in := f.host.input; {
	case in != "" && in != formatStream && in != string(cli.FormatText):
		want := p.text.Say(text.WantOneOf, "list", strings.Join(formats, ", "))
		return p.usage(p.text.Say(text.BadValue, "flag", "--input-format", "value", in, "wanted", want), "")
	case in == formatStream && f.output != formatStream:
		return p.usage(p.text.Say(text.OnlyWith, "one", "--input-format stream-json", "other", "--output-format stream-json"), "")
	case f.host.managedLater && f.host.managed != "":
		return p.usage(p.text.Say(text.Exclusive, "one", "--managed-settings", "other", "--managed-settings-in-initialize"), "")
	case f.host.drops != "" && f.forkAt == "":
		return p.usage(p.text.Say(text.OnlyWith, "one", "--resume-drops-turn", "other", "--resume-session-at"), "")
	case f.host.stores && !f.linesFrom():
		return p.usage(p.text.Say(text.OnlyWith, "one", "--session-mirror", "other", "--input-format stream-json"), "")
	case f.host.stores && f.scratch:
		return p.usage(p.text.Say(text.Exclusive, "one", "--session-mirror", "other", "--no-session-persistence"), "")
	case f.hosted() && f.interactive:
		return p.usage(p.text.Say(text.Exclusive, "one", "--output-format stream-json", "other", "--interactive"), "")
	}
	return nil
}

// serve lets a program drive this one over its streams.
func (p *program) serve(cmd *cobra.Command, args []string) error {
	f := &p.flags
	o := sdk.Options{
		Lines: f.host.input == formatStream, Awaits: f.host.await, Partial: f.partial, Replay: f.host.replay, Hooks: f.host.hooked,
		Forward: f.host.forward, Whole: os.Getenv(entryVar) == "sdk-ts", States: os.Getenv(statesVar) == "1",
	}
	if ms, err := strconv.Atoi(os.Getenv(waitVar)); err == nil {
		if o.Wait = time.Duration(ms) * time.Millisecond; ms <= 0 {
			o.Wait = -1
		}
	}
	f.awaits = true
	if !o.Lines {
		prompt, err := p.withInput(strings.Join(args, " "))
		if err != nil {
			return err
		}
		if o.Prompt = prompt; prompt == "" {
			return p.usage(p.text.Say(text.NoPrompt), p.text.Say(text.FixNoPrompt))
		}
	}
	p.watch()
	var h *sdk.Host
	h = sdk.New(sdk.Config{
		Options: o, In: p.in, Out: p.out, Err: p.err, Signals: p.signals, Now: time.Now, Text: p.text,
		Start: func(ctx context.Context, init *sdk.Initialize) (sdk.Program, error) {
			return p.hostProgram(ctx, h, init)
		},
	})
	code := h.Run(cmd.Context())
	if p.opened != nil {
		if err := p.opened.Close(); err != nil && code == cli.ExitOK {
			return err
		}
	}
	if code != cli.ExitOK {
		return &cli.Exited{Code: code}
	}
	return nil
}

// hostProgram builds the program as a host wants it.
func (p *program) hostProgram(ctx context.Context, h *sdk.Host, init *sdk.Initialize) (none sdk.Program, err error) {
	f := &p.flags
	if err := f.takeManaged(init); err != nil {
		return none, err
	}
	if init != nil {
		f.take(init)
		workdir, _ := os.Getwd() // it is told below that there is none
		if err := f.takeMore(init, workdir); err != nil {
			return none, err
		}
	}
	if p.embeds, err = p.embedded(h, init); err != nil {
		return none, err
	}
	a, err := p.open()
	if err == nil {
		err = a.CheckFlags()
	}
	if err != nil {
		return none, err
	}
	if f.host.stores && a.Config().Mirror == "off" {
		return none, &agent.Problem{
			Code: agent.ProblemUsage, Message: "--session-mirror has nothing to send: transcripts.mirror is off",
			Fix: "set transcripts.mirror to sdk, or give no sessionStore",
		}
	}
	p.logger().Debug("a host drives this program", "workdir", f.workdir, "asks", f.asks(), "said", init != nil)
	c := p.cli()
	out := sdk.Program{
		Client: a.Shared(), Version: sdkVersion, Workdir: f.workdir, Name: catalog.Dialect(a.Config().Dialect).Name, Asks: f.asks(), KeySource: "none",
		Retries: a.Config().Limits.Retries, API: a.Embedding, Protocol: mcp.EmbeddedProtocol, Bypass: f.mayBypass(),
	}
	if f.host.stores {
		out.Mirrored = a.Mirrored
	}
	if os.Getenv("ANTHROPIC_API_KEY") != "" {
		out.KeySource = "ANTHROPIC_API_KEY"
	}
	at := f.forkAt
	if at != "" && !f.fork {
		f.forkAt = "" // the session itself goes back
	}
	was := f.last
	if f.last {
		_, err := c.Find(ctx, "", f.workdir)
		if prob := agent.ProblemOf(err); prob != nil && prob.Code == agent.ProblemNone {
			f.last = false // there is nothing to go on with
		}
	}
	out.Open, err = p.openOptions(ctx, c, func(ctx context.Context, info agent.SessionInfo, name string) (int64, error) {
		return p.hostPoint(ctx, c, info, name)
	})
	f.forkAt, f.last = at, was
	if err != nil {
		return none, err
	}
	if at != "" && f.host.drops != "" {
		if err := p.onlyDrops(ctx, c, out.Open, at); err != nil {
			return none, err
		}
	}
	if at != "" && !f.fork && out.Open.Session != "" {
		if out.Rewind, err = p.hostPoint(ctx, c, agent.SessionInfo{ID: out.Open.Session}, at); err != nil {
			return none, err
		}
	}
	return out, nil
}

// onlyDrops refuses to forget more than the turn that a host has named.
func (p *program) onlyDrops(ctx context.Context, c *cli.CLI, o agent.Open, at string) error {
	id := cmp.Or(o.Fork, o.Session)
	seq, err := p.hostPoint(ctx, c, agent.SessionInfo{ID: id}, at)
	if err != nil {
		return err
	}
	why, err := sdk.DropsMore(ctx, c.Client, id, seq, p.flags.host.drops)
	if err != nil || why == "" {
		return err
	}
	return &agent.Problem{Code: agent.ProblemUsage, Message: "Resume rejected by --resume-drops-turn: " + why, Fix: "go on without --resume-session-at"}
}

// hostPoint is the event that a host means: by the UUID of a message, or as people name it.
func (p *program) hostPoint(ctx context.Context, c *cli.CLI, info agent.SessionInfo, name string) (int64, error) {
	seq, err := sdk.EventOf(ctx, c.Client, info.ID, name)
	if err != nil || seq > 0 {
		return seq, err
	}
	if info.Head == 0 {
		if info, err = client.Query[agent.SessionInfo](ctx, c.Client, agent.FindSession{Name: info.ID}); err != nil {
			return 0, err
		}
	}
	return c.Point(ctx, info, name)
}

// asks reports whether the host answers what a session asks.
func (f *flags) asks() bool {
	return f.host.permissionTool == toolOfHost && f.host.permissionsFrom != "none"
}

// take takes over what a host says when it begins.
func (f *flags) take(init *sdk.Initialize) {
	if init.SystemPrompt != nil {
		f.system, f.systemText = true, strings.TrimSpace(strings.Join(init.SystemPrompt, "\n\n"))
	}
	if init.AppendSystemPrompt != "" {
		f.appendText = init.AppendSystemPrompt
	}
	if len(init.Agents) > 0 && string(init.Agents) != "null" {
		f.agents = string(init.Agents)
	}
	if len(init.JSONSchema) > 0 && string(init.JSONSchema) != "null" {
		f.schema = init.JSONSchema
	}
	if init.Title != "" {
		f.name = init.Title
	}
}

// sayVersion writes the version: for hosts, which ask with -v or say what they are, that of
// the protocol first.
func (p *program) sayVersion(how string) error {
	if how == "-v" || how == "--version" && (os.Getenv(entryVar) != "" || os.Getenv(hostVar) != "") {
		return p.hostVersion()
	}
	return p.printVersion(false)
}

// hostVersion writes the version that hosts ask for in front of the program's own.
func (p *program) hostVersion() error {
	v := buildVersion()
	_, err := fmt.Fprintf(p.out, "%s (dure %s)\n", sdkVersion, v.version)
	return err
}
