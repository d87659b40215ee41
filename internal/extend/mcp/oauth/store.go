package oauth

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"dure/internal/base/keys"
	disk "dure/internal/base/record"
)

const (
	keyName   = "oauth-grants" // of the key, among the keys
	keySize   = 32
	suffix    = ".grant"
	magic     = "dure grant 1\n" // what a file begins with
	maxRecord = 1 << 20
	lockEvery = 25 * time.Millisecond // between two tries for a lock
)

// A record is all that is kept for one app and subject.
type record struct {
	App      string   `json:"app"`
	Label    string   `json:"label"`
	Subject  string   `json:"subject,omitempty"`
	Resource string   `json:"resource,omitempty"`
	Grant    *grant   `json:"grant,omitempty"`
	Session  *session `json:"session,omitempty"` // a sign-in that waits, or the last one that failed
	Client   *party   `json:"client,omitempty"`  // as whom we are registered
}

// A grant is what a server has given us, and where to renew it and give it back.
type grant struct {
	Access   string    `json:"access"`
	Type     string    `json:"type"`
	Refresh  string    `json:"refresh,omitempty"`
	Expires  time.Time `json:"expires,omitzero"`
	Scopes   []string  `json:"scopes,omitempty"`
	From     string    `json:"from,omitempty"` // the sign-in that it came of
	At       time.Time `json:"at"`
	Resource string    `json:"resource,omitempty"`
	Server   server    `json:"server"`
	Client   party     `json:"client"`
}

// A party is who we are at a server.
type party struct {
	ID       string    `json:"id"`
	Secret   string    `json:"secret,omitempty"`
	Method   string    `json:"method,omitempty"` // in which the secret is told; "" = as the server likes
	Expires  time.Time `json:"expires,omitzero"`
	At       string    `json:"at,omitempty"`       // the endpoint that has registered us
	Redirect string    `json:"redirect,omitempty"` // with which we are registered
}

// A session is a sign-in that waits for a person.
type session struct {
	ID       string    `json:"id"`
	URL      string    `json:"url"`
	Scopes   []string  `json:"scopes,omitempty"`
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires"`
	Failed   string    `json:"failed,omitempty"`  // the code of how it ended
	Message  string    `json:"message,omitempty"` // and why
	Resource string    `json:"resource,omitempty"`
	Server   server    `json:"server"`
	Client   party     `json:"client"`

	State    string `json:"state,omitempty"`
	Verifier string `json:"verifier,omitempty"`
	Redirect string `json:"redirect,omitempty"`

	UserCode   string        `json:"userCode,omitempty"`
	DeviceCode string        `json:"deviceCode,omitempty"`
	Interval   time.Duration `json:"interval,omitempty"`
}

// open reports whether a person can still agree.
func (s *session) open(now time.Time) bool {
	return s != nil && s.Failed == "" && now.Before(s.Expires)
}

func (r record) secrets() []string {
	var all []string
	add := func(s string) {
		if s != "" {
			all = append(all, s)
		}
	}
	if g := r.Grant; g != nil {
		add(g.Access)
		add(g.Refresh)
		add(g.Client.Secret)
	}
	if s := r.Session; s != nil { // its state is in the address that people are shown
		add(s.Verifier)
		add(s.DeviceCode)
		add(s.Client.Secret)
	}
	if r.Client != nil {
		add(r.Client.Secret)
	}
	return all
}

// store keeps records, encrypted, a file each.
type store struct {
	dir  string
	keys Keys

	mu   sync.Mutex
	seal cipher.AEAD // nil until it is needed
}

func storeError(what string, err error) error {
	return &Error{Code: CodeStore, Message: what + ": " + err.Error(), err: err}
}

func (s *store) path(id string) string { return filepath.Join(s.dir, id+suffix) }

// lock takes the lock of a name, which other programs respect too.
func (s *store) lock(ctx context.Context, name string) (unlock func(), err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, storeError("keeping grants", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()
	l := flock.New(filepath.Join(s.dir, name+".lock"), flock.SetPermissions(0o600))
	ok, err := l.TryLockContext(ctx, lockEvery)
	if err == nil && !ok {
		err = errors.New("it is held")
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, &Error{Code: CodeStopped, Message: "waiting for another program that has the same grant in hand: " + err.Error(), err: err}
		}
		return nil, storeError("locking a grant", err)
	}
	return func() { _ = l.Unlock() }, nil
}

