package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"dure/agent"
	"dure/internal/base/jsonc"
	"dure/internal/base/near"
)

// Settings in a .claude folder are read as well, below ours of the same layer, and never
// written. They are strict JSON. Of their keys those count that mean something here; an
// entry that cannot be taken is left out with a note, and so is a file that cannot be
// read, apart from the administrator's.

// A translation says which key of ours one of theirs is.
type translation struct {
	path string // of theirs
	to   string // ours
	make func(raw json.RawMessage) (json.RawMessage, bool)
}

// translations are the keys of theirs that mean something here. Sandboxing is on here
// unless it is switched off, so that their switch can only leave it on.
func translations() []translation {
	same := []string{
		"permissions.allow", "permissions.deny", "permissions.ask", "permissions.defaultMode", "permissions.additionalDirectories",
		"permissions.disableBypassPermissionsMode", "allowManagedPermissionRulesOnly", "env", "claudeMdExcludes", "agent", "outputStyle",
		"hooks", "disableAllHooks", "allowManagedHooksOnly", "allowedHttpHookUrls", "httpHookAllowedEnvVars",
		"enabledPlugins", "pluginConfigs", "extraKnownMarketplaces", "strictKnownMarketplaces", "blockedMarketplaces",
		"skillOverrides", "skillListingBudgetFraction", "skillListingMaxDescChars", "disableBundledSkills", "disableSkillShellExecution",
		"sandbox.network.allowPrivate", "worktree.baseRef", "worktree.symlinkDirectories", "worktree.sparsePaths",
		"enableAllProjectMcpServers", "enabledMcpjsonServers", "disabledMcpjsonServers", "allowedMcpServers", "deniedMcpServers", "allowManagedMcpServersOnly",
	}
	list := []translation{
		{"model", "model", theirModel},
		{"fallbackModel", "fallbackModel", theirFallback},
		{"effortLevel", "effort", theirEffort},
		{"language", "language", theirLanguage},
		{"cleanupPeriodDays", "retention.days", positive},
		{"fileCheckpointingEnabled", "checkpoints", nil},
		{"autoCompactEnabled", "compact.auto", nil},
		{"sandbox.enabled", "sandbox.mode", theirSandbox},
		{"sandbox.network.allowedDomains", "sandbox.network.allow", nil},
		{"sandbox.network.deniedDomains", "sandbox.network.deny", nil},
		{"sandbox.filesystem.allowWrite", "sandbox.write", nil},
		{"sandbox.filesystem.denyWrite", "sandbox.protect", nil},
		{"sandbox.filesystem.denyRead", "sandbox.denyRead", nil},
		{"sandbox.filesystem.allowRead", "sandbox.allowRead", nil},
	}
	for _, path := range same {
		list = append(list, translation{path, path, nil})
	}
	return list
}

// restrictions are keys of theirs that would forbid something and have no counterpart
// here: who relies on them is told.
var restrictions = []string{
	"permissions.blockReadsOutsideWorkingDirectories", "permissions.blockWritesOutsideWorkingDirectories", "permissions.denyInsteadOfPrompting",
	"availableModels", "deniedModels", "maxEffortLevel",
	"strictPluginOnlyCustomization", "requiredMinimumVersion", "requiredMaximumVersion", "sandbox.failIfUnavailable", "sandbox.credentials",
}

// accepted are keys of theirs that mean nothing here, and are no mistakes.
var accepted = []string{
	"$schema", "permissions", "permissions.disableAutoMode", "permissions.blockReadsExemptPaths", "permissions.workingDirectoriesAsGiven",
	"modelOverrides", "alwaysThinkingEnabled", "statusLine", "subagentStatusLine", "fileSuggestion", "respectGitignore",
	"includeGitInstructions", "attribution", "includeCoAuthoredBy", "apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh", "otelHeadersHelper",
	"worktree", "worktree.bgIsolation", "sandbox", "sandbox.network", "sandbox.filesystem", "defaultShell",
	"bashOutputMaxChars", "taskOutputMaxChars", "autoCompactWindow", "autoMemoryEnabled", "autoMemoryDirectory", "claudeMd", "plansDirectory",
	"teammateMode", "autoMode", "useAutoModeDuringPlan", "skipDangerousModePermissionPrompt", "promptCacheTtl", "companyAnnouncements", "minimumVersion",
	"theme", "editorMode", "verbose", "tui", "viewMode", "disableCommandPluginSources", "disableSideloadFlags", "parentSettingsBehavior",
}

