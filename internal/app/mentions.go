package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/commands"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/mention"
	"dure/internal/safety/guard"
	"dure/internal/safety/policy"
	"dure/internal/safety/workspace"
	"dure/internal/state/journal"
	"dure/internal/state/transcript"
	"dure/internal/tools/catalog"
	"dure/internal/tools/code"
	"dure/internal/tools/files"
)

// Limits of what is read with an input, beside those of package mention.
const (
	maxPictures  = 10               // pictures and documents of one input
	maxMedia     = 16 << 20         // bytes of them
	maxWithout   = 200              // entries of Prompt.Without
	listingHolds = 30 * time.Second // how long the list of files is taken for right
	lastEvents   = 400              // of a session, in which its last answer is looked for
	maxAnswer    = 4 << 10          // bytes of that
)

// mentions reads what the inputs of a session name. It is safe for concurrent use.
type mentions struct {
	app     *App
	session string
	ws      *workspace.Workspace
	pol     *policy.Policy
	tracker *workspace.Tracker
	grd     *guard.Guard
	clean   func(ctx context.Context, text string) (string, error)
	model   func() string
	dialect catalog.Dialect

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
	if m == nil || len(at.Fresh) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	done := map[string][]agent.ContextAdded{}
	for _, in := range at.Fresh {
		if in.Origin != "" || in.Text == "" || m.app.verbatim(m.session, in.Input) {
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
	found := m.resolve(ctx, in.Text, in.Without, len(commands.Typed(in.Text)))
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
	plain := m.app.cfg.Context.Auto && !slices.Contains(without, agent.WithoutPlain)
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
		m.app.opts.Logger.Warn("reading what an input names", "session", m.session, "error", err)
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
				for _, p := range code.Declared(ctx, m.ws, m.list(ctx).Paths, name) {
					places = append(places, mention.Place(p))
				}
				if places != nil {
					break
				}
			}
			return places
		},
		Session: func(id string) (string, bool) { return m.other(ctx, id) }, Resource: m.resource,
		Clean: func(text string) (string, error) { return m.clean(ctx, text) },
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
	d := m.pol.Decide(agent.Proposal{
		Call: agent.Call{ID: "mention", Tool: readTool, Input: in}, Effects: agent.Effects{Reads: []string{path}},
		Class: agent.Read, Group: "files", Risk: agent.RiskLow,
	})
	return d.Verdict != agent.Allow && !(explicit && d.Verdict == agent.AskUser)
}

// list returns the files of the workspace, as they were half a minute ago or later.
func (m *mentions) list(ctx context.Context) workspace.Listing {
	m.listing.Lock()
	defer m.listing.Unlock()
	if !m.listed.IsZero() && time.Since(m.listed) < listingHolds {
		return m.files
	}
	l, err := m.ws.List(ctx, m.ws.Root())
	if err != nil {
		return m.files
	}
	m.files, m.folders, m.listed = l, foldersOf(l.Paths), time.Now()
	return l
}

// foldersOf returns the folders that sorted paths lie in, sorted.
func foldersOf(paths []string) (all []string) {
	seen := map[string]bool{}
	for _, p := range paths {
		for i := len(p) - 1; i >= 0; i-- {
			if p[i] != '/' {
				continue
			}
			if seen[p[:i+1]] {
				break
			}
			seen[p[:i+1]] = true
			all = append(all, p[:i+1])
		}
	}
	slices.Sort(all)
	return all
}

// lists reports whether a path below the root is one of the files that the repository
// does not ignore, or a folder with such files. A list that is cut off knows nothing.
func (m *mentions) lists(ctx context.Context, rel string) bool {
	l := m.list(ctx)
	if l.More || rel == "." {
		return true
	}
	_, file := slices.BinarySearch(l.Paths, rel)
	m.listing.Lock()
	defer m.listing.Unlock()
	_, folder := slices.BinarySearch(m.folders, rel+"/")
	return file || folder
}

// complete returns what may stand behind an @.
func (m *mentions) complete(ctx context.Context, q query.CompleteMention) []string {
	const most = 50
	limit := q.Limit
	if limit <= 0 || limit > most {
		limit = most
	}
	if id, ok := strings.CutPrefix(q.Typed, "session:"); ok {
		return m.sessions(ctx, id, limit)
	}
	l := m.list(ctx)
	m.listing.Lock()
	all := slices.Concat(l.Paths, m.folders)
	m.listing.Unlock()
	for _, r := range m.app.serversOf(m.session).resources() {
		if !r.Template && !strings.ContainsAny(r.URI, " \t") {
			all = append(all, r.Server+":"+r.URI)
		}
	}
	found := mention.Complete(q.Typed, all, limit)
	return slices.DeleteFunc(found, func(p string) bool { return mention.IsSecret(p) })
}

// ownerTag begins the tags by which a server knows whose a session is.
const ownerTag = transcript.OwnerTag

// generations is how many parents of a session are looked for.
const generations = 16

