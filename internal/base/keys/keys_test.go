package keys

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// ring is a keychain in memory.
type ring struct {
	keys map[string]string
	err  error
	wait chan struct{}
}

func (r *ring) Get(user string) (string, error) {
	if r.wait != nil {
		<-r.wait
	}
	if k, ok := r.keys[user]; ok {
		return k, r.err
	}
	return "", errors.Join(ErrNone, r.err)
}

func (r *ring) Set(user, secret string) error {
	if r.err == nil {
		r.keys[user] = secret
	}
	return r.err
}

func (r *ring) Delete(user string) error {
	if r.err == nil {
		delete(r.keys, user)
	}
	return r.err
}

func TestStore(t *testing.T) {
	locked := errors.New("locked")
	for _, c := range []struct {
		name  string
		ring  *ring
		place Place
	}{
		{"keychain", &ring{keys: map[string]string{}}, Keychain},
		{"no keychain", nil, File},
		{"a keychain that is locked", &ring{keys: map[string]string{}, err: locked}, File},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Store{Path: filepath.Join(t.TempDir(), "new", "credentials.json")}
			if c.ring != nil {
				s.Ring = c.ring
			}
			if _, _, err := s.Get("openai"); !errors.Is(err, ErrNone) {
				t.Errorf("empty: %v", err)
			}
			if place, err := s.Set("openai", " sk-1 \n"); place != c.place || err != nil {
				t.Errorf("set: %s, %v", place, err)
			}
			if _, err := s.Set("google", "g"); err != nil {
				t.Error(err)
			}
			if key, place, err := s.Get("openai"); key != "sk-1" || place != c.place || err != nil {
				t.Errorf("get: %q, %s, %v", key, place, err)
			}
			if c.place == File {
				info, err := os.Stat(s.Path)
				if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
					t.Errorf("file: %v, %v", info.Mode(), err)
				}
			}
			if err := s.Delete("openai"); err != nil {
				t.Error(err)
			}
			if err := s.Delete("openai"); !errors.Is(err, ErrNone) {
				t.Errorf("twice: %v", err)
			}
			if key, _, _ := s.Get("google"); key != "g" {
				t.Error("the other key went too")
			}
		})
	}
}

func TestWhatIsNoKey(t *testing.T) {
	s := Store{Path: filepath.Join(t.TempDir(), "c")}
	for _, key := range []string{"", " ", "two words", "with\x00nul", "키", strings.Repeat("x", maxKey+1)} {
		if _, err := s.Set("p", key); err == nil || key != "" && len(key) > 2 && strings.Contains(err.Error(), key) {
			t.Errorf("%.10q: %v", key, err)
		}
	}
}

func TestAFileThatOthersCanRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other permissions")
	}
	s := Store{Path: filepath.Join(t.TempDir(), "c")}
	if err := os.WriteFile(s.Path, []byte(`{"p":"secret-key"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.Get("p")
	if !errors.Is(err, ErrLoose) || strings.Contains(err.Error(), "secret-key") {
		t.Error(err)
	}
	if err := os.Chmod(s.Path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path, []byte(`{"p":secret-key}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get("p"); err == nil || strings.Contains(err.Error(), "secret-key") {
		t.Error(err)
	}
}

func TestAKeychainThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &ring{wait: make(chan struct{})}
		s := Store{Path: filepath.Join(t.TempDir(), "c"), Ring: r}
		if _, _, err := s.Get("p"); !errors.Is(err, ErrNone) {
			t.Error(err)
		}
		close(r.wait)
	})
}
