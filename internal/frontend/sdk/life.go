package sdk

import (
	"fmt"
	"time"
)

// rest looks what there is to do once no turn runs. The session is idle when nothing goes
// on in the background any more: hosts end the input then.
func (h *Host) rest() {
	if h.sess == nil || h.show.busy() || len(h.queue) > 0 {
		return
	}
	jobs, others := h.running()
	if !jobs && !others {
		h.grace = nil
		h.setState(stateIdle)
		return
	}
	wait := h.c.Wait
	if wait == 0 {
		wait = usualWait
	}
	if h.eof && !others {
		wait = jobGrace
	}
	if wait > 0 && (h.grace == nil || h.eof && !others) {
		h.grace = time.NewTimer(wait)
	}
}

// expire ends the wait for what goes on in the background.
func (h *Host) expire() {
	if h.show.busy() || len(h.queue) > 0 {
		return
	}
	h.expired = true
	h.setState(stateIdle)
}

// done reports whether there is nothing left to do, and sets the code to end with.
func (h *Host) done() bool {
	if h.fatal != nil {
		return true
	}
	if !h.eof || len(h.queue) > 0 && h.sess != nil || h.show.busy() {
		return false
	}
	if h.slow > 0 && !h.late {
		if h.patience == nil {
			h.patience = time.NewTimer(slowTime)
		}
		return false
	}
	if h.sess != nil && !h.expired {
		if jobs, others := h.running(); jobs || others {
			if !h.parting {
				h.parting, h.grace = true, nil // from now on nobody listens
				h.rest()
			}
			return false
		}
	}
	if n := len(h.kept); n > 0 {
		h.kept = nil
		h.complain(fmt.Errorf("the last messages of shouldQuery false, %d of them, are in front of none and do not count", n))
	}
	switch {
	case h.failed:
		h.code = codeFailed
	case !h.begun:
		h.code = codeFailed
		h.complain(errNothing)
	}
	return true
}
