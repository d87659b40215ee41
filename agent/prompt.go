package agent

// A Profile is a kind of work as a session was opened with it. Settings that change
// later do not change it.
type Profile struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"` // the built-in one that it rests on: chat, cowork, code or finance
	Model    string   `json:"model,omitempty"`
	Fallback []string `json:"fallback,omitempty"`
	Effort   string   `json:"effort,omitempty"`
	Steps    int      `json:"steps,omitempty"` // of a turn; 0 = no limit
	Mode     Mode     `json:"mode,omitempty"`
	Dollars  float64  `json:"usd,omitempty"`    // what the session may use; 0 = no limit
	Tokens   int64    `json:"tokens,omitempty"` // ... in tokens
	Verify   bool     `json:"verification"`     // the agent is to prove what it did
	Tools    []string `json:"tools,omitempty"`  // those it has; none = all

	Plan PlanMode `json:"plan,omitempty"` // when it plans first; "" = off
}
