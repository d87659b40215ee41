//go:build unix

package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// kit is a plugin with something of each kind, beside the workspace.
func (w *world) kit() string {
	w.lay(map[string]string{
		"kit/.claude-plugin/plugin.json": `{"name": "kit", "version": "1.0.0", "description": "A kit."}`,
		"kit/skills/greet/SKILL.md":      "---\nname: greet\ndescription: Greets somebody.\n---\nGreet from the kit in ${CLAUDE_PLUGIN_ROOT}.\n",
		"kit/commands/ship.md":           "---\ndescription: Ships.\n---\nShip $ARGUMENTS with the kit.\n",
		"kit/agents/helper.md":           "---\nname: helper\ndescription: Helps with kits.\n---\nI help with the kit.\n",
		"kit/hooks/hooks.json":           `{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo 'not with the kit' >&2; exit 2"}]}]}}`,
	})
	return filepath.Join(filepath.Dir(w.work), "kit")
}

// takes installs what a source has, as somebody does who says yes to it.
func (w *world) takes(a *app.App, source string) query.PreparedPlugin {
	w.t.Helper()
	c, err := client.Query[query.PreparedPlugin](w.t.Context(), a.Client(), query.PreparePlugin{Source: source})
	if err == nil {
		_, err = w.change(a, query.ChangePlugin{Do: query.PluginInstall, Name: c.ID, SHA256: c.Release.Tree})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) change(a *app.App, q query.ChangePlugin) (query.PluginChanged, error) {
	return client.Query[query.PluginChanged](w.t.Context(), a.Client(), q)
}

// set sets an option of a plugin; nil = it is not set any more.
func (w *world) set(a *app.App, name, key string, value *string) {
	w.t.Helper()
	if _, err := client.Query[string](w.t.Context(), a.Client(), query.SetPlugin{Name: name, Key: key, Value: value}); err != nil {
		w.t.Fatal(err)
	}
}

// allPlugins are the plugins that are installed, named or beside skills.
func (w *world) allPlugins(a *app.App) []query.PluginInfo {
	w.t.Helper()
	all, err := client.Query[[]query.PluginInfo](w.t.Context(), a.Client(), query.ListPlugins{})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// plugin is what is known of the one that is installed.
func (w *world) plugin(a *app.App) query.PluginInfo {
	w.t.Helper()
	all := w.allPlugins(a)
	if len(all) != 1 {
		w.t.Fatalf("%+v", all)
	}
	return all[0]
}

// plain is a program of this world.
func (w *world) plain() *app.App {
	w.t.Helper()
	return w.program(options(w.work, w.home, w.model.URL(), app.Flags{}))
}

// What a plugin brings is there under its name, and under no other; switched off, it is
// gone, and so are its hooks.
func TestPluginInSessions(t *testing.T) {
	t.Parallel()
	said := distinct(
		calls(tool("Skill", fields{"skill": "kit:greet"})),
		calls(tool("Skill", fields{"skill": "greet"})),
		calls(tool("Agent", fields{"description": "Help", "prompt": "Help now", "subagent_type": "kit:helper"})),
		script.Reply{Text: "Helped."},
		calls(tool("Bash", fields{"command": "echo one"})),
		script.Reply{Text: "Done."},
		script.Reply{Text: "Nothing of it."},
	)
	said.ByStep = false // the agent takes its part of them
	w := newWorld(t, said, script.Options{})
	a := w.plain()
	w.takes(a, w.kit())
	k := w.talkTo(a, agent.Open{})
	k.turn("/kit:ship it")
	var texts []string
	for _, r := range w.model.Requests() {
		texts = append(texts, string(r.Body))
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{"Ship it with the kit.", "kit:greet: Greets somebody.", "Greet from the kit in ", "I help with the kit.", "not with the kit"} {
		if !strings.Contains(all, want) {
			t.Errorf("no request has %q", want)
		}
	}
	if strings.Contains(all, "${CLAUDE_PLUGIN_ROOT}") || strings.Contains(all, "Greet from the kit in "+filepath.Dir(w.work)+"/kit") {
		t.Error("the skill is not read where the plugin was put")
	}
	k.sound()

	if did, err := w.change(a, query.ChangePlugin{Do: query.PluginDisable, Name: "kit"}); err != nil || did.Enabled || did.By != "command" {
		t.Fatalf("%+v, %v", did, err)
	}
	before := len(w.model.Requests())
	off := w.talkTo(a, agent.Open{})
	off.turn("hello")
	if said := string(w.model.Requests()[before].Body); strings.Contains(said, "kit:") {
		t.Errorf("it is still there:\n%s", said)
	}
	if hooks := len(w.hooksOf(a)); hooks != 0 {
		t.Errorf("%d hooks are left", hooks)
	}
}

// hooksOf are the hooks of plugins that are in force.
func (w *world) hooksOf(a *app.App) (list []string) {
	w.t.Helper()
	for _, p := range w.used(a) {
		for _, c := range p.Capabilities {
			if c.Kind == "hook" {
				list = append(list, c.Name)
			}
		}
	}
	return list
}

// used are the plugins that are on and load.
func (w *world) used(a *app.App) []query.PluginInfo {
	w.t.Helper()
	return slices.DeleteFunc(w.allPlugins(a), func(p query.PluginInfo) bool { return !p.Enabled || p.Problem != "" })
}

// An update that can do more is shown with what is new, and does not count before somebody
// has said yes to it; one can go back.
func TestPluginUpdateAsksAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(), script.Options{})
	a, dir := w.plain(), w.kit()
	first := w.takes(a, dir)
	w.lay(map[string]string{
		"kit/.claude-plugin/plugin.json": `{"name": "kit", "version": "1.1.0"}`,
		"kit/hooks/hooks.json":           `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "curl https://example.com"}]}]}}`,
	})
	update := func() (query.PreparedPlugin, error) {
		return client.Query[query.PreparedPlugin](t.Context(), a.Client(), query.PreparePlugin{Update: "kit"})
	}
	install := func(c query.PreparedPlugin) error {
		_, err := w.change(a, query.ChangePlugin{Do: query.PluginInstall, Name: c.ID, SHA256: c.Release.Tree})
		return err
	}
	c, err := update()
	if err != nil {
		t.Fatal(err)
	}
	more := []query.PluginCapability{{Kind: "hook", Name: "Stop", Detail: "curl https://example.com"}}
	if !slices.Equal(c.Change.Added, more) || c.Before == nil || c.Release.Tree == first.Release.Tree {
		t.Errorf("the change is %+v", c.Change)
	}
	if now := w.plugin(a); now.Version != "1.0.0" || now.SHA256 != first.Release.Tree || !slices.Equal(w.hooksOf(a), []string{"PreToolUse"}) {
		t.Errorf("it counts although nobody said yes: %+v", now)
	}
	if err := install(c); err != nil {
		t.Fatal(err)
	}
	if now := w.plugin(a); now.Version != "1.1.0" || now.Before != "1.0.0" || !slices.Equal(w.hooksOf(a), []string{"Stop"}) {
		t.Errorf("%+v", now)
	}
	if _, err := w.change(a, query.ChangePlugin{Do: query.PluginRollback, Name: "kit"}); err != nil {
		t.Fatal(err)
	}
	if now := w.plugin(a); now.Version != "1.0.0" || now.SHA256 != first.Release.Tree || !slices.Equal(w.hooksOf(a), []string{"PreToolUse"}) {
		t.Errorf("%+v", now)
	}

	// What was given up, or changed between the question and the answer, is not taken in.
	if c, err = update(); err != nil {
		t.Fatal(err)
	}
	w.touch(c.Release.Tree)
	if err := install(c); agent.ProblemOf(err) == nil || w.plugin(a).Version != "1.0.0" {
		t.Errorf("%v, %+v", err, w.plugin(a))
	}
}

// touch changes a file of a tree that is installed.
func (w *world) touch(tree string) {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.home, "dure", "plugins", "trees", tree+".kit", "kit", "commands", "ship.md"))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("%q, %v", found, err)
	}
	if err := os.WriteFile(found[0], []byte("Evil $ARGUMENTS.\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// A plugin of which a file was changed is not used, and whoever looks is told what to do;
// to install it again mends it.
func TestPluginThatWasChangedIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(), script.Options{})
	c := w.takes(w.plain(), w.kit())
	w.touch(c.Release.Tree)
	a := w.plain()
	k := w.talkTo(a, agent.Open{})
	k.turn("hello")
	if said := string(w.model.Requests()[0].Body); strings.Contains(said, "kit:") || strings.Contains(said, "Evil") {
		t.Errorf("it is used:\n%s", said)
	}
	notes := a.Notes()
	if len(notes) != 1 || !strings.Contains(notes[0].Text, "its files have the hash") || !strings.HasSuffix(notes[0].Text, "dure plugin show kit@local") {
		t.Errorf("%+v", notes)
	}
	if info := w.plugin(a); !strings.Contains(info.Problem, "it is not what it was") || len(info.Capabilities) > 0 {
		t.Errorf("%+v", info)
	}
	if _, err := client.Query[query.PluginOptions](t.Context(), a.Client(), query.ReadPluginOptions{Name: "kit"}); agent.ProblemOf(err) == nil || !strings.Contains(agent.ProblemOf(err).Fix, "install it again") {
		t.Error(err)
	}
	w.takes(a, filepath.Join(filepath.Dir(w.work), "kit"))
	if len(w.used(w.plain())) != 1 {
		t.Error("to install it again does not mend it")
	}
}

// A folder of skills that has a manifest is a plugin, under its own name: the user's at
// once, a project's once it is trusted and as long as all of it is as it was then.
func TestPluginsBesideSkills(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: obliging})
	w.lay(map[string]string{
		"home/.claude/skills/tool/.claude-plugin/plugin.json": `{"name": "tool"}`,
		"home/.claude/skills/tool/skills/a/SKILL.md":          "---\nname: a\ndescription: Does one thing.\n---\nText.\n",
		"work/.claude/skills/own/.claude-plugin/plugin.json":  `{"name": "own"}`,
		"work/.claude/skills/own/skills/b/SKILL.md":           "---\nname: b\ndescription: Does another.\n---\nText.\n",
	})
	if _, err := w.change(w.plain(), query.ChangePlugin{Do: query.PluginEnable, Name: "own"}); agent.ProblemOf(err) == nil || !strings.Contains(err.Error(), "and the folder is not trusted") {
		t.Error(err)
	}
	for _, trusted := range []bool{false, true} {
		before := len(w.model.Requests())
		a := w.program(options(w.work, w.home, w.model.URL(), app.Flags{Trust: trusted}))
		k := w.talkTo(a, agent.Open{})
		k.turn("hello")
		said := string(w.model.Requests()[before].Body)
		if !strings.Contains(said, "tool:a: Does one thing.") || strings.Contains(said, "own:b: Does another.") != trusted {
			t.Errorf("trusted %v:\n%s", trusted, said)
		}
	}

	a := w.program(options(w.work, w.home, w.model.URL(), app.Flags{Trust: true}))
	if got := w.ids(a); got != "own@skills-dir tool@skills-dir" {
		t.Errorf("in force are %s", got)
	}
	w.talkTo(a, agent.Open{}).turn("Please touch first.") // what came before a call is trusted
	w.lay(map[string]string{"work/.claude/skills/own/run.sh": "new"})
	if got := w.ids(a); got != "tool@skills-dir" {
		t.Errorf("in force are %s", got)
	}
	did, err := w.change(a, query.ChangePlugin{Do: query.PluginDisable, Name: "tool@skills-dir", Scope: "user"})
	if err != nil || did.Enabled || did.ID != "tool@skills-dir" {
		t.Errorf("%+v, %v", did, err)
	}
	if got := w.ids(w.plain()); got != "" {
		t.Errorf("in force are %s", got)
	}
}

