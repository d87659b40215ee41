package query

import (
	"fmt"
	"time"

	"dure/agent"
)

// BundleCode names a kind of mistake in a bundle. The codes are stable (docs/errors.md).
type BundleCode string

// The codes of files and documents, then those of packages.
const (
	BundleParse            BundleCode = "E_CONFIG_PARSE_ERROR"
	BundleFileTooLarge     BundleCode = "E_CONFIG_FILE_TOO_LARGE"
	BundleTooManyDocuments BundleCode = "E_CONFIG_TOO_MANY_DOCUMENTS"
	BundleAPIVersion       BundleCode = "E_CONFIG_UNSUPPORTED_API_VERSION"
	BundleKind             BundleCode = "E_CONFIG_UNKNOWN_KIND"
	BundleName             BundleCode = "E_CONFIG_INVALID_NAME"
	BundleDuplicate        BundleCode = "E_CONFIG_DUPLICATE_NAME"
	BundleRef              BundleCode = "E_CONFIG_INVALID_REF"
	BundleRefMissing       BundleCode = "E_CONFIG_REF_NOT_FOUND"
	BundleSchema           BundleCode = "E_CONFIG_SCHEMA_INVALID"
	BundlePackageTwice     BundleCode = "E_CONFIG_PACKAGE_DOC_DUPLICATED"
	BundlePackagePlace     BundleCode = "E_CONFIG_PACKAGE_DOC_POSITION"
	BundleEntry            BundleCode = "E_CONFIG_ENTRY_NOT_FOUND"
	BundleNoLock           BundleCode = "E_CONFIG_PACKAGE_LOCK_MISSING"
	BundleNotInstalled     BundleCode = "E_CONFIG_PACKAGE_NOT_INSTALLED"
	BundleNoManifest       BundleCode = "E_CONFIG_PACKAGE_MANIFEST_MISSING"
	BundleValue            BundleCode = "E_CONFIG_VALUE_MISSING"
	BundleMigrate          BundleCode = "E_CONFIG_OLD_FORM"
	BundleOverride         BundleCode = "E_CONFIG_OVERRIDE"

	BundleVersion   BundleCode = "PKG_VERSION_CONFLICT"
	BundleIntegrity BundleCode = "PKG_INTEGRITY_FAIL"
	BundleTraversal BundleCode = "PKG_PATH_TRAVERSAL"
	BundleCircular  BundleCode = "PKG_CIRCULAR_DEP"
)

// How bad a mistake in a bundle is.
const (
	BundleError   = "error"   // nothing of the bundle is started
	BundleWarning = "warning" // it is read in another way than it may have been meant
)

// A BundleProblem is a mistake in a bundle.
type BundleProblem struct {
	Code       BundleCode `json:"code"`
	Severity   string     `json:"severity"`
	Message    string     `json:"message"` // English
	File       string     `json:"file,omitempty"`
	Doc        int        `json:"doc"`            // number of the document in the file, from 0
	Path       string     `json:"path,omitempty"` // of the value, as in spec.tools[0].ref
	Line       int        `json:"line,omitempty"`
	Column     int        `json:"column,omitempty"`
	Suggestion string     `json:"suggestion,omitempty"`
	HelpURL    string     `json:"helpUrl,omitempty"`
}

// Error says where it is and what.
func (p BundleProblem) Error() string {
	switch {
	case p.File == "":
		return p.Message
	case p.Line == 0:
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// CheckBundle asks for the BundleInfo of the bundle in a folder, or of one file. Nothing of it
// is started.
type CheckBundle struct {
	Path string `json:"path"`
}

// Query returns the name of the query on the wire.
func (CheckBundle) Query() string { return "bundles.check" }

// LockBundle asks for a BundleLocked: it writes down which packages a bundle is made with,
// unless something else is wrong with it.
type LockBundle struct {
	Path string `json:"path"`
}

// Query returns the name of the query on the wire.
func (LockBundle) Query() string { return "bundles.lock" }

// BundleLocked is a bundle whose packages were written down.
type BundleLocked struct {
	Info BundleInfo `json:"info"`
	Lock string     `json:"lock,omitempty"` // the file; "" = none was written
}

// BundleInfo is what a bundle comes to.
type BundleInfo struct {
	Path      string           `json:"path"`
	OK        bool             `json:"ok"` // it can be started
	Resources []BundleResource `json:"resources"`
	Edges     []BundleEdge     `json:"edges"`
	Problems  []BundleProblem  `json:"problems"`
}

// A BundleResource is one document of a bundle that counts.
type BundleResource struct {
	ID      string `json:"id"` // Kind/Name, with its package before it
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Package string `json:"package,omitempty"`
	File    string `json:"file"`
	Line    int    `json:"line"`

	Runtime string `json:"runtime,omitempty"` // of an extension
	Version string `json:"version,omitempty"` // of an extension: the one that it is labelled with, or that it was compiled with
}

// A BundleEdge says that a resource names another one.
type BundleEdge struct {
	From string `json:"from"`
	To   string `json:"to"`
	As   string `json:"as"`
}

// A BundleNote tells of a connection that begins, or that has failed, of a session that goes
// on, or how far a plan is.
type BundleNote struct {
	Connection  string // "" = the terminal of a bundle without connections
	Where       string // its address, or when it comes next
	Error       string
	Failures    int           // in a row
	Wait        time.Duration // until it is started again
	Disabled    bool          // it is not started again
	Undelivered string        // why a message from outside was not taken
	Continues   string        // a session of the swarm that was cut short, and goes on

	Session  string                // whose agents have come further with a plan
	Progress *agent.CrewProgressed // how far; nil = the note is about something else
}
