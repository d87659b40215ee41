package sandbox

import (
	"dure/agent/query"
	"dure/internal/safety/sandbox/egress"
)

// Level says how much of a [Confinement] holds on a machine.
type Level string

// The levels, from the best down.
const (
	Full    Level = "full"    // all of it
	Reduced Level = "reduced" // writes and network, but not all that Explain lists
	None    Level = "none"    // nothing: commands run as the user
)

// Net says what network a confined command has.
type Net string

// The networks. The zero value is NetOff.
const (
	NetOff   Net = "off"   // none but a loopback of its own
	NetProxy Net = "proxy" // what the egress proxy lets through
	NetOpen  Net = "open"  // that of the user
)

// A Confinement is what commands of a [Box] may touch. Paths are absolute; those
// that lead through symbolic links count as what they lead to. It reads all but
// Hide, writes Roots, Extra and Writable but not what is protected, and has a private
// /tmp for the commands of the box.
type Confinement struct {
	Roots    []string // folders of the workspace
	Extra    []string // more of them; what is not there, and the root of the file system, does not count
	Writable []string // caches and the like; they are made when they are missing

	// Layers are folders below Writable that also show what another folder has. They
	// are a convenience: where the system cannot do that, they show their own alone.
	Layers []Layer

	// Protect is read-only also below a root, and ProtectNames wherever one stands
	// directly in a root; a name may be a path such as .git/hooks. Both hold for
	// what does not exist yet. See [ProtectNames].
	Protect, ProtectNames []string

	// PresentNames are as ProtectNames, but only where they exist. See [PresentNames].
	PresentNames []string

	// Hide has nothing to read below it, except what Read lists. See [Hidden].
	Hide, Read []string

	Net    Net
	Egress egress.Config // of the proxy of each command; its Denied is called as well
	Limits Limits
}

// A Layer is a folder over another one: what is written goes into Path, what is
// not there is read from Below. Work is an empty folder beside Path that the system
// needs for it. Commands that run at the same time may see each other's files late.
type Layer struct{ Path, Below, Work string }

// Limits bound a confined command; 0 = the default, negative = none.
type Limits struct {
	Processes int   // processes and threads at a time; 4096
	OpenFiles int   // of each process; that of the user
	Memory    int64 // bytes of address space of each process; none
	FileSize  int64 // bytes of each file that is written; 16 GiB
}

// The defaults of [Limits].
const (
	defaultProcesses = 4096
	defaultFileSize  = 16 << 30
)

// A Grant widens or narrows the [Confinement] for one command, because somebody
// allowed what it was planned to do.
type Grant struct {
	Writes   []string // may be written too, even what is protected
	Reads    []string // may be read although it is hidden
	Hosts    []string // may be reached, written as in [egress.Config]; they need the proxy
	ReadOnly bool     // the roots are read-only as well
}

// Kinds of a [Denial].
const (
	DeniedRead  = "read"
	DeniedWrite = "write"
	DeniedHost  = "host"
)

// A Denial is something that the confinement refused a command. Hosts are exact:
// the proxy tells of them. Paths are read from what the command wrote: one that
// says nothing is not known, and one that speaks of a path which the confinement
// allows is not listed.
type Denial struct {
	Kind   string
	Target string // absolute path, or host:port
	How    string // why: a constant of egress for hosts, "hidden", "protected" or "outside" for paths
}

// A Report says what holds on this machine, and why not more.
type Report struct {
	Level     Level
	Mechanism string   // that commands are started with; "" = none
	Parts     []Part   // all that were looked for
	Enforced  []string // what holds, each a sentence
	Missing   []string // what does not
	Mend      []string // what would raise the level
}

// Part is a mechanism of the system.
type Part = query.SandboxPart

// Access says what a confined command can do with a path.
type Access = query.SandboxAccess

// The accesses. What is masked looks empty.
const (
	ReadOnly Access = "ro"
	Write    Access = "rw"
	Masked   Access = "hidden"
	Private  Access = "private" // writable, and nobody else's
)

// Mount is a path, with all below it that no longer path names, and what a command can do
// with it.
type Mount = query.SandboxMount
