package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// bench is what a case measures with.
type bench struct {
	ctx     context.Context
	scratch string
	binary  string
	runs    int
}

// cases are the figures of docs/benchmarks.md, in their order.
var cases = []struct {
	name    string
	measure func(*bench) ([]Figure, error)
}{
	{"binary", size},
	{"version", version},
	{"one-turn hello", hello},
	{"one-turn hello, as JSON", helloJSON},
	{"50 steps, each a shell command", steps50},
	{"1,000 steps", steps1000},
	{"hooks", hooked},
	{"200,000 deltas", deltas},
	{"5 MB of tool output", output},
	{"background job that prints 1 GB", flood},
	{"first request", request},
	{"search of 200 MB", search},
	{"session of 100 MB", long},
	{"session of 60 MB, shortened as it grew", usual},
	{"10,000 sessions on the disk", pile},
	{"a project of another agent", project},
	{"200 tools of 10 servers", toolLists},
	{"1,000 sessions in one process", many},
	{"server with readers", served},
}

// What a figure may be at most, compared with its reference.
const (
	stepRatio   = 2.5 // a step, to what it comes down to
	deltaRatio  = 1.5 // CPU of an answer, from its request to the log, to reading it with the standard decoder
	searchRatio = 1.5 // a search, to rg
	verifyRatio = 2.5 // to sha256 of the same files
	replayRatio = 25  // to the same

	requestKB = 20 // of a first request
)

func size(b *bench) ([]Figure, error) {
	info, err := os.Stat(b.binary)
	if err != nil {
		return nil, err
	}
	return []Figure{{What: "size", Unit: "MB", Aim: 45, Spread: exactly(float64(info.Size()) / 1e6)}}, nil
}

func version(b *bench) ([]Figure, error) {
	home, err := b.home()
	if err != nil {
		return nil, err
	}
	s, err := repeat(b.runs*2, func() (Sample, error) {
		return measure(b.ctx, run{dir: home, env: environ(home, ""), argv: []string{b.binary, "version"}})
	})
	if err != nil {
		return nil, err
	}
	return []Figure{
		{What: "wall", Unit: "ms", Aim: 10, Spread: spread(s, wallMS)},
		{What: "peak", Unit: "MB", Spread: spread(s, peakMB)},
	}, nil
}

func hello(b *bench) ([]Figure, error) {
	s, err := b.task(b.runs*2, talk("Hello."))
	if err != nil {
		return nil, err
	}
	return []Figure{
		{What: "wall", Unit: "ms", Aim: 25, Spread: spread(s, wallMS)},
		{What: "CPU", Unit: "ms", Spread: spread(s, cpuMS)},
		{What: "peak", Unit: "MB", Aim: 40, Spread: spread(s, peakMB)},
	}, nil
}

// helloJSON compares print mode that writes an object with print mode that writes text, in
// turns.
func helloJSON(b *bench) ([]Figure, error) {
	srv, err := serve(talk("Hello."), true)
	if err != nil {
		return nil, err
	}
	defer srv.close()
	var texts, objects []Sample
	for range b.runs * 2 {
		plain, err := b.once(environURL(srv))
		if err != nil {
			return nil, err
		}
		object, err := b.once(environURL(srv, "--output-format", "json"))
		if err != nil {
			return nil, err
		}
		texts, objects = append(texts, plain), append(objects, object)
	}
	return []Figure{
		{What: "wall", Unit: "ms", Spread: spread(objects, wallMS)},
		{What: "wall of the fastest, beyond the fastest with text", Unit: "ms", Aim: 5, Spread: exactly(spread(objects, wallMS).Min - spread(texts, wallMS).Min)},
		{What: "CPU, beyond text", Unit: "ms", Spread: exactly(spread(objects, cpuMS).Median - spread(texts, cpuMS).Median)},
	}, nil
}

