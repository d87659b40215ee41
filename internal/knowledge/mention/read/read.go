// Package read reads what the inputs of a session name: files, symbols, resources of servers,
// other sessions. It tells front-ends what that would be before an input is sent. It starts no
// goroutines.
package read

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/mention"
	"dure/internal/safety/workspace"
)

// Limits of what is read with an input, beside those of package mention.
const (
	maxPictures  = 10               // pictures and documents of one input
	maxMedia     = 16 << 20         // bytes of them
	maxResources = 10               // resources of one input
	maxWithout   = 200              // entries of Prompt.Without
	listingHolds = 30 * time.Second // how long the list of files is taken for right
	maxAnswer    = 4 << 10          // bytes of another session's last answer
)

// Config is what inputs are read with. All is required.
type Config struct {
	Plain    bool                                                                                  // names without an @ are read, too
	Typed    func(text string) string                                                              // what of the text of an input a person has typed
	Verbatim func(session, input string) bool                                                      // the input names nothing that is to be read
	Model    func(name string) agent.ModelInfo                                                     // zero if it is not known
	Attach   func(context.Context, string, []byte, agent.ModelInfo) (string, []agent.Block, error) // what a model reads of a picture or document, by its name
	NoMedia  error                                                                                 // by it, the model takes no such media
	MaxMedia int                                                                                   // bytes of one picture or document
	Declared func(ctx context.Context, ws *workspace.Workspace, files []string, symbol string) []mention.Place
	ReadTool string // reads files, by its canonical name
	Fetch    string // the tool that opens addresses, as the model knows it
	Logger   *slog.Logger

	// Open opens a folder; "" = the working folder.
	Open func(dir string) (*workspace.Workspace, error)

	// Sessions returns the names of sessions of a folder that begin as typed, and Session one
	// that a name means, with its last answer: of those that the owner of session may know of.
	Sessions func(ctx context.Context, session, folder, typed string, limit int) []string
	Session  func(ctx context.Context, session, name string) (info agent.SessionInfo, answer string, ok bool)
}

// Servers are the MCP servers of a session.
type Servers interface {
	// Addresses are the resources that are listed, as SERVER:URI.
	Addresses() []string

	// Mentioned returns the resource that one of the readings of a name means, and what the
	// policy says of the model reading it; ok = there is one.
	Mentioned(readings []string) (name string, says agent.Verdict, ok bool)

	// Read reads a resource by the name that Mentioned has returned, as the guard lets it
	// through.
	Read(ctx context.Context, id, name string) (agent.Result, error)
}

// Extension reads the inputs of all sessions.
type Extension struct {
	plug.NoSession
	c    Config
	open sync.Map // *mentions, by the ID of the session
}

// New returns the extension.
func New(c Config) *Extension { return &Extension{c: c} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "mentions" }

// A Place is what one session has for reading its inputs.
type Place struct {
	Workspace *workspace.Workspace
	Tracker   *workspace.Tracker
	Decide    func(agent.Proposal) agent.Decision
	Servers   Servers
}

// In returns the extension for a session with a place.
func (x *Extension) In(p Place) plug.Extension { return placed{x, p} }

type placed struct {
	*Extension
	place Place
}

// Attach reads the inputs of a session. What a model has written for a child is no input of a
// person.
func (p placed) Attach(_ context.Context, b *plug.Session) (plug.Points, error) {
	if b.Child != nil {
		return plug.Points{}, nil
	}
	m := &mentions{Place: p.place, c: &p.c, b: *b, ws: p.place.Workspace}
	p.open.Store(b.ID, m)
	return plug.Points{Extra: m.extra, Close: func() { p.open.CompareAndDelete(b.ID, m) }}, nil
}

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{
		plug.Answers(func(ctx context.Context, q query.Mentions) ([]query.Mentioned, error) {
			m, err := x.of(q.Session)
			if err != nil {
				return nil, err
			}
			return m.query(ctx, q), nil
		}),
		plug.Answers(func(ctx context.Context, q query.CompleteMention) ([]string, error) {
			m, err := x.of(q.Session)
			if err != nil {
				return nil, err
			}
			return append([]string{}, m.complete(ctx, q)...), nil
		}),
		plug.Storeless(func(ctx context.Context, q query.FindFiles) ([]string, error) {
			ws, err := x.c.Open(q.Workdir)
			if err != nil {
				return nil, err
			}
			l, err := ws.List(ctx, ws.Root())
			if err != nil {
				return nil, workspace.Problem(ws.Root(), err)
			}
			return append([]string{}, mention.Complete(q.Text, l.Paths, q.Limit)...), nil
		}),
	}
}

