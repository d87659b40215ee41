package exthost

import (
	"context"
	"errors"
	"fmt"
)

// maxStrikes is how often in a row a function of an extension may fail before it is not
// called any more.
const maxStrikes = 3

// A strike is how often a function has failed in a row, and how at last.
type strike struct {
	times int
	last  error
}

// A word is an error that an extension in Go has returned: what it says, and not what is
// wrong with it.
type word struct{ error }

func (w word) Unwrap() error { return w.error }

// Notes has people told what is wrong with extensions: of each function that it fails, if
// that is passed over, and that it is not called any more. It is called before [Set.Add].
func (s *Set) Notes(f func(text string)) { s.noted = f }

func (s *Set) note(format string, args ...any) {
	text := shortened(fmt.Sprintf(format, args...), usualErrors)
	if s.noted == nil {
		s.logger.Warn(text)
		return
	}
	s.noted(text)
}

// named says whose error it is.
func (p place) named(err error) error {
	return fmt.Errorf("the extension %s at %s: %w", p.ext.Name, p.point, err)
}

// off says why a function is not called any more; nil = it is.
func (s *Set) off(p place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := p.ext.strikes[p.key]; k != nil && k.times >= maxStrikes {
		return fmt.Errorf("it was switched off after it had failed %d times in a row: %w", k.times, k.last)
	}
	return nil
}

// worked forgets how often a function had failed.
func (s *Set) worked(p place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(p.ext.strikes, p.key)
}

// failed counts that a function has failed, and reports whether that is passed over. To
// throw is to refuse for one that may guard something; to hang, to end and to answer
// nonsense is not.
func (s *Set) failed(ctx context.Context, p place, err error) bool {
	if ctx.Err() != nil || errors.Is(err, ErrClosed) {
		return false
	}
	_, threw := errors.AsType[*thrown](err)
	if _, said := errors.AsType[word](err); (said || threw) && !p.optional {
		return false
	}
	s.mu.Lock()
	k := p.ext.strikes[p.key]
	if k == nil {
		k = &strike{}
		if p.ext.strikes == nil {
			p.ext.strikes = map[string]*strike{}
		}
		p.ext.strikes[p.key] = k
	}
	k.times++
	times := k.times
	k.last = errors.Unwrap(err) // without the name
	s.mu.Unlock()
	switch {
	case times == maxStrikes && p.optional:
		s.note("%v (it has failed %d times in a row, and is not called any more)", err, times)
	case times == maxStrikes:
		s.note("%v (it has failed %d times in a row, and is not called any more: what it would see is refused)", err, times)
	case times == 1 && p.optional:
		s.note("%v (it is gone on without that)", err)
	}
	return p.optional
}

// without reports whether it is gone on without an extension that is not there: it has
// nothing that fits, or nothing that has to be asked, as far as it was ever there.
func (s *Set) without(e *extension, fits func(registered) bool, err error) bool {
	s.mu.Lock()
	seen, some := e.seen, false
	s.mu.Unlock()
	if seen == nil {
		return false
	}
	for _, r := range seen {
		if fits(r) {
			if some = true; !r.optional {
				return false
			}
		}
	}
	if some {
		s.logger.Warn("an extension is not there", "error", err)
	}
	return true
}

// forgive forgets what is wrong with code that is not there any more.
func (e *extension) forgive(hash string) {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	if e.hash != hash {
		e.hash, e.strikes = hash, nil
	}
}
