package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"dure/client/protocol"
)

// Dial connects to a server that runs, such as http://127.0.0.1:8080, with its token. The
// connection ends with [Host.Close].
func Dial(ctx context.Context, server, token string, cfg Config) (*Host, error) {
	ws, res, err := websocket.Dial(ctx, strings.TrimSuffix(server, "/")+"/v1/control", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + token}},
	})
	if err != nil {
		if res != nil {
			_ = res.Body.Close() // it was read
			return nil, fmt.Errorf("%s answers %s", server, res.Status)
		}
		return nil, err
	}
	ws.SetReadLimit(protocol.MaxMessage)
	s := &socket{ws: ws}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	return begin(ctx, s, cfg)
}

// socket is dure behind a server.
type socket struct {
	ws   *websocket.Conn
	life context.Context
	end  context.CancelFunc
}

func (s *socket) Read() ([]byte, error) {
	kind, data, err := s.ws.Read(s.life)
	if err == nil && kind != websocket.MessageText {
		err = errors.New("the server has sent what is no text")
	}
	return data, err
}

func (s *socket) Write(data []byte) error { return s.ws.Write(s.life, websocket.MessageText, data) }

func (s *socket) Close() error {
	s.end()
	_ = s.ws.CloseNow() // the other side was told before, or is gone
	return nil
}
