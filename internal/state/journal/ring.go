package journal

import (
	"sort"

	"dure/agent"
)

// What a lease keeps in memory of its log, however long that grows.
const (
	ringEvents = 256     // most recent events
	ringBytes  = 1 << 20 // bytes of their lines, and of what blobs have of them
	maxPlaces  = 4096    // known places in the files
)

// A ring keeps the most recent events.
type ring struct {
	events [ringEvents]agent.Event
	sizes  [ringEvents]int
	first  int // the oldest
	n      int
	bytes  int
}

func (r *ring) add(e agent.Event, size int) {
	for r.n > 0 && (r.n == ringEvents || r.bytes+size > ringBytes) {
		r.bytes -= r.sizes[r.first]
		r.events[r.first] = agent.Event{}
		r.first = (r.first + 1) % ringEvents
		r.n--
	}
	if size > ringBytes {
		return
	}
	i := (r.first + r.n) % ringEvents
	r.events[i], r.sizes[i] = e, size
	r.bytes += size
	r.n++
}

// after returns the kept events behind seq, oldest first. They reach to the end
// of the log, but need not begin at seq+1.
func (r *ring) after(seq int64) []agent.Event {
	skip := 0
	if r.n > 0 {
		skip = int(min(int64(r.n), max(0, seq-r.events[r.first].Seq+1)))
	}
	out := make([]agent.Event, 0, r.n-skip)
	for i := skip; i < r.n; i++ {
		out = append(out, r.events[(r.first+i)%ringEvents])
	}
	return out
}

// places is a sparse index of a log: it knows where some of its lines begin.
// When it is full it forgets every second one.
type places struct {
	list []place
	gap  int64 // events between two of them; 0 = 256
}

func (p *places) add(at place) {
	if p.gap == 0 {
		p.gap = 256
	}
	if n := len(p.list); n > 0 && at.at.seq-p.list[n-1].at.seq < p.gap && at.seg == p.list[n-1].seg {
		return
	}
	if len(p.list) >= maxPlaces {
		kept := p.list[:0]
		for i := 0; i < len(p.list); i += 2 {
			kept = append(kept, p.list[i])
		}
		p.list = kept
		p.gap *= 2
	}
	p.list = append(p.list, at)
}

// before returns the last known place from which seq can be reached.
func (p *places) before(seq int64) place {
	i := sort.Search(len(p.list), func(i int) bool { return p.list[i].at.seq >= seq })
	if i == 0 {
		return place{seg: 1}
	}
	return p.list[i-1]
}

// cut forgets the places of lines behind seq, which are no more.
func (p *places) cut(seq int64) {
	for n := len(p.list); n > 0 && p.list[n-1].at.seq > seq; n-- {
		p.list = p.list[:n-1]
	}
}