// of returns what reads the inputs of a session that is open here.
func (x *Extension) of(session string) (*mentions, error) {
	if m, ok := x.open.Load(session); ok {
		return m.(*mentions), nil
	}
	return nil, &agent.Problem{
		Code: agent.ProblemMissing, Message: fmt.Sprintf("the session %q is not open here", session), Fix: "open it first", Args: map[string]string{"session": session},
	}
}

// Named returns what a text of an open session names with an @, to be read behind it. No person
// has written it.
func (x *Extension) Named(ctx context.Context, session, text string) string {
	m, err := x.of(session)
	if err != nil {
		return ""
	}
	found := m.resolve(ctx, text, []string{agent.WithoutPlain}, 0)
	if len(found) == 0 {
		return ""
	}
	return "\n\n" + mention.Render(found)
}

// mentions reads what the inputs of a session name. It is safe for concurrent use.
type mentions struct {
	Place
	c  *Config
	b  plug.Session
	ws *workspace.Workspace

	listing sync.Mutex // held while files are listed
	files   workspace.Listing
	folders []string // with a slash at the end, sorted
	listed  time.Time

	mu   sync.Mutex
	done map[string][]agent.ContextAdded // of the inputs that no request has had yet, by ID
}

// extra returns what belongs to the input that no request has had yet. What an input
// names is read once, and so stays as it was when the input came.
func (m *mentions) extra(ctx context.Context, at plug.Moment) (all []agent.ContextAdded) {
	if len(at.Fresh) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	done := map[string][]agent.ContextAdded{}
	for _, in := range at.Fresh {
		if in.Origin != "" || in.Text == "" || m.c.Verbatim(m.b.ID, in.Input) {
			continue
		}
		added, known := m.done[in.Input]
		if !known {
			added = m.added(ctx, in)
		}
		if ctx.Err() != nil {
			break
		}
		done[in.Input] = added
		all = append(all, added...)
	}
	m.done = done
	return all
}

// added returns what one input has read with it, and what it names in vain.
func (m *mentions) added(ctx context.Context, in agent.InputAdded) []agent.ContextAdded {
	found := m.resolve(ctx, in.Text, in.Without, len(m.c.Typed(in.Text)))
	if len(found) == 0 {
		return nil
	}
	media, blocks := m.media(ctx, found)
	blocks = append(blocks, m.fetch(ctx, found)...)
	read := agent.ContextAdded{Source: "mention", Key: in.Input, Text: mention.Render(found) + media, Blocks: blocks}
	left := agent.ContextAdded{Source: "mention", Key: in.Input + " left", Title: "left", Text: mention.Notes(found, m.reason)}
	for _, a := range found {
		switch s := describe(a); s.State {
		case query.MentionAttached, query.MentionCut:
			read.From = append(read.From, label(s)+" ("+weight(s.Bytes)+")")
			m.saw(a)
		default:
			left.From = append(left.From, label(s)+" ("+cmp.Or(s.Reason, s.State)+")")
		}
	}
	return slices.DeleteFunc([]agent.ContextAdded{read, left}, func(c agent.ContextAdded) bool { return c.Text == "" })
}

// query answers what a front-end asks about an input before it sends it.
func (m *mentions) query(ctx context.Context, q query.Mentions) []query.Mentioned {
	found := m.resolve(ctx, q.Text, q.Without, len(q.Text))
	list := []query.Mentioned{}
	m.media(ctx, found)
	for _, a := range found {
		list = append(list, describe(a))
	}
	return list
}

// resolve returns what a text names, without what the user does not want to be read. Own
// is how many bytes of its beginning a person has written: what rules ask about is read
// where they have named it, and not where a file or the output of a command does. There
// a name needs its @, too: the output of git status is no wish to read all that it lists.
func (m *mentions) resolve(ctx context.Context, text string, without []string, own int) []mention.Attachment {
	without = without[:min(len(without), maxWithout)]
	plain := m.c.Plain && !slices.Contains(without, agent.WithoutPlain)
	named := mention.Parse(text)
	mention.Own(named, own)
	named = slices.DeleteFunc(named, func(n mention.Mention) bool {
		return !n.Explicit && (!plain || n.Foreign) || slices.ContainsFunc([]string{agent.WithoutAll, n.ID, n.Name, n.Text}, func(s string) bool { return slices.Contains(without, s) })
	})
	if len(named) == 0 {
		return nil
	}
	found, err := mention.Resolve(ctx, m.config(ctx), named)
	if err != nil {
		m.c.Logger.Warn("reading what an input names", "session", m.b.ID, "error", err)
		return nil
	}
	return slices.DeleteFunc(found, func(a mention.Attachment) bool {
		return a.Path != "" && slices.Contains(without, a.Path)
	})
}

