package exthost

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// brought keeps what a connector emits.
type brought struct {
	mu   sync.Mutex
	list []Emitted
}

func (b *brought) take(_ context.Context, e Emitted) (any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, e)
	return map[string]any{"session": "s" + fmt.Sprint(len(b.list))}, nil
}

// connect runs a connector, and returns what it has brought.
func connect(t *testing.T, h *Host, c Connector) ([]Emitted, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var b brought
	if c.Emit == nil {
		c.Emit = b.take
	}
	err := h.Connect(ctx, c)
	if ctx.Err() != nil {
		t.Fatal("it did not end")
	}
	return b.list, err
}

// A module is called with its values and emits messages; when it has returned, it ends with
// what it has begun. What is no message is refused, and the others come.
func TestConnectorOfNode(t *testing.T) {
	t.Parallel()
	h := host(t, bundle(t, map[string]string{"c.ts": `
		type Ctx = { emit(e: unknown): Promise<{ session: string }>; config: Record<string, string>; secrets: Record<string, string>; logger: Console };
		export default async function (ctx: Ctx): Promise<void> {
			const { emit, config, secrets, logger } = ctx;
			logger.info("begins");
			console.log("says");
			const one = await emit({ id: "1", name: "said", message: { type: "text", text: config.room + secrets.key }, properties: { user: "kim", n: 2, yes: true }, instanceKey: "room" });
			const wrong: string[] = [];
			for (const e of [null, { name: "said" }, { message: "x" }, { name: "said", message: " " }, { name: "said", message: { type: "image", url: "u" } },
				{ name: "said", message: "x", properties: { deep: {} } }, { name: "said", message: "x", properties: 3 }])
				await emit(e).then(() => wrong.push("taken"), (x) => wrong.push(x.message));
			setTimeout(() => emit({ name: "late", message: one.session + " " + wrong.length + " " + wrong.includes("taken") }), 50);
		}`}), withNode(t))
	got, err := connect(t, h, Connector{Runtime: Node, Entry: "./c.ts", Config: map[string]string{"room": "blue"}, Secrets: map[string]string{"key": "!"}})
	want := []Emitted{
		{ID: "1", Name: "said", Text: "blue!", Key: "room", Properties: map[string]any{"user": "kim", "n": 2.0, "yes": true}},
		{Name: "late", Text: "s1 7 false", Properties: map[string]any{}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v", got, err)
	}
}

// An executable speaks the same lines.
func TestConnectorOfProcess(t *testing.T) {
	t.Parallel()
	h := host(t, bundle(t, map[string]string{"c": `#!/bin/sh
read -r begin
case "$begin" in *'"connect"'*'"room":"blue"'*) ;; *) exit 3 ;; esac
echo '{"jsonrpc":"2.0","id":1,"method":"message","params":{"name":"said","message":"hello"}}'
read -r answer
case "$answer" in *'"session":"s1"'*) ;; *) exit 4 ;; esac
echo '{"jsonrpc":"2.0","method":"message","params":{"name":"said","message":"bye"}}'
`}))
	got, err := connect(t, h, Connector{Runtime: Process, Entry: "c", Config: map[string]string{"room": "blue"}})
	if err != nil || len(got) != 2 || got[0].Text != "hello" || got[1].Text != "bye" {
		t.Errorf("%+v %v", got, err)
	}
}

// What a connector does wrong is its error, without its secrets, and leaves no process.
func TestConnectorsFail(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ code, says string }{
		"throws":       {`export default async ({ secrets }) => { throw new Error("bad key " + secrets.key); }`, "bad key […]"},
		"ends":         {`export default () => process.exit(3);`, "exit code 3"},
		"no function":  {`export const handlers = {};`, "no function as default"},
		"hangs":        {`export default () => { for (;;); };`, "it hung"},
		"later":        {`export default () => { setTimeout(() => { throw new Error("later"); }, 1); };`, "later"},
		"garbage":      {`import { writeSync } from "node:fs"; export default () => { writeSync(1, "hello\n"); return new Promise(() => setTimeout(() => {}, 1e6)); };`, "belongs to its messages"},
		"other things": {`import { writeSync } from "node:fs"; export default () => { writeSync(1, '{"jsonrpc":"2.0","method":"register","params":{}}\n'); return new Promise(() => setTimeout(() => {}, 1e6)); };`, "nothing that is called"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := host(t, bundle(t, map[string]string{"c.js": tt.code}), withNode(t), func(c *Config) {
				if name == "hangs" {
					c.Limits.Alive, c.Limits.Pulse = 500*time.Millisecond, 200*time.Millisecond
				}
				c.Clean = func(s string) string { return strings.ReplaceAll(s, "sesame", "[…]") }
			})
			got, err := connect(t, h, Connector{Runtime: Node, Entry: "c.js", Secrets: map[string]string{"key": "sesame"}})
			if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "sesame") || len(got) > 0 {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
}

// No more messages are on their way at a time than may be; those that are too many are refused.
func TestConnectorFloods(t *testing.T) {
	t.Parallel()
	h := host(t, bundle(t, map[string]string{"c.js": `export default async ({ emit }) => {
		const all = [];
		for (let i = 0; i < 200; i++) all.push(emit({ name: "said", message: "m" + i }));
		const refused = (await Promise.allSettled(all)).filter((r) => r.status === "rejected");
		await emit({ name: "done", message: String(refused.length) });
	}`}), withNode(t))
	var mu sync.Mutex
	n, most, said := 0, 0, ""
	full := make(chan struct{})
	_, err := connect(t, h, Connector{Runtime: Node, Entry: "c.js", Emit: func(ctx context.Context, e Emitted) (any, error) {
		mu.Lock()
		n++
		most = max(most, n)
		if e.Name == "done" {
			said = e.Text
		}
		if e.Text == "m63" || n == maxEmitted {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		mu.Unlock()
		select {
		case <-full:
		case <-ctx.Done():
			return nil, errors.New("nobody waits")
		}
		mu.Lock()
		n--
		mu.Unlock()
		return nil, nil
	}})
	if err != nil || most > maxEmitted || said == "" {
		t.Errorf("%d at a time, %s refused: %v", most, said, err)
	}
}

// One whose files have changed since they were agreed to is not run.
func TestConnectorsAreApproved(t *testing.T) {
	t.Parallel()
	h := host(t, bundle(t, map[string]string{"c.js": `export default () => {};`, "p": "#!/bin/sh\n"}), withNode(t), func(c *Config) {
		c.Approve = func(entry, hash string) error { return errors.New("nobody knows " + entry) }
	})
	for _, c := range []Connector{{Runtime: Node, Entry: "c.js"}, {Runtime: Process, Entry: "p"}} {
		if _, err := connect(t, h, c); err == nil || !strings.Contains(err.Error(), "nobody knows "+c.Entry) {
			t.Errorf("%s: %v", c.Entry, err)
		}
		if err := h.Suits(c); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []Connector{{Runtime: Node, Entry: "../c.js"}, {Runtime: Process, Entry: "none"}, {Runtime: HTTP, Entry: "c.js"}} {
		if err := h.Suits(c); err == nil {
			t.Errorf("%+v suits", c)
		}
	}
}
