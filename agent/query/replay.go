package query

type (
	// SessionAt asks for a SessionStand: how Session stood when event Seq had been
	// stored; 0 = how it stands now.
	SessionAt struct {
		Session string `json:"session"`
		Seq     int64  `json:"seq,omitempty"`
	}

	// View asks for what people see of Session when event At has been stored; 0 = now. The
	// answer is the JSON of a view, which docs/server.md describes.
	View struct {
		Session string `json:"session"`
		At      int64  `json:"at,omitempty"`
	}

	// Rows asks for the rows of that view in front of the event Before, the oldest first;
	// 0 = the newest ones. more in the answer says that there are older ones.
	Rows struct {
		Session string `json:"session"`
		Before  int64  `json:"before,omitempty"`
		Limit   int    `json:"limit,omitempty"` // about as many; 0 = 100
	}

	// CompareSessions asks for a Comparison of two sessions.
	CompareSessions struct {
		A string `json:"a"`
		B string `json:"b"`
	}
)

// Query returns the name of the query on the wire.
func (SessionAt) Query() string       { return "session.at" }
func (View) Query() string            { return "session.view" }
func (Rows) Query() string            { return "session.rows" }
func (CompareSessions) Query() string { return "sessions.compare" }
