//go:build linux && !amd64 && !arm64

package inner

// There is no filter for these, and so no confinement.
const (
	auditArch    = 0
	foreignCalls = 0
)

var refusedHere []uint32
