package oracle_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tiktoken-go/tokenizer"

	"dure/internal/knowledge/compact"
)

// How far off an estimate may be, as a share of what the tokenizer counts. Too many
// tokens only shorten a conversation earlier than needed; too few may overflow it.
const (
	maxUnder = 0.10
	maxOver  = 0.25
)

// TestTokens compares the estimates for OpenAI's models with o200k_base, the newest
// vocabulary that is public, for each kind of text that a conversation has. Those of
// Anthropic and Google are not public: what is assumed of them is a factor on this.
func TestTokens(t *testing.T) {
	enc, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	est := compact.NewEstimator("openai")
	var b strings.Builder
	fmt.Fprintf(&b, "| kind | bytes | o200k_base | openai | anthropic | google |\n|---|---|---|---|---|---|\n")
	for _, k := range kinds(t) {
		counted, err := enc.Count(k.text)
		if err != nil || counted == 0 {
			t.Fatalf("%s: %d tokens, %v", k.name, counted, err)
		}
		off := float64(est.Text(k.text))/float64(counted) - 1
		fmt.Fprintf(&b, "| %s | %d | %d | %+.0f %% |", k.name, len(k.text), counted, 100*off)
		for _, provider := range []string{"anthropic", "google"} {
			fmt.Fprintf(&b, " %d |", compact.NewEstimator(provider).Text(k.text))
		}
		fmt.Fprintln(&b)
		if off < -maxUnder || off > maxOver {
			t.Errorf("%s: estimated as %d tokens, and has %d: %+.0f %%", k.name, est.Text(k.text), counted, 100*off)
		}
	}
	t.Logf("\n%s", b.String())
}

// A kind is text of one kind.
type kind struct{ name, text string }

// kinds are those of which conversations consist: what stands in testdata/texts, what
// this repository has, and what programs print.
func kinds(t *testing.T) []kind {
	text := func(pattern string, most int) string {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no file is called %s: %v", pattern, err)
		}
		var b strings.Builder
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(data)
		}
		return b.String()[:min(b.Len(), most)]
	}
	const texts, most = "testdata/texts/", 40_000
	goCode := text("../internal/kernel/loop/*.go", most)
	return []kind{
		{"English prose", text(texts+"prose.txt", most)},
		{"English talk about code", text(texts+"chat.txt", most)},
		{"English documentation, Markdown", text("../docs/guide.md", most)},
		{"Go", goCode},
		{"Python", text(texts+"code.py", most)},
		{"TypeScript", text(texts+"code.ts", most)},
		{"Rust", text(texts+"code.rs", most)},
		{"Java", text(texts+"code.java", most)},
		{"C", text(texts+"code.c", most)},
		{"SQL", text(texts+"code.sql", most)},
		{"shell", text(texts+"code.sh", most)},
		{"HTML and CSS", text(texts+"code.html", most)},
		{"file with line numbers", numbered(goCode)},
		{"diff", diffed(goCode)},
		{"JSON, one line", records(false)},
		{"JSON, indented", records(true)},
		{"server log", logLines()},
		{"test output", testOutput()},
		{"list of paths", paths()},
		{"table of numbers", numbers()},
		{"Korean prose", text(texts+"korean.txt", most)},
		{"Korean documentation, Markdown", text("../docs/ko/guide.md", most)},
		{"Korean with code", text(texts+"mixed.txt", most)},
		{"Japanese", text(texts+"japanese.txt", most)},
		{"Chinese", text(texts+"chinese.txt", most)},
		{"base64", base64.StdEncoding.EncodeToString(noise(random(4), 6000))},
		{"hexadecimal", hex.EncodeToString(noise(random(5), 4000))},
		{"UUIDs", uuids()},
		{"one word again and again", strings.Repeat("retry ", 1000)},
		{"ruler lines", strings.Repeat(strings.Repeat("-", 72)+"\n", 50) + strings.Repeat(strings.Repeat("=", 40)+"\n", 50)},
		{"blank space", strings.Repeat(strings.Repeat(" ", 40)+"\n\n\t\t", 100)},
	}
}

// numbered is code as the tool that reads files shows it.
func numbered(code string) string {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(code) {
		n++
		fmt.Fprintf(&b, "%6d\t%s", n, line)
	}
	return b.String()
}

