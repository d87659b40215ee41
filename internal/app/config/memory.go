package config

// Memory says which instruction files a model gets. Zero numbers are left to the
// package that they are for.
type Memory struct {
	Off      bool     // none
	Managed  string   // folder of the administrator's
	User     string   // a file in the place of the user's own ones; absolute; "" = those
	Depth    int      // files that include one another: 1 to 5
	Chars    int      // of all of them together
	Excludes []string // patterns of absolute paths that are not read
	Outside  bool     // files of a trusted project may include others from outside of it
}

// The bounds of what the files may hold together, in characters.
const (
	minMemory = 1000
	maxMemory = 1_000_000
)

// maxExcludes bounds the patterns of all layers, and maxPattern one of them in bytes.
const (
	maxExcludes = 1000
	maxPattern  = 1024
)
