package main

import (
	"encoding/json"
	"fmt"

	"dure/internal/models/script"
)

// deltaBytes is the size of a streamed piece: about a token.
const deltaBytes = 4

// A server is a scripted model on loopback.
type server struct{ s *script.Server }

// serve starts a model that gives the n-th reply to the n-th request of every
// conversation. With trust it checks nothing and records nothing, which costs
// time that is not the harness's.
func serve(replies []reply, trust bool) (*server, error) {
	sc := script.Script{ByStep: true}
	for _, r := range replies {
		if r.command == "" {
			sc.Replies = append(sc.Replies, script.Reply{Text: r.text, Chunk: deltaBytes})
			continue
		}
		input, err := json.Marshal(map[string]string{"command": r.command})
		if err != nil {
			return nil, fmt.Errorf("writing the script: %w", err)
		}
		sc.Replies = append(sc.Replies, script.Reply{
			Calls: []script.Call{{Tool: "Bash", Input: input}},
			Chunk: deltaBytes * 8,
		})
	}
	opts := script.Options{Keep: 1}
	if trust {
		opts = script.Options{Keep: -1, Trust: true}
	}
	s, err := script.NewServer(sc, opts)
	if err != nil {
		return nil, err
	}
	return &server{s}, nil
}

func (s *server) url() string   { return s.s.URL() }
func (s *server) model() string { return "script" }

// close ends the server. What it could complain about does not matter any more.
func (s *server) close() { _ = s.s.Close() }

// lastRequest returns the size of the last request in bytes.
func (s *server) lastRequest() int {
	all := s.s.Requests()
	if len(all) == 0 {
		return 0
	}
	return len(all[len(all)-1].Body)
}
