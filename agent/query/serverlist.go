package query

// ListServers asks for a [ServerReport]: the servers of the Model Context Protocol that a
// session has, or with "" those that one in a folder would have; "" = the working folder.
type ListServers struct {
	Session string `json:"session,omitempty"`
	Workdir string `json:"workdir,omitempty"`
}

// Query returns the name of the query on the wire.
func (ListServers) Query() string { return "servers" }

// ChangeServer switches a server of a session on or off, connects it anew, or takes its
// tools as they are now. It asks for a [ServerInfo].
type ChangeServer struct {
	Session string `json:"session"`
	Server  string `json:"server"`
	Do      string `json:"do"` // enable, disable, reconnect or approve
}

// Query returns the name of the query on the wire.
func (ChangeServer) Query() string { return "servers.change" }

// ServerReport is the answer to [ListServers].
type ServerReport struct {
	Servers []ServerInfo  `json:"servers"` // by name, the one that counts first
	Faults  []ServerFault `json:"faults,omitempty"`
}

// ServerInfo is a server that some source names.
type ServerInfo struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"` // stdio, http, sse or sdk
	Run     string   `json:"run"`  // the command line, or the address, as it is written
	Env     []string `json:"env,omitempty"`
	Headers []string `json:"headers,omitempty"` // their names
	Vars    []string `json:"vars,omitempty"`    // the variables that it is given
	Scope   string   `json:"scope"`             // managed, given, local, project, user, agent or plugin
	Source  string   `json:"source"`            // file:line:column, or how it was given
	Hash    string   `json:"hash,omitempty"`    // of its definition
	State   string   `json:"state"`             // ready, waiting, changed, rejected, untrusted, off, forbidden, broken or hidden; in a session also connecting, connected, failed or login
	Why     string   `json:"why,omitempty"`

	// What a server says that is connected.
	Title     string   `json:"title,omitempty"` // of itself, with its version
	Tools     int      `json:"tools,omitempty"`
	Prompts   int      `json:"prompts,omitempty"`
	Resources int      `json:"resources,omitempty"`
	Left      []string `json:"left,omitempty"`     // what it offers and cannot be used, with the reasons
	Withheld  []string `json:"withheld,omitempty"` // tools that are described otherwise than before, until somebody agrees
}

// ServerFault is something in the definition of servers that does not count.
type ServerFault struct {
	Source  string `json:"source"` // file:line:column, where it is known
	Server  string `json:"server,omitempty"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}