// ownersOf returns the tags that say whose a session is: it has them, or the one that it
// works for does. Without any it is of whoever runs the program. One that is not known to its
// root is nobody's: false.
func (a *App) ownersOf(ctx context.Context, id string) (owners []string, known bool) {
	for range generations {
		found, err := a.reg.Query(ctx, agent.FindSession{Name: id})
		info, ok := found.(agent.SessionInfo)
		if err != nil || !ok || info.ID != id {
			return nil, false
		}
		for _, t := range info.Tags {
			if strings.HasPrefix(t, ownerTag) {
				owners = append(owners, t)
			}
		}
		if !info.IsChild() {
			return owners, true
		}
		id = info.Parent
	}
	return nil, false
}

// holdsAll reports whether a session has all the tags.
func holdsAll(tags, owners []string) bool {
	return !slices.ContainsFunc(owners, func(o string) bool { return !slices.Contains(tags, o) })
}

// owned selects sessions that those may know of whose this one is; false = none.
func (m *mentions) owned(ctx context.Context, q journal.Query) (journal.Query, []string, bool) {
	owners, known := m.app.ownersOf(ctx, m.session)
	if len(owners) > 0 {
		q.Tag = owners[0]
	}
	return q, owners, known
}

// sessions returns the sessions of this folder whose ID begins as typed, and that those may
// know of whose this one is.
func (m *mentions) sessions(ctx context.Context, typed string, limit int) (ids []string) {
	q, owners, known := m.owned(ctx, journal.Query{Workdir: m.ws.Root(), Prefix: typed, Unarchived: true})
	if !known {
		return nil
	}
	for s, err := range m.app.store.List(ctx, q) {
		if err != nil || len(ids) >= limit {
			break
		}
		if s.ID != m.session && holdsAll(s.Tags, owners) {
			ids = append(ids, "session:"+s.ID)
		}
	}
	return ids
}

// named returns the session that is meant by a name, if those may know of it whose this one
// is: sessions of others are not there for them, and so make no name unclear either.
func (m *mentions) named(ctx context.Context, name string) (info agent.SessionInfo, ok bool) {
	q, owners, known := m.owned(ctx, journal.Query{Name: name})
	if !known {
		return info, false
	}
	if len(owners) > 0 {
		var found []string
		for s, err := range m.app.store.List(ctx, q) {
			if err != nil {
				return info, false
			}
			if holdsAll(s.Tags, owners) {
				found = append(found, s.ID)
			}
		}
		switch len(found) {
		case 0: // it may work for one of theirs
		case 1:
			name = found[0]
		default:
			return info, false
		}
	}
	found, err := m.app.reg.Query(ctx, agent.FindSession{Name: name})
	if info, ok = found.(agent.SessionInfo); err != nil || !ok {
		return info, false
	}
	if len(owners) > 0 {
		theirs, known := m.app.ownersOf(ctx, info.ID)
		if !known || !holdsAll(theirs, owners) {
			return agent.SessionInfo{}, false
		}
	}
	return info, true
}

// other describes another session: what it is about, what was answered last, and how
// to see more of it.
func (m *mentions) other(ctx context.Context, id string) (string, bool) {
	info, ok := m.named(ctx, id)
	if !ok {
		return "", false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Title: %s\nFolder: %s\nUpdated: %s, turns: %d\n", oneLine(info.Title, 200), info.Workdir, info.Updated, info.Turns)
	answer := ""
	for e, err := range m.app.store.Read(ctx, info.ID, max(0, info.Head-lastEvents)) {
		if err != nil {
			break
		}
		if a, ok := e.Body.(agent.ModelAnswered); ok && a.Purpose == "" && a.Message.Text() != "" {
			answer = a.Message.Text()
		}
	}
	if answer != "" {
		fmt.Fprintf(&b, "Its last answer:\n%s\n", strings.ToValidUTF8(answer[:min(len(answer), maxAnswer)], ""))
	}
	fmt.Fprintf(&b, "The whole of it is printed by the command: dure show %s\n", info.ID)
	return b.String(), true
}

// oneLine is a text as one line of at most n bytes.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.ToValidUTF8(s[:min(len(s), n)], "")
}

// media makes blocks of the pictures and documents among attachments, or says in them
// why not. Of documents that the model does not take it returns the text.
func (m *mentions) media(ctx context.Context, found []mention.Attachment) (text string, blocks []agent.Block) {
	info, err := m.app.models.Info(m.model())
	if err != nil {
		info = agent.ModelInfo{}
	}
	left, count := maxMedia, 0
	for i := range found {
		a := &found[i]
		if a.Media == "" || a.Refused != "" {
			continue
		}
		if count++; count > maxPictures || left <= 0 {
			a.Refused = mention.Full
			continue
		}
		data, more, err := m.ws.Head(filepath.Join(m.ws.Root(), filepath.FromSlash(a.Path)), min(left, files.MaxAttached))
		switch {
		case err != nil:
			a.Refused = mention.Unreadable
			continue
		case more:
			a.Refused = "too-large"
			continue
		}
		said, more2, err := m.picture(ctx, a.Path, data, info)
		if err != nil {
			a.Refused = whyNot(err)
			continue
		}
		left -= len(data)
		a.Bytes, a.Chars = len(data), 0
		blocks = append(blocks, more2...)
		shown := mention.Attachment{Mention: a.Mention, Path: a.Path, Text: said}
		text += mention.Render([]mention.Attachment{shown})
	}
	return text, blocks
}

