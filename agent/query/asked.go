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
	decode        func([]byte) (agent.Query, error)
	answered      func([]byte) (any, error)
}

func ask[Q agent.Query, A any]() asked {
	return asked{
		query: reflect.TypeFor[Q](), answer: reflect.TypeFor[A](),
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

// queries ties the names of queries to their types, and to those of their answers.
var queries = map[string]asked{
	"agents":           ask[ListAgents, []AgentInfo](),
	"calculate":        ask[Calculate, Calculation](),
	"commands":         ask[ListCommands, []CommandInfo](),
	"commands.read":    ask[ReadCommand, CommandRead](),
	"commit.make":      ask[MakeCommit, CommitMade](),
	"commit.prepare":   ask[PrepareCommit, CommitDraft](),
	"context":          ask[agent.ContextUsage, agent.ContextReport](),
	"decisions":        ask[ListDecisions, []agent.DecisionRecord](),
	"diagnose":         ask[Diagnose, []Finding](),
	"diff":             ask[Diff, DiffReport](),
	"emoji":            ask[FindEmoji, []Emoji](),
	"files":            ask[FindFiles, []string](),
	"hooks":            ask[ListHooks, HookReport](),
	"lessons":          ask[ListLessons, []Lesson](),
	"links":            ask[ListLinks, []Link](),
	"links.fill":       ask[FillLink, string](),
	"memory":           ask[ListMemory, MemoryReport](),
	"mentions":         ask[Mentions, []Mentioned](),
	"models":           ask[ListModels, []agent.ModelInfo](),
	"models.check":     ask[CheckModel, ModelCheck](),
	"palette":          ask[ListPalette, []PaletteEntry](),
	"plugins":          ask[ListPlugins, []PluginInfo](),
	"prompt":           ask[PromptPreview, PromptReport](),
	"prompts.complete": ask[CompletePrompt, PromptValues](),
	"providers":        ask[ListProviders, []ProviderInfo](),
	"replay.verify":    ask[VerifyReplay, agent.ReplayReport](),
	"rewind.plan":      ask[PlanRewind, RewindPlan](),
	"rules":            ask[ListRules, RuleReport](),
	"search":           ask[Search, SearchResult](),
	"search.index":     ask[IndexSessions, IndexReport](),
	"servers":          ask[ListServers, ServerReport](),
	"servers.change":   ask[ChangeServer, ServerInfo](),
	"session":          ask[agent.FindSession, agent.SessionInfo](),
	"session.at":       ask[SessionAt, agent.SessionStand](),
	"session.rows":     ask[Rows, json.RawMessage](),
	"session.view":     ask[View, json.RawMessage](),
	"sessions":         ask[agent.ListSessions, agent.SessionList](),
	"sessions.compare": ask[CompareSessions, agent.Comparison](),
	"sessions.import":  ask[ImportSessions, ImportReport](),
	"sessions.remove":  ask[RemoveSession, RemovedSession](),
	"sessions.sweep":   ask[SweepSessions, int](),
	"skills":           ask[ListSkills, []SkillInfo](),
	"snippets":         ask[ListSnippets, []Snippet](),
	"snippets.fill":    ask[FillSnippet, FilledSnippet](),
	"system":           ask[DescribeSystem, System](),
	"tools":            ask[ListTools, ToolReport](),
	"tools.switch":     ask[SwitchTool, ToolReport](),
	"usage":            ask[UsageReport, UsageSummary](),
	"verify":           ask[agent.VerifySeals, agent.SealReport](),
	"web.search":       ask[SearchWeb, WebAnswer](),

	"mentions.complete": ask[CompleteMention, []string](),
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
