package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"dure/internal/base/keys/secret"
	"dure/internal/base/meter"
)

// Target is where one signal is sent. Zero fields have the values that are said there.
type Target struct {
	URL        string                 // complete; https, or http
	Headers    map[string]secret.Text // never sent anywhere else
	JSON, Gzip bool                   // JSON, and not protobuf
	GRPC       bool                   // as a call of gRPC, and not as a request of HTTP
	Timeout    time.Duration          // of one attempt; 10 s

	Delay time.Duration // between requests; 5 s, of figures 60 s
	Queue int           // records that wait; what comes beyond is dropped; 2048
	Batch int           // records of one request; 512
}

// Bounds of delivery.
const (
	usualTimeout  = 10 * time.Second
	usualQueue    = 2048
	usualBatch    = 512
	usualDelay    = 5 * time.Second
	usualInterval = time.Minute

	maxQueueBytes = 16 << 20 // of the records that wait for one signal, about
	maxBatchBytes = 4 << 20  // of those of one request, about
	maxReply      = 64 << 10 // bytes of an answer that are read

	firstPause = time.Second // after an attempt that failed; each is twice as long as the last
	longPause  = 30 * time.Second
	maxTries   = 6
)

// Why records are dropped.
const (
	droppedFull     = "queue-full"
	droppedRefused  = "refused"  // the collector will not have them
	droppedFailed   = "failed"   // it could not be reached, or would not answer
	droppedClosing  = "closing"  // there was no time left
	droppedRejected = "rejected" // it has taken some of a request
)

// sender sends requests of one signal.
type sender struct {
	target  Target
	signal  string
	agent   string
	http    *http.Client
	log     *slog.Logger
	dropped meter.Counter
}

func (s *sender) drop(n int, why string) {
	if n > 0 {
		s.dropped.Add(float64(n), s.signal, why)
		s.log.Debug("telemetry: records were dropped", "signal", s.signal, "records", n, "why", why)
	}
}

// errAgain is an attempt that failed, and may succeed later.
type errAgain struct {
	after time.Duration // as the collector asks; 0 = it does not
	err   error
}

func (e *errAgain) Error() string { return e.err.Error() }
func (e *errAgain) Unwrap() error { return e.err }

// encode makes a request's body.
func (s *sender) encode(write func(encoder)) ([]byte, error) {
	var data []byte
	if s.target.JSON {
		o := &object{}
		o.braces(write)
		data = o.data
	} else {
		p := &protobuf{}
		write(p)
		data = p.data
	}
	if !s.target.Gzip {
		return s.framed(data), nil
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return s.framed(packed.Bytes()), nil
}

// framed is a body as the protocol carries it.
func (s *sender) framed(data []byte) []byte {
	if s.target.GRPC {
		return framed(data, s.target.Gzip)
	}
	return data
}

// once makes one attempt. Errors say nothing of addresses and headers.
func (s *sender) once(ctx context.Context, body []byte) (rejected int, err error) {
	timeout := s.target.Timeout
	if timeout <= 0 {
		timeout = usualTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.target.URL, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("the address cannot be used")
	}
	for k, v := range s.target.Headers {
		req.Header.Set(k, string(v))
	}
	req.Header.Set("User-Agent", s.agent)
	s.describe(req, timeout)
	resp, err := s.http.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the address, which may hold what is secret
		}
		return 0, &errAgain{err: err}
	}
	defer resp.Body.Close()
	if s.target.GRPC {
		return called(resp)
	}
	reply, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return rejectedOf(reply, strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json")), nil
	case code == http.StatusTooManyRequests, code == http.StatusBadGateway, code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout:
		return 0, &errAgain{retryAfter(resp.Header.Get("Retry-After")), errors.New("HTTP " + strconv.Itoa(code))}
	case err != nil:
		return 0, &errAgain{err: err}
	default:
		return 0, errors.New("HTTP " + strconv.Itoa(code))
	}
}

