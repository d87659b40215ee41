package programs

import (
	"slices"
	"strings"
)

// A Setter is who gives a variable a value for programs that run later.
type Setter uint8

// Who that may be.
const (
	Line   Setter = 1 << iota // a command line that names it
	Hook                      // a hook, in the file of its variables
	Folder                    // the settings that a repository brings
)

// steering are variables that decide which programs run, what they load, where they
// send what, or what this one does, by whom none of them is set without a word. Where
// a name has a * any text may stand.
var steering = []struct {
	by    Setter
	names []string
}{
	{Line | Hook | Folder, []string{
		"PATH", "IFS", "ENV", "BASH_ENV", "SHELL", "SHELLOPTS", "PS4", "PROMPT_COMMAND", "HOME", "LD_*", "DYLD_*", "GIT_*",
		"PAGER", "EDITOR", "VISUAL", "NODE_OPTIONS", "NODE_PATH", "GOFLAGS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
	}},
	{Hook | Folder, []string{
		"BASHOPTS", "BASH_FUNC_*", "CDPATH", "BROWSER", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PERL5LIB", "PERL5OPT",
		"RUBYOPT", "RUBYLIB", "NPM_CONFIG_*", "DURE_*", "AX_*", "CLAUDE_*",
	}},
	{Line | Folder, []string{
		"MAKEFLAGS", "GOROOT", "CC", "CXX", "LESSOPEN", "LESSCLOSE", "CARGO_*", "XDG_*", "*_PROXY",
	}},
	{Line, []string{
		"PYTHON*", "PERL*", "RUBY*", "RUSTC*", "npm_config_*", "*_proxy", "*_PAGER", "*_EDITOR",
	}},
	{Folder, []string{
		"*PAGER", "*EDITOR", "*ASKPASS", "*_RSH", "*_WRAPPER", "*_BASE_URL",
		"OTEL_*", "TRACEPARENT", "TRACESTATE", "ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "GOOGLE_*", "AWS_*", "PIP_*", "UV_*",
		"TMPDIR", "GCONV_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSH_AUTH_SOCK", "DOCKER_HOST", "KUBECONFIG",
		"NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED", "GOPROXY", "GONOSUMDB", "GOTOOLCHAIN", "RUSTC", "RUSTDOC",
		"GNUMAKEFLAGS", "LD", "AR", "TAR_OPTIONS", "VIMINIT", "EXINIT", "PERL5DB", "JDK_JAVA_OPTIONS",
		"PYTHONWARNINGS", "PYTHONBREAKPOINT", "PYTHONUSERBASE",
	}},
}

// Steers reports whether a variable is one that decides which programs run, what they
// load, where they send what, or what this one does, when it is set by somebody. A
// command line means the name as it stands there; of the others no spelling is passed
// over, because for some systems all of them are one.
func Steers(name string, by Setter) bool {
	if by != Line {
		name = strings.ToUpper(name)
	}
	for _, s := range steering {
		if s.by&by != 0 && slices.ContainsFunc(s.names, func(pattern string) bool { return fits(pattern, name) }) {
			return true
		}
	}
	return false
}

func fits(pattern, name string) bool {
	begin, end, open := strings.Cut(pattern, "*")
	if !open {
		return name == pattern
	}
	return len(name) >= len(begin)+len(end) && strings.HasPrefix(name, begin) && strings.HasSuffix(name, end)
}
