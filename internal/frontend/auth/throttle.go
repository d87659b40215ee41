package auth

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// The bounds of attempts to come in.
const (
	maxFailures  = 20          // of an address, before it has to wait
	failureTime  = time.Minute // for that they count together, and it waits
	maxAddresses = 4096        // that are known for failures
)

// throttle counts who shows wrong tokens. Its memory is bounded: what does not fit any more
// counts together. The zero value is ready; it is safe for concurrent use.
type throttle struct {
	mu     sync.Mutex
	failed map[netip.Prefix]*failures
	swept  time.Time
}

// failures are those of an address.
type failures struct {
	n     int
	since time.Time
}

// waits reports for how long an address has to wait; 0 = it may try.
func (t *throttle) waits(remote string, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.of(network(remote))
	if f == nil || f.n < maxFailures {
		return 0
	}
	return max(0, f.since.Add(failureTime).Sub(now))
}

// of returns the failures of an address, or of all those that did not fit; nil = there are none.
func (t *throttle) of(from netip.Prefix) *failures {
	if f := t.failed[from]; f != nil {
		return f
	}
	if len(t.failed) >= maxAddresses {
		return t.failed[netip.Prefix{}]
	}
	return nil
}

// fail counts a wrong token, and reports whether it is the first of an address for a while.
func (t *throttle) fail(remote string, now time.Time) (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil {
		t.failed = map[netip.Prefix]*failures{}
	}
	from := network(remote)
	if t.failed[from] == nil && len(t.failed) >= maxAddresses && now.Sub(t.swept) >= failureTime {
		t.swept = now
		for at, f := range t.failed {
			if now.Sub(f.since) >= failureTime {
				delete(t.failed, at)
			}
		}
	}
	if t.failed[from] == nil && len(t.failed) >= maxAddresses {
		from = netip.Prefix{}
	}
	f := t.failed[from]
	if f == nil || now.Sub(f.since) >= failureTime {
		f = &failures{since: now}
		t.failed[from] = f
	}
	f.n++
	return f.n == 1
}

// network is what counts as one address: one of the fourth version, or what a customer has
// of the sixth.
func network(remote string) netip.Prefix {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}
	}
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}