// describe says in a request what its body is.
func (s *sender) describe(req *http.Request, timeout time.Duration) {
	if s.target.GRPC {
		s.call(req, timeout)
		return
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	if s.target.JSON {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.target.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
}

// retryAfter reads how long a collector wants to be left alone.
func retryAfter(v string) time.Duration {
	if n, err := strconv.Atoi(strings.TrimSpace(v)); err == nil && n > 0 {
		return min(time.Duration(min(n, 3600))*time.Second, longPause)
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(0, time.Until(at)), longPause)
	}
	return 0
}

// send delivers n records, in several attempts if it takes them. Between them it waits, and
// waits no more once closing is closed.
func (s *sender) send(ctx context.Context, closing <-chan struct{}, n int, write func(encoder)) bool {
	body, err := s.encode(write)
	if err != nil {
		s.drop(n, droppedFailed)
		return false
	}
	pause := firstPause
	for try := 1; ; try++ {
		rejected, err := s.once(ctx, body)
		if err == nil {
			s.drop(min(rejected, n), droppedRejected)
			return true
		}
		s.log.Debug("telemetry: a request failed", "signal", s.signal, "attempt", try, "error", err)
		again, ok := errors.AsType[*errAgain](err)
		switch {
		case !ok:
			s.drop(n, droppedRefused)
			return false
		case ctx.Err() != nil:
			s.drop(n, droppedClosing)
			return false
		case try == maxTries || done(closing):
			s.drop(n, droppedFailed)
			return false
		}
		wait := max(again.after, pause/2+rand.N(pause/2+1))
		pause = min(2*pause, longPause)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-closing: // once more, at once
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func done(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// line is the queue of one signal, and the goroutine that empties it, which is there from
// the first record on. A nil line is one that sends nothing.
type line[T any] struct {
	sender
	size  func(T) int
	write func(encoder, []T)

	full    chan struct{} // there are enough for a request
	closing chan struct{}
	over    chan struct{} // the goroutine has ended

	mu     sync.Mutex
	queue  []T
	bytes  int
	begun  bool
	closed bool
	end    context.Context // of requests, once the line is closed
	cancel context.CancelFunc
}

func newLine[T any](s sender, size func(T) int, write func(encoder, []T)) *line[T] {
	t := &s.target
	if t.Queue <= 0 {
		t.Queue = usualQueue
	}
	if t.Batch <= 0 {
		t.Batch = usualBatch
	}
	if t.Batch > t.Queue {
		t.Batch = t.Queue
	}
	if t.Delay <= 0 {
		t.Delay = usualDelay
	}
	l := &line[T]{
		sender: s, size: size, write: write,
		full: make(chan struct{}, 1), closing: make(chan struct{}), over: make(chan struct{}),
	}
	l.end, l.cancel = context.WithCancel(context.Background())
	return l
}

// put adds a record, or drops it. It never waits.
func (l *line[T]) put(v T) {
	size := l.size(v)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		l.drop(1, droppedClosing)
		return
	case len(l.queue) >= l.target.Queue || l.bytes+size > maxQueueBytes:
		l.drop(1, droppedFull)
		return
	}
	l.queue, l.bytes = append(l.queue, v), l.bytes+size
	if !l.begun {
		l.begun = true
		go l.run()
	}
	if len(l.queue) >= l.target.Batch || l.bytes >= maxBatchBytes {
		select {
		case l.full <- struct{}{}:
		default:
		}
	}
}

// take takes the records of one request out of the queue.
func (l *line[T]) take() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, bytes := 0, 0
	for n < len(l.queue) && n < l.target.Batch && (n == 0 || bytes < maxBatchBytes) {
		bytes += l.size(l.queue[n])
		n++
	}
	batch := l.queue[:n:n]
	l.bytes -= bytes
	l.queue = append([]T(nil), l.queue[n:]...)
	return batch
}

func (l *line[T]) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}

func (l *line[T]) run() {
	defer close(l.over)
	ticker := time.NewTicker(l.target.Delay)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-l.full:
		case <-l.closing:
		}
		for {
			batch := l.take()
			if len(batch) == 0 {
				break
			}
			l.send(l.end, l.closing, len(batch), func(e encoder) { l.write(e, batch) })
			if !done(l.closing) && l.waiting() < l.target.Batch {
				break
			}
			if l.end.Err() != nil {
				l.mu.Lock()
				l.drop(len(l.queue), droppedClosing)
				l.queue = nil
				l.mu.Unlock()
			}
		}
		if done(l.closing) {
			return
		}
	}
}

