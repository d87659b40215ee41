package plug

// ElicitReply is the answer to a question of a server of the Model Context Protocol.
type ElicitReply struct {
	Action  string // accept, decline or cancel
	Content map[string]any
}