// theirs is one file of theirs while it is read.
type theirs struct {
	l  *loader
	ly layer
}

// claude applies the settings of a .claude folder at path, if there are any; "" = there
// are none.
func (l *loader) claude(kind Layer, path string) error {
	return l.theirFile(layer{kind: kind, path: path})
}

func (l *loader) theirFile(ly layer) error {
	kind, path := ly.kind, ly.path
	if path == "" {
		return nil
	}
	ly.compat, ly.positions = true, positions{at: map[string]int64{}, items: map[string][]int64{}}
	data, err := l.src.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	f := theirs{l, ly}
	root, err := f.parse(data, err)
	if err != nil {
		if kind == Managed {
			return err // what it forbids would be allowed
		}
		l.cfg.Skipped = append(l.cfg.Skipped, path)
		l.note("warn", agent.ProblemOf(err).Message+"; the file is skipped")
		return nil
	}
	l.cfg.Borrowed = append(l.cfg.Borrowed, path)
	f.keys(root, "")
	return nil
}

// parse reads strict JSON.
func (f *theirs) parse(data []byte, err error) (jsonc.Value, error) {
	if err != nil {
		return jsonc.Value{}, f.ly.problem(0, "reading it: "+cause(err), "Make it readable, or move it away.")
	}
	if len(data) > maxFile {
		return jsonc.Value{}, f.ly.problem(0, fmt.Sprintf("it is larger than %d bytes", maxFile), "Settings are small: is this the right file?")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	f.ly.data, f.ly.lines = data, starts(data)
	if len(bytes.TrimSpace(data)) == 0 {
		return jsonc.Value{}, nil
	}
	root, err := jsonc.Parse(data)
	if err == nil && root.Kind != '{' {
		err = json.Unmarshal(data, &struct{}{})
	}
	if err != nil {
		return root, f.ly.decodeProblem(err)
	}
	return root, nil
}

// keys applies the members of an object, one by one: what is wrong with one leaves the
// others as they are. Of a key that stands twice both count where they are lists, else the
// last one.
func (f *theirs) keys(v jsonc.Value, prefix string) {
	for _, m := range v.Members {
		path := prefix + m.Key
		if i := slices.IndexFunc(translated(), func(t translation) bool { return t.path == path }); i >= 0 {
			f.key(translated()[i], m)
			continue
		}
		switch {
		case slices.Contains([]string{"permissions", "sandbox", "sandbox.network", "sandbox.filesystem"}, path):
			if m.Value.Kind == '{' {
				f.keys(m.Value, path+".")
			} else {
				f.odd(int64(m.Start)+1, path+" is no object")
			}
		case slices.Contains(restrictions, path):
			if raw := string(f.raw(m.Value)); raw != "false" && raw != "null" && raw != "[]" && raw != `""` {
				f.odd(int64(m.Start)+1, path+" is not known here, and restricts nothing")
			}
		case prefix == "" || prefix == "permissions.":
			f.mistyped(path, int64(m.Start)+1)
		}
	}
}

// translated is [translations], once.
var translated = sync.OnceValue(translations)

func (f *theirs) raw(v jsonc.Value) json.RawMessage { return f.ly.data[v.Start:v.End] }

func (f *theirs) odd(at int64, what string) {
	if f.l.odd++; f.l.odd <= maxUnknown {
		f.l.note("warn", fmt.Sprintf("%s: %s", f.ly.place(at), what))
	}
}

// mistyped tells of a key that is nearly one that counts: theirs are more than are known
// here, and none of the others is a mistake.
func (f *theirs) mistyped(path string, at int64) {
	if slices.Contains(accepted, path) || len(path) < 5 {
		return
	}
	known := []string{"permissions", "sandbox"}
	for _, t := range translated() {
		known = append(known, t.path)
	}
	for _, k := range known {
		if near.Distance(k, path, 3) < 3 {
			f.odd(at, fmt.Sprintf("the key %s means nothing here; did you mean %s?", clip(path, maxText), k))
			return
		}
	}
}

// key applies one key.
func (f *theirs) key(t translation, m jsonc.Member) {
	at := int64(m.Start) + 1
	f.ly.at[t.to] = at
	k, _, _ := Find(t.to)
	if k.Type == Object && m.Value.Kind != '{' {
		f.odd(at, t.path+" has to be an object")
		return
	}
	if m.Value.Kind == '[' && t.make == nil {
		f.list(t, k, m)
		return
	}
	raw := f.raw(m.Value)
	if t.make != nil {
		var ok bool
		if raw, ok = t.make(raw); !ok {
			return // it means nothing here
		}
	}
	err := f.apply(t, raw)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && (k.Type == Strings || k.Type == Switches) && m.Value.Kind == '{' {
		f.entries(t, m)
		return
	}
	f.tell(t, at, err)
}

// entries applies those entries of an object that can be taken.
func (f *theirs) entries(t translation, m jsonc.Member) {
	for i, one := range m.Value.Members {
		at := int64(one.Start) + 1
		if i == maxTried {
			f.odd(at, fmt.Sprintf("%s has more than %d entries", t.path, maxTried))
			return
		}
		raw := slices.Concat([]byte("{"), f.ly.data[one.Start:one.Value.End], []byte("}"))
		err := f.apply(t, raw)
		if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			f.odd(at, fmt.Sprintf("%s.%s is %s and has to be %s", t.path, clip(one.Key, maxText), kindOf(te.Value), wanted(te.Type)))
			continue
		}
		f.tell(t, at, err)
	}
}

