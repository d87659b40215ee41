package kit

import (
	"fmt"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/safety/sandbox"
)

// Grant is what a command gets beside its confinement, since a call with these
// effects was allowed: what it was planned to write and to contact, and no more
// than reading where it was planned to do no more.
func Grant(e agent.Effects) sandbox.Grant {
	return sandbox.Grant{
		Writes: e.Writes, Reads: e.Reads, Hosts: e.Hosts,
		ReadOnly: e.Unreadable == "" && e.Unparsed == "" && len(e.Writes) == 0 && onlyReads(e.Commands),
	}
}

// onlyReads reports whether all commands are known to do no more than read.
func onlyReads(list []agent.SimpleCommand) bool {
	for _, c := range list {
		if c.Transparent && onlyReads(c.Runs) {
			continue
		}
		if c.Kind != agent.CommandReads {
			return false
		}
	}
	return len(list) > 0
}

// Refused says what the confinement refused a command, and how the user could let
// it; "" = nothing.
func Refused(list []sandbox.Denial) string {
	if len(list) == 0 {
		return ""
	}
	settings := map[string]string{
		sandbox.DeniedWrite: "sandbox.write", sandbox.DeniedRead: "sandbox.allowRead", sandbox.DeniedHost: "sandbox.network.allow",
	}
	var b strings.Builder
	b.WriteString("[refused by the sandbox:")
	for _, d := range list {
		fmt.Fprintf(&b, "\n- %s %s (%s)", d.Kind, Name(d.Target), d.How)
	}
	b.WriteString("\nDo not try to get around this. What a command names itself is put to the user; the user can also allow it in his settings:")
	for i, d := range list {
		if !slices.ContainsFunc(list[:i], func(before sandbox.Denial) bool { return before.Kind == d.Kind }) {
			b.WriteString(" " + settings[d.Kind])
		}
	}
	return b.String() + "]"
}
