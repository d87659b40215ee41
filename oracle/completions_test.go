package oracle_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"dure/internal/models/script"
)

// dure builds the program and serves with it, out of a script, in a folder of its own.
func dure(t *testing.T, replies ...script.Reply) (url, token, work string) {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "dure")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", bin, "./cmd/dure")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	srv, err := script.NewServer(script.Script{Replies: replies}, script.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	work = filepath.Join(dir, "work")
	for _, d := range []string{work, filepath.Join(dir, "home")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), bin, "serve", "--json", "--drain", "1s")
	cmd.Dir = work
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "DURE_HOME=" + filepath.Join(dir, "settings"), "LANG=C.UTF-8",
		"ANTHROPIC_BASE_URL=" + srv.URL(), "ANTHROPIC_API_KEY=scripted", "DURE_MODEL=script",
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if runtime.GOOS == "windows" {
			_ = cmd.Process.Kill()
		} else {
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
		late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // a signal has ended it
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the program does not say where it serves: %v", err)
	}
	var at struct{ URL, Token string }
	if err := json.Unmarshal(line, &at); err != nil || at.Token == "" {
		t.Fatalf("%s: %v", line, err)
	}
	return at.URL, at.Token, work
}

// TestCompletions has the official client of OpenAI talk to sessions: whole answers, pieces,
// calls that run inside of the program, a session that goes on, models and errors.
func TestCompletions(t *testing.T) {
	url, token, work := dure(t,
		script.Reply{When: "hello", Text: "Good morning."},
		script.Reply{When: "write", Text: "I look.", Calls: []script.Call{{Tool: "Read", Input: json.RawMessage(`{"file_path":"a.txt"}`)}}},
		script.Reply{When: "known only here", Text: "It says: known only here."},
		script.Reply{When: "and again", Text: "Again it is."},
		script.Reply{When: "picture", Text: "A dot."},
		script.Reply{When: "slow", Text: strings.Repeat("word ", 2000), DelayMS: 20, Chunk: 8},
	)
	if err := os.WriteFile(filepath.Join(work, "a.txt"), []byte("known only here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	options := []option.RequestOption{option.WithBaseURL(url + "/v1/"), option.WithAPIKey(token), option.WithMaxRetries(0)}
	chat, models := sdk.NewChatCompletionService(options...), sdk.NewModelService(options...)
	ask := func(text string) sdk.ChatCompletionNewParams {
		return sdk.ChatCompletionNewParams{Model: "dure", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.SystemMessage("Be brief."), sdk.UserMessage(text)}}
	}

	t.Run("whole", func(t *testing.T) {
		got, err := chat.New(ctx, ask("hello"))
		if err != nil {
			t.Fatal(err)
		}
		c := got.Choices[0]
		if c.Message.Content != "Good morning." || c.FinishReason != "stop" || got.Usage.TotalTokens == 0 || got.Usage.TotalTokens != got.Usage.PromptTokens+got.Usage.CompletionTokens || got.Model == "" || got.Object != "chat.completion" {
			t.Errorf("%s", got.RawJSON())
		}
	})
	t.Run("pieces, with a call", func(t *testing.T) {
		p := ask("write what a.txt holds")
		p.StreamOptions = sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)}
		s := chat.NewStreaming(ctx, p)
		defer s.Close()
		var acc sdk.ChatCompletionAccumulator
		for s.Next() {
			if !acc.AddChunk(s.Current()) {
				t.Fatal("the library cannot add up the chunks")
			}
		}
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
		if got := acc.Choices[0]; got.Message.Content != "I look.\n\nIt says: known only here." || got.FinishReason != "stop" || len(got.Message.ToolCalls) != 0 || acc.Usage.TotalTokens == 0 {
			t.Errorf("%+v", acc.ChatCompletion)
		}
	})
	t.Run("a session that goes on", func(t *testing.T) {
		var res *http.Response
		if _, err := chat.New(ctx, ask("hello"), option.WithResponseInto(&res)); err != nil {
			t.Fatal(err)
		}
		id := res.Header.Get("Dure-Session")
		p := ask("and again")
		p.Metadata = shared.Metadata{"session": id}
		got, err := chat.New(ctx, p, option.WithResponseInto(&res))
		if err != nil || id == "" || res.Header.Get("Dure-Session") != id || got.Choices[0].Message.Content != "Again it is." {
			t.Errorf("%q: %v %v", id, got, err)
		}
	})
	t.Run("a picture", func(t *testing.T) {
		dot := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xfc\xcfP\xcf\xc0\x00\x04\x06\x01\xfc\x9c\x0b\xc3[\x00\x00\x00\x00IEND\xaeB`\x82"))
		got, err := chat.New(ctx, sdk.ChatCompletionNewParams{Model: "dure", Store: sdk.Bool(false), Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage([]sdk.ChatCompletionContentPartUnionParam{
			sdk.TextContentPart("picture"), sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: dot}),
		})}})
		if err != nil || got.Choices[0].Message.Content != "A dot." {
			t.Errorf("%v %v", got, err)
		}
	})
	t.Run("models", func(t *testing.T) {
		page, err := models.List(ctx)
		if err != nil || len(page.Data) < 2 || page.Data[0].ID != "dure" {
			t.Fatalf("%v %v", page, err)
		}
		m, err := models.Get(ctx, page.Data[1].ID)
		if err != nil || m.ID != page.Data[1].ID {
			t.Errorf("%v %v", m, err)
		}
	})
	t.Run("a client that leaves", func(t *testing.T) {
		leaving, leave := context.WithCancel(ctx)
		s := chat.NewStreaming(leaving, ask("slow"))
		for s.Next() && (len(s.Current().Choices) == 0 || s.Current().Choices[0].Delta.Content == "") {
		}
		leave()
		_ = s.Close()
		session := waitInterrupted(t, ctx, url, token)
		if session == "" {
			t.Error("its turn was not interrupted")
		}
	})
	t.Run("errors", func(t *testing.T) {
		tools, absent := ask("hello"), ask("hello")
		tools.Tools = []sdk.ChatCompletionToolUnionParam{sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "f"})}
		absent.Metadata = shared.Metadata{"session": "absent"}
		for _, tt := range []struct {
			params sdk.ChatCompletionNewParams
			status int
			code   string
		}{{tools, 400, "unsupported_parameter"}, {absent, 404, "session_not_found"}} {
			_, err := chat.New(ctx, tt.params)
			var said *sdk.Error
			if !errors.As(err, &said) || said.StatusCode != tt.status || said.Code != tt.code || said.Message == "" {
				t.Errorf("%s: %v", tt.code, err)
			}
		}
		wrong := sdk.NewChatCompletionService(option.WithBaseURL(url+"/v1/"), option.WithAPIKey("wrong-token-of-a-test"), option.WithMaxRetries(0))
		_, err := wrong.New(ctx, ask("hello"))
		var said *sdk.Error
		if !errors.As(err, &said) || said.StatusCode != 401 {
			t.Errorf("another token: %v", err)
		}
	})
}

// waitInterrupted returns a session whose newest turn was interrupted, once there is one.
func waitInterrupted(t *testing.T, ctx context.Context, url, token string) string {
	t.Helper()
	get := func(path string) string {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		var list struct{ Sessions []struct{ ID string } }
		if err := json.Unmarshal([]byte(get("/v1/sessions?archived=true&limit=1")), &list); err != nil || len(list.Sessions) == 0 {
			continue
		}
		if id := list.Sessions[0].ID; strings.Contains(get("/v1/sessions/"+id+"/events?follow=false"), `"reason":"interrupted"`) {
			return id
		}
	}
	return ""
}
