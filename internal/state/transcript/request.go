package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"dure/agent"
)

// RequestHash returns the hash that names a request: of the model, the blobs of
// its system prompt and tools, its parameters, its tail and every message. It
// is computed in one way only, here, so that live and replay agree.
func RequestHash(r agent.ModelRequested, messages [][]byte) string {
	head, err := json.Marshal(struct {
		Format  string       `json:"format"`
		Model   string       `json:"model"`
		System  string       `json:"system"`
		Tools   string       `json:"tools"`
		Tail    string       `json:"tail"`
		Params  agent.Params `json:"params"`
		Purpose string       `json:"purpose"`
	}{"dure.request.1", r.Model, r.System, r.Tools, r.Tail, r.Params, r.Purpose})
	if err != nil {
		panic("transcript: request does not encode: " + err.Error())
	}
	h := sha256.New()
	h.Write(head)
	for _, m := range messages {
		h.Write(m)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Hashes returns the hash of each message.
func Hashes(messages []agent.Message) [][]byte {
	hashes := make([][]byte, len(messages))
	for i, m := range messages {
		hashes[i] = hashOf(m)
	}
	return hashes
}
