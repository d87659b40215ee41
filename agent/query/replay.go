package query

type (
	// SessionAt asks for a SessionStand: how Session stood when event Seq had been
	// stored; 0 = how it stands now.
	SessionAt struct {
		Session string `json:"session"`
		Seq     int64  `json:"seq,omitempty"`
	}

	// CompareSessions asks for a Comparison of two sessions.
	CompareSessions struct {
		A string `json:"a"`
		B string `json:"b"`
	}
)

// Query returns the name of the query on the wire.
func (SessionAt) Query() string       { return "session.at" }
func (CompareSessions) Query() string { return "sessions.compare" }
