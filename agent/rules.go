package agent

// Revoke takes rules back that were allowed for the session, as they are written there.
// Those that were not are left out.
type Revoke struct {
	Rules []string `json:"rules"`
}

// Command returns the name of the command on the wire.
func (Revoke) Command() string { return "rules.revoke" }
