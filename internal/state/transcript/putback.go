package transcript

import (
	"fmt"
	"strings"

	"dure/agent"
)

// maxRejected is how many files the model reads the names of whose changes were
// rejected.
const maxRejected = 20

// putBack is what the model reads of files that the user has put back; "" = nothing.
func putBack(b agent.FilesRewound) string {
	switch {
	case b.Files == 0:
		return ""
	case len(b.Rejected) == 0:
		return fmt.Sprintf("The user has put %d files of the workspace back to an earlier state. Read what you need of them again.", b.Files)
	}
	var t strings.Builder
	t.WriteString("The user has looked at your changes and rejected these, which are taken back:\n")
	for i, r := range b.Rejected {
		if i == maxRejected {
			fmt.Fprintf(&t, "- and %d more files\n", len(b.Rejected)-i)
			break
		}
		fmt.Fprintf(&t, "- %q", r.Path)
		if len(r.Hunks) > 0 && len(r.Hunks) < r.Of {
			fmt.Fprintf(&t, ": %d of its %d changes", len(r.Hunks), r.Of)
		}
		t.WriteString("\n")
	}
	t.WriteString("Do not make them again unless the user asks for it, and read these files again before you change them.")
	return t.String()
}
