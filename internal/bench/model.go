package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"

	"dure/internal/models/script"
)

const (
	scripted   = "script" // the model's name
	deltaBytes = 4        // of a streamed piece: about a token
)

// A server is a scripted model on loopback.
type server struct {
	s     *script.Server
	ended func() error // whether the script came to its end; nil when it need not
}

// serve starts a model that gives the n-th reply to the n-th request of every
// conversation. With trust it checks nothing and records nothing, which costs
// time that is not the harness's.
func serve(replies []reply, trust bool) (*server, error) {
	sc := script.Script{ByStep: true}
	for _, r := range replies {
		next, err := r.scripted()
		if err != nil {
			return nil, err
		}
		sc.Replies = append(sc.Replies, next)
	}
	opts := script.Options{Keep: 1}
	if trust {
		opts = script.Options{Keep: -1, Trust: true}
	}
	return startModel(sc, opts)
}

func startModel(sc script.Script, opts script.Options) (*server, error) {
	s, err := script.NewServer(sc, opts)
	if err != nil {
		return nil, err
	}
	return &server{s: s, ended: func() error { return nil }}, nil
}

func (r reply) scripted() (script.Reply, error) {
	if r.command == "" {
		return script.Reply{Text: r.text, Chunk: deltaBytes}, nil
	}
	return call("Bash", map[string]any{"command": r.command})
}

// call is a reply that calls a tool.
func call(tool string, input map[string]any) (script.Reply, error) {
	data, err := json.Marshal(input)
	if err != nil {
		return script.Reply{}, fmt.Errorf("writing the script: %w", err)
	}
	return script.Reply{Calls: []script.Call{{Tool: tool, Input: data}}, Chunk: deltaBytes * 8}, nil
}

// serveAny starts a model that always gives the same reply.
func serveAny(r reply) (*server, error) {
	next, err := r.scripted()
	if err != nil {
		return nil, err
	}
	return startModel(script.Script{}, script.Options{Keep: -1, Trust: true, Func: func(script.Request) script.Reply { return next }})
}

// serveSlowly starts a model that says text in pieces, with a pause before each.
func serveSlowly(text string, chunk, pause int) (*server, error) {
	r := script.Reply{Text: text, Chunk: chunk, DelayMS: pause}
	return startModel(script.Script{ByStep: true, Replies: []script.Reply{r}}, script.Options{Keep: -1, Trust: true})
}

// serveCall starts a model that calls one tool and then ends the turn.
func serveCall(tool string, input map[string]any) (*server, error) {
	r, err := call(tool, input)
	if err != nil {
		return nil, err
	}
	sc := script.Script{ByStep: true, Replies: []script.Reply{r, {Text: "Done."}}}
	return startModel(sc, script.Options{Keep: -1, Trust: true})
}

var jobHandle = regexp.MustCompile(`job:[a-z0-9]+`)

// serveJob starts a model that runs a command in the background and waits for
// its end.
func serveJob(command string) (*server, error) {
	begin, err := call("Bash", map[string]any{"command": command, "run_in_background": true})
	if err != nil {
		return nil, err
	}
	var job atomic.Value
	var done atomic.Bool
	srv, err := startModel(script.Script{}, script.Options{Keep: -1, Func: func(r script.Request) script.Reply {
		switch r.Step {
		case 0:
			return begin
		case 1:
			job.Store(jobHandle.FindString(r.Last))
			wait, err := call("TaskOutput", map[string]any{"task_id": job.Load(), "timeout": 120_000})
			if err != nil {
				break
			}
			return wait
		}
		done.Store(r.Step == 2)
		return script.Reply{Text: "Done."}
	}})
	if err != nil {
		return nil, err
	}
	srv.ended = func() error {
		if id, _ := job.Load().(string); id == "" || !done.Load() {
			return errors.New("the model never waited for the job")
		}
		return nil
	}
	return srv, nil
}

func (s *server) url() string { return s.s.URL() }

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
