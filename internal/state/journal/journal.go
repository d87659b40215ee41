// Package journal keeps the logs of sessions: it stores events, hands them to
// readers, and says who may write.
//
// An append is all or nothing, and what was acknowledged with [Barrier] is on
// the disk. Only the holder of a session's [Lease] writes its log; everybody
// else posts to its inbox. The bytes of a line are the event in every store, so
// a log that is copied from one store to another is the same file. Goroutines are
// those of callers, but for a lease's timers (sync what no Barrier did, look for
// mail) and a bus's subscriptions; both end with what they belong to.
package journal

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"dure/agent"
)

// Durability says what an append survives.
type Durability uint8

// The durabilities. What a store does for a Barrier can be weakened for scratch
// sessions, see the store's options.
const (
	Lazy    Durability = iota // the death of the process
	Barrier                   // the death of the machine
)

// Msg is something sent to a session by anybody but its owner.
type Msg struct {
	ID   string // chosen by the sender, unique for ever within the recipient
	From string // session, or ""
	Kind string // the command's name
	Body []byte // JSON
}

// Batch is what one append writes, all or nothing.
type Batch struct {
	// Events need a Body, of 64 MiB at most. Append gives them Seq, Epoch, Time
	// and ID; an ID that is already set is kept, and so is a Time from 1970 to now, as
	// what is imported has.
	Events []agent.Event

	Taken []string         // inbox messages that these events consume
	Posts map[string][]Msg // messages to other sessions, delivered once each; need an event
	Sync  Durability       // a batch with Taken or Posts is a Barrier in any case

	// Wake also makes the session runnable then, if it is not zero. A session
	// has one such time; a later one replaces it.
	Wake time.Time

	// Seal appends a log.sealed event behind Events, unless there is nothing
	// that it could seal. Nobody else appends one.
	Seal bool
}

// Errors that callers branch on. They arrive wrapped.
var (
	ErrFenced  = errors.New("a newer owner has taken the session over") // stop every effect now
	ErrOwned   = errors.New("the session is open elsewhere")
	ErrDamaged = errors.New("the log is damaged") // read-only
	ErrMissing = errors.New("no such session")
	ErrExists  = errors.New("the session exists")
	ErrFull    = errors.New("the inbox is full")
	ErrClosed  = errors.New("the log is closed")
	ErrNoPeer  = errors.New("nobody listens")
)

// OwnedError is an [ErrOwned] that knows who the owner is.
type OwnedError struct {
	Session string
	PID     int
	Host    string
	Since   time.Time
}

// Store keeps sessions. It is safe for concurrent use.
type Store interface {
	// Create makes an empty session. It is ErrExists when there is one.
	Create(ctx context.Context, m Meta) error

	// Read yields the events after seq that are stored now. Live owners go on
	// writing meanwhile. A damaged log yields its good prefix, then ErrDamaged.
	Read(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error]

	// List yields sessions, newest first. A session that cannot be read is
	// listed with its Status set to damaged.
	List(ctx context.Context, q Query) iter.Seq2[Meta, error]

	// Page returns what List yields, those that are pinned before all others, and
	// how many there are beyond q.Limit.
	Page(ctx context.Context, q Query) (Page, error)

	// Fork copies the events of from up to and including at into the new
	// session to. The copy shares nothing with its source.
	Fork(ctx context.Context, from string, at int64, to string) error

	// Post leaves m in the inbox of to, once per m.ID, and makes to runnable in
	// lane ("" = the session's own). An inbox holds 1,000 messages of 16 MiB.
	Post(ctx context.Context, to, lane string, m Msg) error

	// Acquire makes who the only writer and raises the epoch. It is ErrOwned
	// while another live owner holds the session.
	Acquire(ctx context.Context, id string, who Owner) (Lease, error)

	// Claim waits for up to n runnable sessions that fit w, and acquires them.
	Claim(ctx context.Context, w Worker, n int) ([]Lease, error)

	// Blob opens a blob of a session. Who reads it to the end without an error
	// has read what was written: the hash is checked.
	Blob(ctx context.Context, id, sha256 string) (io.ReadCloser, error)

	// BlobPath returns the file that holds the blob whose SHA256 starts with
	// prefix, for tools that page and search; "" when there is none, or no file.
	BlobPath(id, prefix string) string

	// Verify checks every line and every seal of a log.
	Verify(ctx context.Context, id string) (agent.SealReport, error)

	// Close ends the leases that are still open.
	Close() error
}

