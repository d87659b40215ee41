package agent

import "encoding/json"

// WorkingMemory is what the agent of a session has noted, and the files that it has
// worked with.
type WorkingMemory struct {
	Task      string              `json:"task,omitempty"`
	Decisions []TaskDecision      `json:"decisions,omitempty"` // the oldest first
	Facts     map[string]TaskFact `json:"facts,omitempty"`
	Files     []string            `json:"files,omitempty"` // the newest last
}

// TaskDecision is a decision and the event that has it.
type TaskDecision struct {
	Seq int64 `json:"seq"`
	Choosing
}

// TaskFact is a fact and the event that has it.
type TaskFact struct {
	Seq  int64  `json:"seq"`
	Text string `json:"text"`
}

// SkillText is a skill whose text entered the conversation.
type SkillText struct {
	Seq  int64  `json:"seq"` // of the event that has the text
	Run  string `json:"run"`
	Name string `json:"name"`
}

// TurnSkill is a skill that was started in the running turn.
type TurnSkill struct {
	SkillActivated
	Done bool `json:"done,omitempty"`
}

// PendingCall is a call that was answered as pending.
type PendingCall struct {
	Seq     int64     `json:"seq"` // of the event that says so
	ID      string    `json:"id"`
	Tool    string    `json:"tool"`
	Spawned []Process `json:"spawned,omitempty"`

	// Key and Input are what the call ran with, of one that a child session serves: it can
	// go on in another program. They are empty for all others.
	Key   string          `json:"key,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
}