// tryLock takes the lock of a name if nobody has it.
func (s *store) tryLock(name string) (unlock func(), ok bool) {
	l := flock.New(filepath.Join(s.dir, name+".lock"), flock.SetPermissions(0o600))
	if ok, err := l.TryLock(); err != nil || !ok {
		return nil, false
	}
	return func() { _ = l.Unlock() }, true
}

// read returns the record of a name; one that is not there is empty.
func (s *store) read(id string) (record, error) {
	data, err := readOwn(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err != nil {
		return record{}, storeError("reading a grant", err)
	}
	seal, err := s.cipher(false)
	if err != nil {
		return record{}, err
	}
	body, ok := strings.CutPrefix(string(data), magic)
	if !ok || len(body) < seal.NonceSize() {
		return record{}, storeError("reading a grant", fmt.Errorf("%s is damaged: remove it, and sign in again", s.path(id)))
	}
	open, err := seal.Open(nil, []byte(body[:seal.NonceSize()]), []byte(body[seal.NonceSize():]), []byte(magic+id))
	if err != nil {
		return record{}, storeError("reading a grant", fmt.Errorf("%s is damaged, or was written with another key: remove it, and sign in again", s.path(id)))
	}
	var r record
	if json.Unmarshal(open, &r) != nil { // its error may quote a secret
		return record{}, storeError("reading a grant", fmt.Errorf("%s is damaged: remove it, and sign in again", s.path(id)))
	}
	return r, nil
}

// readOwn reads a file that only its owner may read.
func readOwn(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular() || info.Size() > maxRecord:
		return nil, fmt.Errorf("%s is no file of at most 1 MiB", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others can read %s: run chmod 600 on it", path)
	}
	return os.ReadFile(path)
}

// write keeps a record. It is on the disk when write returns.
func (s *store) write(id string, r record) error {
	seal, err := s.cipher(true)
	if err != nil {
		return err
	}
	body, err := json.Marshal(r)
	if err != nil {
		return storeError("keeping a grant", err)
	}
	nonce := make([]byte, seal.NonceSize())
	rand.Read(nonce) // never fails
	data := seal.Seal(append([]byte(magic), nonce...), nonce, body, []byte(magic+id))
	if len(data) > maxRecord {
		return storeError("keeping a grant", errors.New("it is larger than 1 MiB"))
	}
	if err := disk.Write(s.path(id), data); err != nil {
		return storeError("keeping a grant", err)
	}
	return nil
}

// list returns the names of all records.
func (s *store) list() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, storeError("reading the grants", err)
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), suffix); ok && id != "" {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// cipher returns what encrypts. The key is made once, and never while there are
// grants: a keychain that is locked looks like an empty one.
func (s *store) cipher(create bool) (cipher.AEAD, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seal != nil {
		return s.seal, nil
	}
	text, _, err := s.keys.Get(keyName)
	if errors.Is(err, keys.ErrNone) && create {
		text, err = s.newKey()
	}
	if errors.Is(err, keys.ErrNone) {
		err = errors.New("their key cannot be had: unlock the keychain, or remove " + s.dir + " and sign in again")
	}
	if err != nil {
		return nil, storeError("reading the grants", err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) != keySize {
		return nil, storeError("reading the grants", errors.New("their key is none"))
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, storeError("reading the grants", err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, storeError("reading the grants", err)
	}
	s.seal = seal
	return seal, nil
}

// newKey makes the key, unless another program has meanwhile.
func (s *store) newKey() (string, error) {
	unlock, err := s.lock(context.Background(), "key")
	if err != nil {
		return "", err
	}
	defer unlock()
	text, _, err := s.keys.Get(keyName)
	if !errors.Is(err, keys.ErrNone) {
		return text, err
	}
	ids, err := s.list()
	if err != nil {
		return "", err
	}
	if len(ids) > 0 {
		return "", keys.ErrNone
	}
	raw := make([]byte, keySize)
	rand.Read(raw) // never fails
	text = base64.RawURLEncoding.EncodeToString(raw)
	if _, err := s.keys.Set(keyName, text); err != nil {
		return "", err
	}
	return text, nil
}

// remove forgets a record.
func (s *store) remove(id string) error {
	if err := os.Remove(s.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storeError("forgetting a grant", err)
	}
	return nil
}