// diffed is a change of every tenth line.
func diffed(code string) string {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(code) {
		switch n++; {
		case n%40 == 1:
			fmt.Fprintf(&b, "@@ -%d,40 +%d,44 @@\n %s", n, n+n/10, line)
		case n%10 == 0:
			fmt.Fprintf(&b, "-%s+%s", line, strings.Replace(line, "err", "cause", 1))
		default:
			fmt.Fprintf(&b, " %s", line)
		}
	}
	return b.String()
}

func records(indented bool) string {
	rng := random(1)
	var b strings.Builder
	for i := range 60 {
		format := `{"id":%d,"type":"order.created","customer":{"name":"Customer %d","email":"c%d@example.com"},"total":%.2f,"paid":%t,"tags":["new","web"],"createdAt":"%s"}` + "\n"
		if indented {
			format = "{\n  \"id\": %d,\n  \"type\": \"order.created\",\n  \"customer\": {\n    \"name\": \"Customer %d\",\n    \"email\": \"c%d@example.com\"\n  },\n  \"total\": %.2f,\n  \"paid\": %t,\n  \"tags\": [\n    \"new\",\n    \"web\"\n  ],\n  \"createdAt\": \"%s\"\n}\n"
		}
		fmt.Fprintf(&b, format, 10_000+i*37, i, i, rng.Float64()*500, i%3 == 0, moment(i).Format(time.RFC3339))
	}
	return b.String()
}

func moment(i int) time.Time {
	return time.Date(2031, 3, 4, 5, 6, 7, i*1_234_567%1e9, time.UTC).Add(time.Duration(i) * 977 * time.Millisecond)
}

func logLines() string {
	rng := random(2)
	var b strings.Builder
	for i := range 120 {
		at := moment(i).Format("2006-01-02T15:04:05.000Z")
		switch i % 4 {
		case 0:
			fmt.Fprintf(&b, "%s INFO  [http-nio-8080-exec-%d] c.e.shop.OrderController - GET /api/orders/%d 200 %dms\n", at, rng.IntN(20), rng.IntN(1e6), rng.IntN(900))
		case 1:
			fmt.Fprintf(&b, "%s DEBUG [pool-2-thread-%d] o.h.SQL - select o1_0.id,o1_0.total from orders o1_0 where o1_0.id=?\n", at, rng.IntN(9))
		case 2:
			fmt.Fprintf(&b, "10.%d.%d.%d - - [%s] \"POST /login HTTP/1.1\" 302 %d \"-\" \"Mozilla/5.0 (X11; Linux x86_64)\"\n", rng.IntN(256), rng.IntN(256), rng.IntN(256), at, rng.IntN(5000))
		default:
			fmt.Fprintf(&b, "%s WARN  connection to db-%d.internal:5432 lost (attempt %d/5): i/o timeout, request_id=%s\n", at, rng.IntN(4), 1+rng.IntN(5), hex.EncodeToString(noise(rng, 8)))
		}
	}
	return b.String()
}

func testOutput() string {
	var b strings.Builder
	for i := range 120 {
		fmt.Fprintf(&b, "=== RUN   TestCalendar/case_%d\n--- PASS: TestCalendar/case_%d (0.%02ds)\n", i, i, i%100)
		if i%20 == 7 {
			fmt.Fprintf(&b, "    calendar_test.go:%d: got 2031-03-%02d, want 2031-03-%02d\n", 40+i, 1+i%27, 2+i%27)
		}
	}
	return b.String() + "FAIL\tshop/internal/calendar\t0.412s\n"
}

func paths() string {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "src/main/java/com/example/shop/%s/%sController%d.java\n", []string{"orders", "billing", "users"}[i%3], []string{"Order", "Invoice", "UserProfile"}[i%3], i)
		fmt.Fprintf(&b, "./node_modules/@types/node/fs/promises_%d.d.ts\n", i)
	}
	return b.String()
}

func numbers() string {
	rng := random(3)
	var b strings.Builder
	for range 200 {
		fmt.Fprintf(&b, "%d,%.3f,%.2f,%d,%d\n", rng.IntN(1e6), rng.Float64()*100, rng.Float64()*1000, rng.IntN(100), rng.IntN(1e9))
	}
	return b.String()
}

func uuids() string {
	rng := random(6)
	var b strings.Builder
	for range 100 {
		u := hex.EncodeToString(noise(rng, 16))
		fmt.Fprintf(&b, "%s-%s-%s-%s-%s\n", u[:8], u[8:12], u[12:16], u[16:20], u[20:])
	}
	return b.String()
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// noise is n random bytes, the same each time.
func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}
