package hooks

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"dure/internal/safety/shell/programs"
)

// maxVar is how long a variable of a hook may be. What is longer is on its input.
const maxVar = 32 << 10

// ours are the variables that say what a hook is run for. Those of a program that has
// started this one say nothing about it.
var ours = []string{
	"CLAUDE_PROJECT_DIR", "CLAUDE_CODE_SESSION_ID", "CLAUDE_EFFORT", "CLAUDE_ENV_FILE", "CLAUDE_TOOL_NAME", "CLAUDE_TOOL_INPUT", "CLAUDE_FILE_PATH",
	"DURE_PROJECT_DIR", "DURE_SESSION_ID", "DURE_CWD", "DURE_HOOK_EVENT", "DURE_PERMISSION_MODE", "DURE_ENV_FILE", "DURE_TOOL_NAME", "DURE_TOOL_INPUT",
	"DURE_USER_PROMPT", "DURE_FILE_PATH", "DURE_CHANGED_FILE",
}

// environment is what a command hook runs with.
func (s *Set) environment(h Hook, m Moment) []string {
	c := s.c.Facts()
	env := slices.DeleteFunc(slices.Clone(s.c.Env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "OTEL_") || strings.HasPrefix(name, "AX_") || strings.HasPrefix(name, "CLAUDE_PLUGIN_") || slices.Contains(ours, name)
	})
	set := func(value string, names ...string) {
		if value == "" || len(value) > maxVar || strings.ContainsRune(value, 0) {
			return
		}
		for _, n := range names {
			env = append(env, n+"="+value)
		}
	}
	set("1", "CLAUDECODE", "DURE")
	set(s.c.Project, "CLAUDE_PROJECT_DIR", "DURE_PROJECT_DIR")
	set(c.Session, "CLAUDE_CODE_SESSION_ID", "DURE_SESSION_ID", "AX_SESSION_ID")
	set(c.Cwd, "DURE_CWD", "AX_CWD")
	set(string(m.Event), "DURE_HOOK_EVENT", "AX_HOOK_EVENT")
	set(c.Mode, "DURE_PERMISSION_MODE", "AX_PERMISSION_MODE")
	set(c.Effort, "CLAUDE_EFFORT")
	set(h.Source.Root, "CLAUDE_PLUGIN_ROOT")
	set(h.Source.Data, "CLAUDE_PLUGIN_DATA")
	for _, name := range slices.Sorted(maps.Keys(h.Source.Options)) {
		if validName(name) {
			set(h.Source.Options[name], "CLAUDE_PLUGIN_OPTION_"+strings.ToUpper(name))
		}
	}
	if kinds[m.Event].env {
		set(m.EnvFile, "CLAUDE_ENV_FILE", "DURE_ENV_FILE", "AX_ENV_FILE")
	}
	var told struct {
		Tool  string          `json:"tool_name"`
		Input json.RawMessage `json:"tool_input"`
		Path  string          `json:"file_path"`
		Text  string          `json:"prompt"`
	}
	if data, err := encode(m.Fields); err == nil {
		_ = json.Unmarshal(data, &told) // what has other types is told on the input
	}
	set(told.Tool, "DURE_TOOL_NAME", "AX_TOOL_NAME", "CLAUDE_TOOL_NAME")
	set(string(told.Input), "DURE_TOOL_INPUT", "AX_TOOL_INPUT", "CLAUDE_TOOL_INPUT")
	set(told.Text, "DURE_USER_PROMPT", "AX_USER_PROMPT")
	path := told.Path
	var in struct {
		Path string `json:"file_path"`
	}
	if json.Unmarshal(told.Input, &in) == nil && in.Path != "" {
		path = in.Path
	}
	set(path, "DURE_FILE_PATH", "AX_FILE_PATH", "CLAUDE_FILE_PATH")
	if m.Event == FileChanged {
		set(told.Path, "DURE_CHANGED_FILE", "AX_CHANGED_FILE")
	}
	return env
}

// Bounds of what hooks may leave behind as an environment.
const (
	maxEnvVars = 200
	maxEnvFile = 256 << 10
)

// ParseEnv reads the lines that hooks have left: NAME=value and export NAME=value, with
// the quotes of a shell, which expands nothing here. Lines that may not be are told, and
// left out: those that change which programs run, or what they load, unless they are
// among the allowed names.
func ParseEnv(data []byte, allowed ...string) (vars []string, faults []string) {
	if len(data) > maxEnvFile {
		return nil, []string{fmt.Sprintf("the file has %d bytes; %d are the most", len(data), maxEnvFile)}
	}
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "export ")), "=")
		fault := ""
		switch value, ok = unquote(value, ok); {
		case !ok:
			fault = "is no NAME=value, or needs a shell to be read"
		case !validName(name):
			fault = fmt.Sprintf("%q is no name of a variable", name)
		case programs.Steers(name, programs.Hook) && !slices.Contains(allowed, name):
			fault = name + " may not be set by a hook"
		case strings.ContainsRune(value, 0) || !utf8.ValidString(value):
			fault = "is no text"
		case len(vars) == maxEnvVars:
			fault = fmt.Sprintf("is one more than the %d that count", maxEnvVars)
		}
		if fault != "" {
			faults = append(faults, fmt.Sprintf("line %d %s", i+1, fault))
			continue
		}
		vars = append(vars, name+"="+value)
	}
	return vars, faults
}

// unquote reads one word of a shell; false = it is none, or would be expanded.
func unquote(s string, ok bool) (string, bool) {
	var b strings.Builder
	for s != "" && ok {
		switch s[0] {
		case '\'':
			var in string
			if in, s, ok = strings.Cut(s[1:], "'"); ok {
				b.WriteString(in)
			}
		case '"':
			i := 1
			for ; i < len(s) && s[i] != '"'; i++ {
				switch {
				case s[i] == '$', s[i] == '`':
					return "", false
				case s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\", s[i+1]) >= 0:
					i++
				}
				b.WriteByte(s[i])
			}
			if ok = i < len(s); ok {
				s = s[i+1:]
			}
		case '\\':
			if len(s) == 1 {
				return "", false
			}
			b.WriteByte(s[1])
			s = s[2:]
		case '$', '`', ';', '&', '|', '<', '>', '(', ')', ' ', '\t':
			return "", false
		default:
			b.WriteByte(s[0])
			s = s[1:]
		}
	}
	return b.String(), ok
}

func validName(name string) bool {
	for i := range len(name) {
		if !nameRune(rune(name[i])) || i == 0 && name[0] >= '0' && name[0] <= '9' {
			return false
		}
	}
	return name != ""
}
