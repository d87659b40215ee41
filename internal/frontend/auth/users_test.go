package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// A user comes in with their token from when they are added until they are removed, also
// while a server runs; the file has no token.
func TestUsers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "serve", "users.json")
	serving, changing := OpenUsers(path), OpenUsers(path)
	if _, known, err := serving.who(""); known || err != nil {
		t.Fatalf("without a file: %v %v", known, err)
	}
	ann, err := changing.Add("ann", Write, noon)
	if err != nil {
		t.Fatal(err)
	}
	bob, err := changing.Add("bob", Read, noon)
	if err != nil || bob == ann || len(bob) < MinToken {
		t.Fatal(bob, err)
	}
	for token, want := range map[string]User{ann: {"ann", Write, noon}, bob: {"bob", Read, noon}} {
		if got, known, err := serving.who(token); got.User != want || !known || err != nil {
			t.Errorf("%+v %v %v", got, known, err)
		}
	}
	for _, token := range []string{"", ann + "x", ann[1:], strings.ToLower(ann), "ann"} {
		if got, known, _ := serving.who(token); known {
			t.Errorf("%q is %v", token, got)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), ann) || strings.Contains(string(data), strings.TrimPrefix(ann, "dure_")) {
		t.Errorf("the file has the token: %s %v", data, err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := changing.Remove("ann"); err != nil {
		t.Fatal(err)
	}
	if _, known, _ := serving.who(ann); known {
		t.Error("ann has access although she was removed")
	}
	if _, known, _ := serving.who(bob); !known {
		t.Error("bob has none")
	}
	if list, err := serving.List(); err != nil || len(list) != 1 || list[0].Name != "bob" {
		t.Errorf("%v %v", list, err)
	}
	for _, err := range []error{changing.Remove("ann"), second(changing.Add("bob", Read, noon)), second(changing.Add("Bob", Read, noon)), second(changing.Add("", Read, noon)), second(changing.Add("a b", Read, noon)), second(changing.Add("../x", Read, noon)), second(changing.Add("eve", "king", noon)), second(changing.Add(strings.Repeat("a", 65), Read, noon))} {
		if err == nil {
			t.Error("no error")
		}
	}
}

func second(_ string, err error) error { return err }

// A file that is damaged, that others may write, or that somebody has edited wrongly lets
// nobody in.
func TestUsersFailClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.json")
	u := OpenUsers(path)
	token, err := u.Add("ann", Admin, noon)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func() error{
		"cut":     func() error { return os.WriteFile(path, good[:len(good)/2], 0o600) },
		"garbage": func() error { return os.WriteFile(path, []byte("\x00\xff"), 0o600) },
		"more":    func() error { return os.WriteFile(path, append([]byte("{} "), good...), 0o600) },
		"scope": func() error {
			return os.WriteFile(path, []byte(strings.Replace(string(good), "admin", "king", 1)), 0o600)
		},
		"hash": func() error {
			return os.WriteFile(path, []byte(strings.Replace(string(good), `"sha256": "`, `"sha256": "00`, 1)), 0o600)
		},
		"a folder":   func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"open to do": func() error { return errors.Join(os.WriteFile(path, good, 0o600), os.Chmod(path, 0o666)) },
	} {
		if name == "open to do" && runtime.GOOS == "windows" {
			continue // there are no such modes
		}
		if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, good, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, known, err := OpenUsers(path).who(token); !known || err != nil {
			t.Fatalf("%s: before: %v", name, err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if who, known, err := OpenUsers(path).who(token); known || err == nil {
			t.Errorf("%s: %v comes in: %v", name, who, err)
		}
	}
}

// Users that are added at once are all there.
func TestUsersAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.json")
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if _, err := OpenUsers(path).Add(fmt.Sprintf("u%d", i), Read, noon); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list, err := OpenUsers(path).List(); err != nil || len(list) != 10 {
		t.Errorf("%d %v", len(list), err)
	}
}

// Wrong tokens hold up those who show them, and nobody who shows a right one. Whoever cannot
// be told from others, as the users cannot be read, is not held up.
func TestWrongTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.json")
	token, err := OpenUsers(path).Add("ann", Read, noon)
	if err != nil {
		t.Fatal(err)
	}
	d := &Door{Users: OpenUsers(path)}
	in := d.Bearer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	show := func(token string) int {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		in.ServeHTTP(w, r)
		return w.Code
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 * maxFailures {
		if got := show(token); got != http.StatusUnauthorized {
			t.Fatalf("users that cannot be read: %d", got)
		}
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range maxFailures {
		if got := show("wrong"); got != http.StatusUnauthorized {
			t.Fatalf("%d: %d", i, got)
		}
	}
	if got := show("wrong"); got != http.StatusTooManyRequests {
		t.Errorf("a wrong token again: %d", got)
	}
	if got := show(token); got != http.StatusNoContent {
		t.Errorf("the right token: %d", got)
	}
}

func TestScopes(t *testing.T) {
	for _, tt := range []struct {
		have, want Scope
		may        bool
	}{{Read, Read, true}, {Read, Write, false}, {Write, Read, true}, {Write, Admin, false}, {Admin, Write, true}, {"", Read, false}, {Admin, "king", false}, {"king", Read, false}} {
		if got := tt.have.May(tt.want); got != tt.may {
			t.Errorf("%s may %s: %v", tt.have, tt.want, got)
		}
	}
}

// Whoever shows wrong tokens has to wait, and nobody else; what is known of them is bounded.
func TestThrottle(t *testing.T) {
	var h throttle
	for i := range maxFailures {
		if h.waits("192.0.2.1:1", noon) != 0 {
			t.Fatalf("it waits after %d", i)
		}
		if first := h.fail("192.0.2.1:"+fmt.Sprint(i), noon); first != (i == 0) {
			t.Errorf("%d: first %v", i, first)
		}
	}
	if got := h.waits("192.0.2.1:9", noon.Add(time.Second)); got != failureTime-time.Second {
		t.Errorf("it waits %v", got)
	}
	if h.waits("192.0.2.2:9", noon) != 0 || h.waits("192.0.2.1:9", noon.Add(failureTime)) != 0 {
		t.Error("it waits too long, or another does")
	}
	for i := range maxFailures {
		h.fail(fmt.Sprintf("[2001:db8::%d]:7", i), noon)
	}
	if h.waits("[2001:db8::ffff]:7", noon) == 0 || h.waits("[2001:db8:0:1::1]:7", noon) != 0 {
		t.Error("a network of the sixth version is not one address")
	}
	for i := range 3 * maxAddresses {
		h.fail(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), noon)
	}
	if len(h.failed) > maxAddresses+1 {
		t.Errorf("%d addresses are known", len(h.failed))
	}
	if h.waits("203.0.113.7:1", noon) == 0 {
		t.Error("those that do not fit are not counted")
	}
	h.fail("203.0.113.7:1", noon.Add(2*failureTime))
	if h.waits("203.0.113.7:1", noon.Add(2*failureTime)) != 0 || len(h.failed) > 2 {
		t.Errorf("what is over is kept: %d", len(h.failed))
	}
}

// What lasts ends with the access that its user came in with: a token of the same name, or another
// scope, is another one.
func TestStill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.json")
	users := OpenUsers(path)
	came := map[string]context.Context{}
	let := func(name string) {
		token, err := users.Add(name, Write, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		(&Door{Users: users}).Bearer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { came[name] = r.Context() })).ServeHTTP(httptest.NewRecorder(), r)
	}
	let("ann")
	let("bob")
	said := func(when string, ann, bob bool) {
		t.Helper()
		if got := Still(came["ann"]); got != ann {
			t.Errorf("%s: ann has access: %v", when, got)
		}
		if got := Still(came["bob"]); got != bob {
			t.Errorf("%s: bob has access: %v", when, got)
		}
	}
	said("at first", true, true)
	if err := OpenUsers(path).Remove("ann"); err != nil {
		t.Fatal(err)
	}
	said("without ann", false, true)
	if _, err := OpenUsers(path).Add("ann", Write, time.Now()); err != nil {
		t.Fatal(err)
	}
	said("with another ann", false, true)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(data, []byte(`"write"`), []byte(`"metrics"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	said("with less", false, false)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	said("with a broken file", false, false)
	if !Still(With(t.Context(), User{Scope: Admin})) || Still(t.Context()) {
		t.Error("the token of the server has no access, or nobody has")
	}
}
