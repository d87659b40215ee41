package main

import (
	"fmt"
	"os"
	"strings"
)

// wires are the wire formats, with the path below which a bare client asks.
var wires = []struct{ name, path string }{
	{"anthropic", "/v1/messages"},
	{"chat", "/v1/chat/completions"},
	{"responses", "/v1/responses"},
	{"gemini", "/v1beta/models/script:streamGenerateContent?alt=sse"},
}

// spoken asks a server in a wire format.
func spoken(wire string, srv *server) func(home string) ([]string, []string) {
	settings := fmt.Sprintf(`{"providers":{"bench":{"type":%q,"baseUrl":%q}}}`, wire, srv.url())
	return func(home string) (env, args []string) {
		return environ(home, ""), []string{"--settings", settings, "--model", "bench/" + scripted}
	}
}

// deltaCount is how many pieces a long answer comes in.
const deltaCount = 200_000

// deltas measures an answer in many small pieces, from the wire to the log, for
// each wire format.
func deltas(b *bench) ([]Figure, error) {
	const n = deltaCount
	srv, err := serve(talk(strings.Repeat("word", n)), true)
	if err != nil {
		return nil, err
	}
	defer srv.close()
	home, err := b.home()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	var figures []Figure
	for _, w := range wires {
		s, err := repeat(max(3, b.few()), func() (Sample, error) { return b.once(spoken(w.name, srv)) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		env := append(environ(home, srv.url()), "BENCH_PATH="+w.path)
		_, bare, err := b.reference(max(3, b.few()), home, env, "read")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		wall := spread(s, wallMS)
		figures = append(figures,
			Figure{What: w.name, Unit: "ms", Aim: 600, Spread: wall},
			Figure{What: w.name + ", a second", Unit: "deltas", Spread: Spread{n / wall.Median * 1000, n / wall.Max * 1000, n / wall.Min * 1000}},
			Figure{What: w.name + ", CPU of 1,000", Unit: "ms", Spread: spread(s, func(s Sample) float64 { return cpuMS(s) * 1000 / n })},
			Figure{What: w.name + ", peak", Unit: "MB", Aim: 60, Spread: spread(s, peakMB)},
			Figure{What: w.name + ", CPU to encoding/json alone", Unit: "×", Aim: deltaRatio, Spread: ratio(spread(s, cpuMS), bare)},
		)
	}
	return figures, nil
}

// request measures how large the first request of a session is.
func request(b *bench) ([]Figure, error) {
	var figures []Figure
	for _, w := range wires {
		srv, err := serve(talk("Hello."), false)
		if err != nil {
			return nil, err
		}
		_, err = b.once(spoken(w.name, srv))
		size := srv.lastRequest()
		srv.close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		figures = append(figures, Figure{What: w.name, Unit: "KB", Aim: requestKB, Spread: exactly(float64(size) / 1000)})
	}
	return figures, nil
}
