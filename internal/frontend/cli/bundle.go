package cli

import (
	"bufio"
	"fmt"
	"slices"
	"strings"

	"dure/agent/query"
	"dure/internal/frontend/text"
)

// CheckedBundle writes what is wrong with a bundle: all of it, in the order of the files.
func (c *CLI) CheckedBundle(info query.BundleInfo, asJSON bool) error {
	return c.put(info, asJSON, func(w *bufio.Writer) { c.bundleProblems(w, info) })
}

func (c *CLI) bundleProblems(w *bufio.Writer, info query.BundleInfo) {
	wrong := 0
	for _, p := range info.Problems {
		key := text.BundleWarns
		if p.Severity == query.BundleError {
			wrong++
			key = text.BundleErrs
		}
		at := text.OneLine(p.File)
		if p.Line > 0 {
			at = fmt.Sprintf("%s:%d:%d", at, p.Line, p.Column)
		}
		if at != "" {
			at += ": "
		}
		fmt.Fprintf(w, "%s%s\n", at, c.Text.Say(key, "code", string(p.Code), "message", c.Text.Phrase(text.OneLine(p.Message))))
		if p.Suggestion != "" {
			fmt.Fprintf(w, "  %s\n", c.Text.Phrase(text.OneLine(p.Suggestion)))
		}
	}
	if wrong == 0 {
		fmt.Fprintln(w, c.Text.Say(text.BundleFine, "n", len(info.Resources)))
	} else {
		fmt.Fprintln(w, c.Text.Say(text.BundleWrong, "n", wrong))
	}
}

// BundleGraph writes what a bundle has, and what names what in it.
func (c *CLI) BundleGraph(info query.BundleInfo, asJSON bool) error {
	return c.put(info, asJSON, func(w *bufio.Writer) {
		for _, r := range info.Resources {
			about := text.OneLine(r.Runtime + " " + r.Version)
			if about = strings.TrimSpace(about); about != "" {
				about += "  "
			}
			fmt.Fprintf(w, "%s  %s(%s:%d)\n", text.OneLine(r.ID), about, text.OneLine(r.File), r.Line)
			for _, e := range info.Edges {
				if e.From != r.ID {
					continue
				}
				lacks := ""
				if !slices.ContainsFunc(info.Resources, func(o query.BundleResource) bool { return o.ID == e.To }) {
					lacks = "  " + c.Text.Say(text.BundleLacks)
				}
				fmt.Fprintf(w, "  %-9s %s%s\n", e.As, text.OneLine(e.To), lacks)
			}
		}
		if !info.OK {
			fmt.Fprintln(w)
			c.bundleProblems(w, info)
		}
	})
}
