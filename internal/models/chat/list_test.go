package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/internal/models/script"
	"dure/internal/models/wire"
)

// local is a server on this machine that answers paths with fixed texts. What
// is asked for is written down.
type local struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func listens(t *testing.T, header http.Header, paths map[string]string) *local {
	t.Helper()
	l := &local{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if r.Method == http.MethodPost {
			var body struct {
				Model string `json:"model"`
			}
			_ = json.NewDecoder(r.Body).Decode(&body)
			path += " " + body.Model
		}
		l.mu.Lock()
		l.asked = append(l.asked, path)
		l.mu.Unlock()
		for name, values := range header {
			w.Header()[name] = values
		}
		text, ok := paths[path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(l.Close)
	return l
}

func describeModels(models []agent.ModelInfo) string {
	var b strings.Builder
	for _, m := range models {
		text, _ := json.Marshal(m)
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String()
}

const zero = `"price":{"input":0,"output":0,"cache_read":0,"cache_write":0,"cache_hour":0}`

func TestDiscover(t *testing.T) {
	for _, c := range []struct {
		name   string
		header http.Header
		paths  map[string]string
		kind   Kind
		want   string
	}{
		{
			"Ollama", nil,
			map[string]string{
				"/v1/models":                 `{"object":"list","data":[{"id":"qwen3:8b","object":"model","created":1,"owned_by":"library"}]}`,
				"/api/tags":                  `{"models":[{"name":"qwen3:8b","model":"qwen3:8b"},{"name":"llava:7b"},{"name":"small:1b"},{"name":"nomic-embed-text"},{"name":"silent"}]}`,
				"/api/ps":                    `{"models":[{"name":"llava:7b","context_length":4096}]}`,
				"/api/show qwen3:8b":         `{"model_info":{"general.architecture":"qwen3","qwen3.context_length":40960,"qwen3.block_count":36},"capabilities":["completion","tools","thinking"]}`,
				"/api/show llava:7b":         `{"model_info":{"llama.context_length":32768},"capabilities":["completion","vision"]}`,
				"/api/show small:1b":         `{"parameters":"temperature 0.7\nnum_ctx                        8192","model_info":{"llama.context_length":131072},"capabilities":["completion"]}`,
				"/api/show nomic-embed-text": `{"model_info":{"bert.context_length":2048},"capabilities":["embedding"]}`,
			},
			Ollama,
			`{"id":"qwen3:8b","provider":"ollama","window":40960,"max_output":0,` + zero + `,"thinking":"effort"}
{"id":"llava:7b","provider":"ollama","window":4096,"max_output":0,` + zero + `,"images":true}
{"id":"small:1b","provider":"ollama","window":8192,"max_output":0,` + zero + `}
{"id":"silent","provider":"ollama","window":0,"max_output":0,` + zero + `}
`,
		},
		{
			"an Ollama without models", nil, map[string]string{"/v1/models": `{"object":"list","data":null}`, "/api/tags": `{"models":[]}`, "/api/ps": `{"models":[]}`}, Ollama, "",
		},
		{
			"LM Studio", nil,
			map[string]string{
				"/v1/models":     `{"data":[{"id":"qwen2-vl-7b-instruct","object":"model","owned_by":"organization_owner"}],"object":"list"}`,
				"/api/v0/models": `{"object":"list","data":[{"id":"qwen2-vl-7b-instruct","object":"model","type":"vlm","state":"not-loaded","max_context_length":32768},{"id":"llama","type":"llm","state":"loaded","max_context_length":131072,"loaded_context_length":4096,"capabilities":["tool_use"]},{"id":"embed","type":"embeddings","max_context_length":2048}]}`,
			},
			LMStudio,
			`{"id":"qwen2-vl-7b-instruct","provider":"lmstudio","window":32768,"max_output":0,` + zero + `,"images":true}
{"id":"llama","provider":"lmstudio","window":4096,"max_output":0,` + zero + `}
`,
		},
		{
			"llama.cpp", nil,
			map[string]string{
				"/v1/models": `{"models":[{"name":"m.gguf"}],"object":"list","data":[{"id":"m.gguf","object":"model","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}`,
				"/props":     `{"default_generation_settings":{"n_ctx":65536},"total_slots":4,"modalities":{"vision":true,"audio":false}}`,
				"/api/tags":  `{"models":[{"name":"m.gguf"}]}`,
			},
			LlamaCpp,
			`{"id":"m.gguf","provider":"llamacpp","window":65536,"max_output":0,` + zero + `,"images":true}
`,
		},
		{
			"vLLM", nil,
			map[string]string{"/v1/models": `{"object":"list","data":[{"id":"Qwen/Qwen3-8B","object":"model","owned_by":"vllm","root":"x","max_model_len":32768}]}`},
			VLLM,
			`{"id":"Qwen/Qwen3-8B","provider":"vllm","window":32768,"max_output":0,` + zero + `}
`,
		},
		{
			"LiteLLM",
			http.Header{"X-Litellm-Version": {"1"}},
			map[string]string{"/v1/models": `{"object":"list","data":[{"id":"gpt-5.4","object":"model","owned_by":"openai"}]}`},
			LiteLLM,
			`{"id":"gpt-5.4","provider":"litellm","window":0,"max_output":0}
`,
		},
		{
			"another", nil,
			map[string]string{"/v1/models": `{"object":"list","data":[{"id":"x"},{"id":"x"},{"id":""},{"id":"evil\u001b[2J"},{"id":"` + strings.Repeat("y", 201) + `"},{"id":7}]}`},
			Other,
			`{"id":"x","provider":"other","window":0,"max_output":0,` + zero + `}
`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := listens(t, c.header, c.paths)
			found := Discover(t.Context(), nil, []string{l.URL + "/v1/"})
			if len(found) != 1 || found[0].Base != l.URL || found[0].Kind != c.kind {
				t.Fatalf("found %+v", found)
			}
			if got := describeModels(found[0].Models); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestWhatIsNoServerOfModels(t *testing.T) {
	for name, answer := range map[string]string{
		"a page":          "<html>Welcome",
		"other JSON":      `{"data":[]}`,
		"a list of ours":  `[{"name":"x"}]`,
		"much":            `{"object":"list","data":[{"id":"` + strings.Repeat("x", maxProbe) + `"}]}`,
		"nothing":         ``,
		"a broken answer": `{"object":"list","data":[{"id":"x"`,
	} {
		l := listens(t, nil, map[string]string{"/v1/models": answer})
		if found := Discover(t.Context(), nil, []string{l.URL}); found != nil {
			t.Errorf("%s: %+v", name, found)
		}
		if len(l.asked) != 1 {
			t.Errorf("%s was asked for %v", name, l.asked)
		}
	}
	models := map[string]string{"/v1/models": `{"object":"list","data":[{"id":"x"}]}`}
	moved := httptest.NewServer(http.RedirectHandler(listens(t, nil, models).URL, http.StatusFound))
	defer moved.Close()
	bases := []string{moved.URL, "http://192.0.2.1:11434", "https://127.0.0.1:1", "http://localhost.example", "ftp://127.0.0.1", "://", "http://127.0.0.1:1"}
	if found := Discover(t.Context(), nil, bases); found != nil {
		t.Errorf("found %+v", found)
	}
}

func TestDiscoverIsBounded(t *testing.T) {
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf(`{"name":"m%d","id":"m%d"}`, i, i))
	}
	l := listens(t, nil, map[string]string{"/v1/models": `{"object":"list","data":[` + strings.Join(many, ",") + `]}`, "/api/tags": `{"models":[` + strings.Join(many, ",") + `]}`})
	found := Discover(t.Context(), nil, []string{l.URL})
	if len(found) != 1 || len(found[0].Models) != maxFound || len(l.asked) != 4+maxAsked {
		t.Errorf("%d models after %d questions", len(found[0].Models), len(l.asked))
	}
}

type transport func(*http.Request) (*http.Response, error)

func (do transport) RoundTrip(r *http.Request) (*http.Response, error) { return do(r) }

// Whoever does not answer costs no more than the time that there is, and hides
// nobody else.
func TestDiscoverTakesNoLongerThanItMay(t *testing.T) {
	const silent, speaks = "http://127.0.0.1:1", "http://127.0.0.1:2"
	client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		if strings.HasPrefix(r.URL.String(), silent) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		w := httptest.NewRecorder()
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return w.Result(), nil
		}
		fmt.Fprint(w, `{"object":"list","data":[{"id":"x","owned_by":"vllm"}]}`)
		return w.Result(), nil
	})}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		begun := time.Now()
		found := Discover(ctx, client, []string{silent, speaks})
		if took := time.Since(begun); took > 2*time.Second || len(found) != 1 || found[0].Base != speaks {
			t.Errorf("after %v: %+v", took, found)
		}
	})
	if len(localBases()) != 5 {
		t.Error("the known servers are five")
	}
}

