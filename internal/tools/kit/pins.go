package kit

import "sync"

// maxPins is how much is remembered.
const maxPins = 1024

// Pins remembers what calls were decided about, such as where a path led, so
// that Run can tell whether that is still so. It forgets the oldest: what is
// forgotten counts as unchanged. The zero value is empty. It is safe for
// concurrent use.
type Pins struct {
	mu    sync.Mutex
	at    map[string]string
	order []string
}

// Set remembers what stands behind key, which begins with the ID of the call.
func (p *Pins) Set(key, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == nil {
		p.at = map[string]string{}
	}
	if _, ok := p.at[key]; !ok {
		if len(p.order) == maxPins {
			delete(p.at, p.order[0])
			p.order = p.order[1:]
		}
		p.order = append(p.order, key)
	}
	p.at[key] = what
}

// Moved reports whether key stood for something else than now, and for what.
func (p *Pins) Moved(key, now string) (before string, moved bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, ok := p.at[key]
	return before, ok && before != now
}
