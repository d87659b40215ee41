package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// What completion may cost: somebody waits for it with a finger on the key.
const (
	completeTime  = 2 * time.Second
	maxCandidates = 8
)

// contextLine says what was read with an input, or beside the conversation, and what
// was not.
func contextLine(t text.Catalog, b agent.ContextAdded) string {
	from := slices.Clone(b.From)
	if b.Source != "mention" || b.Title != "left" {
		what := b.Title
		if b.Source != "mention" {
			what = cmp.Or(b.Title, t.Word(b.Source))
		}
		list := text.OneLine(bounded(strings.Join(from, ", ")))
		return t.Say(text.ContextAdded, "what", strings.TrimSpace(text.OneLine(what)+" "+list))
	}
	for i, f := range from { // "name (reason)"
		if at := strings.LastIndex(f, " ("); at >= 0 {
			from[i] = f[:at] + " (" + t.Word("left."+strings.TrimSuffix(f[at+2:], ")")) + ")"
		}
	}
	return t.Say(text.ContextLeft, "what", text.OneLine(bounded(strings.Join(from, ", "))))
}

// autoContext switches the detection of names without an @, for as long as the chat
// lasts.
func (ch *chat) autoContext(on bool) {
	ch.without = nil
	said := text.ContextOn
	if !on {
		ch.without, said = []string{agent.WithoutPlain}, text.ContextOff
	}
	ch.v.note(dim, ch.Text.Say(said))
}

// complete completes what is typed behind an @, as far as it is certain, and lists what
// it may be.
func (ch *chat) complete(ctx context.Context) {
	at, typed := mentionAt(ch.ed.buf[:ch.ed.pos])
	if at < 0 || ch.asking != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	found, err := client.Query[[]string](ctx, ch.Client, query.CompleteMention{Session: ch.sess.Info.ID, Typed: strings.TrimPrefix(typed, `"`)})
	if err != nil || len(found) == 0 {
		return // whoever types goes on
	}
	for i := range found {
		found[i] = text.OneLine(found[i])
	}
	next := found[0]
	if len(found) > 1 {
		ch.v.note(dim, strings.Join(found[:min(len(found), maxCandidates)], "  "))
		if next = shared(found); len(next) < len(typed) || !strings.HasPrefix(next, typed) {
			return
		}
	}
	if strings.Contains(next, " ") {
		next = `"` + next
		if len(found) == 1 {
			next += `"`
		}
	}
	if len(found) == 1 && !strings.HasSuffix(next, "/") {
		next += " "
	}
	ch.ed.cut(at+1, ch.ed.pos)
	ch.ed.insert(next)
}

// completePrompt completes the argument of a prompt of a server, as far as the server says
// what it may be, and reports whether one is being typed.
func (ch *chat) completePrompt(ctx context.Context) bool {
	typed := ch.ed.buf[:ch.ed.pos]
	if !strings.HasPrefix(typed, "/mcp__") || !strings.Contains(typed, " ") || strings.Contains(typed, "\n") || ch.asking != "" || ch.review != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	found, err := client.Query[query.PromptValues](ctx, ch.Client, query.CompletePrompt{Session: ch.sess.Info.ID, Text: typed})
	if err != nil || found.Argument == "" || !strings.HasSuffix(typed, found.Typed) {
		return false
	}
	var fits []string
	for _, v := range found.Values {
		if v == text.OneLine(v) && v != "" {
			fits = append(fits, v)
		}
	}
	if len(fits) == 0 {
		return true // whoever types goes on
	}
	next, end := shared(fits), ""
	if len(fits) == 1 {
		end = " "
	} else {
		ch.v.note(dim, strings.Join(fits[:min(len(fits), maxCandidates)], "  "))
		if len(next) <= len(found.Value) || !strings.HasPrefix(next, found.Value) {
			return true
		}
	}
	ch.ed.cut(ch.ed.pos-len(found.Typed), ch.ed.pos)
	ch.ed.insert(asArgument(next, end != "") + end)
	return true
}

// asArgument is a word as arguments are typed; one that goes on is left open.
func asArgument(word string, whole bool) string {
	if !strings.ContainsAny(word, " \t\"'\\") {
		return word
	}
	word = `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(word)
	if whole {
		word += `"`
	}
	return word
}

// mentionAt returns where the @ stands of the name that a text ends with, and the name;
// -1 = it ends with none.
func mentionAt(s string) (at int, name string) {
	at = strings.LastIndexByte(s, '@')
	if at < 0 || at > 0 && !strings.ContainsRune(" \n\t(,", rune(s[at-1])) {
		return -1, ""
	}
	name = s[at+1:]
	if strings.ContainsAny(name, "\n\t") || strings.Contains(name, " ") && !strings.HasPrefix(name, `"`) {
		return -1, ""
	}
	return at, name
}

// shared is what all of a list begin with.
func shared(list []string) string {
	first := list[0]
	for _, s := range list[1:] {
		for !strings.HasPrefix(s, first) {
			first = first[:len(first)-1]
		}
	}
	return strings.ToValidUTF8(first, "")
}
