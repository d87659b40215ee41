package query

import "time"

// Search over all sessions.
type (
	// Search asks for a [SearchResult]: where in all sessions a text stands. Words are
	// looked for in any case and order, all of them; "several words" in quotes side by
	// side, -word not at all, word* as the beginning of one. The fields select, and
	// so do words such as session:ID, workdir:PATH, kind:call, since:7d and tag:NAME
	// within the text, unless their field is set.
	Search struct {
		Text    string `json:"text"`
		Session string `json:"session,omitempty"` // ID, or the beginning of one
		Workdir string `json:"workdir,omitempty"` // a folder with what is below; a relative one: a part of its path
		Kind    string `json:"kind,omitempty"`    // input, answer, call, result or title
		Since   string `json:"since,omitempty"`   // RFC 3339, 2006-01-02, or 12h, 7d, 2w before now
		Tag     string `json:"tag,omitempty"`
		Limit   int    `json:"limit,omitempty"` // hits, at most 100; 0 = 20
		Offset  int    `json:"offset,omitempty"`
	}

	// IndexSessions asks for the index behind [Search] to be brought up to date, for
	// about so many milliseconds (0 = until it is done), and for an [IndexReport].
	// Search itself finds what was indexed before.
	IndexSessions struct {
		Rebuild bool  `json:"rebuild,omitempty"` // from nothing
		Millis  int64 `json:"ms,omitempty"`
	}
)

// Query returns the name of the query on the wire.
func (Search) Query() string        { return "search" }
func (IndexSessions) Query() string { return "search.index" }

// SearchResult is what a [Search] has found, the best first: newer ones before older
// ones that fit as well.
type SearchResult struct {
	Hits []SearchHit `json:"hits"`
	More bool        `json:"more,omitempty"` // there are others
}

// SearchHit is an event of a session that has what was looked for.
type SearchHit struct {
	Session string    `json:"session"`
	Title   string    `json:"title,omitempty"`
	Workdir string    `json:"workdir,omitempty"`
	Seq     int64     `json:"seq"`
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"` // input, answer, call, result or title
	Tool    string    `json:"tool,omitempty"`

	Snippet string  `json:"snippet"` // a part of the text, on one line
	Marks   []Mark  `json:"marks,omitempty"`
	Score   float64 `json:"score"`

	// Dead says that the conversation has gone back to before the event.
	Dead bool `json:"dead,omitempty"`
}

// Mark is a part of a snippet that was looked for, in bytes.
type Mark struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// IndexReport is how far the index behind [Search] is.
type IndexReport struct {
	Done      bool  `json:"done"`
	Busy      bool  `json:"busy,omitempty"` // another process is at it; nothing was done
	Sessions  int   `json:"sessions"`
	Documents int64 `json:"documents"`
	Events    int64 `json:"events"` // that have been read
	Left      int64 `json:"left"`   // that have not
}
