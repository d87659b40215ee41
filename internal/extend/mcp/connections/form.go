package connections

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"dure/internal/extend/mcp"
)

// A Word is something that a person, or a hook, is told of a question of a server.
type Word string

// The words, by the names that they have in the texts of the front-ends.
const (
	AskedSecret    Word = "AskedSecret"
	AskedForm      Word = "AskedForm"
	AskedPlain     Word = "AskedPlain"
	AskedURL       Word = "AskedURL"
	AskedAnswer    Word = "AskedAnswer"
	AskedOpen      Word = "AskedOpen"
	AskedAgree     Word = "AskedAgree"
	AskedDecline   Word = "AskedDecline"
	AskedCancel    Word = "AskedCancel"
	AskedLeave     Word = "AskedLeave"
	AskedYes       Word = "AskedYes"
	AskedNo        Word = "AskedNo"
	AskedRequired  Word = "AskedRequired"
	AskedOptional  Word = "AskedOptional"
	AskedValues    Word = "AskedValues"
	AskedUsual     Word = "AskedUsual"
	AskedMisfit    Word = "AskedMisfit"
	AskedModel     Word = "AskedModel"
	AskedOnce      Word = "AskedOnce"
	AskedSession   Word = "AskedSession"
	HookElicits    Word = "HookElicits"
	HookElicited   Word = "HookElicited"
	HookElicitDone Word = "HookElicitDone"
)

type sayer = func(w Word, args ...any) string

// secretWords are parts of what secrets are called; a field may be called so for other
// reasons, and the person decides.
var secretWords = []string{"password", "passwd", "passphrase", "passcode", "secret", "accesstoken", "authtoken", "apitoken", "apikey", "privatekey", "credential", "cvv", "onetimecode", "비밀번호", "암호", "인증번호"}

// wantsSecret reports whether a value of a form looks as if it were a secret.
func wantsSecret(f mcp.Field) bool {
	said := strings.NewReplacer(" ", "", "_", "", "-", "").Replace(strings.ToLower(f.Name + "\n" + f.Title + "\n" + f.About))
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(said, w) })
}

// titleOf is what a value of a form is called: always by its own name too.
func titleOf(f mcp.Field) string {
	if f.Title == "" || f.Title == f.Name {
		return f.Name
	}
	return f.Title + " (" + f.Name + ")"
}

// asField is the question for one value of a form.
func asField(say sayer, f mcp.Field, wrong string) userQuestion {
	q, lines := userQuestion{Multi: f.Many}, []string{titleOf(f)}
	if f.About != "" {
		lines[0] += ": " + f.About
	}
	if wrong != "" {
		lines = append(lines, wrong)
	}
	kind := f.Type
	if f.Format != "" {
		kind += " " + f.Format
	}
	need := AskedOptional
	if f.Required {
		need = AskedRequired
	}
	lines = append(lines, say(need, "type", kind))
	switch labels := labelsOf(f); {
	case f.Type == "boolean":
		q.Options = options(say(AskedYes), say(AskedNo))
	case len(labels) > askedValues-1:
		lines = append(lines, say(AskedValues, "values", strings.Join(labels, ", ")))
		q.Options = options(labels[:askedValues-1]...)
	default:
		q.Options = options(labels...)
	}
	if label := usualOf(f); label != "" {
		lines = append(lines, say(AskedUsual, "value", label))
	}
	if !f.Required || len(f.Default) > 0 {
		q.Options = append(q.Options, userOption{Label: say(AskedLeave)})
	}
	if len(q.Options) < askedValues {
		q.Options = append(q.Options, userOption{Label: say(AskedDecline)})
	}
	if len(q.Options) < 2 {
		q.Options = append(q.Options, userOption{Label: say(AskedCancel)})
	}
	seen := map[string]bool{}
	q.Options = slices.DeleteFunc(q.Options, func(o userOption) bool { was := seen[o.Label]; seen[o.Label] = true; return was })
	q.Question = strings.Join(lines, "\n")
	return q
}

// labelsOf is how the values are called out of which a person chooses: no two the same.
func labelsOf(f mcp.Field) []string {
	times := map[string]int{}
	for _, o := range f.Options {
		times[o.Title]++
	}
	var all []string
	for _, o := range f.Options {
		if o.Title == "" || times[o.Title] > 1 {
			all = append(all, o.Value)
		} else {
			all = append(all, o.Title)
		}
	}
	return all
}

// isValue reports whether a value of a form is called so.
func isValue(f mcp.Field, said string) bool { return slices.Contains(labelsOf(f), said) }

// usualOf is what holds where a person leaves a value empty.
func usualOf(f mcp.Field) string {
	var s string
	if json.Unmarshal(f.Default, &s) == nil {
		return s
	}
	return string(f.Default)
}

// valueOf is the value that an answer stands for; given is false for one that is left empty.
func valueOf(say sayer, f mcp.Field, said string) (v any, given bool, err error) {
	if said = strings.TrimSpace(said); said == "" || said == say(AskedLeave) && !isValue(f, said) {
		return nil, false, nil
	}
	misfit := errors.New(say(AskedMisfit))
	switch {
	case f.Many:
		list := []any{}
		for word := range strings.SplitSeq(said, ", ") {
			value, ok := optionOf(f, word)
			if !ok {
				return nil, false, misfit
			}
			list = append(list, value)
		}
		return list, true, nil
	case len(f.Options) > 0:
		value, ok := optionOf(f, said)
		if !ok {
			return nil, false, misfit
		}
		return value, true, nil
	case f.Type == "boolean":
		switch strings.ToLower(said) {
		case strings.ToLower(say(AskedYes)), "yes", "y", "true":
			return true, true, nil
		case strings.ToLower(say(AskedNo)), "no", "n", "false":
			return false, true, nil
		}
		return nil, false, misfit
	case f.Type == "integer":
		n, err := strconv.ParseInt(said, 10, 64)
		if err != nil {
			return nil, false, misfit
		}
		return n, true, nil
	case f.Type == "number":
		if !json.Valid([]byte(said)) {
			return nil, false, misfit
		}
		n, err := strconv.ParseFloat(said, 64)
		if err != nil {
			return nil, false, misfit
		}
		return n, true, nil
	}
	return said, true, nil
}

// optionOf is the value that somebody means, by its name or as the server has it.
func optionOf(f mcp.Field, said string) (string, bool) {
	if i := slices.Index(labelsOf(f), said); i >= 0 {
		return f.Options[i].Value, true
	}
	i := slices.IndexFunc(f.Options, func(o mcp.Option) bool { return strings.EqualFold(o.Value, said) })
	if i < 0 {
		return "", false
	}
	return f.Options[i].Value, true
}
