package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/record"
	"dure/internal/kernel/plug"
)

// The bounds of users.
const (
	maxUsers    = 1000
	maxUserName = 64 // bytes
)

// Scope is what a user may do.
type Scope string

// The scopes. Each may what those before it may.
const (
	Metrics Scope = "metrics" // the figures of the program
	Read    Scope = "read"    // ... and to look at the sessions of their own
	Write   Scope = "write"   // ... and to make them, and work in them
	Admin   Scope = "admin"   // all sessions, and the program
)

// Scopes are all of them.
func Scopes() []Scope { return []Scope{Metrics, Read, Write, Admin} }

// May reports whether the scope has all that another one has.
func (s Scope) May(what Scope) bool {
	return slices.Index(Scopes(), what) <= slices.Index(Scopes(), s) && slices.Contains(Scopes(), what)
}

// User is who has come in.
type User struct {
	Name    string    `json:"name"` // "" = whoever has started the server, and has its token
	Scope   Scope     `json:"scope"`
	Created time.Time `json:"created,omitzero"`
}

// Errors of users.
var (
	ErrNoUser   = errors.New("there is no such user")
	ErrIsUser   = errors.New("there is such a user already")
	ErrTooMany  = fmt.Errorf("there are %d users already", maxUsers)
	ErrUserName = fmt.Errorf("a name is 1 to %d of a-z, 0-9, - and _, and begins with a letter", maxUserName)
	ErrScope    = errors.New("a scope is metrics, read, write or admin")
)

// Users are those whom a file names, each with the hash of a token of their own. The file is
// read again when it has changed: whoever is removed from it has no access from then on. It
// is safe for concurrent use, by several programs.
type Users struct {
	plug.NoSession
	path string

	mu   sync.Mutex
	seen fs.FileInfo // of the file as it was read; nil = it was not
	list []entry
	err  error
}

// entry is a user in the file.
type entry struct {
	User
	Hash string `json:"sha256"` // of the token, in hexadecimal
}

// roll is what the file holds.
type roll struct {
	Users []entry `json:"users"`
}

// UsersFile is the usual name of the file.
const UsersFile = "serve-users.json"

// OpenUsers returns the users of a file, which need not be there.
func OpenUsers(path string) *Users { return &Users{path: path} }

// Name returns the name of the extension.
func (u *Users) Name() string { return "users" }

// Answers returns the queries that the extension answers.
func (u *Users) Answers() []plug.Answer {
	return []plug.Answer{plug.Storeless(u.listed), plug.Storeless(u.change)}
}

func (u *Users) listed(context.Context, query.ListUsers) ([]query.User, error) {
	all, err := u.List()
	list := make([]query.User, len(all))
	for i, one := range all {
		list[i] = query.User{Name: one.Name, Scope: string(one.Scope), Created: one.Created}
	}
	return list, err
}

func (u *Users) change(_ context.Context, q query.ChangeUser) (query.NewUser, error) {
	changed := query.NewUser{Name: q.Name, Scope: q.Scope}
	var err error
	switch q.Do {
	case query.UserAdd:
		changed.Token, err = u.Add(q.Name, Scope(q.Scope), time.Now())
	case query.UserRemove:
		err = u.Remove(q.Name)
	default:
		err = fmt.Errorf("do is %s or %s", query.UserAdd, query.UserRemove)
	}
	if err == nil {
		return changed, nil
	}
	return query.NewUser{}, &agent.Problem{Code: agent.ProblemUsage, Message: strings.TrimPrefix(q.Name+": "+err.Error(), ": "), Err: err}
}

// Add adds a user, and returns the token, which nobody learns again.
func (u *Users) Add(name string, scope Scope, now time.Time) (token string, err error) {
	if !isName(name) {
		return "", ErrUserName
	}
	if !slices.Contains(Scopes(), scope) {
		return "", ErrScope
	}
	token = "dure_" + rand.Text()
	hash := sha256.Sum256([]byte(token))
	return token, record.Change(u.path, func(r *roll) error {
		switch {
		case slices.ContainsFunc(r.Users, func(e entry) bool { return e.Name == name }):
			return ErrIsUser
		case len(r.Users) >= maxUsers:
			return ErrTooMany
		}
		r.Users = append(r.Users, entry{User{name, scope, now.UTC().Truncate(time.Second)}, hex.EncodeToString(hash[:])})
		return nil
	})
}

