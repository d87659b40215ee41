package swarm

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // the description
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/state/worktree"
)

// Tool is the canonical name of the tool that hands work to agents.
const Tool = "agent__run"

//go:embed agent.md
var about string

const schema = `{"type":"object","properties":{` +
	`"description":{"type":"string","description":"3 to 5 words"},` +
	`"prompt":{"type":"string","minLength":1},` +
	`"context":{"type":"string"},` +
	`"subagent_type":{"type":"string"},` +
	`"model":{"type":"string"},` +
	`"run_in_background":{"type":"boolean"},` +
	`"isolation":{"type":"string","enum":["none","worktree","process"]},` +
	`"resume":{"type":"string","description":"agentId to go on with"}},` +
	`"required":["prompt"],"additionalProperties":false}`

// Bounds of the work that is handed over.
const (
	maxPrompt = 256 << 10          // bytes, with the context
	maxTitle  = 200                // bytes of a description
	longest   = 7 * 24 * time.Hour // of a call: an agent may have to wait for a person
	report    = 100_000            // characters of a report
	around    = 4_000              // characters of what is said of it
)

// A Task is work that is handed to an agent.
type Task struct {
	Title      string `json:"description,omitempty"`
	Prompt     string `json:"prompt"`
	Context    string `json:"context,omitempty"` // what to know for it
	Type       string `json:"subagent_type,omitempty"`
	Model      string `json:"model,omitempty"`
	Background *bool  `json:"run_in_background,omitempty"`
	Isolation  string `json:"isolation,omitempty"` // worktree, process, none; "" = as its type says
	Resume     string `json:"resume,omitempty"`
}

// Config configures a [Swarm]. Types, Spawn and Child are required.
type Config struct {
	Types *Types
	Spawn agent.Spawn

	// Child returns what the child session of a task is opened with: the tools, the
	// model and the rest of its type, as this session lets it have them. Key, Title,
	// Prompt and what a Swarm has to know of it are filled in here.
	Child func(Definition, Task) (agent.Child, error)

	// Model is the model that a type would ask by itself, for rules to judge; "" = that
	// of the session. nil = always that.
	Model func(Definition) string

	// May says why work cannot be handed to a type here; nil = it can.
	May func(Definition) error

	// Crewed says that the session's own type is to have the tools by which several agents
	// work together, also where nobody has defined any.
	Crewed bool

	// Chain are the types that the session works for, from the top, and its own.
	Chain []string

	// Asks reports whether a rule asks before work is handed to a type; nil = none does.
	Asks func(Definition) bool

	// Earlier returns the type of a child that this session has had, and the folder that
	// it works in; false = it has had no such child.
	Earlier func(ctx context.Context, child string) (kind, dir string, ok bool)

	// Isolation is how agents get folders of their own.
	Isolation Isolation

	// Follow reads the log of a child, to show what it does; nil = it is not shown.
	Follow func(ctx context.Context, child string) iter.Seq2[agent.Event, error]

	// Tell puts a text of somebody who is not the user before the model of an open session:
	// of a child, or of Boss, the one that this session works for; "" = none. An error says
	// that it is not open. What has an ID is said once, however often it comes. nil = nobody
	// can be told anything.
	Tell func(ctx context.Context, session, id, text, by string) error
	Boss string

	// Full returns the ID of the child that a shortened one means; nil = none is known.
	Full func(ctx context.Context, short string) (child string, ok bool)

	// Progressed records how a plan stands; nil = nobody does.
	Progressed func(agent.CrewProgressed) error

	// Settle is told of the end of an agent in the background, once, and Past returns
	// what was settled. nil = none runs in the background.
	Settle agent.Settle
	Past   func(handle string) (agent.Result, bool)

	// Foreground has agents always be waited for.
	Foreground bool

	// OutputTool and StopTool are the names under which the model knows the tools that
	// look after pending work.
	OutputTool, StopTool string

	// MergeTool and RemoveTool are those for work trees.
	MergeTool, RemoveTool string

	Now func() time.Time // default time.Now
}

