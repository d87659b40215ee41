// Package text owns what people read: the messages of the program in English
// and Korean, and how text is measured, wrapped and made harmless for a
// terminal.
//
// It never writes anywhere, reads no environment (languages are passed in) and
// holds no state: the tables are constant data, so that a program pays nothing
// for them at start. What a model reads is not translated and is not here. It
// starts no goroutines.
package text

import (
	"fmt"
	"strings"
)

// Key names a message. The constants stand in keys.go and, by topic, in keys_*.go.
type Key uint16

// Catalog speaks one language. The zero value speaks English.
type Catalog struct{ table *[careKeys]string }

// For returns the catalog of a language: "ko" and what begins so is Korean,
// everything else English.
func For(lang string) Catalog {
	if strings.HasPrefix(strings.ToLower(lang), "ko") {
		return Catalog{&korean}
	}
	return Catalog{&english}
}

// Language returns the language that an environment asks for: DURE_LANG, else
// the locale for messages as POSIX orders its variables.
func Language(getenv func(string) string) string {
	for _, name := range []string{"DURE_LANG", "LC_ALL", "LC_MESSAGES", "LANG"} {
		if v := getenv(name); v != "" {
			if strings.HasPrefix(strings.ToLower(v), "ko") {
				return "ko"
			}
			return "en"
		}
	}
	return "en"
}

// Language returns "en" or "ko".
func (c Catalog) Language() string {
	if c.table == &korean {
		return "ko"
	}
	return "en"
}

// Say returns a message. args are pairs of a placeholder's name and its value.
//
// In a message, {n} is the value of n; {n?one/many} is one when the value is 1;
// {n|을/를} is the value with the Korean particle that fits it. A placeholder
// without a value stays as it is written.
func (c Catalog) Say(k Key, args ...any) string {
	return fill(c.message(k), func(name string) (string, bool) {
		for i := 0; i+1 < len(args); i += 2 {
			if args[i] == name {
				return fmt.Sprint(args[i+1]), true
			}
		}
		return "", false
	})
}

// both is a message in English and Korean.
type both struct{ en, ko string }

// topics are the messages that stand in files of their own, in the order of their keys.
var topics = [...]struct {
	first Key
	texts []both
}{
	{careKeys, careTexts[:]},
	{replayKeys, replayTexts[:]},
	{nameKeys, nameTexts[:]},
	{hookKeys, hookTexts[:]},
	{skillKeys, skillTexts[:]},
	{toolKeys, toolTexts[:]},
	{agentKeys, agentTexts[:]},
	{pluginKeys, pluginTexts[:]},
	{commandKeys, commandTexts[:]},
	{projectKeys, projectTexts[:]},
	{settingKeys, settingTexts[:]},
	{launchKeys, launchTexts[:]},
	{planKeys, planTexts[:]},
	{outputKeys, outputTexts[:]},
	{serverKeys, serverTexts[:]},
	{bundleKeys, bundleTexts[:]},
	{lendKeys, serveTexts[:]},
	{acpKeys, acpTexts[:]},
	{scheduleKeys, scheduleTexts[:]},
	{flagKeys, flagTexts[:]},
}

func (c Catalog) message(k Key) string {
	for i := len(topics) - 1; i >= 0; i-- {
		if t := topics[i]; k >= t.first {
			if c.table == &korean {
				return t.texts[k-t.first].ko
			}
			return t.texts[k-t.first].en
		}
	}
	if c.table == nil {
		return english[k]
	}
	return c.table[k]
}

// fill replaces the placeholders of a message.
func fill(msg string, value func(name string) (string, bool)) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(msg, "{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		inner, after, closed := strings.Cut(rest, "}")
		if !closed {
			out.WriteString("{" + rest)
			return out.String()
		}
		out.WriteString(expand(inner, value))
		msg = after
	}
}

// expand returns what stands for one placeholder, written without its braces.
func expand(inner string, value func(string) (string, bool)) string {
	name, forms := inner, ""
	at := strings.IndexAny(inner, "?|")
	if at >= 0 {
		name, forms = inner[:at], inner[at+1:]
	}
	v, ok := value(name)
	switch {
	case !ok:
		return "{" + inner + "}"
	case at < 0:
		return v
	}
	first, second, _ := strings.Cut(forms, "/")
	if inner[at] == '|' {
		return v + particle(v, first, second)
	}
	if v == "1" {
		return first
	}
	return second
}
