package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"
)

// A Tool is something the model may ask to run. Its methods are safe for
// concurrent use.
type Tool interface {
	Spec() Spec

	// Plan says what the call would touch, without touching it. The input fits
	// the schema. An error is bad input: the model reads it and mends its call.
	Plan(context.Context, ToolContext, Call) (Effects, error)

	// Run does the work. An error is a failure that the model reads, as if it
	// had been returned as [Failure]; a [*ToolError] keeps its code. When the
	// context ends, Run returns promptly with whatever it has.
	Run(context.Context, ToolContext, Call) (Result, error)
}

// A Checker is a [Tool] of class [Checkable].
type Checker interface {
	// Mark is called right before Run. What it returns is stored with
	// [CallStarted] and is all that Probe has to go by.
	Mark(context.Context, ToolContext, Call) (json.RawMessage, error)

	// Probe looks whether a call that was started, and never heard of again,
	// took effect. With ProbeDone it also returns the result to record.
	Probe(ctx context.Context, tc ToolContext, c Call, mark json.RawMessage) (Probe, Result, error)
}

// Probe is the answer of [Checker.Probe].
type Probe string

// What a probe can find out.
const (
	ProbeDone    Probe = "done"
	ProbeNotDone Probe = "not_done"
	ProbeUnknown Probe = "unknown"
)

// Spec describes a tool: to the model (Name, Description, Input), and to the
// loop and the policy (the rest).
type Spec struct {
	Name        string          `json:"name"` // canonical: resource__export
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input"` // JSON schema of type object

	Class  Class         `json:"class,omitempty"` // default Unsafe
	Group  string        `json:"group,omitempty"` // files, system, ...; for policy and prompt
	Risk   Risk          `json:"risk,omitempty"`  // default RiskMedium
	Limit  time.Duration `json:"limit,omitempty"` // time limit of one call; 0 = none of its own
	Budget int           `json:"budget,omitempty"`

	Transactional bool `json:"transactional,omitempty"` // moves money or the like
	Sensitive     bool `json:"sensitive,omitempty"`     // reads what is private

	// Aliases maps other names of input parameters to the names in Input.
	Aliases map[string]string `json:"aliases,omitempty"`
}

// Class says how an interrupted call may be treated, and with it whether the
// call can run beside others: only Read calls do.
type Class string

// The four effect classes.
const (
	Read       Class = "read"       // run again
	Idempotent Class = "idempotent" // run again with the same key
	Checkable  Class = "checkable"  // probe first
	Unsafe     Class = "unsafe"     // never run again by itself
)

// Risk is the static risk of a tool.
type Risk string

// The three risks.
const (
	RiskLow    Risk = "low"
	RiskMedium Risk = "medium"
	RiskHigh   Risk = "high"
)

// ToolContext is what a tool is told about the call it serves.
type ToolContext struct {
	AgentName   string
	InstanceKey string // the session's ID
	TurnID      string
	ToolCallID  string
	Message     Message // the answer that contains the call
	Workdir     string  // absolute; what relative paths are relative to
	Logger      *slog.Logger
}

// Effects lists what a call would touch. Paths are absolute and clean but not
// resolved. The zero value touches nothing.
type Effects struct {
	// Unreadable says why what the call would do cannot be told from its input:
	// what runs, or a target, is known only when it runs. No rule allows that, and
	// of the modes only [ModeBypass].
	Unreadable string `json:"unreadable,omitempty"`

	// Unparsed says why the input cannot be reviewed at all: it cannot be parsed,
	// or is too long. Neither a rule nor a mode allows that.
	Unparsed string `json:"unparsed,omitempty"`

	// Destructive says what the call would destroy that is nobody's to destroy.
	// It is denied in every mode.
	Destructive string `json:"destructive,omitempty"`

	Reads  []string   `json:"reads,omitempty"`
	Writes []string   `json:"writes,omitempty"`
	Runs   [][]string `json:"runs,omitempty"`  // argv lists of programs that the tool itself starts
	Hosts  []string   `json:"hosts,omitempty"` // host or host:port

	// Commands are the simple commands of a command line, wherever they stand in
	// it. Reads, Writes and Hosts have theirs too, beside those of redirections.
	Commands []SimpleCommand `json:"commands,omitempty"`

	Transactional bool `json:"transactional,omitempty"`
	Sensitive     bool `json:"sensitive,omitempty"`

	// Powers says what the call has run later that its paths do not tell, such as the tools
	// that an agent will have. No rule for paths allows that, and of the modes only
	// [ModeBypass]: a rule for the tool itself does.
	Powers string `json:"powers,omitempty"`

	// User means that the call cannot be served without the user, whose answer
	// arrives as a rewritten input.
	User bool `json:"user,omitempty"`

	// Class replaces the tool's class for this call when it is not empty.
	Class Class `json:"class,omitempty"`
}