// Swarm is the agents of one session. It is safe for concurrent use.
type Swarm struct {
	c Config

	life     context.Context // of agents in the background
	end      context.CancelFunc
	settling context.Context // of settling them
	endAll   context.CancelFunc
	watching sync.WaitGroup

	mu     sync.Mutex
	closed bool
	jobs   []*job                   // oldest first
	told   int                      // messages to Boss
	looked bool                     // for work trees that are no more
	trees  bool                     // the session has work trees, or has had some
	busy   map[string]int           // agents that work in a work tree, by its ID
	agreed map[string]worktree.Plan // merges that were planned, by call
}

// New returns the agents of a session.
func New(c Config) *Swarm {
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Swarm{c: c}
	s.life, s.end = context.WithCancel(context.Background())
	s.settling, s.endAll = context.WithCancel(context.Background())
	return s
}

// Tool returns the tool. Its calls count as reading: they touch nothing by themselves,
// run beside each other, and find the same child when they are made again after a crash.
// What a child does passes the gate of its own session.
func (s *Swarm) Tool() agent.Tool { return tool{s} }

type tool struct{ *Swarm }

// Spec describes the tool.
func (tool) Spec() agent.Spec {
	return agent.Spec{
		Name: Tool, Description: strings.TrimSpace(about), Input: json.RawMessage(schema),
		Class: agent.Read, Group: "agents", Risk: agent.RiskLow, Limit: longest, Budget: report + around,
		Aliases: map[string]string{"agent_type": "subagent_type", "agentType": "subagent_type", "task": "prompt", "title": "description"},
	}
}