// isName keeps names to what can stand in a tag, a log and an address.
func isName(name string) bool {
	return name != "" && len(name) <= maxUserName && name[0] >= 'a' && name[0] <= 'z' &&
		!strings.ContainsFunc(name, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		})
}

// Remove takes a user's access away.
func (u *Users) Remove(name string) error {
	return record.Change(u.path, func(r *roll) error {
		n := len(r.Users)
		r.Users = slices.DeleteFunc(r.Users, func(e entry) bool { return e.Name == name })
		if len(r.Users) == n {
			return ErrNoUser
		}
		return nil
	})
}

// List returns the users, by name.
func (u *Users) List() ([]User, error) {
	list, err := u.read()
	users := make([]User, 0, len(list))
	for _, e := range list {
		users = append(users, e.User)
	}
	slices.SortFunc(users, func(a, b User) int { return strings.Compare(a.Name, b.Name) })
	return users, err
}

// read returns what the file says now. One that cannot be read names nobody.
func (u *Users) read() ([]entry, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	info, err := os.Stat(u.path)
	if errors.Is(err, fs.ErrNotExist) {
		u.seen, u.list, u.err = nil, nil, nil
		return nil, nil
	}
	if err == nil && u.seen != nil && os.SameFile(u.seen, info) && u.seen.ModTime().Equal(info.ModTime()) && u.seen.Size() == info.Size() {
		return u.list, u.err
	}
	u.seen, u.list, u.err = nil, nil, err
	if err == nil {
		u.list, u.err = checked(u.path)
		u.seen = info
	}
	return u.list, u.err
}

// checked reads a file that somebody may have edited.
func checked(path string) ([]entry, error) {
	r, err := record.Read[roll](path)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, e := range r.Users {
		hash, err := hex.DecodeString(e.Hash)
		if err != nil || len(hash) != sha256.Size || !isName(e.Name) || names[e.Name] || !slices.Contains(Scopes(), e.Scope) {
			return nil, fmt.Errorf("reading %s: the user %q is not as dure writes one", path, e.Name)
		}
		names[e.Name] = true
	}
	return r.Users, nil
}

// who returns the user with a token. How long it takes tells nothing about the tokens there are.
func (u *Users) who(token string) (came entry, known bool, err error) {
	list, err := u.read()
	if err != nil {
		return entry{}, false, err
	}
	sum := sha256.Sum256([]byte(token))
	got := []byte(hex.EncodeToString(sum[:]))
	for _, e := range list {
		if subtle.ConstantTimeCompare(got, []byte(strings.ToLower(e.Hash))) == 1 {
			came, known = e, true
		}
	}
	return came, known, nil
}

// still reports whether a user has the token and the scope that they came in with.
func (u *Users) still(came entry) bool {
	list, err := u.read()
	return err == nil && slices.ContainsFunc(list, func(e entry) bool {
		return e.Name == came.Name && e.Scope == came.Scope && e.Hash == came.Hash
	})
}

type (
	userKey  struct{}
	stillKey struct{}
)

// With returns a context in which the user has come in.
func With(ctx context.Context, u User) context.Context { return context.WithValue(ctx, userKey{}, u) }

// came returns a context in which a user of the file has come in.
func (u *Users) came(ctx context.Context, e entry) context.Context {
	return context.WithValue(With(ctx, e.User), stillKey{}, func() bool { return u.still(e) })
}

// Who returns who has come in with a request; false = nobody has shown anything.
func Who(ctx context.Context) (User, bool) {
	u, ok := ctx.Value(userKey{}).(User)
	return u, ok
}

// Still reports whether whoever has come in with a request would be let in again: what lasts
// asks now and then. A user who was removed and added again has another token.
func Still(ctx context.Context) bool {
	if still, ok := ctx.Value(stillKey{}).(func() bool); ok {
		return still()
	}
	_, ok := Who(ctx)
	return ok
}
