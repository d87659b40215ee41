package main

import (
	"github.com/spf13/pflag"

	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

// mismatch is a flag that another one does not go together with, or that needs one.
type mismatch struct {
	wrong      bool
	key        text.Key // OnlyWith or Exclusive
	one, other string
	line       string // what would do
}

// combined finds flags of which one would silently do nothing, or that contradict each
// other, and says what would do.
func (p *program) combined(given *pflag.FlagSet, args []string) error {
	f := &p.flags
	format := cli.Format(f.output)
	streams, lines := f.output == formatStream, f.linesFrom()
	const host = "dure --input-format stream-json --output-format stream-json"
	for _, m := range []mismatch{
		{
			f.interactive && (format == cli.FormatJSON || format == cli.FormatNDJSON), text.Exclusive,
			"--output-format " + f.output, "--interactive", "dure -p --output-format " + f.output + " TASK",
		},
		{
			f.partial && !streams && format != cli.FormatNDJSON, text.OnlyWith,
			"--include-partial-messages", "--output-format stream-json", "dure -p --output-format stream-json --include-partial-messages TASK",
		},
		{
			f.host.hooked && !streams, text.OnlyWith,
			"--include-hook-events", "--output-format stream-json", "dure -p --output-format stream-json --include-hook-events TASK",
		},
		{
			f.host.replay && !lines, text.OnlyWith,
			"--replay-user-messages", "--input-format stream-json", host + " --replay-user-messages",
		},
		{
			f.host.forward && !streams, text.OnlyWith,
			"--forward-subagent-text", "--output-format stream-json", "dure -p --output-format stream-json --forward-subagent-text TASK",
		},
		{
			f.host.await && !lines, text.OnlyWith,
			"--await-initialize", "--input-format stream-json", host + " --await-initialize",
		},
		{
			f.host.permissionTool == toolOfHost && !lines, text.OnlyWith,
			"--permission-prompt-tool " + toolOfHost, "--input-format stream-json", "dure -p --allow 'Bash(go test *)' TASK",
		},
		{
			lines && len(args) > 0 && args[0] != "", text.Exclusive, "--input-format stream-json", "TASK",
			`echo '{"type":"user","message":{"role":"user","content":"TASK"}}' | ` + host,
		},
	} {
		if m.wrong {
			return p.usage(p.text.Say(m.key, "one", m.one, "other", m.other), p.text.Say(text.ForExample, "line", m.line))
		}
	}
	if name := f.host.permissionTool; given.Changed("permission-prompt-tool") && name != "" && name != toolOfHost {
		return p.usage(p.text.Say(text.BadValue, "flag", "--permission-prompt-tool", "value", name, "wanted", p.text.Say(text.WantStdio)),
			p.text.Say(text.ForExample, "line", "dure -p --allow 'Bash(go test *)' TASK"))
	}
	return nil
}

// toolOfHost names the host as the one that answers what a session asks.
const toolOfHost = "stdio"
