package serve

import (
	"net"

	"golang.org/x/net/netutil"
)

// maxConnections is how many connections there may be at once, whoever they are of: readers and
// requests have room in them, and those that have shown no token are gone soon.
const maxConnections = 8192

// Bounded returns a listener that accepts no more connections than there may be at once; more
// wait. What speaks TLS goes over it: servers do not see TLS under it.
func Bounded(l net.Listener) net.Listener { return bounded(l, maxConnections) }

func bounded(l net.Listener, n int) net.Listener { return netutil.LimitListener(l, n) }
