package query

import "time"

// What is done with a user of a server.
const (
	UserAdd    = "add"
	UserRemove = "remove"
)

// Questions about the users of a server, and about newer versions of the program.
type (
	// ListUsers asks for []User, by name.
	ListUsers struct{}

	// ChangeUser adds or removes a user of the server, and returns the NewUser. Scope is that of
	// one who is added.
	ChangeUser struct {
		Do    string `json:"do"`
		Name  string `json:"name"`
		Scope string `json:"scope,omitempty"`
	}

	// FindUpdate asks for an Update. Who publishes versions is asked at most once a day.
	FindUpdate struct {
		Now   bool `json:"now,omitempty"`   // also if it was asked today
		Known bool `json:"known,omitempty"` // it is not asked: what the last look has found
	}
)

// Query returns the name of the query on the wire.
func (ListUsers) Query() string  { return "users" }
func (ChangeUser) Query() string { return "users.change" }
func (FindUpdate) Query() string { return "updates" }

// User is somebody who may use a server.
type User struct {
	Name    string    `json:"name"`
	Scope   string    `json:"scope"` // metrics, read, write or admin
	Created time.Time `json:"created,omitzero"`
}

// NewUser is a user who was added or removed.
type NewUser struct {
	Name  string `json:"name"`
	Scope string `json:"scope,omitempty"`
	Token string `json:"token,omitempty"` // of one who was added; nobody learns it again
}

// Update is what is known of a newer version.
type Update struct {
	Version string `json:"version"`         // of the program that is asked
	Off     bool   `json:"off,omitempty"`   // the settings do not want it to be looked for
	Newer   string `json:"newer,omitempty"` // "" = there is none
	URL     string `json:"url,omitempty"`   // where it is looked for, without what may be a secret
	Error   string `json:"error,omitempty"` // why it is not known
}
