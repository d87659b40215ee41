package query

import (
	"encoding/json"
	"time"
)

// ListServers asks for a [ServerReport]: the servers of the Model Context Protocol that a
// session has, or with "" those that one in a folder would have; "" = the working folder.
type ListServers struct {
	Session string `json:"session,omitempty"`
	Workdir string `json:"workdir,omitempty"`
}

// Query returns the name of the query on the wire.
func (ListServers) Query() string { return "servers" }

// What is done with a server.
const (
	ServerApprove   = "approve" // a project's server as it is defined now, and of any server the tools as they are now
	ServerReject    = "reject"  // a project's server is not used
	ServerEnable    = "enable"
	ServerDisable   = "disable"
	ServerReconnect = "reconnect" // in a session
)

// Questions that change servers, or try them. Without a session, servers are those of the folder
// of the program.
type (
	// ChangeServer asks for a [ServerInfo].
	ChangeServer struct {
		Session string `json:"session,omitempty"`
		Server  string `json:"server"`
		Do      string `json:"do"`
	}

	// AddServer names a server in a scope: local, project or user. It asks for a [ServerChange].
	AddServer struct {
		Scope      string          `json:"scope"`
		Server     string          `json:"server"`
		Definition json.RawMessage `json:"definition"`
	}

	// RemoveServer takes a server out of a scope; "" = the only one that has it. It asks for a
	// [ServerChange].
	RemoveServer struct {
		Scope  string `json:"scope,omitempty"`
		Server string `json:"server"`
	}

	// ResetServers forgets what was decided on the servers of the project. It asks for an int,
	// the number of servers.
	ResetServers struct{}

	// TestServer connects a server, and ends it again. It asks for a [ServerTest].
	TestServer struct {
		Server string `json:"server"`
	}

	// SignIn opens a sign-in to a server, waits for the one that is open, or ends it with the
	// address to which a browser was sent. It asks for a [SignInState].
	SignIn struct {
		Server string `json:"server"`
		Await  string `json:"await,omitempty"`  // the AuthSession
		Answer string `json:"answer,omitempty"` // the address
	}

	// SignOut gives back what a server has granted. It asks for a [SignInState].
	SignOut struct {
		Server string `json:"server"`
	}
)

// Query returns the name of the query on the wire.
func (ChangeServer) Query() string { return "servers.change" }
func (AddServer) Query() string    { return "servers.add" }
func (RemoveServer) Query() string { return "servers.remove" }
func (ResetServers) Query() string { return "servers.reset" }
func (TestServer) Query() string   { return "servers.test" }
func (SignIn) Query() string       { return "servers.login" }
func (SignOut) Query() string      { return "servers.logout" }

// ServerChange is what a change of servers has done.
type ServerChange struct {
	Name  string `json:"name"`
	Scope string `json:"scope,omitempty"`
	Path  string `json:"path,omitempty"` // of the file that was written; "" = it is the program's own
}

// ServerTest is what a server has answered that was connected to see whether it does.
type ServerTest struct {
	Name         string        `json:"name"`
	Title        string        `json:"title,omitempty"` // as it calls itself, with its version
	Protocol     string        `json:"protocol,omitempty"`
	Milliseconds int64         `json:"milliseconds"` // until it was connected and had listed what it has
	Tools        []ServerOffer `json:"tools"`
	Prompts      []ServerOffer `json:"prompts"`
	Resources    []ServerOffer `json:"resources"` // templates too
	Left         []string      `json:"left,omitempty"`
}

// ServerOffer is one thing that a server has.
type ServerOffer struct {
	Name        string `json:"name"` // as sessions have it
	Description string `json:"description,omitempty"`
}

// SignInState is how it stands with a sign-in. What is required is set where a person has to
// agree first.
type SignInState struct {
	Status string `json:"status"` // ready, authorization_required or signed_out
	*SignInRequired
}

// SignInRequired says that a person has to agree first. It holds no secret.
type SignInRequired struct {
	AuthSession string    `json:"authSessionId"`
	URL         string    `json:"authorizationUrl"`
	UserCode    string    `json:"userCode,omitempty"` // to be typed at URL, if that asks for one
	ExpiresAt   time.Time `json:"expiresAt"`
	Message     string    `json:"message"`
}

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