func (m *mentions) config(ctx context.Context) mention.Config {
	return mention.Config{
		Root: m.ws.Root(),
		Real: func(path string) (string, error) {
			_, resolved, err := m.ws.Resolve(path)
			return resolved, err
		},
		Stat: m.ws.Stat, ReadDir: m.ws.ReadDir, Read: m.ws.Head,
		Secret:  func(full string) bool { return mention.IsSecret(m.relative(full)) },
		Ignored: func(full string) bool { return !m.lists(ctx, m.relative(full)) },
		Find: func(name string) (found []string) {
			for _, p := range m.list(ctx).Paths {
				if path.Base(p) == name {
					found = append(found, filepath.Join(m.ws.Root(), filepath.FromSlash(p)))
				}
			}
			return found
		},
		Denied: m.denied,
		Symbols: func(names []string) (places []mention.Place) {
			for _, name := range names {
				if places = m.c.Declared(ctx, m.ws, m.list(ctx).Paths, name); places != nil {
					break
				}
			}
			return places
		},
		Session: func(id string) (string, bool) { return m.other(ctx, id) }, Resource: m.resource,
		Clean: func(text string) (string, error) { return m.b.Clean(ctx, text) },
	}
}

// relative is a path below the root with slashes, or as it is.
func (m *mentions) relative(full string) string {
	if rel, err := filepath.Rel(m.ws.Root(), full); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(full)
}

// denied asks the policy as if the model read the file. What it would ask about is
// allowed where a person has named the file on purpose.
func (m *mentions) denied(path string, explicit bool) bool {
	in, err := json.Marshal(map[string]string{"file_path": path})
	if err != nil {
		return true
	}
	d := m.Decide(agent.Proposal{
		Call: agent.Call{ID: "mention", Tool: m.c.ReadTool, Input: in}, Effects: agent.Effects{Reads: []string{path}},
		Class: agent.Read, Group: "files", Risk: agent.RiskLow,
	})
	return d.Verdict != agent.Allow && !(explicit && d.Verdict == agent.AskUser)
}

// resource finds what a mention of a resource means. Refused says why it is not to be read:
// what the policy would ask about is allowed where a person has named it.
func (m *mentions) resource(readings []string, foreign bool) (name, refused string) {
	if len(readings) == 0 {
		return "", mention.Missing
	}
	name, says, ok := m.Servers.Mentioned(readings)
	switch {
	case !ok:
		return "", mention.Missing
	case says == agent.Allow, says == agent.AskUser && !foreign:
		return name, ""
	}
	return name, mention.Denied
}

// other describes another session: what it is about, what was answered last, and how
// to see more of it.
func (m *mentions) other(ctx context.Context, id string) (string, bool) {
	info, answer, ok := m.c.Session(ctx, m.b.ID, id)
	if !ok {
		return "", false
	}
	var b strings.Builder
	title := strings.Join(strings.Fields(info.Title), " ")
	fmt.Fprintf(&b, "Title: %s\nFolder: %s\nUpdated: %s, turns: %d\n", first(title, 200), info.Workdir, info.Updated, info.Turns)
	if answer != "" {
		fmt.Fprintf(&b, "Its last answer:\n%s\n", first(answer, maxAnswer))
	}
	fmt.Fprintf(&b, "The whole of it is printed by the command: dure show %s\n", info.ID)
	return b.String(), true
}

// first is the beginning of a text, of at most n bytes.
func first(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }

// saw marks a file that was read as a whole as seen: the model may edit it. Whoever
// changes it meanwhile is noticed, as always.
func (m *mentions) saw(a mention.Attachment) {
	if a.Kind != mention.Path || a.Truncated || a.First > 0 || a.Media != "" || a.Refused != "" {
		return
	}
	full := filepath.Join(m.ws.Root(), filepath.FromSlash(a.Path))
	data, more, err := m.ws.Head(full, 4*mention.MaxFile)
	if t, terr := workspace.DecodeText(data); err != nil || more || terr != nil || !strings.Contains(a.Text, t.Content) {
		return
	}
	m.Tracker.Saw(full, workspace.State{SHA256: fmt.Sprintf("%x", sha256.Sum256(data)), Size: int64(len(data))})
}
