package guard

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/prooftest"
)

// A sample is a line of a corpus. Texts have ${} in places where it keeps scanners
// of repositories from taking them for leaks; it is not part of them.
type sample struct {
	ID    string   `json:"id"`
	Group string   `json:"group"`
	Text  string   `json:"text"`
	Want  string   `json:"want"`  // "" = Text
	Kinds []string `json:"kinds"` // of what is masked
	Leak  string   `json:"leak"`  // what must not get through, nor half of it
	Raw   bool     `json:"raw"`   // Leak is not in Text as it is
	Fence bool     `json:"fence"`
}

func corpus(t *testing.T, name string, least int) []sample {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []sample
	seen := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var s sample
		d := json.NewDecoder(strings.NewReader(strings.ReplaceAll(lines.Text(), "${}", "")))
		d.DisallowUnknownFields()
		if err := d.Decode(&s); err != nil || s.ID == "" || seen[s.ID] {
			t.Fatalf("%s: %v: %.80s", name, err, lines.Text())
		}
		seen[s.ID] = true
		if s.Want == "" {
			s.Want = s.Text
		}
		all = append(all, s)
	}
	if len(all) < least {
		t.Fatalf("%s has %d samples, want %d", name, len(all), least)
	}
	return all
}

// eval checks what becomes of a text, in one piece and in many.
func (s sample) eval(t *testing.T, name, text, want string) {
	t.Helper()
	got, kinds := Eval(text, s.Group)
	if got != want || !slices.Equal(kinds, s.Kinds) {
		t.Errorf("%s, %s: %q %v\nwant %q %v", s.ID, name, got, kinds, want, s.Kinds)
		return
	}
	if again, more := Eval(got, s.Group); again != got || more != nil {
		t.Errorf("%s, %s: the second time %q, %v", s.ID, name, again, more)
	}
	f := newFilter(&pieces{text, 1}, scopeOf(s.Group))
	if parts, err := io.ReadAll(f); err != nil || string(parts) != want {
		t.Errorf("%s, %s: in pieces %q, %v", s.ID, name, parts, err)
	}
}

func TestSecrets(t *testing.T) {
	all := corpus(t, "secrets", 150)
	kinds := map[string]bool{}
	for n, s := range prooftest.Sample(t, all, 16, func(s sample) bool {
		kind := s.Group + fmt.Sprint(s.Kinds)
		first := !kinds[kind]
		kinds[kind] = true
		return first
	}) {
		s.atBorders(t, n)
	}
	for _, s := range all {
		s.eval(t, "as it is", s.Text, s.Want)
		if got, _ := Eval(s.Text, s.Group); len(s.Leak) >= 12 && (strings.Contains(got, s.Leak[:len(s.Leak)/2]) || strings.Contains(got, s.Leak[len(s.Leak)/2:]) && strings.Contains(s.Want, s.Leak[len(s.Leak)/2:]) == false) {
			t.Errorf("%s: half of it is in %q", s.ID, got)
		}
		if s.Raw {
			continue
		}
		half := strings.Index(s.Text, s.Leak) + len(s.Leak)/2
		for !utf8.RuneStart(s.Text[half]) {
			half--
		}
		for name, between := range map[string]string{
			"zero width": "\u200b", "colour": "\x1b[1;31m", "title": "\x1b]0;x\a", "bidi": "\u202e\u2066", "NUL": "\x00", "tags": "\U000e0041\U000e0042", "8 bit": "\u009b0m",
		} {
			if s.Group == "files" && strings.Contains(s.Leak, "\n") {
				continue
			}
			s.eval(t, name, s.Text[:half]+between+s.Text[half:], s.Want)
		}
	}
}

// atBorders checks a secret over the end of a chunk, at every place of the secret.
func (s sample) atBorders(t *testing.T, n int) {
	if s.Raw {
		return
	}
	for i, at := range []int{0, 1, len(s.Leak) / 2, len(s.Leak)} {
		if i%2 != n%2 && !prooftest.Long() {
			continue // the next sample has it
		}
		pad := strings.Repeat("a line of text\n", (chunkSize-maxSecret)/15)
		pad += strings.Repeat(".", max(chunkSize-maxSecret-len(pad)-strings.Index(s.Text, s.Leak)-at-1, 0)) + "\n"
		s.eval(t, "at a border", pad+s.Text, pad+s.Want)
	}
}

func TestLookalikes(t *testing.T) {
	for _, s := range corpus(t, "lookalikes", 100) {
		s.eval(t, "as it is", s.Text, s.Want)
		s.eval(t, "in a text", "first\n"+s.Text+"\nlast", "first\n"+s.Want+"\nlast")
	}
}

func TestHostile(t *testing.T) {
	for _, s := range corpus(t, "hostile", 60) {
		s.eval(t, "as it is", s.Text, s.Want)
	}
}

// What poses as structure is fenced, and what does not is left as it is.
func TestFences(t *testing.T) {
	g := New(Config{Secret: []byte("s")})
	for _, s := range corpus(t, "delimit", 60) {
		r, err := g.Check(t.Context(), agent.Spec{Name: "x__y", Group: s.Group}, agent.Call{ID: "c1"}, agent.OK(s.Text))
		if err != nil || (r.Fence != "") != s.Fence || r.Unfenced() != s.Want {
			t.Errorf("%s: %q, %q, %v", s.ID, r.Fence, r.Text, err)
		}
		begin, end := agent.FenceLines(r.Fence)
		if s.Fence && r.Text != begin+s.Want+end {
			t.Errorf("%s: %q", s.ID, r.Text)
		}
	}
}

// mixtures returns how many random texts the tests of mixtures look at.
func mixtures() int {
	if prooftest.Long() {
		return 20_000
	}
	return 5000
}

// Pieces of samples next to each other: the text is the same the second time, and
// where it is cut does not matter.
func TestMixtures(t *testing.T) {
	var texts []string
	for _, name := range []string{"secrets", "lookalikes", "hostile", "delimit"} {
		for _, s := range corpus(t, name, 1) {
			texts = append(texts, s.Text)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range mixtures() {
		var text string
		for range 1 + r.IntN(4) {
			one := texts[r.IntN(len(texts))]
			from, to := r.IntN(len(one)+1), r.IntN(len(one)+1)
			text += one[min(from, to):max(from, to)]
		}
		once, _ := Eval(text, "")
		if again, kinds := Eval(once, ""); again != once || kinds != nil {
			t.Fatalf("%q\nbecomes %q\nand then %q", text, once, again)
		}
		parts, err := io.ReadAll(newFilter(&pieces{text, 1 + r.IntN(9)}, scopeOf("")))
		if err != nil || string(parts) != once {
			t.Fatalf("%q\nbecomes %q\nin pieces %q", text, once, parts)
		}
	}
}
