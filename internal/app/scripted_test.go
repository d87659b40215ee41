//go:build unix

package app_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/text/encoding/korean"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

var update = flag.Bool("update", false, "rewrite what the scripts in testdata/sessions expect of log and requests")

// TestScripted plays the scripts in testdata/sessions. The whole program runs:
// settings, adapter, loop, tools, policy, guard, and a journal on the disk. Each
// script says first what the user saw. Its sections:
//
//	work/FILE      the workspace before; behind a bar how the file is stored:
//	               crlf, bom, euc-kr, hex
//	want/FILE      what is different afterwards; "| gone" for a file that is gone
//	settings.json  the user's settings
//	flags          the command line: mode, allow, deny, dialect, max-turns, schema; nobody to ask
//	model          what the model says, a paragraph for each request: think, say,
//	               call (a tool and its JSON; output:HANDLE is the last handle
//	               it has read), raw (the same, any text), stop, fault
//	user           what the user does, each line when the one before it has
//	               arrived:
//	                 prompt, mode, continue  when no turn runs
//	                 steer, later            while one runs
//	                 allow, deny, answer     when there is a question; "allow:
//	                                         session" holds for the session, deny
//	                                         has a reason, answer QUESTION=ANSWER
//	                 interrupt               at once
//	                 when, shown             waits for a line of the log, or a text on the screen
//	                 file, link              makes one in the workspace: NAME TEXT, NAME TARGET
//	                 plain                   the next program wants no form of answers
//	                 close, quit             ends the program, when no turn runs or
//	                                         at once, and starts another
//	log            the log, a line for each event; calls are c1, c2, ... in the
//	               order in which the model makes them; times, IDs and hashes are
//	               left out, and so is the middle of long texts
//	asked          the last request, a line for each block; may be missing
func TestScripted(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/sessions/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := newPlay(t, ar)
			p.act()
			p.sound()
			p.workspace()
			p.compare("log", p.log(), true)
			p.compare("asked", p.asked(), false)
			if *update && !t.Failed() {
				if err := os.WriteFile(file, txtar.Format(ar), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// These are others each time: what a child has used grows with the name of the workspace.
var childIDs, childTokens = regexp.MustCompile(`\bc[a-z2-7]{32}\b`), regexp.MustCompile(`\b\d+ tokens\]`)

// play is a script on the stage.
type play struct {
	*talk
	*world
	t       *testing.T
	ar      *txtar.Archive
	lines   *lines
	program *app.App
	flags   app.Flags
	open    agent.Open
	planned []int                             // statuses of the faults
	events  func() (agent.Event, error, bool) // stored and live
}

func newPlay(t *testing.T, ar *txtar.Archive) *play {
	t.Helper()
	p := &play{t: t, ar: ar, open: agent.Open{Approver: true}}
	p.lines = readModel(t, p.section("model"))
	for _, r := range p.lines.replies {
		for _, f := range r.Faults {
			p.planned = append(p.planned, f.Status)
		}
	}
	p.world = newWorld(t, script.Script{}, script.Options{Func: p.lines.next})
	for name, data := range p.files("work/") {
		p.put(name, data)
	}
	if s := p.section("settings.json"); s != "" {
		p.put("../home/dure/settings.json", []byte(s))
	}
	for word, value := range commands(p.section("flags")) {
		p.flag(word, value)
	}
	p.begin()
	t.Cleanup(func() {
		if err := p.program.Close(); err != nil {
			t.Errorf("closing the program: %v", err)
		}
	})
	return p
}

// section returns a section, or "".
func (p *play) section(name string) string {
	for _, f := range p.ar.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// files returns the files of the workspace that stand under a prefix. What
// stands behind a bar in a section's name says how a file is stored; nil is a
// file that is gone.
func (p *play) files(prefix string) map[string][]byte {
	files := map[string][]byte{}
	for _, f := range p.ar.Files {
		name, ok := strings.CutPrefix(f.Name, prefix)
		if !ok {
			continue
		}
		name, how, _ := strings.Cut(name, "|")
		files[strings.TrimSpace(name)] = p.stored(f.Data, strings.Fields(how))
	}
	return files
}

func (p *play) stored(data []byte, how []string) []byte {
	p.t.Helper()
	var err error
	for _, word := range how {
		switch word {
		case "gone":
			return nil
		case "crlf":
			data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
		case "bom":
			data = append([]byte("\xef\xbb\xbf"), data...)
		case "euc-kr":
			data, err = korean.EUCKR.NewEncoder().Bytes(data)
		case "hex":
			data, err = hex.DecodeString(strings.Join(strings.Fields(string(data)), ""))
		default:
			err = fmt.Errorf("unknown word")
		}
		if err != nil {
			p.t.Fatalf("a file stored as %q: %v", word, err)
		}
	}
	return slices.Concat([]byte{}, data)
}

func (p *play) put(name string, data []byte) {
	p.t.Helper()
	path := filepath.Join(p.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// commands yields the lines of a section as "word: value".
func commands(text string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for line := range strings.Lines(text) {
			word, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if word != "" && !strings.HasPrefix(word, "#") && !yield(word, plainText(strings.TrimSpace(value))) {
				return
			}
		}
	}
}

// plainText returns a value without its quotes, if it has any.
func plainText(s string) string {
	if strings.HasPrefix(s, `"`) {
		if u, err := strconv.Unquote(s); err == nil {
			return u
		}
	}
	return s
}

func (p *play) flag(word, value string) {
	p.t.Helper()
	switch word {
	case "mode":
		p.flags.Mode = value
	case "allow":
		p.flags.Allow = append(p.flags.Allow, value)
	case "deny":
		p.flags.Deny = append(p.flags.Deny, value)
	case "dialect":
		p.flags.Dialect = value
	case "schema":
		p.open.Schema = json.RawMessage(value)
	case "nobody":
		p.open.Approver = false
	case "max-turns":
		n, err := strconv.Atoi(value)
		if err != nil {
			p.t.Fatal(err)
		}
		p.open.MaxSteps = n
	default:
		p.t.Fatalf("unknown flag %q", word)
	}
}

// lines is the model's part: what it says to one request after the other.
type lines struct {
	replies []script.Reply
	at      int
	handle  string // the last one that the model has read
}

// readModel reads the model's part: a paragraph answers one request.
func readModel(t *testing.T, text string) *lines {
	t.Helper()
	l := new(lines)
	calls := 0
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		r := script.Reply{Chunk: 16}
		for word, value := range commands(paragraph) {
			switch word {
			case "say":
				r.Text = value
			case "think":
				r.Thinking = value
			case "call", "raw":
				calls++
				r.Calls = append(r.Calls, readCall(t, word, value, calls))
			case "stop":
				stop, why, _ := strings.Cut(value, " ")
				r.Stop, r.StopText = agent.StopReason(stop), why
			case "fault":
				r.Faults = readFault(t, value)
			default:
				t.Fatalf("unknown line %q of the model", word)
			}
		}
		l.replies = append(l.replies, r)
	}
	return l
}

func readCall(t *testing.T, word, value string, n int) script.Call {
	t.Helper()
	name, in, _ := strings.Cut(value, " ")
	c := script.Call{ID: fmt.Sprintf("c%d", n), Tool: name}
	switch {
	case word == "raw":
		c.Raw = in
	case in != "" && !json.Valid([]byte(in)):
		t.Fatalf("the input of %s is no JSON: %s", name, in)
	default:
		c.Input = json.RawMessage(in)
	}
	return c
}

// readFault reads what goes wrong with one request: a kind, then pairs of a word
// and a number. It goes wrong whichever attempt it is.
func readFault(t *testing.T, text string) []script.Fault {
	t.Helper()
	words := strings.Fields(text)
	f := script.Fault{Kind: script.FaultKind(words[0])}
	for pair := range slices.Chunk(words[1:], 2) {
		if len(pair) < 2 {
			t.Fatalf("the fault %q: %q has no value", text, pair[0])
		}
		n, err := strconv.Atoi(pair[1])
		if err != nil {
			t.Fatalf("the fault %q: %v", text, err)
		}
		switch pair[0] {
		case "status":
			f.Status = n
		case "after":
			f.After = n
		case "retry-after-ms":
			f.Header = map[string]string{"Retry-After-Ms": pair[1]}
		default:
			t.Fatalf("the fault %q: unknown word %q", text, pair[0])
		}
	}
	return slices.Repeat([]script.Fault{f}, 10)
}

// next is the answer to the next request. In inputs output:HANDLE stands for the
// last handle that the model has read.
func (l *lines) next(r script.Request) script.Reply {
	if h := handlePattern.FindString(r.Last); h != "" {
		l.handle = h
	}
	l.at++
	if l.at > len(l.replies) {
		return script.Reply{Faults: slices.Repeat([]script.Fault{{Kind: script.Status, Status: 418, Message: "the script is over"}}, 10)}
	}
	reply := l.replies[l.at-1]
	reply.Calls = slices.Clone(reply.Calls)
	for i, c := range reply.Calls {
		reply.Calls[i].Input = bytes.ReplaceAll(c.Input, []byte("output:HANDLE"), []byte(l.handle))
	}
	return reply
}

// begin builds the program and opens the session, or opens it again.
func (p *play) begin() {
	p.t.Helper()
	var err error
	if p.program, err = app.New(options(p.work, p.home, p.model.URL(), p.flags)); err != nil {
		p.t.Fatal(err)
	}
	if p.talk == nil || p.flags.Mode != "" { // as the command line does it
		p.open.Mode = p.program.Config().Mode
	}
	c := p.program.Client()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	s, err := c.Open(ctx, p.open)
	if err != nil {
		p.t.Fatal(err)
	}
	k := &talk{t: p.t, Client: c, Session: s}
	if p.talk != nil {
		k.seen = p.seen
	}
	next, stop := iter.Pull2(s.Events(ctx, int64(len(k.seen))))
	p.events = next
	k.next = func() (agent.Event, error, bool) { // stored events only
		for {
			if e, err, ok := next(); err != nil || !ok || !e.Live() {
				return e, err, ok
			}
		}
	}
	p.talk = k
	p.t.Cleanup(func() { cancel(); stop() })
	p.until("the head", func(e agent.Event) bool { return e.Seq == s.Info.Head })
}

// reopen ends the program, whatever it does, and opens the session in another.
func (p *play) reopen() {
	p.t.Helper()
	if err := p.program.Close(); err != nil {
		p.t.Fatalf("closing the program: %v", err)
	}
	p.open.Session = p.Info.ID
	p.begin()
}

// act does what the user does, one line after the other. Each waits until the
// log says that it has arrived.
func (p *play) act() {
	p.t.Helper()
	for word, value := range commands(p.section("user")) {
		p.do(word, value)
	}
	p.rest()
}

func (p *play) do(word, value string) {
	p.t.Helper()
	switch word {
	case "prompt":
		p.rest()
		p.send(agent.Prompt{Text: value})
		body[agent.TurnStarted](p.talk)
	case "steer", "later":
		p.send(agent.Prompt{Text: value, Later: word == "later"})
		body[agent.InputQueued](p.talk)
	case "allow", "deny", "answer":
		p.resolve(word, value)
	case "interrupt":
		p.send(agent.Interrupt{})
		body[agent.TurnEnded](p.talk)
	case "continue":
		if _, ok := question(p.seen); !ok { // one that was left open is asked again
			p.rest()
		}
		p.send(agent.Continue{})
		body[agent.TurnStarted](p.talk)
	case "mode":
		p.rest()
		p.send(agent.Change{Mode: agent.Mode(value)})
		body[agent.SettingsChanged](p.talk)
	case "file":
		name, content, _ := strings.Cut(value, " ")
		p.put(name, []byte(plainText(content)))
	case "link":
		name, to, _ := strings.Cut(value, " ")
		if err := os.Symlink(to, filepath.Join(p.work, name)); err != nil {
			p.t.Fatal(err)
		}
	case "when":
		p.await(value, func(events []agent.Event) bool {
			return slices.ContainsFunc(p.told(events), func(line string) bool { return strings.HasPrefix(squeeze(line), value) })
		})
	case "shown":
		p.shown(value)
	case "plain":
		p.open.Schema = nil
	case "close":
		p.rest()
		p.reopen()
	case "quit":
		p.reopen()
	default:
		p.t.Fatalf("unknown line %q of the user", word)
	}
}

// shown waits until a text has been shown as a part of an answer. What the lines
// before it have waited for is not looked at again.
func (p *play) shown(text string) {
	p.t.Helper()
	for screen := ""; !strings.Contains(screen, text); {
		e, err, ok := p.events()
		if err != nil || !ok {
			p.t.Fatalf("waiting for %q: %v\n%s", text, err, p.log())
		}
		if f, ok := e.Body.(agent.Fragment); ok {
			screen += f.Text
		} else if !e.Live() {
			p.seen = append(p.seen, e)
		}
	}
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// await reads events until those that have been seen fit.
func (p *play) await(what string, fits func([]agent.Event) bool) {
	p.t.Helper()
	if !fits(p.seen) {
		p.until(what, func(agent.Event) bool { return fits(p.seen) })
	}
}

// rest waits for the end of the turn.
func (p *play) rest() {
	p.t.Helper()
	p.await("the end of the turn", func(events []agent.Event) bool { _, ok := question(events); return ok || idle(events) })
	if _, ok := question(p.seen); ok {
		p.t.Fatalf("nobody answers the question at the end of\n%s", p.log())
	}
}

// idle reports whether no turn runs and none is about to.
func idle(events []agent.Event) bool {
	runs, queued := false, map[string]bool{}
	for _, e := range events {
		switch b := e.Body.(type) {
		case agent.TurnStarted:
			runs = true
		case agent.InputQueued:
			queued[b.Input] = true
		case agent.InputAdded:
			delete(queued, b.Input)
		case agent.InputDropped:
			delete(queued, b.Input)
		case agent.LogSealed:
			runs = len(queued) > 0
		}
	}
	return !runs
}

// question returns the approval that waits for an answer.
func question(events []agent.Event) (asked agent.ApprovalAsked, ok bool) {
	for _, e := range events {
		switch b := e.Body.(type) {
		case agent.ApprovalAsked:
			asked, ok = b, true
		case agent.ApprovalResolved, agent.TurnEnded:
			ok = false
		}
	}
	return asked, ok
}

func (p *play) resolve(word, value string) {
	p.t.Helper()
	p.await("a question", func(events []agent.Event) bool { _, ok := question(events); return ok || idle(events) })
	asked, ok := question(p.seen)
	if !ok {
		p.t.Fatalf("%s: nobody asks\n%s", word, p.log())
	}
	r := agent.Resolve{ID: asked.ID, Decision: agent.Decision{Verdict: agent.Allow}}
	switch {
	case word == "deny":
		r.Decision = agent.Decision{Verdict: agent.Deny, Reason: value}
	case word == "answer":
		var in fields
		if err := json.Unmarshal(asked.Proposal.Call.Input, &in); err != nil {
			p.t.Fatal(err)
		}
		q, a, _ := strings.Cut(value, "=")
		in["answers"] = fields{q: a}
		r.Decision.Input = input(in)
	default:
		r.Remember = value
	}
	p.send(r)
	body[agent.ApprovalResolved](p.talk)
}

// sound checks what holds for every script.
func (p *play) sound() {
	p.t.Helper()
	p.talk.sound()
	if last := p.seen[len(p.seen)-1]; last.Kind() != "log.sealed" {
		p.t.Errorf("the log ends with %s", last.Kind())
	}
	for _, bad := range refusals(p.model, p.planned...) {
		p.t.Error(bad)
	}
	if p.lines.at != len(p.lines.replies) {
		p.t.Errorf("%d requests came, the model has lines for %d", p.lines.at, len(p.lines.replies))
	}
}

// workspace checks that the workspace is as it was but for what stands under
// want/.
func (p *play) workspace() {
	p.t.Helper()
	want := p.files("work/")
	maps.Copy(want, p.files("want/"))
	maps.DeleteFunc(want, func(_ string, data []byte) bool { return data == nil })
	got := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(p.work), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			got[path], err = os.ReadFile(filepath.Join(p.work, path))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // what the confinement of the last command has held there is just being removed
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	for name := range maps.Keys(got) {
		if _, ok := want[name]; !ok {
			p.t.Errorf("the workspace has %s: %q", name, got[name])
		}
	}
	for name, data := range want {
		if now, ok := got[name]; !ok || !bytes.Equal(now, data) {
			p.t.Errorf("the workspace has %s: %q (%v)\nwant %q", name, now, ok, data)
		}
	}
}

// compare compares a section with what came, or rewrites it. A section that is
// not there is made when it has to be, and else not looked at.
func (p *play) compare(name, got string, required bool) {
	p.t.Helper()
	i := slices.IndexFunc(p.ar.Files, func(f txtar.File) bool { return f.Name == name })
	switch {
	case i < 0 && !required:
		return
	case *update && i < 0:
		p.ar.Files = append(p.ar.Files, txtar.File{Name: name, Data: []byte(got)})
	case *update:
		p.ar.Files[i].Data = []byte(got)
	case i < 0:
		p.t.Errorf("there is no section %s", name)
	case string(p.ar.Files[i].Data) != got:
		p.t.Errorf("%s: got\n%swant\n%s", name, got, p.ar.Files[i].Data)
	}
}

func (p *play) log() string { return strings.Join(p.told(p.seen), "\n") + "\n" }

// told tells events, a line each.
func (p *play) told(events []agent.Event) []string {
	var out []string
	callOf := map[string]string{} // by approval
	for _, e := range events {
		if a, ok := e.Body.(agent.ApprovalAsked); ok {
			callOf[a.ID] = a.Proposal.Call.ID
		}
		what := tell(e.Body)
		if r, ok := e.Body.(agent.ApprovalResolved); ok {
			what = callOf[r.ID] + " " + what
		}
		out = append(out, strings.TrimSpace(p.mask(fmt.Sprintf("%-17s %s", e.Kind(), what))))
	}
	return out
}

// mask takes out what differs from run to run.
func (p *play) mask(s string) string {
	s = childTokens.ReplaceAllString(childIDs.ReplaceAllString(s, "CHILD"), "N tokens]")
	s = strings.NewReplacer(p.work, "$WORK", p.home, "$HOME", filepath.Dir(p.work), "$TOP").Replace(s)
	return handlePattern.ReplaceAllString(runPattern.ReplaceAllString(s, "hk_RUN"), "output:HANDLE")
}

// tell says of an event what tells it apart, without times, IDs and hashes.
func tell(b agent.Body) string {
	switch b := b.(type) {
	case agent.SessionOpened:
		return fmt.Sprintf("dialect %s", b.Dialect) + either(b.Mode != "", fmt.Sprintf(", mode %s", b.Mode), "")
	case agent.SettingsChanged:
		return fmt.Sprintf("mode %s", b.Mode)
	case agent.InputQueued:
		return quote(b.Text) + either(b.Later, " for later", "")
	case agent.InputAdded:
		return quote(b.Text) + either(b.Origin != "", " by "+b.Origin, "")
	case agent.TurnStarted:
		return either(b.Attempt > 0, fmt.Sprintf("again, %d", b.Attempt), "")
	case agent.TurnEnded:
		return fmt.Sprintf("%s after step %d", b.Reason, b.Steps) + either(b.Error != "", ": "+b.Error, "")
	case agent.ModelRequested:
		return fmt.Sprintf("step %d, messages: %d", b.Step, b.Messages) +
			either(b.Attempt > 1, fmt.Sprintf(", attempt %d", b.Attempt), "") + either(b.Params.NoTools, ", no tools", "")
	case agent.ModelAnswered:
		return tellAnswer(b.Answer)
	case agent.ModelFailed:
		return strings.TrimSpace(fmt.Sprintf("%s%s, %s", b.Class, either(b.Status > 0, fmt.Sprint(" ", b.Status), ""), either(b.Retry, "again", "for good")))
	case agent.CallDecided, agent.ApprovalAsked, agent.ApprovalResolved, agent.CallStarted, agent.CallSpawned, agent.CallFinished:
		return tellCall(b)
	case agent.CheckpointTaken:
		return fmt.Sprintf("%s %s, changed: %d, files: %d", b.When, b.Call, b.Changed, b.Files)
	case agent.ChildOpened:
		return fmt.Sprintf("%s %s", b.Agent, quote(b.Title))
	case agent.ChildEnded:
		return fmt.Sprintf("%s, calls: %d", b.Outcome.Reason, b.Outcome.Calls)
	case agent.HookStarted:
		return strings.TrimSpace(fmt.Sprintf("%s %s %s", b.Event, b.Hook, b.Call))
	case agent.HookRan:
		return fmt.Sprintf("%s %s", b.Event, b.Outcome) + either(b.Verdict != "", ", "+string(b.Verdict), "") + either(b.Rewrote, ", rewrote", "") +
			either(b.Reason != "", ", because "+quote(b.Reason), "") + either(b.Message != "", ", says "+quote(b.Message), "") + either(b.Context != "", ", tells "+quote(b.Context), "")
	case agent.InputDropped:
		return fmt.Sprintf("by %s: %s", b.By, b.Reason)
	case agent.LogSealed:
		return fmt.Sprintf("%d to %d", b.From, b.To)
	}
	data, _ := agent.EncodeBody(b) // what was decoded can be encoded
	return string(data)
}

func tellAnswer(a agent.Answer) string {
	var parts []string
	for _, b := range a.Message.Blocks {
		switch b.Type {
		case agent.TextBlock:
			parts = append(parts, quote(b.Text))
		case agent.ThinkingBlock:
			parts = append(parts, "thinks "+quote(b.Text))
		case agent.CallBlock:
			parts = append(parts, "calls "+tellInput(*b.Call))
		default:
			parts = append(parts, string(b.Type))
		}
	}
	if a.Stop != agent.StopEnd && a.Stop != agent.StopCalls {
		parts = append(parts, "stops: "+strings.TrimSpace(string(a.Stop)+" "+a.Detail))
	}
	return strings.Join(parts, ", ")
}

func tellCall(b agent.Body) string {
	switch b := b.(type) {
	case agent.CallDecided:
		return fmt.Sprintf("%s %s by %s", b.Proposal.Call.ID, b.Decision.Verdict, b.Decision.By) + either(b.Decision.Reason != "", ": "+b.Decision.Reason, "")
	case agent.ApprovalAsked:
		return fmt.Sprintf("%s %s", b.Proposal.Call.ID, b.Reason)
	case agent.ApprovalResolved:
		return string(b.Decision.Verdict) + either(b.Decision.Reason != "", ": "+b.Decision.Reason, "") +
			either(b.Remember != "", ", for the "+b.Remember, "") + either(len(b.Decision.Input) > 0, " with "+cut(string(b.Decision.Input)), "")
	case agent.CallStarted:
		return fmt.Sprintf("%s %s", b.ID, b.Class) + either(b.Attempt > 1, fmt.Sprintf(", attempt %d", b.Attempt), "")
	case agent.CallSpawned:
		return b.ID
	case agent.CallFinished:
		status := string(b.Result.Status)
		if b.Result.Error != nil {
			status = string(b.Result.Error.Code)
		}
		text := cmp.Or(b.Result.Text, string(b.Result.Output))
		return fmt.Sprintf("%s %s %s", b.Result.ID, status, quote(text)) +
			either(b.Result.Spill != nil, ", all of it kept", "")
	}
	return ""
}

// tellInput says what a call is made for: its main argument, or its whole input.
func tellInput(c agent.Call) string {
	var in map[string]any
	if err := json.Unmarshal(c.Input, &in); err == nil {
		for _, name := range []string{"command", "file_path", "pattern"} {
			if s, ok := in[name].(string); ok {
				return fmt.Sprintf("%s %s %s", c.ID, c.Tool, cut(s))
			}
		}
	}
	return fmt.Sprintf("%s %s %s", c.ID, c.Tool, cut(cmp.Or(c.Raw, string(c.Input))))
}

func either(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

func quote(s string) string { return strconv.Quote(cut(s)) }

// cut leaves out the middle of a long text.
func cut(s string) string {
	const head, tail = 220, 60
	if r := []rune(s); len(r) > head+tail {
		return string(r[:head]) + " ... " + string(r[len(r)-tail:])
	}
	return s
}

// asked tells the last request: its messages, a line for each block.
func (p *play) asked() string {
	type block struct {
		Type, Text, Thinking, Signature, ID, Name string
		Input                                     json.RawMessage
		Content                                   json.RawMessage
		ToolUseID                                 string `json:"tool_use_id"`
		IsError                                   bool   `json:"is_error"`
	}
	var req struct {
		Messages []struct {
			Role    string
			Content []block
		}
		ToolChoice struct{ Type string } `json:"tool_choice"`
	}
	all := p.model.Requests()
	if err := json.Unmarshal(all[len(all)-1].Body, &req); err != nil {
		p.t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range req.Messages {
		for _, c := range m.Content {
			fmt.Fprintf(&b, "%-9s ", m.Role)
			switch c.Type {
			case "text":
				fmt.Fprintln(&b, quote(c.Text))
			case "thinking":
				fmt.Fprintf(&b, "thinks %s%s\n", quote(c.Thinking), either(c.Signature != "", ", signed", ""))
			case "tool_use":
				fmt.Fprintf(&b, "calls %s %s %s\n", c.ID, c.Name, cut(string(c.Input)))
			case "tool_result":
				fmt.Fprintf(&b, "%s of %s %s\n", either(c.IsError, "error", "result"), c.ToolUseID, cut(string(c.Content)))
			default:
				fmt.Fprintln(&b, c.Type)
			}
		}
	}
	if req.ToolChoice.Type == "none" {
		b.WriteString("no tool may be called\n")
	}
	return p.mask(b.String())
}
