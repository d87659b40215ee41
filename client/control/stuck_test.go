package control

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dure/client/protocol"
)

// stuck is a transport that carries the hello, and nothing after it.
type stuck struct {
	hello chan []byte
	over  chan struct{}
	once  sync.Once
	begun bool // of the goroutine that writes
}

func (s *stuck) Read() ([]byte, error) {
	select {
	case data := <-s.hello:
		return data, nil
	case <-s.over:
		return nil, io.EOF
	}
}

func (s *stuck) Write(data []byte) error {
	if !s.begun {
		s.begun = true
		m, err := protocol.Decode(data)
		if err != nil {
			return err
		}
		if data, err = protocol.Encode(protocol.TypeInitializeResult, m.ID, "", protocol.InitializeResultData{Version: protocol.Version}); err == nil {
			s.hello <- data
		}
		return err
	}
	<-s.over
	return io.ErrClosedPipe
}

func (s *stuck) Close() error {
	s.once.Do(func() { close(s.over) })
	return nil
}

// The end takes its time and no more when a message is held up in the middle, and whoever
// waits for that is told.
func TestCloseWhileStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := begin(t.Context(), &stuck{hello: make(chan []byte, 1), over: make(chan struct{})}, Config{})
		if err != nil {
			t.Fatal(err)
		}
		said := make(chan error, 1)
		go func() {
			_, _, err := h.Say(context.Background(), "", protocol.UserMessagePayload{Text: strings.Repeat("x", 1<<10)})
			said <- err
		}()
		synctest.Wait()
		began, late := time.Now(), make(chan error, 1)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() { late <- h.Interrupt(short, "") }()
		if err := <-late; !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		began = time.Now()
		if err := h.Close(); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != closeTime {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := <-said; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
}
