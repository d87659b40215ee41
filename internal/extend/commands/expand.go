package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"dure/agent"
	"dure/internal/base/frontmatter"
)

// Bounds of what an input becomes.
const (
	maxStack   = 6         // commands of one input
	maxText    = 400 << 10 // bytes of what comes of it
	maxInlines = 20        // commands for the shell in one file
	maxOutput  = 48 << 10  // bytes that one of them puts into the text
)

// Stack returns the commands that an input names, with the arguments that all of them
// get: the first, and up to five more that follow it at once.
func Stack(text string, find func(name string) (Command, bool)) (stack []Command, arguments string) {
	rest := text
	for len(stack) < maxStack {
		name, more, ok := Split(rest)
		if !ok {
			break
		}
		c, ok := find(name)
		if !ok || len(stack) > 0 && c.Info().Off != "" {
			break
		}
		if stack, rest = append(stack, c), more; c.Fork {
			break // what follows are its arguments
		}
	}
	return stack, rest
}

// Lookup returns what finds a command by its name, as [Read] does.
func Lookup(list []Command) func(name string) (Command, bool) {
	var k Known
	for _, c := range list {
		k.Others = append(k.Others, c.Info())
	}
	return func(name string) (Command, bool) {
		if _, builtIn := Find(name); builtIn {
			return Command{}, false
		}
		found, ok := k.find(name)
		if !ok {
			return Command{}, false
		}
		for _, c := range list {
			if c.Name == found.Name {
				return c, true
			}
		}
		return Command{}, false
	}
}

// Preparing is what the text of a command is made ready with.
type Preparing struct {
	Arguments string
	Vars      map[string]string // of ${NAME}, beside those of the place

	// Run runs a command of the text, if that is allowed without asking anybody, and
	// returns what it wrote. An error takes the whole input back.
	Run func(ctx context.Context, line string) (string, error)
}

// Prepare makes of a command's text what a model reads. Values are put in the place of
// variables once; the commands for the shell are those of the text as it was written, and
// what values and output say is never read again.
func (c Command) Prepare(ctx context.Context, p Preparing) (string, error) {
	v := frontmatter.Values{Line: p.Arguments, Names: c.Names, Vars: map[string]string{}}
	for name, value := range p.Vars {
		v.Vars[name] = value
	}
	if c.Place.Scope == frontmatter.Plugin {
		v.Vars["CLAUDE_PLUGIN_ROOT"], v.Vars["CLAUDE_PLUGIN_DATA"] = c.Place.Root, c.Place.Data
		for name, value := range c.Place.Options {
			v.Vars["user_config."+name] = value
		}
	}
	var b strings.Builder
	asked, at := false, 0
	put := func(text string) {
		text, used := v.Expand(text)
		asked = asked || used
		b.WriteString(text)
	}
	inlines := frontmatter.Inlines(c.Body)
	if len(inlines) > maxInlines {
		return "", fmt.Errorf("its text has %d commands for the shell; %d are the most", len(inlines), maxInlines)
	}
	for _, in := range inlines {
		put(c.Body[at:in.From])
		at = in.To
		line, used, err := bind(in.Command, v)
		asked = asked || used
		if err != nil {
			return "", err
		}
		out, err := p.Run(ctx, line)
		if err != nil {
			return "", fmt.Errorf("its command %q: %w", cut(in.Command, 200), err)
		}
		if out = strings.TrimSpace(out); len(out) > maxOutput {
			out = cut(out, maxOutput) + "\n[the rest was left out]"
		}
		b.WriteString(out)
	}
	put(c.Body[at:])
	if !asked && p.Arguments != "" {
		b.WriteString("\n\nARGUMENTS: " + p.Arguments)
	}
	if b.Len() > maxText {
		return "", fmt.Errorf("with its arguments and the output of its commands it has %d bytes; %d are the most", b.Len(), maxText)
	}
	return strings.TrimSpace(b.String()), nil
}

// errValue is an argument that a shell could take for more than a word.
var errValue = errors.New("an argument in a command for the shell may have letters, digits and _./:@%+=,- alone")

// bind puts values into a command for the shell. Only what no shell reads as its own may
// stand there.
func bind(line string, v frontmatter.Values) (bound string, used bool, err error) {
	v.Quote = func(value string) string {
		if strings.HasPrefix(value, "-") || strings.ContainsFunc(value, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_./:@%+=,-", r)
		}) {
			err = errValue
		}
		return value
	}
	bound, used = v.Expand(line)
	return bound, used, err
}

// Joined is what a model reads of an input: what was typed, and behind it what the
// commands say.
func Joined(typed string, stack []Command, texts []string) string {
	var b strings.Builder
	b.WriteString(typed)
	for i, c := range stack {
		fmt.Fprintf(&b, "%s%s%s%s", saysBefore, c.Name, saysAfter, texts[i])
	}
	return b.String()
}

// What stands around the name of a command before what it says.
const (
	saysBefore = "\n\n[/"
	saysAfter  = " says:]\n"
)

// Typed is the part of an input that a person has typed: what commands say follows it.
func Typed(text string) string {
	if !strings.HasPrefix(text, "/") {
		return text
	}
	for at := 0; ; {
		n := strings.Index(text[at:], saysBefore)
		if n < 0 {
			return text
		}
		name, _, ok := strings.Cut(text[at+n+len(saysBefore):], saysAfter)
		if ok && !strings.Contains(name, "\n") {
			return text[:at+n]
		}
		at += n + len(saysBefore)
	}
}

// Without is input that is not to enter the conversation, because of a command.
func Without(c Command, err error) *agent.InputDropped {
	return &agent.InputDropped{Reason: "/" + c.Name + ": " + err.Error(), By: c.Source()}
}

func cut(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }
