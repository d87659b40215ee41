package session

import (
	"context"
	"io"
	"iter"

	"dure/agent"
	"dure/internal/state/transcript"
)

// The methods of [plug.Log]. A new session has no record while its parts are made.

// Events reads the log behind an event.
func (s *Session) Events(ctx context.Context, after int64) iter.Seq2[agent.Event, error] {
	return s.rec.lease.Read(ctx, after)
}

// Follow is Events with what comes then.
func (s *Session) Follow(ctx context.Context, after int64) iter.Seq2[agent.Event, error] {
	return s.rec.follow(ctx, after)
}

// PutBlob stores an output with the session.
func (s *Session) PutBlob(ctx context.Context, r io.Reader, limit int64) (sha256 string, size int64, err error) {
	return s.rec.lease.PutBlob(ctx, r, limit)
}

// Past returns the conversation so far.
func (s *Session) Past() (messages []agent.Message) {
	if s.rec != nil {
		s.rec.read(func(st *transcript.State) { messages = st.Past() })
	}
	return messages
}

// Conversation returns the newest messages.
func (s *Session) Conversation() (messages []agent.Message) {
	s.rec.read(func(st *transcript.State) { messages, _ = st.Conversation() })
	return messages
}

// Underway returns the skills of a turn that was cut short.
func (s *Session) Underway() (skills []agent.TurnSkill) {
	if s.rec != nil {
		s.rec.read(func(st *transcript.State) { skills = st.Underway() })
	}
	return skills
}