// close sends what waits, and ends the goroutine: at once when ctx is done.
func (l *line[T]) close(ctx context.Context) {
	if l == nil {
		return
	}
	l.mu.Lock()
	begun := l.begun
	l.closed = true
	l.mu.Unlock()
	defer l.cancel()
	close(l.closing)
	if !begun {
		return
	}
	stop := context.AfterFunc(ctx, l.cancel)
	defer stop()
	<-l.over
}

// reporter sends figures, from time to time and at the end. A nil reporter sends none.
type reporter struct {
	sender
	from  origin
	meter *meter.Registry
	delta bool
	now   func() time.Time

	once    sync.Once
	closing chan struct{}
	over    chan struct{}
	end     context.Context
	cancel  context.CancelFunc

	sent map[string]meter.Metric // as of the last report that was taken; of delta alone
	at   time.Time               // of that
}

// start begins to report.
func (r *reporter) start() {
	if r == nil {
		return
	}
	r.once.Do(func() {
		if r.target.Delay <= 0 {
			r.target.Delay = usualInterval
		}
		r.closing, r.over, r.at = make(chan struct{}), make(chan struct{}), r.meter.Began()
		r.end, r.cancel = context.WithCancel(context.Background())
		go r.run()
	})
}

func (r *reporter) run() {
	defer close(r.over)
	ticker := time.NewTicker(r.target.Delay)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.report()
		case <-r.closing:
			r.report()
			return
		}
	}
}

// report sends the figures as they are.
func (r *reporter) report() {
	all, now, since := r.meter.Read(), r.now(), r.meter.Began()
	whole := all
	if r.delta {
		all, since = r.news(all), r.at
	}
	points := 0
	for _, m := range all {
		points += len(m.Series)
	}
	if points == 0 {
		return
	}
	if !r.send(r.end, r.closing, points, func(e encoder) { r.from.metrics(e, all, since, now, r.delta) }) || !r.delta {
		return
	}
	r.at, r.sent = now, map[string]meter.Metric{}
	for _, m := range whole {
		r.sent[m.Name] = m
	}
}

// news is what has come since the last report that was taken.
func (r *reporter) news(all []meter.Metric) []meter.Metric {
	var list []meter.Metric
	for _, m := range all {
		if m.Kind == meter.KindGauge {
			list = append(list, m)
			continue
		}
		before := map[string]meter.Series{}
		for _, s := range r.sent[m.Name].Series {
			before[labelKey(s.Labels)] = s
		}
		var some []meter.Series
		for _, s := range m.Series {
			if s, ok := since(s, before[labelKey(s.Labels)]); ok {
				some = append(some, s)
			}
		}
		if m.Series = some; len(some) > 0 {
			list = append(list, m)
		}
	}
	return list
}

func labelKey(labels []meter.Label) string {
	var b strings.Builder
	for _, l := range labels {
		b.WriteString(l.Name + "\x00" + l.Value + "\x00")
	}
	return b.String()
}

// since is what a series has now and did not have before; ok is false when there is nothing.
// The least and the largest of the values since then nobody knows.
func since(now, before meter.Series) (meter.Series, bool) {
	if now.Value == before.Value && now.Count == before.Count {
		return now, false
	}
	now.Value -= before.Value
	if before.Count > 0 {
		now.Count -= before.Count
		now.Buckets = append([]uint64(nil), now.Buckets...)
		for i := range before.Buckets {
			now.Buckets[i] -= before.Buckets[i]
		}
		now.Min, now.Max = 1, 0
	}
	return now, true
}

// close reports once more, and ends the goroutine: at once when ctx is done.
func (r *reporter) close(ctx context.Context) {
	if r == nil {
		return
	}
	r.once.Do(func() {}) // nothing begins any more
	if r.closing == nil {
		return
	}
	defer r.cancel()
	close(r.closing)
	stop := context.AfterFunc(ctx, r.cancel)
	defer stop()
	<-r.over
}

// rejectedOf reads how many records of a request a collector has not taken. What it cannot
// read says that there are none.
func rejectedOf(reply []byte, asJSON bool) int {
	if asJSON {
		return rejectedJSON(reply)
	}
	inner, ok := fieldOf(reply, 1, wireBytes)
	if !ok {
		return 0
	}
	n, ok := fieldOf(inner.([]byte), 1, wireVarint)
	if !ok {
		return 0
	}
	return int(min(n.(uint64), 1<<31-1))
}