func steps50(b *bench) ([]Figure, error) {
	const n = 50
	one, err := b.task(b.runs, talk("Hello."))
	if err != nil {
		return nil, err
	}
	s, err := b.task(b.runs, shell(n, "true"), "--sandbox", "off")
	if err != nil {
		return nil, err
	}
	confined, err := b.task(b.runs, shell(n, "true"))
	if err != nil {
		return nil, err
	}
	bare, err := b.bareStep(n)
	if err != nil {
		return nil, err
	}
	// What a step costs is what the run took beyond a run without steps.
	wall, cpu := spread(one, wallMS).Median, spread(one, cpuMS).Median
	step := spread(s, func(s Sample) float64 { return (wallMS(s) - wall) / n })
	return []Figure{
		{What: "wall a step", Unit: "ms", Aim: 4, Spread: step},
		{What: "CPU a step", Unit: "ms", Aim: 4, Spread: spread(s, func(s Sample) float64 { return (cpuMS(s) - cpu) / n })},
		{What: "peak", Unit: "MB", Aim: 50, Spread: spread(s, peakMB)},
		{What: "wall, to request, fsync twice and bash alone", Unit: "×", Aim: stepRatio, Spread: ratio(step, bare)},
		{What: "what confining the command adds", Unit: "ms", Aim: 6, Spread: spread(confined, func(s Sample) float64 {
			return (wallMS(s)-wall)/n - step.Median
		})},
		{What: "peak, confined", Unit: "MB", Aim: 50, Spread: spread(confined, peakMB)},
	}, nil
}

// bareStep returns what a step comes down to, in milliseconds.
func (b *bench) bareStep(n int) (float64, error) {
	srv, err := serve(shell(1, "true"), true)
	if err != nil {
		return 0, err
	}
	defer srv.close()
	home, err := b.home()
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(home)
	env := append(environ(home, srv.url()), "BENCH_PATH=/v1/messages")
	all, _, err := b.reference(b.runs, home, env, "steps", home, strconv.Itoa(n))
	return all / float64(n), err
}

// reference returns the shortest time of a child, as it tells it itself: without
// its start; and the least CPU, both in milliseconds.
func (b *bench) reference(n int, dir string, env []string, args ...string) (wall, cpu float64, err error) {
	var walls, cpus []float64
	for range n {
		s, t, err := child[took](b.ctx, dir, env, args...)
		if err != nil {
			return 0, 0, err
		}
		walls, cpus = append(walls, t.Millis), append(cpus, cpuMS(s))
	}
	return spreadOf(walls).Min, spreadOf(cpus).Min, nil
}

func steps1000(b *bench) ([]Figure, error) {
	few, err := b.task(b.few(), shell(100, "true"))
	if err != nil {
		return nil, err
	}
	srv, err := serve(shell(1000, "true"), true)
	if err != nil {
		return nil, err
	}
	defer srv.close()
	home, err := b.home()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	var many, again []Sample
	for range b.few() {
		s, err := b.print(home, environ(home, srv.url()), "--model", scripted)
		if err != nil {
			return nil, err
		}
		many = append(many, s)
		r, err := b.resume(home)
		if err != nil {
			return nil, err
		}
		again = append(again, r)
	}
	return []Figure{
		{What: "wall a step", Unit: "ms", Spread: spread(many, func(s Sample) float64 { return wallMS(s) / 1000 })},
		{What: "peak after 100", Unit: "MB", Spread: spread(few, peakMB)},
		{What: "peak after 1,000", Unit: "MB", Aim: 50, Spread: spread(many, peakMB)},
		{What: "resumed with a prompt and answered", Unit: "ms", Aim: 150, Spread: spread(again, wallMS)},
	}, nil
}

// resume goes on with the newest session of a home: one request, one answer.
func (b *bench) resume(home string) (Sample, error) {
	srv, err := serveAny(reply{text: "Hello again."})
	if err != nil {
		return Sample{}, err
	}
	defer srv.close()
	return b.print(home, environ(home, srv.url()), "--continue")
}

func output(b *bench) ([]Figure, error) {
	const lines = 5_000_000 / 50
	s, err := b.task(b.few(), shell(1, fmt.Sprintf("yes 'fifty characters, newline included, all the same.' | head -n %d", lines)))
	if err != nil {
		return nil, err
	}
	return []Figure{
		{What: "wall", Unit: "ms", Spread: spread(s, wallMS)},
		{What: "peak", Unit: "MB", Aim: 45, Spread: spread(s, peakMB)},
	}, nil
}

func flood(b *bench) ([]Figure, error) {
	srv, err := serveJob("head -c 1000000000 /dev/zero | tr '\\0' x")
	if err != nil {
		return nil, err
	}
	defer srv.close()
	s, err := repeat(1, func() (Sample, error) { return b.once(environURL(srv)) })
	if err != nil {
		return nil, err
	}
	return []Figure{
		{What: "wall", Unit: "ms", Spread: spread(s, wallMS)},
		{What: "peak", Unit: "MB", Aim: 60, Spread: spread(s, peakMB)},
	}, srv.ended()
}