// What lies beside skills can be told what it needs, and a plugin of a project learns no
// secret that another one of its name was told.
func TestPluginBesideSkillsIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(), script.Options{})
	card := `{"name": "tool", "userConfig": {"PLACE": {"type": "string", "required": true}, "TOKEN": {"type": "string", "sensitive": true, "required": true}}}`
	w.lay(map[string]string{
		"home/.claude/skills/tool/.claude-plugin/plugin.json": card,
		"home/.claude/skills/tool/skills/a/SKILL.md":          "---\nname: a\ndescription: Does one thing.\n---\nText.\n",
		"home/dure/settings.json":                             "{\n  // mine\n  \"language\": \"en\"\n}\n",
	})
	missing := func() string {
		return strings.Join(w.plugin(w.plain()).Missing, " ")
	}
	if got := missing(); got != "PLACE TOKEN" {
		t.Errorf("it misses %q", got)
	}
	for key, value := range map[string]string{"PLACE": "here", "TOKEN": "abc"} {
		w.set(w.plain(), "tool@skills-dir", key, &value)
	}
	if got := missing(); got != "" {
		t.Errorf("it misses %q", got)
	}
	for _, key := range []string{"PLACE", "TOKEN", "TOKEN"} { // one that is not set may be unset
		w.set(w.plain(), "tool@skills-dir", key, nil)
	}
	if got := missing(); got != "PLACE TOKEN" {
		t.Errorf("once it is told nothing, it misses %q", got)
	}
	here := "here"
	w.set(w.plain(), "tool@skills-dir", "PLACE", &here)
	if said := w.read("../home/dure/settings.json"); !strings.Contains(said, "// mine") {
		t.Errorf("the comment is gone:\n%s", said)
	}
	if _, err := w.change(w.plain(), query.ChangePlugin{Do: query.PluginRemove, Name: "tool"}); agent.ProblemOf(err) == nil || !strings.Contains(err.Error(), "was not installed, and lies in ") {
		t.Error(err)
	}

	// A repository brings one of the same name.
	if err := os.RemoveAll(filepath.Join(filepath.Dir(w.work), "home/.claude/skills/tool")); err != nil {
		t.Fatal(err)
	}
	w.lay(map[string]string{
		"work/.claude/skills/tool/.claude-plugin/plugin.json": card,
		"work/.claude/skills/tool/skills/a/SKILL.md":          "---\nname: a\ndescription: Does one thing.\n---\nText.\n",
	})
	if p := w.plugin(w.program(options(w.work, w.home, w.model.URL(), app.Flags{Trust: true}))); strings.Join(p.Missing, " ") != "TOKEN" {
		t.Errorf("%+v", p)
	}
}

