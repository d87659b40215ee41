package plugins

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// userValue is how hooks name what a user has set.
var userValue = lazy(`\$\{user_config\.([A-Za-z0-9_]+)\}`)

// plainWord is a value that means itself wherever it stands in a command line.
var plainWord = lazy(`^[\pL\pN_./:@%+=,-]*$`)

// Expand puts the values of options into the texts of hooks, in one pass. A value that a
// shell would read as more than a word is not put into a command line: the command stays
// as it is, and that is told. Secrets are not among the values; programs find them in
// their environment.
func Expand(raw json.RawMessage, values map[string]string) (json.RawMessage, []string) {
	if !userValue().Match(raw) {
		return raw, nil
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw, nil // it is told where it is read
	}
	e := expander{values: values, told: map[string]bool{}}
	out, err := json.Marshal(e.walk(v, false))
	if err != nil {
		return raw, []string{err.Error()}
	}
	return out, slices.Sorted(maps.Keys(e.told))
}

type expander struct {
	values map[string]string
	told   map[string]bool
}

func (e expander) walk(v any, line bool) any {
	switch v := v.(type) {
	case string:
		return userValue().ReplaceAllStringFunc(v, func(name string) string { return e.value(name, line) })
	case []any:
		for i := range v {
			v[i] = e.walk(v[i], line)
		}
	case map[string]any:
		_, args := v["args"]
		for key := range v {
			v[key] = e.walk(v[key], key == "command" && !args)
		}
	}
	return v
}

func (e expander) value(name string, line bool) string {
	key := strings.TrimSuffix(strings.TrimPrefix(name, "${user_config."), "}")
	value, ok := e.values[key]
	switch {
	case !ok:
		e.told[fmt.Sprintf("%s is not set, or a secret: programs find it in CLAUDE_PLUGIN_OPTION_%s", name, strings.ToUpper(key))] = true
		return name
	case line && !plainWord().MatchString(value):
		e.told[fmt.Sprintf("the value of %s is no plain word, and is not put into a command line: use CLAUDE_PLUGIN_OPTION_%s", name, strings.ToUpper(key))] = true
		return name
	}
	return value
}