// maxTried bounds the entries of a list with a fault that are tried one by one.
const maxTried = 1000

// list applies the entries of a list: those that can be taken.
func (f *theirs) list(t translation, k Key, m jsonc.Member) {
	var all []json.RawMessage
	var at []int64
	for i, item := range m.Value.Items {
		here, raw := int64(item.Start)+1, f.raw(item)
		if i == maxItems {
			f.odd(here, fmt.Sprintf("%s has more than %d entries", t.path, maxItems))
			break
		}
		if k.Type == RuleSet && !theirRule(raw) {
			f.odd(here, fmt.Sprintf("the rule %s cannot be read", clip(string(raw), maxText)))
			continue
		}
		all, at = append(all, raw), append(at, here)
	}
	f.ly.items[t.to] = at
	err := f.apply(t, listOf(all...))
	if err == nil {
		return
	}
	for i, raw := range all[:min(len(all), maxTried)] {
		f.ly.items[t.to] = at[i : i+1]
		f.tell(t, at[i], f.apply(t, listOf(raw)))
	}
}

// listOf is a list of values.
func listOf(all ...json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, raw := range all {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
	}
	return append(out, ']')
}

// apply applies one value; with an error, some of it.
func (f *theirs) apply(t translation, raw json.RawMessage) error {
	said := &written{}
	to := said
	for word := range strings.SplitSeq(t.to, ".") {
		to = to.kid(word)
	}
	to.raw = raw
	ly := f.ly
	ly.said = said
	return f.l.apply(ly)
}

// tell says what is wrong with a value, if anything is.
func (f *theirs) tell(t translation, at int64, err error) {
	if err == nil {
		return
	}
	what := err.Error()
	if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what = fmt.Sprintf("%s is %s and has to be %s", t.path, kindOf(te.Value), wanted(te.Type))
	} else if p := agent.ProblemOf(err); p != nil {
		what = strings.ReplaceAll(p.Args["error"], t.to, t.path)
	}
	f.odd(at, what)
}