// picture returns what the model reads of a picture or document.
func (m *mentions) picture(ctx context.Context, name string, data []byte, info agent.ModelInfo) (string, []agent.Block, error) {
	text, blocks, err := files.Attach(ctx, name, data, info)
	if err != nil {
		return "", nil, err
	}
	text, err = m.clean(ctx, text[:min(len(text), mention.MaxFile)])
	return strings.ToValidUTF8(text, ""), blocks, err
}

func whyNot(err error) string {
	te, _ := errors.AsType[*agent.ToolError](err)
	switch {
	case errors.Is(err, files.ErrNoMedia):
		return "no-media"
	case te != nil && te.Code == files.ErrFileLarge:
		return "too-large"
	case te != nil && te.Code == files.ErrFileBinary:
		return mention.Binary
	}
	return mention.Unreadable
}

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
	m.tracker.Saw(full, workspace.State{SHA256: fmt.Sprintf("%x", sha256.Sum256(data)), Size: int64(len(data))})
}

// describe is an attachment as front-ends have it.
func describe(a mention.Attachment) query.Mentioned {
	d := query.Mentioned{
		ID: a.ID, Kind: string(a.Kind), Text: a.Mention.Text, Name: a.Name, Path: a.Path, First: a.First, Last: a.Last,
		Bytes: a.Bytes, Media: a.Media, State: query.MentionAttached, Reason: a.Refused,
	}
	if a.Media == "" && a.Refused == "" {
		d.Lines = strings.Count(strings.TrimSuffix(a.Text, "\n"), "\n") + 1
	}
	switch {
	case a.Refused != "":
		d.State = query.MentionLeft
	case a.Path == "" && a.Text == "":
		d.State, d.Lines = query.MentionNamed, 0
	case a.Truncated:
		d.State = query.MentionCut
	}
	return d
}

// label is what a person reads of a mention.
func label(d query.Mentioned) string {
	name := cmp.Or(d.Path, d.Name)
	switch {
	case d.Kind == string(mention.Session):
		name = "session:" + d.Name
	case d.Path == "" && strings.HasPrefix(d.Text, "@#"):
		name = "#" + d.Name
	}
	if d.First > 0 {
		name += fmt.Sprintf(":%d-%d", d.First, d.Last)
	}
	return name
}

// weight is how much is read with an input, for people.
func weight(bytes int) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f KB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%d B", bytes)
}

// reason tells the model why it reads nothing of a mention; "" = it does.
func (m *mentions) reason(a mention.Attachment) string {
	switch a.Refused {
	case "":
		if a.Path == "" && a.Text == "" && a.Kind == mention.URL {
			return "the user names this address; nothing of it was read. Fetch it with " + m.dialect.Name("web__fetch") + " if you need it"
		}
		if a.Path == "" && a.Text == "" {
			return "nothing was read"
		}
		return ""
	case mention.Missing:
		return "there is nothing of that name in the workspace"
	case mention.Outside:
		return "it is not in the workspace; nothing was read"
	case mention.Secret, mention.Denied:
		return "it is kept from being read (" + a.Refused + ")"
	case "no-media":
		return "the model that answers takes no such media"
	}
	return "not attached: " + a.Refused
}

// newMentions returns what reads the inputs of a session, and lets front-ends find it.
// What a model has written for a child is no input of a person: nil.
func (a *App) newMentions(b plug.Session, ws *workspace.Workspace, pol *policy.Policy, tracker *workspace.Tracker, grd *guard.Guard) *mentions {
	if b.Child != nil {
		return nil
	}
	m := &mentions{
		app: a, session: b.ID, ws: ws, pol: pol, tracker: tracker, grd: grd, clean: b.Clean, model: b.Model, dialect: catalog.Dialect(a.cfg.Dialect),
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.readers[b.ID] = m
	return m
}

// unname ends what newMentions began.
func (a *App) unname(m *mentions) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m != nil && a.readers[m.session] == m {
		delete(a.readers, m.session)
	}
}

// mentionsOf returns what reads the inputs of a session that is open here.
func (a *App) mentionsOf(id string) (*mentions, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m := a.readers[id]; m != nil {
		return m, nil
	}
	return nil, &agent.Problem{
		Code: agent.ProblemMissing, Message: fmt.Sprintf("the session %q is not open here", id), Fix: "open it first", Args: map[string]string{"session": id},
	}
}
