package agent

// HookOutcome says how one run of a hook came out.
type HookOutcome string

// The outcomes.
const (
	HookPassed    HookOutcome = "passed"    // it ran; what it has to say is in the other fields
	HookBlocked   HookOutcome = "blocked"   // it forbids what it was asked about
	HookFailed    HookOutcome = "failed"    // it could not run, or gave no answer that counts
	HookTimedOut  HookOutcome = "timeout"   // it was stopped at its time limit
	HookCancelled HookOutcome = "cancelled" // what it was asked about is over
)

// Hooks, and what they do to input.
type (
	// HookStarted is written before a hook runs.
	HookStarted struct {
		Run    string `json:"run"`              // ID of this run
		Event  string `json:"event"`            // PreToolUse, Stop, ...
		Hook   string `json:"hook"`             // for people: what runs
		Source string `json:"source,omitempty"` // the file that it stands in, a plugin, a skill, ...
		Call   string `json:"call,omitempty"`   // the call that it is asked about
		Status string `json:"status,omitempty"` // to be shown while it runs
		Async  bool   `json:"async,omitempty"`  // nobody waits for it
	}

	// HookRan records what came of it.
	HookRan struct {
		Run     string      `json:"run"`
		Event   string      `json:"event"`
		Hook    string      `json:"hook"`
		Source  string      `json:"source,omitempty"`
		Call    string      `json:"call,omitempty"`
		Outcome HookOutcome `json:"outcome"`
		Exit    *int        `json:"exit,omitempty"` // of a process
		Millis  int64       `json:"ms,omitempty"`

		Verdict Verdict `json:"verdict,omitempty"` // its word on a call
		Reason  string  `json:"reason,omitempty"`
		Message string  `json:"message,omitempty"` // for people
		Rewrote bool    `json:"rewrote,omitempty"` // it changed an input or a result

		// Context is for the model: it is before it at its next request.
		Context string `json:"context,omitempty"`

		// Terminal is what it has for the terminal of a person, if one sits there. Whoever
		// writes it there lets [ForTerminal] look at it first.
		Terminal string `json:"terminal,omitempty"`

		// Once is what a hook is known by that runs once in a session: a hash of where it
		// stands and what it does.
		Once string `json:"once,omitempty"`
	}

	// RulesGranted records rules that hold from now on and that nobody was asked about: a
	// hook has answered in the place of a person.
	RulesGranted struct {
		Remember string   `json:"remember"` // session or always
		Rules    []string `json:"rules"`
		By       string   `json:"by"`             // hook:NAME
		Call     string   `json:"call,omitempty"` // the call that it was asked about
	}

	// RulesRevoked takes rules back that were allowed for the session: by an answer to a
	// question, or as in [RulesGranted].
	RulesRevoked struct {
		Rules []string `json:"rules"`
		By    string   `json:"by"`
	}

	// CallDeferred puts a call aside: its turn stays open, and the call is decided on anew
	// when somebody goes on with it.
	CallDeferred struct {
		Turn   string `json:"turn,omitempty"`
		Step   int    `json:"step"`
		Call   Call   `json:"call"` // as it would have been decided on
		By     string `json:"by"`   // hook:NAME
		Reason string `json:"reason,omitempty"`
	}

	// InputDropped takes queued input out of the queue that is not to enter the
	// conversation.
	InputDropped struct {
		Input  string `json:"input"`
		Reason string `json:"reason,omitempty"`
		By     string `json:"by"` // hook:NAME
	}
)

// Kind returns the kind's name on disk and on the wire.
func (HookStarted) Kind() string  { return "hook.started" }
func (HookRan) Kind() string      { return "hook.ran" }
func (RulesGranted) Kind() string { return "rules.granted" }
func (RulesRevoked) Kind() string { return "rules.revoked" }
func (CallDeferred) Kind() string { return "call.deferred" }
func (InputDropped) Kind() string { return "input.dropped" }
