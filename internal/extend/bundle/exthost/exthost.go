// Package exthost runs code that is not ours: tools and extensions of bundles, in
// Node.js, in executables, behind addresses, on MCP servers, and functions of Go that
// somebody has named. Foreign code runs in processes of the [sandbox.Box] that the host
// is given, never in this one: modules of a bundle share a worker, which is spoken with
// in lines of JSON-RPC and ended when it hangs, floods, grows or says anything else. The
// calls that it had are answered with one error each, and the next one has a new worker.
//
// A [Host] has two goroutines for each worker, one while a worker is asked whether it
// still answers, and one for each outcome that it tells. [Host.Close] waits for them.
package exthost

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/safety/sandbox"
)

// A Runtime says what runs the code of a tool or an extension.
type Runtime string

// The runtimes.
const (
	Node    Runtime = "node"    // a module of JavaScript or TypeScript, in a worker
	Process Runtime = "process" // an executable: JSON in, JSON out
	HTTP    Runtime = "http"    // an address that is posted to
	Builtin Runtime = "builtin" // a function of [Config.Builtins]
	MCP     Runtime = "mcp"     // a tool of an MCP server
)

// Config is what a [Host] works with. Root, Dir and Box are required.
type Config struct {
	Box  *sandbox.Box
	Root string   // folder of the bundle: nothing outside of it is loaded
	Dir  string   // where its programs run
	Env  []string // of its programs; what tells Node.js or the loader to load code is left out

	// Node finds Node.js, version 20 or newer; nil = there is none.
	Node func() (string, error)

	// Self is this program, which bundles modules in a process of its own; "" =
	// [os.Executable].
	Self string

	// Grant is what its programs may reach beyond what the box lets commands: the root
	// itself, where the box hides that. What is hidden below the root then is not any more.
	Grant sandbox.Grant

	// Approve is asked before code is run that was not run before, and before it runs
	// again with other content, of an executable each time; nil = all is. Hash is that of
	// all files that it is made of; of an executable, what else it reads is not.
	Approve func(entry, hash string) error

	// Asks reports whether no mode allows a tool of a server without the person; nil = none
	// is so.
	Asks func(ctx context.Context, server, tool string) (bool, error)

	Builtins map[string]Func
	Post     func(context.Context, Request) (Response, error) // nil = nothing is asked over HTTP
	Invoke   func(ctx context.Context, server, tool string, input json.RawMessage) (agent.Result, error)
	Settle   agent.Settle // nil = no tool can answer later

	// Clean takes secrets out of what code logs; nil = it knows of none.
	Clean func(string) string

	Limits Limits
	Logger *slog.Logger // of what belongs to no call; nil = nobody reads it

	// Now is the clock of pauses between workers; nil = the system's.
	Now func() time.Time
}

// Func is a tool in Go: what a handler in JavaScript is.
type Func func(ctx context.Context, tc agent.ToolContext, input json.RawMessage) (any, error)

// A Request is what is sent to a tool behind an address.
type Request struct {
	URL  string
	Key  string // of the attempt, for Idempotency-Key
	Body []byte

	Authorization string // for the header of that name; a secret
}

// A Response is what came back. Body is no longer than [Limits.Answer], or is refused.
type Response struct {
	Status int
	Body   []byte
}

// Limits bound foreign code; 0 = the default.
type Limits struct {
	Call   time.Duration // of one call of a tool that has no limit of its own; 60 s
	Start  time.Duration // until a module is loaded, bundling included; 20 s
	Hook   time.Duration // of one function of an extension, what comes behind it excluded; 5 s
	Alive  time.Duration // to answer whether it lives, when a call was given up; 3 s
	Pulse  time.Duration // between two times that a connector is asked whether it lives; 10 s
	Answer int           // bytes of one message; 8 MiB
	Memory int64         // bytes of data of a worker, where the system bounds them; 1 GiB
	Calls  int           // at a time, of one worker; 64
}

func (l Limits) whole() Limits {
	set(&l.Call, 60*time.Second)
	set(&l.Start, 20*time.Second)
	set(&l.Hook, 5*time.Second)
	set(&l.Alive, 3*time.Second)
	set(&l.Pulse, 10*time.Second)
	set(&l.Answer, 8<<20)
	set(&l.Memory, 1<<30)
	set(&l.Calls, 64)
	return l
}

func set[T comparable](v *T, usual T) {
	var none T
	if *v == none {
		*v = usual
	}
}

// A Host runs the foreign code of one bundle. It is safe for concurrent use.
type Host struct {
	c    Config
	life context.Context
	end  context.CancelFunc
	node *nodeSide

	mu     sync.Mutex
	set    *Set // of the extensions that it runs; nil = none
	closed bool
	wg     sync.WaitGroup // of workers and what belongs to them
}

// ErrClosed says that a host is closed.
var ErrClosed = errors.New("the host of foreign code is closed")

// New returns a Host. It starts nothing.
func New(c Config) *Host {
	c.Limits = c.Limits.whole()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Clean == nil {
		c.Clean = func(s string) string { return s }
	}
	c.Env = harmless(c.Env)
	h := &Host{c: c}
	h.life, h.end = context.WithCancel(context.Background())
	h.node = newNodeSide(h)
	return h
}

// Close ends all that runs and waits for it.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end()
	h.wg.Wait()
}

// apart runs f beside all others, and reports whether it does: a closed host does not.
func (h *Host) apart(f func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.wg.Go(f)
	}
	return !h.closed
}

// harmless returns an environment without what makes a program load code that its
// user has not named.
func harmless(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(entry), "=")
		return strings.HasPrefix(name, "NODE_") || strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_")
	})
}