// ruleForm is the form of a rule: Tool or Tool(specifier).
var ruleForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*[A-Za-z0-9_*][A-Za-z0-9_.*-]*(\((?s:.*)\))?\s*$`)
})

// theirRule reports whether an entry is a rule at all. Theirs are texts.
func theirRule(raw json.RawMessage) bool {
	var text string
	return len(raw) <= maxRule && json.Unmarshal(raw, &text) == nil && !strings.ContainsRune(text, 0) && ruleForm().MatchString(text) && strings.TrimSpace(text) != "mcp__"
}

// quoted is a text as JSON.
func quoted(s string) (json.RawMessage, bool) {
	raw, err := json.Marshal(s)
	return raw, err == nil && s != ""
}

// theirModel returns the name of a model without what it says of its window. A default
// of theirs is none of ours.
func theirModel(raw json.RawMessage) (json.RawMessage, bool) {
	var name string
	if json.Unmarshal(raw, &name) != nil {
		return raw, true // its type is what is wrong with it
	}
	name, _, _ = strings.Cut(strings.TrimSpace(name), "[")
	switch name {
	case "default":
		return nil, false
	case "opusplan", "best":
		name = "opus"
	}
	return quoted(name)
}

func theirFallback(raw json.RawMessage) (json.RawMessage, bool) {
	var names []string
	if json.Unmarshal(raw, &names) != nil {
		return raw, true
	}
	return quoted(strings.Join(names, ","))
}

func theirEffort(raw json.RawMessage) (json.RawMessage, bool) {
	switch string(raw) {
	case `"max"`, `"xhigh"`:
		return json.RawMessage(`"high"`), true
	case `"auto"`:
		return nil, false
	}
	return raw, true
}

// theirLanguage is the language of answers there; of it two are those of the program.
func theirLanguage(raw json.RawMessage) (json.RawMessage, bool) {
	var name string
	_ = json.Unmarshal(raw, &name)
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "en", "english":
		return json.RawMessage(`"en"`), true
	case "ko", "korean", "한국어":
		return json.RawMessage(`"ko"`), true
	}
	return nil, false
}

func theirSandbox(raw json.RawMessage) (json.RawMessage, bool) {
	return json.RawMessage(`"auto"`), string(raw) == "true"
}

// positive takes numbers above 0: there, 0 is no number of days.
func positive(raw json.RawMessage) (json.RawMessage, bool) { return raw, string(raw) != "0" }

// claudePlaces are the files of a .claude folder.
type claudePlaces struct {
	user, project, local string
	top                  string // the local one of the repository, when that begins above the project
	managed, managedDir  string
}

// claudeFiles returns where their settings stand. CLAUDE_CONFIG_DIR moves the user's.
func (l *loader) claudeFiles() claudePlaces {
	var p claudePlaces
	own := ""
	if dir := l.src.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		own = l.absolute(dir)
	} else if l.src.UserHome != "" {
		own = filepath.Join(l.src.UserHome, ".claude")
	}
	if own != "" {
		p.user = filepath.Join(own, "settings.json")
	}
	if dir := filepath.Join(l.src.Workdir, ".claude"); dir != own {
		p.project, p.local = filepath.Join(dir, "settings.json"), filepath.Join(dir, "settings.local.json")
	}
	if top := l.gitTop(); top != "" && filepath.Join(top, ".claude") != own {
		p.top = filepath.Join(top, ".claude", "settings.local.json")
	}
	base := "/etc/claude-code/"
	switch l.src.OS {
	case "darwin":
		base = "/Library/Application Support/ClaudeCode/"
	case "windows":
		base = `C:\Program Files\ClaudeCode\`
	}
	p.managed, p.managedDir = base+"managed-settings.json", base+"managed-settings.d"
	return p
}

// maxTop bounds how far up a repository's top is looked for.
const maxTop = 64

// gitTop is the top of the repository that the project is a folder of; "" = it is itself,
// there is none, or that is the user's home. What permits there does not count: the
// user's trust is about the project's folder.
func (l *loader) gitTop() string {
	stat := l.src.Stat
	if stat == nil {
		stat = os.Stat
	}
	dir := l.src.Workdir
	for range maxTop {
		if dir == l.src.UserHome || dir == filepath.Dir(dir) || l.src.OS == "windows" {
			return ""
		}
		if _, err := stat(filepath.Join(dir, ".git")); err == nil {
			if dir == l.src.Workdir {
				return ""
			}
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// OwnFolders are the folders with settings that speak for the user.
func (c Config) OwnFolders(src Sources) []string {
	l, err := newLoader(src)
	if err != nil {
		return []string{c.Home}
	}
	return []string{c.Home, filepath.Dir(l.claudeFiles().user)}
}

// Lost reports a file of a .claude folder that cannot be read now, and could be: what it
// forbids held until then.
func (c Config) Lost(before Config) error {
	for _, path := range c.Skipped {
		if slices.Contains(before.Borrowed, path) {
			return (&layer{path: path}).problem(0, "it cannot be read any more", "")
		}
	}
	return nil
}
