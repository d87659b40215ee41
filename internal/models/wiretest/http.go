package wiretest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"dure/agent"
)

// Transport is an endpoint without a network.
type Transport func(*http.Request) (*http.Response, error)

// RoundTrip answers a request.
func (f Transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Answers returns a client whose endpoint answers with what body returns. A key and a
// value follow each other in header.
func Answers(status int, body func() io.Reader, header ...string) *http.Client {
	return &http.Client{Transport: Transport(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Request: r, Header: h, Body: io.NopCloser(body())}, nil
	})}
}

// Paced returns a client whose endpoint begins to answer after some time and then
// answers with what write writes, in fake time.
func Paced(headers time.Duration, write func(w io.Writer)) *http.Client {
	return &http.Client{Transport: Transport(func(r *http.Request) (*http.Response, error) {
		ctx := r.Context()
		select {
		case <-time.After(headers):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		pr, pw := io.Pipe()
		context.AfterFunc(ctx, func() { _ = pr.CloseWithError(ctx.Err()) })
		go func() {
			write(pw)
			_ = pw.Close()
		}()
		return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: pr}, nil
	})}
}

// Cancelling asserts that a request ends at once, and with the reason, when its context
// is cancelled: before there is an answer, within one that begins with first, and
// before it is sent. serve returns a model whose endpoint answers with a function.
func Cancelling(t *testing.T, serve func(*testing.T, http.HandlerFunc) agent.Model, r agent.Request, first string) {
	stopped := errors.New("the user pressed a key")
	entered := make(chan struct{})
	waits := func(r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
	}
	for name, h := range map[string]http.HandlerFunc{
		"before the answer": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			waits(r)
		},
		"within the answer": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, first)
			_ = http.NewResponseController(w).Flush()
			waits(r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := serve(t, h)
			ctx, cancel := context.WithCancelCause(t.Context())
			at := make(chan time.Time, 1)
			go func() { // ends with the request
				<-entered
				at <- time.Now()
				cancel(stopped)
			}()
			if _, _, err := Drain(ctx, m, r); !errors.Is(err, stopped) {
				t.Fatalf("got %v", err)
			}
			if took := time.Since(<-at); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
	t.Run("before it is sent", func(t *testing.T) {
		m := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("somebody called") })
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stopped)
		if _, _, err := Drain(ctx, m, r); !errors.Is(err, stopped) {
			t.Errorf("got %v", err)
		}
	})
}

// Reading measures how an answer is read that has so many bytes of text.
func Reading(b *testing.B, m agent.Model, r agent.Request, text int) {
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for d, err := range m.Stream(b.Context(), r) {
			if err != nil {
				b.Fatal(err)
			}
			n += len(d.Text)
		}
		if n != text {
			b.Fatal(n)
		}
	}
}
