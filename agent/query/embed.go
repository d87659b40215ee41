package query

import "encoding/json"

// What a host asks about servers of an open session, and what it is told.
type (
	// ServersNow asks for []ServerNow.
	ServersNow struct {
		Session string `json:"session"`
	}

	// ConnectServer connects a server of a session, or ends its connection, for as long as the
	// session is open. It asks for []ServerNow.
	ConnectServer struct {
		Session string `json:"session"`
		Server  string `json:"server"`
		Do      string `json:"do"` // enable, disable or reconnect
	}

	// SetServers adds servers to those that a session began with, and replaces the ones that
	// were added before. Servers that the administrator forbids are not used. It asks for
	// [ServersSet].
	SetServers struct {
		Session string          `json:"session"`
		Servers json.RawMessage `json:"servers"` // their definitions by name
	}

	// ReadServer reads a resource of a server of a session, if rules permit it. It asks for
	// [agent.Result].
	ReadServer struct {
		Session string `json:"session"`
		Server  string `json:"server"`
		URI     string `json:"uri"`
	}

	// ServerNow is how it stands with a server of an open session.
	ServerNow struct {
		Name    string          `json:"name"`
		State   string          `json:"state"` // pending, connected, failed, needs-auth or disabled
		Problem string          `json:"problem,omitempty"`
		Title   string          `json:"title,omitempty"` // as it calls itself
		Version string          `json:"version,omitempty"`
		Scope   string          `json:"scope"`
		Type    string          `json:"type"`
		Run     string          `json:"run,omitempty"` // the command line, or the address
		Tools   []ServerToolNow `json:"tools"`
	}

	// ServerToolNow is a tool of it.
	ServerToolNow struct {
		Name        string `json:"name"` // as the server has it
		Description string `json:"description,omitempty"`
		ReadOnly    bool   `json:"read_only,omitempty"` // the server says so
	}

	// ServersSet is what became of the servers that were set for a session.
	ServersSet struct {
		Added   []string          `json:"added"`
		Removed []string          `json:"removed"`
		Errors  map[string]string `json:"errors"` // of those that cannot be used, by name
	}

	// FileText is the beginning of a file.
	FileText struct {
		Path string `json:"path"` // absolute
		Data []byte `json:"data"`
		Cut  bool   `json:"cut,omitempty"` // there is more of it
	}
)

// Query returns the name of the query on the wire.
func (ServersNow) Query() string    { return "servers.now" }
func (ConnectServer) Query() string { return "servers.connect" }
func (SetServers) Query() string    { return "servers.set" }
func (ReadServer) Query() string    { return "servers.read" }
