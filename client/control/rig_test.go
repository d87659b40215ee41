package control_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dure/agent"
	client "dure/client/control"
	"dure/client/protocol"
	"dure/internal/app"
	"dure/internal/frontend/auth"
	"dure/internal/frontend/control"
	"dure/internal/frontend/control/socket"
	"dure/internal/frontend/serve"
	"dure/internal/frontend/text"
	"dure/internal/models/script"
)

// patience is how long a test waits for something that should come at once.
const patience = time.Minute

const secret = "a-token-of-the-test"

// The tests start themselves again: as dure, and as a host of it.
const (
	asVar  = "CONTROL_TEST_AS" // dure, deaf or host
	dirVar = "CONTROL_TEST_DIR"
	urlVar = "CONTROL_TEST_MODEL"
)

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(asVar) {
	case "dure":
		err = dure()
	case "deaf":
		err = deaf()
	case "host":
		err = lost()
	default:
		goleak.VerifyTestMain(m)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// program builds a program in a folder.
func program(dir, model string) (*app.App, error) {
	work, home := filepath.Join(dir, "work"), filepath.Join(dir, "home")
	for _, d := range []string{work, home} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	return app.New(app.Options{
		Flags: app.Flags{PlainOff: true, NoReflexion: true}, UserHome: home, Workdir: work, Version: "test",
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "DURE_HOME=" + filepath.Join(home, "dure"), "ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_API_KEY=scripted", "DURE_MODEL=script"},
	})
}

func served(a *app.App, dir string) control.Config {
	return control.Config{
		Version: "test", Logger: slog.New(slog.DiscardHandler), Text: text.For("en"), Own: true, Lasting: true,
		Start: func(context.Context, control.Begin) (control.Program, error) {
			return control.Program{Client: a.Shared(), Workdir: filepath.Join(dir, "work"), Mode: agent.ModeDefault, Text: text.For("en")}, nil
		},
	}
}

// dure is what the binary does for a host.
func dure() error {
	a, err := program(os.Getenv(dirVar), os.Getenv(urlVar))
	if err != nil {
		return err
	}
	return errors.Join(control.Serve(context.Background(), served(a, os.Getenv(dirVar)), control.NewLines(os.Stdin, os.Stdout)), a.Close())
}

// deaf is a program that reads nothing after it was said hello to.
func deaf() error {
	line, err := protocol.NewReader(os.Stdin, 0).Next()
	if err != nil {
		return err
	}
	m, err := protocol.Decode(line)
	if err != nil {
		return err
	}
	hello, err := protocol.Encode(protocol.TypeInitializeResult, m.ID, "", protocol.InitializeResultData{Version: protocol.Version})
	if err != nil {
		return err
	}
	if _, err := os.Stdout.Write(append(hello, '\n')); err != nil {
		return err
	}
	time.Sleep(10 * patience) // it is told to end before
	return errors.New("nobody has told it to end")
}

// lost is a host that says where it is, and waits to be killed.
func lost() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*patience)
	defer cancel()
	running := make(chan struct{}, 1)
	h, err := client.Start(ctx, client.Command{Path: exe, Env: append(os.Environ(), asVar+"=dure"), Stderr: os.Stderr}, client.Config{
		Message: func(m protocol.Message) {
			if m.Type == protocol.TypeAssistantToken {
				select {
				case running <- struct{}{}:
				default:
				}
			}
		},
	})
	if err != nil {
		return err
	}
	go func() {
		<-running
		_, _ = io.WriteString(os.Stdout, "running\n")
	}()
	_, _, err = h.Say(ctx, "", protocol.UserMessagePayload{Text: "Talk"})
	return errors.Join(err, h.Close())
}

// scene is a model, and a folder to work in.
type scene struct {
	dir   string
	model *script.Server
}

func newScene(replies ...script.Reply) (scene, func(), error) {
	made, err := os.MkdirTemp("", "control")
	if err != nil {
		return scene{}, nil, err
	}
	dir, err := filepath.EvalSymlinks(made)
	if err != nil {
		return scene{}, nil, err
	}
	m, err := script.NewServer(script.Script{Replies: replies}, script.Options{})
	if err != nil {
		return scene{}, nil, err
	}
	return scene{dir, m}, func() {
		m.Close()
		_ = os.RemoveAll(dir) // a folder for temporary files
	}, nil
}

func (s scene) env() []string {
	return append(os.Environ(), asVar+"=dure", dirVar+"="+s.dir, urlVar+"="+s.model.URL())
}

func setting(t *testing.T, replies ...script.Reply) scene {
	t.Helper()
	s, done, err := newScene(replies...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return s
}

// child starts the program as a child.
func (s scene) child(t *testing.T, cfg client.Config) *client.Host {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h, err := client.Start(t.Context(), client.Command{Path: exe, Env: s.env()}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// server has the program serve, and returns where.
func (s scene) server(t *testing.T) string {
	t.Helper()
	a, err := program(s.dir, s.model.URL())
	if err != nil {
		t.Fatal(err)
	}
	cfg := served(a, s.dir)
	cfg.Own = false
	sockets := socket.New(socket.Config{Control: cfg, Ending: serve.Ending, Full: serve.Full})
	srv, err := serve.New(serve.Config{
		Client: a.Shared(), Token: secret, Version: "test", Workdir: filepath.Join(s.dir, "work"),
		Routes: []serve.Route{serve.SocketRoute("/v1/control", "control", "A socket.", sockets.ServeHTTP)},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := auth.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, a.Close()); err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}
