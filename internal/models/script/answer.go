package script

import (
	"net/http"
	"time"

	"dure/agent"
)

// refuse answers with an error of the API.
func refuse(w http.ResponseWriter, a api, f *failure) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	_, _ = w.Write(a.refusal(f, w.Header().Get("Request-Id")))
}

// status returns the HTTP status of an answer with fault f.
func status(f *Fault) int {
	switch {
	case f == nil:
		return http.StatusOK
	case f.Kind == Status && f.Status == 0:
		return http.StatusInternalServerError
	case (f.Kind == Status || f.Kind == HTML) && f.Status != 0:
		return f.Status
	}
	return http.StatusOK
}

// answer plays a reply, or what goes wrong with it.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, a api, t take, fault *Fault) {
	if fault != nil && !begin(w, r, a, fault) {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	p := &player{
		ctx: r.Context(), w: w, rc: http.NewResponseController(w), api: a, fault: fault,
		delay: time.Duration(t.reply.DelayMS) * time.Millisecond, chunk: t.reply.Chunk,
	}
	if p.chunk <= 0 {
		p.chunk = defaultChunk
	}
	if fault != nil && fault.Kind == Garbage {
		p.buf = append(p.buf, "\x00\x01\x02 this is\nno stream of events\n\n{\"choices\":[]}\n\n"...)
		_ = p.flush()
		return
	}
	t.model = or(t.model, Provider)
	t.settle()
	a.play(p, t)
	_ = p.flush()
}

// settle completes what the script leaves open: the usage.
func (t *take) settle() {
	if t.reply.Usage != nil {
		t.usage = *t.reply.Usage
		return
	}
	said := len(t.reply.Thinking) + len(t.reply.Text)
	for _, c := range t.reply.Calls {
		said += len(c.Tool) + len(c.input())
	}
	t.usage = agent.Usage{Input: t.cost.input, CacheRead: t.cost.read, CacheWrite: t.cost.write, Output: tokens(said) + 2}
}

// begin plays what goes wrong before a stream begins, and reports whether it
// begins after all.
func begin(w http.ResponseWriter, r *http.Request, a api, fault *Fault) bool {
	for name, value := range fault.Header {
		w.Header().Set(name, value)
	}
	switch fault.Kind {
	case Status:
		f := fault.failure()
		f.status = status(fault)
		f.message = or(f.message, "the script says so")
		if f.after != "" {
			w.Header().Set("Retry-After", f.after)
		}
		refuse(w, a, f)
		return false
	case HTML:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status(fault))
		_, _ = w.Write([]byte("<!doctype html><title>Sign in</title><p>This is no API."))
		return false
	case Slow:
		return wait(r.Context(), time.Duration(fault.ForMS)*time.Millisecond)
	}
	return true
}
