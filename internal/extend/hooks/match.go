package hooks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dlclark/regexp2"
)

// matchTime is how long a matcher may look at one value: the expressions come from
// files, and may take exponentially long.
const matchTime = 100 * time.Millisecond

// newMatcher returns what a matcher means: everything, one name or several, or a
// JavaScript regular expression that may fit anywhere. An expression is not read before
// it is asked about a value; one that cannot be read is an error each time.
func newMatcher(e Event, matcher string) func(string) (bool, error) {
	if matcher == "" || matcher == "*" || kinds[e].matcher == "" {
		return func(string) (bool, error) { return true, nil }
	}
	separators, more := "|,", "- ,"
	if e == FileChanged || e == StopFailure {
		separators, more = "|", ""
	}
	if !strings.ContainsFunc(matcher, func(r rune) bool { return !nameRune(r) && !strings.ContainsRune("|"+more, r) }) {
		var names []string
		for _, n := range strings.FieldsFunc(matcher, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
			names = append(names, strings.TrimSpace(n))
		}
		return func(s string) (bool, error) { return slices.Contains(names, s), nil }
	}
	expression := sync.OnceValues(func() (*regexp2.Regexp, error) {
		re, err := regexp2.Compile(matcher, regexp2.ECMAScript)
		if err != nil {
			return nil, fmt.Errorf("reading the matcher: %w", err)
		}
		re.MatchTimeout = matchTime
		return re, nil
	})
	return func(s string) (bool, error) {
		re, err := expression()
		if err != nil {
			return false, err
		}
		return re.MatchString(s)
	}
}

func nameRune(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// A filter is the if of a hook: a permission rule, or conditions on fields of the input
// that all have to hold.
type filter struct {
	rule  string
	terms []term
}

type term struct {
	field string // as it is in the input
	op    string // ==, != or contains
	value string
}

// terms are the fields that conditions may look at, and what stands for them in the
// input.
var termFields = map[string]string{
	"event": "hook_event_name", "tool": "tool_name", "workfolder": "cwd", "usermessage": "prompt", "changedfile": "file_path",
	"hookeventname": "hook_event_name", "toolname": "tool_name", "cwd": "cwd", "prompt": "prompt", "filepath": "file_path",
	"sessionid": "session_id", "permissionmode": "permission_mode", "agenttype": "agent_type", "agentid": "agent_id",
}

// parseFilter reads an if. A rule is about a call; where there is none it never holds.
func parseFilter(e Event, s string) (*filter, error) {
	parts := splitTerms(s)
	if parts == nil {
		if !kinds[e].tool {
			return nil, fmt.Errorf("%s is about no call, and a rule cannot hold for it", e)
		}
		return &filter{rule: strings.TrimSpace(s)}, nil
	}
	f := &filter{}
	for _, p := range parts {
		t, err := parseTerm(p)
		if err != nil {
			return nil, err
		}
		f.terms = append(f.terms, t)
	}
	return f, nil
}

// splitTerms takes conditions apart at && outside quotes; nil = they are none, but a
// rule.
func splitTerms(s string) []string {
	var parts []string
	var quote byte
	from, conditions := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.HasPrefix(s[i:], "=="), strings.HasPrefix(s[i:], "!="), strings.HasPrefix(s[i:], " contains "):
			conditions = conditions || !strings.Contains(s[:i], "(")
			i++
		case strings.HasPrefix(s[i:], "&&"):
			parts = append(parts, s[from:i])
			from = i + 2
			i++
		}
	}
	if !conditions {
		return nil
	}
	return append(parts, s[from:])
}

func parseTerm(s string) (term, error) {
	s = strings.TrimSpace(s)
	at, op := -1, ""
	for _, o := range []string{"==", "!=", " contains "} {
		if i := strings.Index(s, o); i >= 0 && (at < 0 || i < at) {
			at, op = i, o
		}
	}
	if at < 0 {
		return term{}, errFilter
	}
	name, value := strings.TrimSpace(s[:at]), strings.TrimSpace(s[at+len(op):])
	field, ok := termFields[plain(name)]
	if !ok {
		return term{}, fmt.Errorf("%q is no field: they are tool_name, event, session_id, work_folder, user_message, changed_file, permission_mode", name)
	}
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	} else if value == "" || strings.ContainsAny(value, "\"'") {
		return term{}, errFilter
	}
	return term{field, strings.TrimSpace(op), value}, nil
}

// holds reports whether the conditions hold for an input.
func (f *filter) holds(input map[string]json.RawMessage) bool {
	for _, t := range f.terms {
		var v string
		_ = json.Unmarshal(input[t.field], &v) // what is no text is ""
		switch t.op {
		case "==":
			if v != t.value {
				return false
			}
		case "!=":
			if v == t.value {
				return false
			}
		default:
			if !strings.Contains(v, t.value) {
				return false
			}
		}
	}
	return true
}