// Secrets go with their plugin, whatever has become of its files.
func TestRemoveForgetsSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(), script.Options{})
	dir := w.kit()
	w.lay(map[string]string{"kit/.claude-plugin/plugin.json": `{"name": "kit", "userConfig": {"TOKEN": {"type": "string", "sensitive": true, "required": true}}}`})
	a := w.plain()
	c, secret := w.takes(a, dir), "abc"
	for range 2 { // set, taken back, and set again
		w.set(a, "kit", "TOKEN", nil)
		if p := w.plugin(a); len(p.Missing) != 1 {
			t.Errorf("%+v", p)
		}
		w.set(a, "kit", "TOKEN", &secret)
	}
	if p := w.plugin(a); len(p.Missing) > 0 {
		t.Errorf("%+v", p)
	}
	w.touch(c.Release.Tree)
	if _, err := w.change(a, query.ChangePlugin{Do: query.PluginRemove, Name: "kit"}); err != nil {
		t.Fatal(err)
	}
	w.takes(a, dir)
	if p := w.plugin(a); !slices.Equal(p.Missing, []string{"TOKEN"}) {
		t.Errorf("it is still known: %+v", p)
	}
}

// Of two plugins of one name the second is not used, and that is told.
func TestPluginsOfOneName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(), script.Options{})
	w.lay(map[string]string{
		"market/.claude-plugin/marketplace.json": `{"name": "team", "plugins": [{"name": "kit", "source": "./kit"}]}`,
		"market/kit/skills/a/SKILL.md":           "---\nname: a\ndescription: Does one thing.\n---\nText.\n",
	})
	a := w.plain()
	w.takes(a, w.kit())
	if _, err := client.Query[[]query.PluginMarket](t.Context(), a.Client(), query.ChangeMarketplace{Do: query.MarketplaceAdd, Source: filepath.Join(filepath.Dir(w.work), "market")}); err != nil {
		t.Fatal(err)
	}
	w.takes(a, "kit@team")
	if got := w.ids(a); got != "kit@local" {
		t.Errorf("in force are %s", got)
	}
	notes := w.plain().Notes()
	if len(notes) != 1 || notes[0].Text != "the plugin kit@team: another plugin of its name is in force: kit@local; it is not used: dure plugin show kit@team" {
		t.Errorf("%+v", notes)
	}
}

// ids are the IDs of the plugins that are on and load.
func (w *world) ids(a *app.App) string {
	w.t.Helper()
	var all []string
	for _, p := range w.used(a) {
		all = append(all, p.ID)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// What comes with the program is described to people in their language, and to models as
// it always was.
func TestWhatComesWithUsInKorean(t *testing.T) {
	t.Parallel()
	w := newWorld(t, says(), script.Options{})
	how := options(w.work, w.home, w.model.URL(), app.Flags{Settings: `{"language": "ko"}`})
	a := w.program(how)
	hangul := func(s string) bool {
		return strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Hangul, r) })
	}
	skills, err := client.Query[[]query.SkillInfo](t.Context(), a.Client(), query.ListSkills{})
	if err != nil || len(skills) == 0 {
		t.Fatal(skills, err)
	}
	for _, s := range skills {
		if !hangul(s.Description) {
			t.Errorf("the skill %s: %s", s.Name, s.Description)
		}
	}
	kinds, err := client.Query[[]query.AgentInfo](t.Context(), a.Client(), query.ListAgents{})
	if err != nil || len(kinds) == 0 {
		t.Fatal(kinds, err)
	}
	for _, k := range kinds {
		if !hangul(k.Description) {
			t.Errorf("the agent %s: %s", k.Name, k.Description)
		}
	}
	commands, err := client.Query[[]query.CommandInfo](t.Context(), a.Client(), query.ListCommands{Language: "ko"})
	if err != nil || len(commands) == 0 {
		t.Fatal(commands, err)
	}
	for _, c := range commands {
		if !hangul(c.Description) {
			t.Errorf("/%s: %s", c.Name, c.Description)
		}
	}
	k := w.talkTo(a, agent.Open{})
	k.turn("hello")
	for _, s := range skills {
		if strings.Contains(string(w.model.Requests()[0].Body), s.Description) {
			t.Errorf("the model reads of %s: %s", s.Name, s.Description)
		}
	}
}
