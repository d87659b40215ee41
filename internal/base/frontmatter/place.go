package frontmatter

import "strings"

// Scope says whose word a file is that extends the program.
type Scope string

// The scopes.
const (
	Managed Scope = "managed" // the machine's administrator's
	Flag    Scope = "flag"    // named on the command line
	Project Scope = "project" // what a repository brings
	User    Scope = "user"    // the user's own
	Plugin  Scope = "plugin"  // a plugin's, whoever enabled it
	BuiltIn Scope = "builtin" // the program's
)

// A Place is a folder in which files that extend the program are looked for: skills,
// commands or agents. It need not exist.
type Place struct {
	Scope Scope
	Dir   string // absolute

	// Trusted says that what stands there may do what it says. A place of a
	// project that is not trusted is known all the same, so that it can be said
	// what is not in force.
	Trusted bool

	// Covers reports whether a file is as it was when the folder was trusted: one that
	// came or changed since may say what to do, and has none of its powers. nil = every file
	// of the place has them.
	Covers func(path string, data []byte) bool

	// Of a place of a plugin: its ID, the folder that it was installed to, the
	// folder that it may keep data in, and what its user set for it.
	Plugin  string
	Root    string
	Data    string
	Options map[string]string
}

// Has reports whether a file of the place has the powers that it asks for: rules, hooks,
// models, and commands in its text.
func (p Place) Has(path string, data []byte) bool { return p.Covers == nil || p.Covers(path, data) }

// Uncovered is what is said of a file that has no powers: powers are the fields that do not
// count.
func Uncovered(powers ...string) Fault {
	return Fault{
		Message: "the file came or changed after its folder was trusted: " + strings.Join(powers, ", ") + " in it count for nothing",
		Fix:     "look at the file, then trust the folder that its .dure or .claude lies in: dure trust FOLDER",
	}
}

// PluginManifest stands in the folder of a plugin. A folder of skills that has one is a
// plugin, and no skill.
const PluginManifest = ".claude-plugin/plugin.json"