func TestList(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{
			"OpenRouter", `{"data":[{"id":"anthropic/claude-opus-5","name":"Anthropic: Claude Opus 5","context_length":200000,"architecture":{"input_modalities":["text","image","file"]},"pricing":{"prompt":"0.000005","completion":"0.000025","input_cache_read":"0.0000005","input_cache_write":"0.00000625","image":"0"},"top_provider":{"max_completion_tokens":64000},"supported_parameters":["tools","reasoning"]},{"id":"auto","pricing":{"prompt":"-1","completion":"-1"}}]}`,
			`{"id":"anthropic/claude-opus-5","provider":"p","name":"Anthropic: Claude Opus 5","window":200000,"max_output":64000,"price":{"input":5,"output":25,"cache_read":0.5,"cache_write":6.25},"thinking":"effort","images":true,"pdf":true}
{"id":"auto","provider":"p","window":0,"max_output":0}
`,
		},
		{"Groq", `{"object":"list","data":[{"id":"llama-3.3-70b","object":"model","active":true,"context_window":131072,"max_completion_tokens":32768}]}`, `{"id":"llama-3.3-70b","provider":"p","window":131072,"max_output":32768}
`},
		{"Mistral", `{"object":"list","data":[{"id":"mistral-medium","capabilities":{"completion_chat":true,"vision":true},"max_context_length":131072}]}`, `{"id":"mistral-medium","provider":"p","window":131072,"max_output":0,"images":true}
`},
		{"Together", `[{"id":"a/b","type":"chat","context_length":8192}]`, `{"id":"a/b","provider":"p","window":8192,"max_output":0}
`},
		{"OpenAI", `{"object":"list","data":[{"id":"gpt-5.4","object":"model","created":1,"owned_by":"system"}]}`, `{"id":"gpt-5.4","provider":"p","window":0,"max_output":0}
`},
		{"nothing", `{"object":"list","data":[]}`, ""},
		{"something else", `{"models":[]}`, "no list"},
	} {
		l, ok := parseList([]byte(c.body))
		got := describeModels(l.infos("p", 200))
		if !ok {
			got = "no list"
		}
		if got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

func FuzzList(f *testing.F) {
	f.Add([]byte(`{"object":"list","data":[{"id":"x","context_length":1e99,"capabilities":["vision"],"pricing":{"prompt":"NaN"}}]}`))
	f.Add([]byte(`[{"id":"x","capabilities":{"vision":true}}]`))
	f.Add([]byte(`{"models":[{"name":"x"}]}`))
	f.Add([]byte(`[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _ = ollamaNames(body)
		l, _ := parseList(body)
		infos := l.infos("p", 3)
		if len(infos) > 3 {
			t.Fatalf("%d models", len(infos))
		}
		for _, m := range infos {
			if !sensible(m.ID) || m.Window < 0 || m.MaxOut < 0 || m.Price != nil && !(*m.Price.Input >= 0) {
				t.Fatalf("%+v", m)
			}
		}
	})
}

// A conversation with tools against the scripted server, which checks every
// request as strictly as the API does, in each way in which servers answer.
func TestConversation(t *testing.T) {
	replies := func(quirks ...script.Quirk) script.Script {
		calls := []script.Call{{Tool: "Read", Input: json.RawMessage(`{"file_path":"a.go"}`)}, {Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}}
		return script.Script{Replies: []script.Reply{
			{Thinking: "Hm.", Text: "I look.", Calls: calls, Quirks: quirks, Chunk: 5},
			{Calls: calls[1:], Quirks: quirks},
			{Text: "Done.", Quirks: quirks},
		}}
	}
	for name, quirks := range map[string][]script.Quirk{
		"as documented": nil,
		"no [DONE]":     {script.NoDone},
		"no index":      {script.NoIndex},
		"no ID":         {script.NoID, script.WholeCalls},
		"nothing":       {script.NoIndex, script.NoID, script.WholeCalls, script.NoUsage, script.NoDone},
		"repeating":     {script.RepeatCalls},
		"otherwise":     {script.Reasoning, script.UsageInside},
	} {
		for _, info := range []agent.ModelInfo{{ID: "m"}, reader} {
			t.Run(name+" "+info.ID, func(t *testing.T) {
				srv, err := script.NewServer(replies(quirks...), script.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = srv.Close() }()
				compat := CompatFor(srv.URL())
				if info.ID == reader.ID {
					compat = CompatFor("")
				}
				m := New(Config{Config: wire.Config{Info: info, BaseURL: srv.URL(), Key: "k"}, Compat: compat})
				defer m.Close()
				if got, want := converse(t, m), "Hm. I look. Read a.go Bash ls | Bash ls | Done."; got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		}
	}
}

// converse plays a conversation to its end and says what the model said.
func converse(t *testing.T, m *wire.Model) string {
	t.Helper()
	r := agent.Request{
		System: []agent.Section{{Text: "You are dure."}}, Tools: tools(), Names: names, Tail: "now",
		Messages: []agent.Message{turn(agent.User, txt("Mend it."))},
	}
	var steps []string
	for range 5 {
		var final *agent.Answer
		for d, err := range m.Stream(t.Context(), r) {
			if err != nil {
				t.Fatal(err)
			}
			final = d.Final
		}
		var words []string
		results := turn(agent.User)
		for _, b := range final.Message.Blocks {
			if b.Call == nil {
				words = append(words, b.Text)
				continue
			}
			var input map[string]string
			if err := json.Unmarshal(b.Call.Input, &input); err != nil {
				t.Fatal(err)
			}
			words = append(words, r.Presented(b.Call.Tool), input["file_path"]+input["command"])
			results.Blocks = append(results.Blocks, result(b.Call.ID, agent.Result{Text: "ok", Blocks: []agent.Block{image("image/png", "", "x")}}))
		}
		steps = append(steps, strings.Join(words, " "))
		if final.Stop != agent.StopCalls {
			break
		}
		r.Messages = append(r.Messages, final.Message, results)
	}
	return strings.Join(steps, " | ")
}
