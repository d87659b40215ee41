package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
	"dure/internal/tools/builtin"
)

// readSchema reads the schema of the answer: what the flag says, or the file that it names
// behind an @.
func (p *program) readSchema(cmd *cobra.Command) error {
	given := p.flags.schemaText
	if !cmd.Flags().Changed("json-schema") {
		return nil
	}
	if p.flags.interactive {
		return p.usage(p.text.Say(text.OnlyWith, "one", "--json-schema", "other", "--print"), "")
	}
	if path, ok := strings.CutPrefix(given, "@"); ok {
		data, err := schemaFile(path)
		if err != nil {
			return p.usage(fmt.Sprintf("--json-schema: %s: %v", text.OneLine(path), err), "")
		}
		given = data
	}
	schema := json.RawMessage(given)
	if _, err := builtin.Form(schema); err != nil {
		return p.noSchema(errors.Unwrap(err)) // a problem of a session
	}
	p.flags.schema = schema
	return nil
}

// noSchema says what is wrong with a schema. Programs know the beginning of the sentence, as
// it is in English.
func (p *program) noSchema(err error) error {
	why := text.Cut(text.OneLine(err.Error()), 300)
	message, fix := p.text.Say(text.SchemaInvalid, "why", p.text.Phrase(why)), p.text.Say(text.SchemaFix)
	if p.asJSON || p.text.Language() != "en" {
		return p.usage(message, fix)
	}
	fmt.Fprintln(p.err, "Error: "+message)
	fmt.Fprintln(p.err, fix)
	return &cli.Exited{Code: cli.ExitUsage, Err: err}
}

// schemaFile reads a schema from a file. One that is too long is read far enough to tell.
func schemaFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", cause(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, builtin.MaxForm+1))
	if err != nil {
		return "", cause(err)
	}
	return strings.TrimPrefix(string(data), "\ufeff"), nil
}