// A SimpleCommand is one command of a command line: what a shell would run, or
// what another command would run in turn.
type SimpleCommand struct {
	// Argv are its words as the program would get them. A word that cannot be
	// known stands as it was written, and Effects.Unreadable says so.
	Argv []string `json:"argv"`

	Vars []string `json:"vars,omitempty"` // leading assignments, NAME=value
	Dir  string   `json:"dir,omitempty"`  // where it runs, if that is not the call's folder

	// Kind says what is known of the program with these arguments.
	Kind CommandKind `json:"kind,omitempty"`

	// Flagged names what makes it run, or write, something that its name does not
	// tell: a flag, an operand, a variable, a path in place of its name. Only a rule
	// for exactly this command allows it then.
	Flagged string `json:"flagged,omitempty"`

	// Critical says why what it removes is put to the user in every mode, as far
	// as that shows in the text alone.
	Critical string `json:"critical,omitempty"`

	Reads   []string `json:"reads,omitempty"`
	Writes  []string `json:"writes,omitempty"`
	Removes []string `json:"removes,omitempty"` // those of Writes that it removes
	Hosts   []string `json:"hosts,omitempty"`

	// Runs are the commands that it runs in turn. A transparent one (timeout,
	// nice) is allowed by a rule for those.
	Runs        []SimpleCommand `json:"runs,omitempty"`
	Transparent bool            `json:"transparent,omitempty"`
}

// CommandKind is what a simple command is known to do.
type CommandKind string

// The kinds of commands.
const (
	CommandOther CommandKind = ""      // anything
	CommandReads CommandKind = "reads" // it prints, and reads no more than Reads
	CommandEdits CommandKind = "edits" // it changes no more than Writes
)

// CallEnv is what a running call can reach beyond its ToolContext. It travels
// in the context.
type CallEnv struct {
	// Key is the same for every attempt at this call, and for no other call.
	// Tools pass it on: DURE_IDEMPOTENCY_KEY, MCP _meta, Idempotency-Key.
	Key string

	// Vars are variables for processes that the call starts, NAME=value.
	Vars []string

	// Class is how this call is treated, and Effects what it was decided on.
	Class   Class
	Effects Effects

	// Progress shows output while the call runs. It may be nil; text may be
	// dropped or merged on its way.
	Progress func(text string)

	// Spawned records a process group that has to die with the call. It may be
	// nil. It returns before the process is allowed to do harm only as far as
	// the operating system lets it.
	Spawned func(Process)
}

// Process names a process group so that it can be recognised after a crash.
type Process struct {
	PID     int    `json:"pid"`
	PGID    int    `json:"pgid"`
	Boot    string `json:"boot,omitempty"`    // boot ID of the machine
	Started string `json:"started,omitempty"` // start time as the system tells it
}

type callEnvKey struct{}

// WithCallEnv returns a context that carries env.
func WithCallEnv(ctx context.Context, env CallEnv) context.Context {
	return context.WithValue(ctx, callEnvKey{}, env)
}

// CallEnvOf returns what [WithCallEnv] stored, or the zero value.
func CallEnvOf(ctx context.Context) CallEnv {
	env, _ := ctx.Value(callEnvKey{}).(CallEnv)
	return env
}
