package bundle

import (
	"cmp"
	"fmt"
	"slices"

	"dure/agent/query"
)

// A Problem is a mistake in a bundle.
type Problem = query.BundleProblem

// maxProblems bounds what is told of one run.
const maxProblems = 1000

// problems collects what is wrong.
type problems struct {
	list []Problem
	more int
}

func (ps *problems) add(p Problem) {
	if len(ps.list) == maxProblems {
		ps.more++
		return
	}
	if p.Severity == "" {
		p.Severity = query.BundleError
	}
	p.HelpURL = "docs/errors.md#problems-of-bundles"
	ps.list = append(ps.list, p)
}

// at adds an error about a value; n may be nil.
func (ps *problems) at(code query.BundleCode, n *node, path, fix, format string, args ...any) {
	ps.note(query.BundleError, code, n, path, fix, format, args...)
}

// warn adds what is no error.
func (ps *problems) warn(code query.BundleCode, n *node, path, fix, format string, args ...any) {
	ps.note(query.BundleWarning, code, n, path, fix, format, args...)
}

func (ps *problems) note(severity string, code query.BundleCode, n *node, path, fix, format string, args ...any) {
	p := Problem{Code: code, Severity: severity, Message: fmt.Sprintf(format, args...), Path: path, Suggestion: fix}
	if n != nil {
		p.File, p.Doc, p.Line, p.Column = n.at.File, n.at.Doc, n.at.Line, n.at.Column
	}
	ps.add(p)
}

// sorted returns the problems in the order of files and lines.
func (ps *problems) sorted() []Problem {
	slices.SortStableFunc(ps.list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	list := slices.Compact(ps.list)
	if ps.more > 0 {
		list = append(list, Problem{Code: query.BundleSchema, Severity: query.BundleError, Message: fmt.Sprintf("%d more problems are not shown", ps.more), Suggestion: "mend these first"})
	}
	return list
}
