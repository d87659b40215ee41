package policy

import "strings"

// specifier is what the text between the parentheses of a rule is about.
type specifier int

const (
	noSpecifier specifier = iota // the tool as a whole
	aboutCommand
	aboutRead
	aboutEdit
	aboutHost
	aboutName  // of an agent or a skill
	aboutParam // of the input
)

// The tools that take command lines, in the order of how they are written.
const (
	shellTool  = "bash__exec"
	scriptTool = "bash__script"
	readTool   = "file-system__read"
	editTool   = "file-system__edit"
	fetchTool  = "web__fetch"
	httpTool   = "http__request"
)

// known are the names that people write in rules, for who has no catalog.
var known = map[string]string{
	"Bash": shellTool, "Read": readTool, "Edit": editTool,
	"Write": "file-system__write", "MultiEdit": "file-system__multi-edit", "NotebookEdit": "notebook__edit",
	"MultiRead": "file-system__multi-read", "Glob": "file-system__glob", "Grep": "file-system__grep", "LS": "file-system__list",
	"ApplyPatch": "file-system__patch", "Delete": "file-system__delete", "Move": "file-system__move",
	"WebFetch": fetchTool, "WebSearch": "web__search", "HttpRequest": httpTool, "TodoWrite": "todo__write",
	"GitRead": "git__read", "GitCommit": "git__commit",
}

// readers show what files hold; editors change files.
var (
	readers = []string{
		readTool, "file-system__multi-read", "file-system__grep", "file-system__glob", "file-system__list",
	}
	editors = []string{
		editTool, "file-system__write", "file-system__multi-edit", "file-system__patch", "file-system__delete",
		"file-system__move", "notebook__edit",
	}
)

// removers take away what they write to.
var removers = map[string]bool{"file-system__delete": true, "file-system__move": true}

var (
	isReader = setOf(readers)
	isEditor = setOf(editors)
)

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// against has the tools through which the same could be done as through another:
// a rule that denies or asks about a tool is about these too.
var against = map[string][]string{
	shellTool: {scriptTool},
	readTool:  append(append([]string(nil), readers[1:]...), editors...), // all show a part of a file
	editTool:  editors[1:],
	fetchTool: {httpTool},
}

// along has the tools that a rule which allows a tool allows too.
var along = map[string][]string{
	readTool: readers[1:],
	editTool: editors[1:],
}

// specifierOf says what a specifier is about for a tool, by its canonical name
// and by how it was written.
func specifierOf(canonical, written string) specifier {
	switch {
	case canonical == shellTool, canonical == scriptTool, strings.EqualFold(written, "PowerShell"):
		return aboutCommand
	case isReader[canonical]:
		return aboutRead
	case isEditor[canonical]:
		return aboutEdit
	case canonical == fetchTool, canonical == httpTool:
		return aboutHost
	case strings.EqualFold(written, "Agent"), strings.EqualFold(written, "Task"), strings.EqualFold(written, "Skill"),
		strings.HasPrefix(canonical, "agent__"), strings.HasPrefix(canonical, "skill__"):
		return aboutName
	}
	return noSpecifier
}

// primary are the parameters that carry what other specifiers are about.
var primary = map[string]bool{
	"command": true, "file_path": true, "path": true, "notebook_path": true, "url": true,
}

// shown returns the name under which people know a tool.
func shown(canonical string) string {
	for name, c := range known {
		if c == canonical {
			return name
		}
	}
	return canonical
}
