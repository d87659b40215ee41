package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What is wrong with how the program was called is said in Korean where the user reads
// Korean: names, commands and what stands in quotation marks stay as they are.
func TestMistakesInKorean(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	own := filepath.Join(dir, "own.json")
	if err := os.WriteFile(own, []byte(`{"providers": {"own": {"type": "chat", "baseUrl": "http://127.0.0.1:1/v1", "keyEnv": "OWN_KEY"}}, "model": "own/m1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	// What is taken out before sentences are looked for: quotations, commands, flags, paths.
	exempt := regexp.MustCompile("(?m)\"[^\"]*\"|'[^']*'|`[^`]*`|dure [^가-힣\n]*|--[a-z-]+|\\S*/\\S*")
	english := regexp.MustCompile(`[A-Za-z]{2,} [A-Za-z]{2,} [A-Za-z]{2,}`)
	hosted := []string{"--input-format", "stream-json", "--output-format", "stream-json"}
	for _, tt := range []struct {
		args []string
		in   string
		want string
		code int
	}{
		{[]string{"-p", "--tools", "Nope", "hi"}, "", "Nope 도구가 없습니다", 2},
		{[]string{"-p", "--fallback-model", "nope", "hi"}, "", "nope", 2},
		{[]string{"-p", "--mcp-config", "nofile.json", "hi"}, "", "그런 파일이 없습니다", 2},
		{[]string{"-p", "--allow", "Nope(", "hi"}, "", "닫는 괄호가 없습니다", 2},
		{[]string{"-p", "--deny", "Bash(", "hi"}, "", "닫는 괄호가 없습니다", 2},
		{[]string{"-p", "--effort", "ultra", "hi"}, "", "low, medium, high, xhigh, max", 2},
		{[]string{"-p", "--max-thinking-tokens", "x", "hi"}, "", "0(생각 끄기) 이상의 정수", 2},
		{[]string{"-p", "--permission-prompt-tool", "foo", "hi"}, "", "stdio", 2},
		{[]string{"-p", "--max-budget-usd", "0.01", "hi"}, "", "--max-budget-tokens", 8},
		{[]string{"-p", "--max-budget-usd", "0.01", "hi"}, "", "변수 OWN_KEY 값이 비어 있습니다", 8},
		{[]string{"serve", "--drain", "2h"}, "", "1h 이하의 시간", 2},
		{[]string{"serve", "--addr", l.Addr().String()}, "", "포트를 이미 쓰고 있습니다", 2},
		{[]string{"serve", "user", "remove", "nobody"}, "", "nobody: 그런 사용자가 없습니다", 2},
		{[]string{"serve", "user", "add"}, "", "글자로 시작해야 합니다", 2},
		{[]string{"serve", "user", "add", "A!"}, "", "글자로 시작해야 합니다", 2},
		{[]string{"serve", "user", "add", "bob", "--scope", "king"}, "", "metrics, read, write, admin 중 하나", 2},
		{hosted, "", "아무것도 묻지 않고 입력이 끝났습니다", 1},
		{hosted, `{"type":"user","message":{"role":"user","content":""}}` + "\n", "메시지에 글도 그림도 없습니다", 1},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), runLimit)
		cmd := exec.CommandContext(ctx, "dure", tt.args...)
		if tt.args[0] != "serve" {
			cmd.Args = append([]string{"dure", "--settings", own}, tt.args...)
		}
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(tt.in)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "DURE_HOME=" + filepath.Join(dir, "dure"), "DURE_LANG=ko", "GORACE=" + atOnce, "OWN_KEY="}
		var said strings.Builder
		cmd.Stderr = &said
		_ = cmd.Run() // its exit code says what it came to
		cancel()
		if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.Contains(said.String(), tt.want) {
			t.Errorf("%q: exit code %d, want %d, and %q in:\n%s", tt.args, code, tt.code, tt.want, &said)
		}
		if s := english.FindString(exempt.ReplaceAllString(said.String(), "·")); s != "" {
			t.Errorf("%q: %q is English in:\n%s", tt.args, s, &said)
		}
	}
}
