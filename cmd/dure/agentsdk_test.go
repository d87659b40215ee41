package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// agentSDK is the folder in which npm has installed the Agent SDK for TypeScript.
func agentSDK(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("AGENT_SDK")
	if dir == "" {
		prooftest.Lacking(t, "agent-sdk", "AGENT_SDK names no folder where npm has installed it")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestAgentSDK has the Agent SDK for TypeScript, as it is on npm, drive the program. Each
// scene is a program of testdata/agentsdk; what the model says in it stands in its first
// lines.
func TestAgentSDK(t *testing.T) {
	modules := filepath.Join(agentSDK(t), "node_modules")
	node := prooftest.Program(t, "node")
	scenes, err := filepath.Glob("testdata/agentsdk/*-*.mjs")
	if err != nil || len(scenes) == 0 {
		t.Fatal("there are no scenes: ", err)
	}
	for _, path := range scenes {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".mjs"), func(t *testing.T) {
			sdkScene(t, node, modules, path)
		})
	}
}

// sceneTime is more than any scene takes.
const sceneTime = 3 * time.Minute

// sdkScene runs a scene.
func sdkScene(t *testing.T, node, modules, path string) {
	dir := t.TempDir()
	prooftest.Link(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	for _, name := range []string{"testdata/agentsdk/lib.mjs", path} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	model := newSceneModel(t, string(source))
	ctx, stop := context.WithTimeout(t.Context(), sceneTime)
	defer stop()
	cmd := exec.CommandContext(ctx, node, filepath.Join(dir, filepath.Base(path)))
	h.env = slices.DeleteFunc(h.env, func(v string) bool {
		return strings.HasPrefix(v, "ANTHROPIC_BASE_URL=") || strings.HasPrefix(v, "CLAUDE_CODE_ENTRYPOINT=")
	})
	cmd.Dir = dir
	cmd.Env = append(h.env, "ANTHROPIC_BASE_URL="+model.URL, "REQUESTS="+model.URL+"/requests", "DURE="+dureProgram(t), "WORK="+resolved(t, h.dir), "SLACK="+slack())
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// slack is how many times its aim a time may be.
func slack() string {
	if s := os.Getenv("SLACK"); s != "" {
		return s
	}
	return "5"
}

func resolved(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// newSceneModel serves what the model says in a scene, and at /requests what it was asked
// since that was asked last.
func newSceneModel(t *testing.T, source string) *httptest.Server {
	t.Helper()
	var s script.Script
	again := false
	for line := range strings.SplitSeq(source, "\n") {
		words, ok := strings.CutPrefix(line, "// ")
		if !ok {
			break
		}
		if said, ok := strings.CutPrefix(words, "model: "); ok {
			var err error
			if s, err = script.Parse([]byte(said)); err != nil {
				t.Fatal(err)
			}
		}
		again = again || words == "again: true"
	}
	if len(s.Replies) == 0 {
		t.Fatal("the scene does not say what the model says")
	}
	if again { // for as long as it is asked
		s.Replies = slices.Repeat(s.Replies, 1000)
	}
	model := script.NewHandler(s, script.Options{})
	var mu sync.Mutex
	told := 0 // guarded by mu
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/requests" {
			model.ServeHTTP(w, r)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		all := model.Requests()
		for _, req := range all[told:] {
			fmt.Fprintf(w, "%s\n", req.Body)
		}
		told = len(all)
	}))
	t.Cleanup(srv.Close)
	return srv
}