// Lease is the right to write one session. It is safe for concurrent use.
type Lease interface {
	Session() Meta
	Epoch() int64
	Head() int64 // sequence number of the last event

	// Repaired says what was cut off when the log was opened, or nil. The owner
	// records it with its session.opened.
	Repaired() *agent.LogRepaired

	// Append writes b and returns its events, completed. A failed append has
	// written nothing that a reader will see, or the lease is dead: then every
	// later append fails too and Valid is cancelled.
	Append(ctx context.Context, b Batch) ([]agent.Event, error)

	// PutBlob stores what r holds and returns its hash and size. It is durable
	// at the next Barrier append. At most limit bytes are kept (0 = all).
	PutBlob(ctx context.Context, r io.Reader, limit int64) (sha256 string, size int64, err error)

	// Read yields the events after seq up to the head, from memory when they
	// are recent.
	Read(ctx context.Context, after int64) iter.Seq2[agent.Event, error]

	Inbox(ctx context.Context) ([]Msg, error)
	Mail() <-chan struct{} // has a value when Inbox may have something new

	// Valid is cancelled before any other owner can exist. Every effect runs
	// under it.
	Valid() context.Context

	// Snapshot stores derived state as of seq. It never replaces the log.
	Snapshot(ctx context.Context, seq int64, state []byte) error

	// LastSnapshot returns the newest valid snapshot, or seq 0.
	LastSnapshot(ctx context.Context) (seq int64, state []byte, err error)

	// Release gives the session up, also when it returns an error. m replaces
	// what List shows, but for what the log itself says; the zero Meta keeps it.
	Release(ctx context.Context, next Next, m Meta) error
}

// Next says what a released session waits for.
type Next uint8

// The ways to release a session.
const (
	Parked   Next = iota // a message, or Wake
	Runnable             // any worker
	Done
)

// Bus carries what may be lost: live fragments, nudges, presence.
type Bus interface {
	Publish(subject string, b []byte)
	Subscribe(subject string, f func(subject string, b []byte)) (stop func(), err error)

	// Respond answers the requests to a subject.
	Respond(subject string, f func(ctx context.Context, b []byte) ([]byte, error)) (stop func(), err error)

	// Request is ErrNoPeer at once when nobody responds.
	Request(ctx context.Context, subject string, b []byte) ([]byte, error)
}

// Meta is what a store knows of a session without reading its events.
type Meta struct {
	agent.SessionInfo
	Tenant string            `json:"tenant,omitempty"`
	Lane   string            `json:"lane,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// Query selects sessions. Its zero value selects all.
type Query struct {
	Tenant, Workdir, Status, Prefix string    // Prefix of the ID
	Name                            string    // the title, or what the ID begins with
	Tag                             string    // one of its tags
	Profile                         string    // kind of work
	Unarchived                      bool      // none that was put away
	Before                          time.Time // changed before it
	Limit                           int
}

// Page is the beginning of a list.
type Page struct {
	Sessions []Meta
	More     int // sessions that are not in it
}

// Owner is who asks for a lease. TTL is for stores whose locks do not die with
// their process.
type Owner struct {
	ID  string
	TTL time.Duration
}

// Worker is an owner that takes what is runnable.
type Worker struct {
	Owner
	Lanes  map[string]int
	Labels map[string]string
}
