package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
)

func (p *program) promptCommand() *cobra.Command {
	var q query.PromptPreview
	full := false
	cmd := p.command("prompt", text.HelpPrompt, 0, func(ctx context.Context, c *cli.CLI, _ []string, asJSON bool) error {
		p.notes()
		return c.Prompt(ctx, q, full, asJSON)
	})
	cmd.Flags().StringVar(&q.Model, "model", "", p.text.Say(text.FlagModel))
	cmd.Flags().BoolVar(&full, "full", false, p.text.Say(text.FlagFull))
	cmd.Flags().BoolVar(&q.Tools, "tools", false, p.text.Say(text.FlagPromptTools))
	complete(cmd, "model", p.modelNames)
	edit := p.command("edit", text.HelpPromptEdit, 0, func(ctx context.Context, _ *cli.CLI, _ []string, asJSON bool) error {
		return p.editPrompt(ctx, asJSON)
	})
	path := p.command("path", text.HelpPromptPath, 0, func(ctx context.Context, _ *cli.CLI, _ []string, asJSON bool) error {
		f, err := p.ownPrompt(ctx, "")
		if err != nil {
			return err
		}
		return p.told(asJSON, map[string]any{"path": f.Path}, text.OneLine(f.Path))
	})
	reset := p.command("reset", text.HelpPromptReset, 0, func(ctx context.Context, _ *cli.CLI, _ []string, asJSON bool) error {
		f, err := p.ownPrompt(ctx, query.PromptReset)
		if err != nil {
			return err
		}
		said := text.PromptGone
		if !f.Found {
			said = text.PromptNone
		}
		return p.told(asJSON, map[string]any{"path": f.Path, "reset": f.Found}, p.text.Say(said, "path", text.OneLine(f.Path)))
	})
	for _, c := range []*cobra.Command{cmd, edit, path, reset} {
		c.Flags().StringVar(&p.flags.profile, "profile", "", p.text.Say(text.FlagProfile))
		complete(c, "profile", p.profileNames)
	}
	cmd.AddCommand(edit, path, reset)
	return cmd
}

// ownPrompt does something with the file of the user's own text.
func (p *program) ownPrompt(ctx context.Context, do string) (query.PromptFile, error) {
	return client.Query[query.PromptFile](ctx, p.client(), query.ChangePrompt{Do: do})
}

// editPrompt opens the user's own text in the editor, and checks what came of it. A text that
// is only begun is not kept. The editor is the user's, else the usual one of the system.
func (p *program) editPrompt(ctx context.Context, asJSON bool) error {
	f, err := p.ownPrompt(ctx, "")
	if err != nil {
		return err
	}
	if !p.interactive() || p.server != nil {
		return p.usage(p.text.Say(text.NoEditor, "path", text.OneLine(f.Path)), p.text.Say(text.FixNoEditor))
	}
	if _, err := p.ownPrompt(ctx, query.PromptBegin); err != nil {
		return err
	}
	edited := p.opened.Desktop().Edit(ctx, f.Path, p.in, p.out, p.err)
	f, err = p.ownPrompt(ctx, query.PromptCheck)
	if err = cmp.Or(edited, err); err != nil {
		return err
	}
	said := text.PromptSaved
	if !f.Found {
		said = text.PromptNone
	}
	return p.told(asJSON, map[string]any{"path": f.Path, "saved": f.Found}, p.text.Say(said, "path", text.OneLine(f.Path)))
}

// told writes an outcome: for programs, or in lines for people.
func (p *program) told(asJSON bool, data any, lines ...string) error {
	if asJSON {
		return p.encode(data)
	}
	_, err := fmt.Fprintln(p.out, strings.Join(lines, "\n"))
	return err
}

// profileNames are the kinds of work that settings know.
func (p *program) profileNames(context.Context) (list []cobra.Completion) {
	p.quietly(func(client.Client) { list = append(list, p.opened.Config().ProfileNames()...) })
	return list
}

// maxPromptFile bounds a text for the system prompt, in bytes.
const maxPromptFile = 64 << 10

// prompts reads the texts for the system prompt that flags name.
func (p *program) prompts(cmd *cobra.Command) error {
	f := &p.flags
	for _, one := range []struct {
		flag, file string
		path       string
		to         *string
	}{
		{"system-prompt", "system-prompt-file", f.systemFile, &f.systemText},
		{"append-system-prompt", "append-system-prompt-file", f.appendFile, &f.appendText},
	} {
		if !cmd.Flags().Changed(one.file) {
			continue
		}
		if cmd.Flags().Changed(one.flag) {
			return p.usage(p.text.Say(text.Exclusive, "one", "--"+one.flag, "other", "--"+one.file), "")
		}
		data, err := promptFile(one.path)
		if err != nil {
			return p.usage(fmt.Sprintf("--%s: %s: %v", one.file, text.OneLine(one.path), err), "")
		}
		*one.to = data
	}
	f.system = cmd.Flags().Changed("system-prompt") || cmd.Flags().Changed("system-prompt-file")
	return nil
}

// cause is an error of a file without its path, which is told anyway.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// promptFile reads a text for the system prompt.
func promptFile(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", cause(err)
	case info.IsDir():
		return "", errors.New("it is a folder")
	}
	file, err := os.Open(path)
	if err != nil {
		return "", cause(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxPromptFile+1))
	switch {
	case err != nil:
		return "", cause(err)
	case len(data) > maxPromptFile:
		return "", fmt.Errorf("it has more than %d bytes", maxPromptFile)
	case !utf8.Valid(data) || strings.ContainsRune(string(data), 0):
		return "", errors.New("it is not UTF-8 text")
	}
	return strings.TrimPrefix(string(data), "\ufeff"), nil
}