func many(b *bench) ([]Figure, error) {
	const n = 1000
	srv, err := serveSlowly(manyText, manyChunk, manyDelay)
	if err != nil {
		return nil, err
	}
	defer srv.close()
	home, err := b.home()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	work := filepath.Join(home, "work")
	s, seen, err := child[crowd](b.ctx, work, environ(home, srv.url()), "many", work, strconv.Itoa(n))
	if err != nil {
		return nil, err
	}
	if seen.Live != n {
		return nil, fmt.Errorf("%d sessions streamed at once instead of %d", seen.Live, n)
	}
	return []Figure{
		{What: "heap and stacks while idle", Unit: "MB", Aim: 250, Spread: exactly(seen.IdleMB)},
		{What: "streaming at once", Unit: "sessions", Spread: exactly(float64(seen.Live))},
		{What: "shown in full while they streamed", Unit: "sessions", Spread: exactly(float64(seen.Shown))},
		{What: "wall", Unit: "ms", Spread: exactly(wallMS(s))},
		{What: "CPU", Unit: "ms", Spread: exactly(cpuMS(s))},
		{What: "peak", Unit: "MB", Aim: 1000, Spread: exactly(peakMB(s))},
	}, nil
}

// few is the number of runs of the cases that take long.
func (b *bench) few() int { return max(1, b.runs/5) }

// task measures n runs of a task in print mode, each with a home of its own,
// against one scripted model. More are flags.
func (b *bench) task(n int, replies []reply, more ...string) ([]Sample, error) {
	srv, err := serve(replies, true)
	if err != nil {
		return nil, err
	}
	defer srv.close()
	return repeat(n, func() (Sample, error) { return b.once(environURL(srv, more...)) })
}

// environURL asks a server by the Messages API.
func environURL(srv *server, more ...string) func(home string) ([]string, []string) {
	return func(home string) (env, args []string) {
		return environ(home, srv.url()), append([]string{"--model", scripted}, more...)
	}
}

// once does one task with a home of its own. how says with which environment and
// arguments.
func (b *bench) once(how func(home string) (env, args []string)) (Sample, error) {
	home, err := b.home()
	if err != nil {
		return Sample{}, err
	}
	defer os.RemoveAll(home)
	env, args := how(home)
	return b.print(home, env, args...)
}

// print does a task in print mode.
func (b *bench) print(home string, env []string, args ...string) (Sample, error) {
	argv := append([]string{b.binary, "-p", "--dangerously-skip-permissions"}, args...)
	return measure(b.ctx, run{dir: filepath.Join(home, "work"), env: env, argv: append(argv, "Do the task.")})
}

// home makes a folder with an empty workspace in it.
func (b *bench) home() (string, error) {
	home, err := os.MkdirTemp(b.scratch, "home-")
	if err == nil {
		err = os.Mkdir(filepath.Join(home, "work"), 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("making a home: %w", err)
	}
	return home, nil
}

// environ is all that the binary finds in its environment.
func environ(home, url string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "DURE_HOME=" + filepath.Join(home, "dure"),
		"TMPDIR=" + home, "LANG=C.UTF-8", "ANTHROPIC_API_KEY=bench",
	}
	if url != "" {
		env = append(env, "ANTHROPIC_BASE_URL="+url)
	}
	return env
}

// A reply is one answer of the scripted model: it runs a command, or says
// something and ends the turn.
type reply struct {
	text    string
	command string
}

// talk is a script that says text.
func talk(text string) []reply { return []reply{{text: text}} }

// shell is a script of n commands, one a step, and a last word.
func shell(n int, command string) []reply {
	var all []reply
	for range n {
		all = append(all, reply{command: command})
	}
	return append(all, reply{text: "Done after " + strconv.Itoa(n) + "."})
}

var errSkipped = fmt.Errorf("skipped")

// skipped is a case that this machine cannot show.
func skipped(why string) error { return fmt.Errorf("%w: %s", errSkipped, why) }

// required reports whether DURE_REQUIRE names a program, so that its lack is no
// reason to skip.
func required(program string) bool {
	return strings.Contains(","+os.Getenv("DURE_REQUIRE")+",", ","+program+",")
}

func errNoSession(dirs []string, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%d folders of the session instead of one", len(dirs))
}
