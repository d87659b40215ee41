package connections

import (
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/extend/mcp"
	"dure/internal/tools/kit"
)

// Limits of what a person hears of one server while a session is open.
const (
	maxNews     = 20 // notes
	maxPut      = 50 // questions
	maxDeclined = 5  // questions in a row that they do not agree to
)

// news is what a person has been told of a server, and asked in its name.
type news struct {
	state    mcp.State // that they know; "" = none that needs a word
	left     string    // the tools that they know to be left out
	notes    int
	put      int // questions
	declined int // in a row
	muted    bool
}

// newsOf returns what is known of a server. It is called with mu.
func (c *Servers) newsOf(server string) *news {
	n := c.news[server]
	if n == nil {
		n = &news{}
		c.news[server] = n
	}
	return n
}

// hear says what people have to know of how it stands with a server now, and have not been
// told: that it cannot be used until they do something, that it can be used again, and which
// of its tools wait for them. It is called with mu. Tools that come and go are told by the
// request that has others.
func (c *Servers) hear(server string, held map[string]string) (notes []agent.Note) {
	st, ok := c.status(server)
	if !ok || c.over {
		return nil
	}
	n, name := c.newsOf(server), kit.Clip(c.prefix+server)
	say := func(level, what string) {
		if n.notes++; n.notes <= maxNews {
			notes = append(notes, agent.Note{Level: level, Code: "servers", Text: what})
		}
	}
	switch before := n.state; {
	case st.State == mcp.Connected:
		if n.state = ""; before != "" {
			say("info", "the server "+name+" is connected now")
		}
	case st.State == before:
	case st.State == mcp.Failed:
		n.state = st.State
		say("warn", "the server "+name+" is not connected: "+strings.Join(strings.Fields(st.Problem), " ")+"; dure mcp get "+name)
	case st.State == mcp.NeedsAuth:
		n.state = st.State
		say("warn", "the server "+name+" wants you to sign in; dure mcp login "+name)
	}
	var left []string
	for tool := range held {
		left = append(left, kit.Clip(tool))
	}
	slices.Sort(left)
	if list := strings.Join(left, ", "); list != n.left {
		if n.left = list; list != "" {
			say("warn", "tools of the server "+name+" describe themselves otherwise than before, and are left out: "+list+"; dure mcp approve "+name)
		}
	}
	return notes
}

// note puts notes into the log of the session.
func (c *Servers) note(notes []agent.Note) {
	for _, n := range notes {
		if err := c.Person.Record(n); err != nil {
			c.x.Logger.Info("noting what a server does", "session", c.b.ID, "note", n.Text, "error", err)
		}
	}
}

// mayPut reports whether a server may put another question to the person, and counts it.
func (c *Servers) mayPut(server string) bool {
	c.mu.Lock()
	n := c.newsOf(server)
	may, first := n.put < maxPut && n.declined < maxDeclined, !n.muted
	if may {
		n.put++
	} else {
		n.muted = true
	}
	c.mu.Unlock()
	if !may && first {
		c.note([]agent.Note{{Level: "warn", Code: "servers", Text: "the server " + kit.Clip(c.prefix+server) + " has asked too often: in this session its questions are declined from now on"}})
	}
	return may
}

// wasPut counts what came of a question.
func (c *Servers) wasPut(server string, agreed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.newsOf(server)
	if n.declined++; agreed {
		n.declined = 0
	}
}
