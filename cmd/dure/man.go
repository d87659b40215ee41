package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dure/agent"
	"dure/internal/frontend/text"
)

func (p *program) manCommand() *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use: "man", Short: p.text.Say(text.HelpMan), Args: p.atMost(0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				_, err := p.out.Write(p.manual(cmd.Root()))
				return err
			}
			return p.manuals(dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", p.text.Say(text.FlagDir))
	p.jsonFlag(cmd)
	return cmd
}

// manuals writes the page in every language where man looks for it below dir.
func (p *program) manuals(dir string) error {
	var paths []string
	for lang, folder := range map[string]string{"en": "man1", "ko": "ko/man1"} {
		q := &program{in: p.in, out: p.out, err: p.err, text: text.For(lang)}
		path := filepath.Join(dir, filepath.FromSlash(folder), "dure.1")
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, q.manual(q.root()), 0o644)
		}
		if err != nil {
			return &agent.Problem{
				Code: agent.ProblemUsage, Message: p.text.Say(text.NoFolder, "path", path, "error", p.text.Phrase(err.Error())), Fix: p.text.Say(text.FixUsage),
			}
		}
		paths = append(paths, path)
	}
	return p.list(paths)
}

// manual is the manual page of the command line, in roff.
func (p *program) manual(root *cobra.Command) []byte {
	var w page
	say := p.text.Say
	w.line(`.TH DURE 1 "" "dure %s"`, roff(version))
	w.section(say(text.ManName))
	w.line("dure \\- %s", roff(say(text.ManShort)))
	w.section(say(text.ManSynopsis))
	for _, use := range []string{useOf(root), "dure -p task", "dure command"} {
		w.line(".B %s\n.br", roff(use))
	}
	w.section(say(text.ManDescription))
	w.text(root.Short)
	w.line(".PP")
	w.text(say(text.ManText))
	w.section(say(text.ManOptions))
	w.flags(root.Flags(), nil)
	w.section(say(text.ManCommands))
	w.commands(root, root.PersistentFlags())
	w.section(say(text.ManEnvironment))
	for _, e := range []struct {
		name string
		what text.Key
	}{
		{"ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY", text.ManKeys},
		{"DURE_MODEL", text.ManModel},
		{"DURE_HOME", text.ManHome},
		{"DURE_LANG", text.ManLang},
		{"NO_COLOR", text.ManColor},
	} {
		w.item(e.name, say(e.what))
	}
	w.section(say(text.ManFiles))
	w.item("~/.dure/settings.json", say(text.ManSettings))
	w.item(".dure/settings.json, .dure/settings.local.json", say(text.ManProject))
	w.item("~/.local/share/dure", say(text.ManData))
	w.section(say(text.ManExit))
	for _, e := range []struct {
		code string
		what text.Key
	}{
		{"0", text.ExitMeans0},
		{"1", text.ExitMeans1},
		{"2", text.ExitMeans2},
		{"3", text.ExitMeans3},
		{"4", text.ExitMeans4},
		{"5", text.ExitMeans5},
		{"6", text.ExitMeans6},
		{"7", text.ExitMeans7},
		{"8", text.ExitMeans8},
		{"130", text.ExitMeans130},
		{"143", text.ExitMeans143},
	} {
		w.item(e.code, say(e.what))
	}
	return w.Bytes()
}

// page is a manual page while it is written.
type page struct{ bytes.Buffer }

func (w *page) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (w *page) section(title string) { w.line(`.SH "%s"`, roff(title)) }

func (w *page) text(s string) { w.line("%s", roff(s)) }

func (w *page) item(name, what string) { w.line(".TP\n.B %s\n%s", roff(name), roff(what)) }

// commands describes the commands below cmd, with what they take. shared are the
// flags that all have.
func (w *page) commands(cmd *cobra.Command, shared *pflag.FlagSet) {
	for _, c := range cmd.Commands() {
		if c.Hidden {
			continue
		}
		w.item(useOf(c), c.Short)
		w.line(".RS")
		w.flags(c.LocalFlags(), shared)
		w.line(".RE")
		w.commands(c, shared)
	}
}

// flags describes flags, but for those that are described elsewhere.
func (w *page) flags(f, but *pflag.FlagSet) {
	f.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && (but == nil || but.Lookup(f.Name) == nil) {
			w.item(strings.TrimSpace(flagName(f)), f.Usage)
		}
	})
}

// roff makes s mean itself: no command, and no typographic hyphen.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "\n", " ").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
