package query

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"dure/agent"
)

// asked is a query and its answer, as they travel.
type asked struct {
	query, answer reflect.Type
	access        Access
	decode        func([]byte) (agent.Query, error)
	answered      func([]byte) (any, error)
}

func ask[Q agent.Query, A any](by Access) asked {
	return asked{
		access: by,
		query:  reflect.TypeFor[Q](), answer: reflect.TypeFor[A](),
		decode: func(data []byte) (agent.Query, error) {
			var q Q
			err := json.Unmarshal(data, &q)
			return q, err
		},
		answered: func(data []byte) (any, error) {
			var a A
			err := json.Unmarshal(data, &a)
			return a, err
		},
	}
}

// Access limits who may ask a server a query. The operator of the server may ask every query that
// is not guarded.
type Access struct {
	// Users are the fields that other users may set. With the field Session they have to name
	// a session of their own; without it the answer tells of nobody, or only of what is theirs.
	// nil = they may not ask it: it tells of more than a session, runs something, or reads what
	// belongs to nobody.
	Users []string

	// Guarded queries delete sessions, change the program or the repository, or read files
	// anywhere on the machine: a server answers them only if it was started to.
	Guarded bool

	// Local is set if only a program on the same machine answers the query, and says why. A
	// server refuses the query with this reason. At most 12 queries are local.
	Local string
}

var (
	admins  = Access{}
	guarded = Access{Guarded: true}
)

func users(fields ...string) Access { return Access{Users: append([]string{}, fields...)} }

func local(reason string) Access { return Access{Local: reason} }

// AccessTo returns who may ask the query of a name.
func AccessTo(name string) Access { return queries[name].access }