// Complete fills in the type and the model that a call comes to, so that rules on them
// see what would run and not only what was written.
func (t tool) Complete(input json.RawMessage) json.RawMessage {
	in, err := decode(input)
	if err != nil || in.Resume != "" {
		return input
	}
	d, ok := t.c.Types.Find(in.kind())
	if !ok {
		return input
	}
	in.Type = d.Name
	if in.Model == "" && t.c.Model != nil {
		in.Model = t.c.Model(d)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(in) != nil {
		return input
	}
	return bytes.TrimSpace(b.Bytes())
}

// Plan checks that there is such an agent. It touches nothing.
func (t tool) Plan(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Effects, error) {
	in, err := decode(c.Input)
	if err == nil && in.Resume == "" {
		_, err = t.pick(in.kind())
	}
	return agent.Effects{}, err
}

// Run hands the work over, and waits for its end unless that is to come later.
func (t tool) Run(ctx context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
	return toolResult(t.run(ctx, c))
}

func (s *Swarm) run(ctx context.Context, c agent.Call) (agent.Result, error) {
	in, err := decode(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	kind, dir := in.kind(), ""
	if in.Resume != "" {
		if in.Resume, kind, dir, err = s.earlier(ctx, in.Resume); err != nil {
			return agent.Result{}, err
		}
	}
	d, err := s.pick(kind)
	if err != nil {
		return agent.Result{}, err
	}
	j, child, err := s.prepare(ctx, d, in, agent.CallEnvOf(ctx).Key, dir)
	if err != nil {
		return agent.Result{}, err
	}
	if later := in.Background; !s.c.Foreground && (later != nil && *later || later == nil && d.Background) {
		return s.launch(ctx, j, child)
	}
	return s.work(ctx, j, child, agent.CallEnvOf(ctx).Progress)
}

// prepare makes the job of a task, and what its child is opened with. The same key finds
// the same child.
func (s *Swarm) prepare(ctx context.Context, d Definition, in Task, key, dir string) (*job, agent.Child, error) {
	child, err := s.c.Child(d, in)
	if err != nil {
		return nil, child, refuse(agent.ErrTool, "the agent "+d.Name+" cannot be started: "+err.Error(), "")
	}
	child.Agent, child.Title, child.Prompt = d.Name, in.title(), in.brief()
	child.Key, child.Resume, child.Apart = key, in.Resume, in.ownProcess(d)
	where, err := s.apart(ctx, d, in, key, dir)
	if err != nil {
		return nil, child, err
	}
	if where != nil {
		child.Workdir, child.Prompt = where.dir, child.Prompt+where.told()
	}
	again := ""
	if in.Resume != "" {
		sum := sha256.Sum256([]byte(key))
		again = hex.EncodeToString(sum[:3])
	}
	return &job{place: where, again: again, kind: d.Name, model: child.Model, task: in, begun: s.c.Now(), now: s.c.Now, opened: make(chan struct{}), done: make(chan struct{})}, child, nil
}

// earlier finds the child that an ID or handle means, which must not run.
func (s *Swarm) earlier(ctx context.Context, id string) (child, kind, dir string, err error) {
	child = s.full(ctx, id)
	s.mu.Lock()
	runs := slices.ContainsFunc(s.jobs, func(j *job) bool { return j.id() == child && !j.over() })
	s.mu.Unlock()
	if runs {
		return "", "", "", refuse(agent.ErrInput, "the agent "+child+" still runs", "Wait for its end, or stop it with "+s.c.StopTool+".")
	}
	if s.c.Earlier != nil {
		if kind, dir, ok := s.c.Earlier(ctx, child); ok {
			return child, kind, dir, nil
		}
	}
	return "", "", "", refuse(agent.ErrInput, fmt.Sprintf("there is no agent %.80q to go on with", id), "Name the agentId of one that this session has started, or start a new one."+s.latest())
}

// latest is [Swarm.Latest] as the end of a suggestion.
func (s *Swarm) latest() string {
	if names := s.Latest(); names != nil {
		return " The latest: " + strings.Join(names, ", ") + "."
	}
	return ""
}

// pick finds a type that work may be handed to.
func (s *Swarm) pick(name string) (Definition, error) {
	d, ok := s.c.Types.Find(name)
	if ok {
		if err := s.may(d); err != nil {
			return d, refuse(agent.ErrDenied, fmt.Sprintf("the agent %s cannot be used: %v", d.Name, err), "")
		}
		return d, nil
	}
	var names []string
	for _, d := range s.Offered() {
		names = append(names, d.Name)
	}
	fix := "There are: " + strings.Join(names, ", ") + "."
	if meant := nearest(name, names); meant != "" {
		fix = "Did you mean " + meant + "? " + fix
	}
	return d, refuse(agent.ErrInput, fmt.Sprintf("there is no agent %.80q", name), fix)
}

func (s *Swarm) may(d Definition) error {
	if s.c.May == nil {
		return nil
	}
	return s.c.May(d)
}

// Offered returns the types that work may be handed to here.
func (s *Swarm) Offered() []Definition {
	return slices.DeleteFunc(s.c.Types.Usable(), func(d Definition) bool { return s.may(d) != nil })
}

func (t Task) kind() string {
	if t.Type == "" {
		return General
	}
	return t.Type
}

// brief is what the agent reads.
func (t Task) brief() string {
	if strings.TrimSpace(t.Context) == "" {
		return t.Prompt
	}
	return t.Prompt + "\n\n## Context\n\n" + t.Context
}

// title is what people see of a task.
func (t Task) title() string {
	text := t.Title
	if text == "" {
		text = t.Prompt
	}
	return line(text, maxTitle)
}

// line is at most n bytes of a text, on one line.
func line(s string, n int) string {
	if s = strings.Join(strings.Fields(s), " "); len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// decode reads the input of a call.
func decode(input json.RawMessage) (Task, error) {
	var in Task
	if err := json.Unmarshal(input, &in); err != nil {
		return in, refuse(agent.ErrInput, "the input does not fit the tool: "+err.Error(), "")
	}
	switch in.Type = strings.TrimSpace(in.Type); {
	case strings.TrimSpace(in.Prompt) == "":
		return in, refuse(agent.ErrInput, "the prompt is empty", "Say what the agent is to do; it knows nothing of this conversation.")
	case len(in.Prompt)+len(in.Context) > maxPrompt:
		return in, refuse(agent.ErrInput, fmt.Sprintf("the prompt and its context have more than %d bytes", maxPrompt), "Name files that the agent can read.")
	}
	return in, nil
}

func refuse(code agent.ErrorCode, message, suggestion string) error {
	return &agent.ToolError{Code: code, Message: message, Suggestion: suggestion}
}
