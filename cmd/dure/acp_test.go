//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// editorWorld is a folder that an editor works in, and a model that follows a script.
type editorWorld struct {
	work, home string
	env        []string
}

func newEditorWorld(t *testing.T, replies []script.Reply) editorWorld {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := editorWorld{work: filepath.Join(dir, "work"), home: filepath.Join(dir, "home")}
	for _, d := range []string{w.work, w.home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m, err := script.NewServer(script.Script{Replies: replies}, script.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	w.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "DURE_HOME=" + filepath.Join(w.home, "dure"), "LANG=C.UTF-8", "GORACE=" + atOnce,
		"ANTHROPIC_BASE_URL=" + m.URL(), "ANTHROPIC_API_KEY=k", "DURE_MODEL=script",
	}
	return w
}

// The official SDK drives the program through every method. ACP_SDK is a folder in which npm
// has installed @agentclientprotocol/sdk.
func TestEditors(t *testing.T) {
	sdk := os.Getenv("ACP_SDK")
	if sdk == "" {
		prooftest.Lacking(t, "acp-sdk", "ACP_SDK is not set")
	}
	node := prooftest.Program(t, "node")
	call := func(id, tool, input string) []script.Call {
		return []script.Call{{ID: id, Tool: tool, Input: json.RawMessage(input)}}
	}
	w := newEditorWorld(t, []script.Reply{
		{Calls: call("c1", "Read", `{"file_path":"open.txt"}`)},
		{Calls: call("c2", "Edit", `{"file_path":"open.txt","old_string":"UNSAVED","new_string":"CHANGED"}`)},
		{Thinking: "Done, I think.", Text: "CHANGED IT."},
		{Calls: call("c3", "AskUserQuestion", `{"questions":[{"question":"Which?","options":[{"label":"Red"},{"label":"Blue"}]}]}`)},
		{Text: "BLUE THEN."},
		{Text: strings.Repeat("long ", 5000), DelayMS: 20},
	})
	if err := os.WriteFile(filepath.Join(w.work, "open.txt"), []byte("saved\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "testdata/acp/editor.mjs", sdk, w.work, dureProgram(t), "acp")
	cmd.Env = w.env
	errs := &strings.Builder{}
	cmd.Stderr = errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, errs)
	}
	var seen struct {
		Updates, Asked map[string]int
		Words, Loaded  string
		File           string
		Answers        map[string]map[string]any
		Errors         map[string]any
		Left           int
		Exit           any
	}
	if err := json.Unmarshal(out, &seen); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("updates %v, asked %v", seen.Updates, seen.Asked)
	for _, kind := range []string{
		"agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "tool_call", "tool_call_update", "available_commands_update",
		"current_mode_update", "config_option_update", "session_info_update",
	} {
		if seen.Updates[kind] == 0 {
			t.Errorf("no %s", kind)
		}
	}
	for _, method := range []string{"session/request_permission", "fs/read_text_file", "fs/write_text_file", "elicitation/create"} {
		if seen.Asked[method] == 0 {
			t.Errorf("%s was not asked", method)
		}
	}
	data, err := os.ReadFile(filepath.Join(w.work, "open.txt"))
	if err != nil || string(data) != "CHANGED\n" || seen.File != "CHANGED\n" {
		t.Errorf("the file %q, the editor %q, %v", data, seen.File, err)
	}
	for what, want := range map[string]string{"prompt": "end_turn", "question": "end_turn", "cancelled": "cancelled"} {
		if got := seen.Answers[what]["stopReason"]; got != want {
			t.Errorf("%s: %v, want %s", what, got, want)
		}
	}
	for _, what := range []string{"initialize", "authenticate", "new", "setMode", "setOption", "list", "close", "load", "resume", "delete"} {
		if seen.Answers[what] == nil {
			t.Errorf("no answer to %s", what)
		}
	}
	if !strings.HasPrefix(seen.Loaded, "CHANGED IT.BLUE THEN.") || seen.Left != 0 || fmt.Sprint(seen.Exit) != "0" {
		t.Errorf("loaded %.200q, left %d, exit %v\n%s", seen.Loaded, seen.Left, seen.Exit, errs)
	}
	if fmt.Sprint(seen.Errors["method"]) != "-32601" || fmt.Sprint(seen.Errors["prompt"]) != "-32002" || fmt.Sprint(seen.Errors["audio"]) != "-32602" {
		t.Errorf("errors: %v", seen.Errors)
	}
	if methods, ok := seen.Answers["initialize"]["authMethods"].([]any); !ok || len(methods) != 2 {
		t.Errorf("ways to sign in: %v", seen.Answers["initialize"]["authMethods"])
	}
}

// A program that is killed in the middle of a turn leaves a session that can be loaded.
func TestEditorLoadsWhatWasKilled(t *testing.T) {
	t.Parallel()
	w := newEditorWorld(t, []script.Reply{{Text: strings.Repeat("word ", 5000), DelayMS: 20}, {Text: "AGAIN"}})
	run := func() (*exec.Cmd, io.WriteCloser, *bufio.Reader) {
		cmd := exec.Command(dureProgram(t), "acp")
		cmd.Env, cmd.Dir = w.env, w.work
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd, in, bufio.NewReaderSize(out, 1<<20)
	}
	say := func(in io.Writer, lines ...string) {
		for _, l := range lines {
			if _, err := io.WriteString(in, l+"\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	until := func(out *bufio.Reader, what string) (before []string) {
		for {
			l, err := out.ReadString('\n')
			if err != nil {
				t.Fatalf("%s does not come: %v\n%s", what, err, strings.Join(before, ""))
			}
			before = append(before, l)
			if strings.Contains(l, what) {
				return before
			}
		}
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`
	cmd, in, out := run()
	say(in, hello, `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"`+w.work+`","mcpServers":[]}}`)
	answer := until(out, `"id":2`)
	var opened struct {
		Result struct {
			ID string `json:"sessionId"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(answer[len(answer)-1]), &opened); err != nil || opened.Result.ID == "" {
		t.Fatal(err, answer)
	}
	id := `"sessionId":"` + opened.Result.ID + `"`
	say(in, `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{`+id+`,"prompt":[{"type":"text","text":"HELLO"}]}}`)
	until(out, "agent_message_chunk")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	cmd, in, out = run()
	say(in, hello, `{"jsonrpc":"2.0","id":2,"method":"session/load","params":{`+id+`,"cwd":"`+w.work+`","mcpServers":[]}}`)
	told := strings.Join(until(out, `"id":2`), "")
	if !strings.Contains(told, "HELLO") || !strings.Contains(told, `"result"`) {
		t.Errorf("loaded: %s", told)
	}
	say(in, `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{`+id+`,"prompt":[{"type":"text","text":"go on"}]}}`)
	told = strings.Join(until(out, `"id":3`), "")
	if !strings.Contains(told, `"stopReason"`) {
		t.Errorf("went on: %.2000s", told)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