// queries ties the names of queries to their types, and to those of their answers.
var queries = map[string]asked{
	"agents":           ask[ListAgents, []AgentInfo](admins),
	"agents.add":       ask[AddAgent, AgentFile](guarded),
	"agents.check":     ask[CheckAgent, AgentInfo](guarded),
	"bundles.check":    ask[CheckBundle, BundleInfo](guarded),
	"bundles.lock":     ask[LockBundle, BundleLocked](guarded),
	"calculate":        ask[Calculate, Calculation](users("Text")),
	"checklist":        ask[ReadChecklist, Checklist](guarded),
	"commands":         ask[ListCommands, []CommandInfo](users("Session", "Language")),
	"commands.read":    ask[ReadCommand, CommandRead](admins),
	"commit.make":      ask[MakeCommit, CommitMade](guarded),
	"commit.prepare":   ask[PrepareCommit, CommitDraft](admins),
	"context":          ask[agent.ContextUsage, agent.ContextReport](users("Session")),
	"decisions":        ask[ListDecisions, []agent.DecisionRecord](users("Session", "Tool", "Verdict", "By", "Since", "Limit", "Plans")),
	"diagnose":         ask[Diagnose, []Finding](admins),
	"diff":             ask[Diff, DiffReport](users("Session", "From", "To", "All", "Paths")),
	"emoji":            ask[FindEmoji, []Emoji](users("Text", "Limit")),
	"files":            ask[FindFiles, []string](admins),
	"files.export":     ask[ExportFiles, ExportedFiles](guarded),
	"hooks":            ask[ListHooks, HookReport](admins),
	"hooks.try":        ask[TryHooks, HookTrial](guarded),
	"init":             ask[InitProject, ProjectInit](guarded),
	"keys.change":      ask[ChangeKey, KeyChange](local("keys are kept in the keychain of the person at the machine")),
	"lessons":          ask[ListLessons, []Lesson](admins),
	"lessons.add":      ask[AddLesson, Lesson](guarded),
	"lessons.delete":   ask[DeleteLessons, int](guarded),
	"links":            ask[ListLinks, []Link](admins),
	"links.fill":       ask[FillLink, string](admins),
	"links.remove":     ask[RemoveLink, Link](guarded),
	"links.set":        ask[SetLink, Link](guarded),
	"memory":           ask[ListMemory, MemoryReport](admins),
	"memory.add":       ask[AddMemory, MemoryAdded](guarded),
	"memory.make":      ask[MakeMemory, MemoryPlace](guarded),
	"memory.undo":      ask[UndoMemory, MemoryPlace](guarded),
	"mentions":         ask[Mentions, []Mentioned](users("Session", "Text", "Without")),
	"models":           ask[ListModels, []agent.ModelInfo](users()),
	"models.check":     ask[CheckModel, ModelCheck](admins),
	"notes":            ask[ListNotes, []AgentNotes](admins),
	"notes.delete":     ask[DeleteNotes, []AgentNotes](guarded),
	"palette":          ask[ListPalette, []PaletteEntry](admins),
	"plugins":          ask[ListPlugins, []PluginInfo](admins),
	"plugins.change":   ask[ChangePlugin, PluginChanged](guarded),
	"plugins.market":   ask[ReadMarketplace, PluginMarketplace](admins),
	"plugins.markets":  ask[ListMarketplaces, []PluginMarket](admins),
	"plugins.options":  ask[ReadPluginOptions, PluginOptions](admins),
	"plugins.prepare":  ask[PreparePlugin, PreparedPlugin](guarded),
	"plugins.set":      ask[SetPlugin, string](guarded),
	"plugins.validate": ask[ValidatePlugin, PluginCheck](guarded),
	"prompt":           ask[PromptPreview, PromptReport](admins),
	"prompt.change":    ask[ChangePrompt, PromptFile](guarded),
	"prompts.complete": ask[CompletePrompt, PromptValues](users("Session", "Text")),
	"providers":        ask[ListProviders, []ProviderInfo](admins),
	"replay.verify":    ask[VerifyReplay, agent.ReplayReport](users("Session")),
	"rewind.plan":      ask[PlanRewind, RewindPlan](users("Session", "To", "Only", "Force")),
	"policy.explain":   ask[ExplainCall, ExplainedCall](admins),
	"policy.simulate":  ask[SimulatePolicy, Simulation](guarded),
	"rules.change":     ask[RuleEdit, RuleEdited](guarded),
	"rules.folder":     ask[FolderRule, string](admins),
	"rules.restrict":   ask[RuleChange, RuleEdited](guarded),
	"sandbox":          ask[ExplainSandbox, SandboxReport](admins),
	"sandbox.run":      ask[RunConfined, ConfinedRun](local("it runs a program in the terminal of a person")),
	"trust":            ask[ListTrust, []DecidedFolder](admins),
	"trust.change":     ask[ChangeTrust, bool](local("only the person at the machine trusts its folders")),
	"trust.left":       ask[ListLeft, []string](admins),
	"trust.look":       ask[LookAtFolder, FolderTrust](guarded),
	"rules":            ask[ListRules, RuleReport](users("Session")),
	"schedules":        ask[ListSchedules, []agent.Schedule](admins),
	"schedules.change": ask[ChangeSchedule, agent.Schedule](guarded),
	"schedules.run":    ask[RunSchedule, agent.ScheduleNote](guarded),
	"search":           ask[Search, SearchResult](users("Session", "Text", "Kind", "Since", "Tag", "Limit", "Offset")),
	"search.index":     ask[IndexSessions, IndexReport](admins),
	"servers":          ask[ListServers, ServerReport](admins),
	"servers.add":      ask[AddServer, ServerChange](guarded),
	"servers.change":   ask[ChangeServer, ServerInfo](guarded),
	"servers.connect":  ask[ConnectServer, []ServerNow](guarded),
	"servers.login":    ask[SignIn, SignInState](Access{Local: "the browser in which somebody signs in comes back to it"}),
	"servers.logout":   ask[SignOut, SignInState](guarded),
	"servers.now":      ask[ServersNow, []ServerNow](admins),
	"servers.read":     ask[ReadServer, agent.Result](guarded),
	"servers.remove":   ask[RemoveServer, ServerChange](guarded),
	"servers.reset":    ask[ResetServers, int](guarded),
	"servers.set":      ask[SetServers, ServersSet](guarded),
	"servers.test":     ask[TestServer, ServerTest](guarded),
	"session":          ask[agent.FindSession, agent.SessionInfo](users("Name", "Workdir", "Profile")),
	"session.at":       ask[SessionAt, agent.SessionStand](users("Session", "Seq")),
	"session.export":   ask[ExportSession, Document](users("Session", "Format", "NoResults", "Thinking", "Children")),
	"session.rows":     ask[Rows, json.RawMessage](users("Session", "Before", "Limit")),
	"session.view":     ask[View, json.RawMessage](users("Session", "At")),
	"sessions":         ask[agent.ListSessions, agent.SessionList](users("Workdir", "Tag", "Archived", "Limit", "Before", "Profile")),
	"sessions.compare": ask[CompareSessions, agent.Comparison](admins),
	"sessions.import":  ask[ImportSessions, ImportReport](guarded),
	"sessions.old":     ask[OldSessions, OldReport](guarded),
	"sessions.remove":  ask[RemoveSession, RemovedSession](guarded),
	"sessions.repair":  ask[RepairSession, LogReport](guarded),
	"sessions.sweep":   ask[SweepSessions, int](guarded),
	"settings":         ask[ListSettings, []Setting](admins),
	"settings.change":  ask[ChangeSetting, SettingChange](guarded),
	"settings.check":   ask[CheckSettings, bool](admins),
	"settings.explain": ask[ExplainSetting, ExplainedSetting](admins),
	"settings.files":   ask[ListSettingsFiles, []SettingsFile](admins),
	"settings.keys":    ask[FindSettings, FoundSettings](admins),
	"settings.make":    ask[MakeSettings, SettingsFile](guarded),
	"skills":           ask[ListSkills, []SkillInfo](admins),
	"skills.add":       ask[AddSkill, SkillAdded](guarded),
	"skills.export":    ask[ExportSkill, SkillInfo](guarded),
	"skills.show":      ask[ShowSkill, SkillInfo](guarded),
	"snippets":         ask[ListSnippets, []Snippet](admins),
	"snippets.fill":    ask[FillSnippet, FilledSnippet](admins),
	"snippets.make":    ask[MakeSnippet, string](guarded),
	"system":           ask[DescribeSystem, System](admins),
	"tools":            ask[ListTools, ToolReport](users("Session", "Tool")),
	"tools.lendable":   ask[ListLendable, []agent.Spec](admins),
	"tools.switch":     ask[SwitchTool, ToolReport](guarded),
	"updates":          ask[FindUpdate, Update](admins),
	"usage":            ask[UsageReport, UsageSummary](admins),
	"users":            ask[ListUsers, []User](admins),
	"users.change":     ask[ChangeUser, NewUser](guarded),
	"verify":           ask[agent.VerifySeals, agent.SealReport](users("Session")),
	"web.search":       ask[SearchWeb, WebAnswer](admins),

	"decisions.explain":      ask[ExplainDecision, ExplainedDecision](admins),
	"plugins.markets.change": ask[ChangeMarketplace, []PluginMarket](guarded),

	"mentions.complete": ask[CompleteMention, []string](users("Session", "Typed", "Limit")),
}

// Queries returns the names of all queries, sorted.
func Queries() []string { return slices.Sorted(maps.Keys(queries)) }

// QueryTypes returns the types of a query and of its answer; ok says that there is one of
// that name.
func QueryTypes(name string) (query, answer reflect.Type, ok bool) {
	a, ok := queries[name]
	return a.query, a.answer, ok
}

// DecodeQuery reads a query by its name on the wire.
func DecodeQuery(name string, data []byte) (agent.Query, error) {
	a, ok := queries[name]
	if !ok {
		return nil, fmt.Errorf("unknown query %q", name)
	}
	q, err := a.decode(data)
	if err != nil {
		return nil, fmt.Errorf("decoding query %s: %w", name, err)
	}
	return q, nil
}

// DecodeAnswer reads the answer to the query of a name. Its type is the one that is said at
// the query.
func DecodeAnswer(name string, data []byte) (any, error) {
	a, ok := queries[name]
	if !ok {
		return nil, fmt.Errorf("unknown query %q", name)
	}
	v, err := a.answered(data)
	if err != nil {
		return nil, fmt.Errorf("decoding the answer to %s: %w", name, err)
	}
	return v, nil
}
