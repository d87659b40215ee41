// Package keys keeps the keys of providers: in the keychain of the system where
// there is one, else in a file that only its owner can read. A key is never
// logged, and never part of an error.
//
// A question to the keychain runs in a goroutine of its own, because the system
// may ask a person first; one that is not answered in time is left behind.
package keys

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/zalando/go-keyring"

	"dure/agent"
)

const (
	name     = "dure"           // of the program, in the keychain
	patience = 20 * time.Second // for a person to unlock the keychain
	maxFile  = 1 << 20
	maxKey   = 8 << 10
)

// Errors of a [Store].
var (
	ErrNone  = errors.New("there is no key")
	ErrLoose = errors.New("others can read the file with the keys")
)

// Place is where a key is kept.
type Place string

// The places.
const (
	Keychain Place = "keychain"
	File     Place = "file"
)

// A Ring is a keychain. Its Get returns [ErrNone] for a name it does not have.
type Ring interface {
	Get(user string) (string, error)
	Set(user, secret string) error
	Delete(user string) error
}

// Store keeps keys by the name of their provider. It is safe for concurrent use;
// of two programs that write the file at once, the last one wins.
type Store struct {
	Path string // of the file; required
	Ring Ring   // nil = the file only
}

// System returns the keychain of the system.
func System() Ring { return system{} }

type system struct{}

func (system) Get(user string) (string, error) {
	s, err := keyring.Get(name, user)
	if errors.Is(err, keyring.ErrNotFound) {
		return "", ErrNone
	}
	return s, err
}

func (system) Set(user, secret string) error { return keyring.Set(name, user, secret) }

func (system) Delete(user string) error {
	if err := keyring.Delete(name, user); err != nil && !errors.Is(err, keyring.ErrNotFound) {
		return err
	}
	return nil
}

// Problem says what a person does about an error of the store.
func (s Store) Problem(err error) error {
	return &agent.Problem{
		Code: agent.ProblemKeys, Message: err.Error(), Err: err, Fix: "mend or remove " + s.Path + ", then store the key again: dure login",
		Args: map[string]string{"path": s.Path, "error": err.Error()},
	}
}

// Get returns the key of a provider and where it is. The file is looked at
// first, because that asks nobody. Without a key the error is [ErrNone]; a
// keychain that cannot be asked counts as empty.
func (s Store) Get(provider string) (string, Place, error) {
	all, err := s.read()
	if err != nil {
		return "", "", err
	}
	if key := all[provider]; key != "" {
		return key, File, nil
	}
	if s.Ring == nil {
		return "", "", ErrNone
	}
	key, err := within(func() (string, error) { return s.Ring.Get(provider) })
	if err != nil || key == "" {
		return "", "", ErrNone
	}
	return key, Keychain, nil
}

// Set keeps a key, in the keychain if that takes it, and reports where it is now.
func (s Store) Set(provider, key string) (Place, error) {
	key = strings.TrimSpace(key)
	switch {
	case key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("keeping the key: this is no key: a key has letters, digits and signs, and no spaces")
	case s.Ring != nil:
		_, err := within(func() (string, error) { return "", s.Ring.Set(provider, key) })
		if err == nil {
			return Keychain, s.change(provider, "") // an older one in the file would be stronger
		}
	}
	return File, s.change(provider, key)
}

// Delete forgets the key of a provider, wherever it is. It reports [ErrNone] when
// there was none.
func (s Store) Delete(provider string) error {
	_, _, err := s.Get(provider)
	if err != nil {
		return err
	}
	if s.Ring != nil {
		_, err = within(func() (string, error) { return "", s.Ring.Delete(provider) })
	}
	if ferr := s.change(provider, ""); ferr != nil {
		return ferr
	}
	if _, _, still := s.Get(provider); still == nil && err != nil {
		return fmt.Errorf("removing the key from the keychain: %w", err)
	}
	return nil
}

var errSlow = errors.New("the keychain does not answer")

// within asks the keychain, but does not wait for ever.
func within(ask func() (string, error)) (string, error) {
	type answer struct {
		key string
		err error
	}
	done := make(chan answer, 1)
	go func() {
		key, err := ask()
		done <- answer{key, err}
	}()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case a := <-done:
		return a.key, a.err
	case <-t.C:
		return "", errSlow
	}
}

// read returns the keys of the file. One that others can read is refused: they
// may have, and the key should be replaced.
func (s Store) read() (map[string]string, error) {
	info, err := os.Stat(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the keys: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("reading the keys: %w: %s; run chmod 600 on it, and replace the keys", ErrLoose, s.Path)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("reading the keys: %s is larger than 1 MiB", s.Path)
	}
	data, err := os.ReadFile(s.Path)
	if err != nil {
		return nil, fmt.Errorf("reading the keys: %w", err)
	}
	var all map[string]string
	if err := json.Unmarshal(data, &all); err != nil { // its text may quote a key
		return nil, fmt.Errorf("reading the keys: %s is no JSON object of texts", s.Path)
	}
	return all, nil
}

// change sets the key of a provider in the file; "" removes it.
func (s Store) change(provider, key string) error {
	all, err := s.read()
	if err != nil {
		return err
	}
	if key == "" && all[provider] == "" {
		return nil
	}
	if all == nil {
		all = map[string]string{}
	}
	if all[provider] = key; key == "" {
		delete(all, provider)
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the keys: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil {
		return fmt.Errorf("writing the keys: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(s.Path), ".credentials-*") // for its owner only
	if err != nil {
		return fmt.Errorf("writing the keys: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(data, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), s.Path)
	}
	if err != nil {
		return fmt.Errorf("writing the keys: %w", err)
	}
	return nil
}
