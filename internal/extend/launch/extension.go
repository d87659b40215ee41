package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/calc"
	"dure/internal/base/frontmatter"
	"dure/internal/kernel/plug"
)

// Config says what is launched, and for whom. All functions are required.
type Config struct {
	Home     string // the user's folder of the program, with snippets and links
	Workdir  string
	User     string // their name; "" = not known
	Language string // of the user
	NoAI     bool   // no model is asked
	Search   bool   // there is a search engine
	Mode     agent.Mode

	// Open opens a session for a search, and Close ends it. Reach makes the call and asks the
	// model, which is Small for that of the session.
	Open  func(context.Context, agent.Open) (agent.SessionInfo, error)
	Close func(ctx context.Context, session string) error
	Reach func(session string) agent.Reach
	Small func(model string) string

	// Typed returns the commands and skills that can be typed. Skills and Agents are those that
	// come with the program, and About describes one in the user's language.
	Typed          func(context.Context, query.ListCommands) ([]query.CommandInfo, error)
	Skills, Agents func() []frontmatter.Embedded
	About          func(name, about string) string
}

// Extension launches what people type besides input for a model.
type Extension struct {
	plug.NoSession
	cfg Config
}

// New returns the extension.
func New(c Config) *Extension { return &Extension{cfg: c} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "launcher" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{
		plug.Storeless(calculate),
		plug.Storeless(func(_ context.Context, q query.FindEmoji) ([]query.Emoji, error) { return Emojis(q.Text, q.Limit), nil }),
		plug.Storeless(func(context.Context, query.ListSnippets) ([]query.Snippet, error) {
			list, err := x.snippets().List()
			return list, broken(x.snippets().Dir, err)
		}),
		plug.Storeless(x.fillSnippet), plug.Storeless(x.makeSnippet),
		plug.Storeless(func(context.Context, query.ListLinks) ([]query.Link, error) { return x.links() }),
		plug.Storeless(x.fillLink), plug.Storeless(x.setLink), plug.Storeless(x.removeLink),
		plug.Storeless(x.palette), plug.Answers(x.find),
	}
}

// calculateFix is said with each mistake in a calculation, which internal/frontend/text has in
// Korean.
const calculateFix = "write it like: dure calc '(1 + 2) * 3', '5 ft 3 in to cm', '200 + 10%', '255 in hex'"

func calculate(_ context.Context, q query.Calculate) (query.Calculation, error) {
	r, err := calc.Eval(q.Text)
	if err != nil {
		return query.Calculation{}, misuse(err.Error(), calculateFix, nil)
	}
	return query.Calculation{Text: q.Text, Result: r.Text, Exact: r.Exact, Fraction: r.Fraction}, nil
}

// misuse is a mistake of who asks.
func misuse(what, fix string, err error) error {
	return &agent.Problem{Code: agent.ProblemUsage, Message: what, Fix: fix, Err: err}
}

// broken is a file of snippets or links that cannot be used; nil if err is.
func broken(path string, err error) error {
	if err == nil {
		return nil
	}
	return agent.SettingsProblem(path, err)
}

// snippets are the user's.
func (x *Extension) snippets() Snippets {
	return Snippets{Dir: filepath.Join(x.cfg.Home, "snippets"), Workdir: x.cfg.Workdir, User: x.cfg.User, Now: time.Now}
}

func (x *Extension) fillSnippet(_ context.Context, q query.FillSnippet) (f query.FilledSnippet, err error) {
	sn, err := x.snippets().Find(q.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, misuse(fmt.Sprintf("there is no snippet %q", q.Name), "see which there are with: dure snippet list", nil)
	case err == nil && sn.Error != "":
		err = errors.New(sn.Error)
	}
	if err == nil {
		f, err = x.snippets().Fill(sn, q.Values)
	}
	return f, broken(cmp.Or(sn.Path, x.snippets().Dir), err)
}

func (x *Extension) makeSnippet(_ context.Context, q query.MakeSnippet) (path string, err error) {
	path, err = x.snippets().Make(q.Name, q.Text)
	switch {
	case errors.Is(err, fs.ErrExist):
		return path, misuse(fmt.Sprintf("there is a snippet %q already", q.Name), "edit it: "+path, nil)
	case errors.Is(err, ErrName):
		return path, misuse(fmt.Sprintf("%q is no name: a name has 1 to 64 letters, digits, - and _", q.Name), "take another name", nil)
	}
	return path, broken(cmp.Or(path, x.snippets().Dir), err)
}

// linkFile is where the user's links stand.
func (x *Extension) linkFile() string { return filepath.Join(x.cfg.Home, "links.json") }

func (x *Extension) links() ([]query.Link, error) {
	list, err := Links(x.linkFile())
	return list, broken(x.linkFile(), err)
}

// link returns the link of a name.
func (x *Extension) link(name string) (query.Link, error) {
	list, err := x.links()
	if err != nil {
		return query.Link{}, err
	}
	i := slices.IndexFunc(list, func(l query.Link) bool { return l.Name == name })
	if i < 0 {
		return query.Link{}, misuse(fmt.Sprintf("there is no link %q", name), "see which there are with: dure link list", nil)
	}
	return list[i], nil
}

func (x *Extension) fillLink(_ context.Context, q query.FillLink) (string, error) {
	l, err := x.link(q.Name)
	if err != nil {
		return "", err
	}
	address, err := FillLink(l, q.Values)
	if err != nil {
		return "", misuse(err.Error(), "write: dure link open "+l.Name+" "+parameters(l), err)
	}
	return address, nil
}

// parameters are those of a link, as help shows them.
func parameters(l query.Link) string { return strings.ToUpper(strings.Join(l.Parameters, " ")) }

func (x *Extension) setLink(_ context.Context, q query.SetLink) (query.Link, error) {
	err := SetLink(x.linkFile(), q.Link)
	if _, unreadable := Links(x.linkFile()); err != nil && unreadable == nil {
		return query.Link{}, misuse(fmt.Sprintf("the link %q: %v", q.Name, err), "write it like: dure link add docs 'https://example.com/search?q={query}'", err)
	}
	if err != nil {
		return query.Link{}, broken(x.linkFile(), err)
	}
	return x.link(q.Name)
}

func (x *Extension) removeLink(_ context.Context, q query.RemoveLink) (query.Link, error) {
	l, err := x.link(q.Name)
	if err == nil {
		err = broken(x.linkFile(), RemoveLink(x.linkFile(), q.Name))
	}
	return l, err
}
