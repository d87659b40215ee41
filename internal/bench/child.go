package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"dure/internal/app"
)

// childArg makes this program do one of the children's tasks, and print what
// came of it as JSON. What a task takes is then measured like the binary is.
const childArg = "-child"

// children are what the program itself does in a process of its own: what no
// command of the binary shows, and what its figures are compared with.
var children = map[string]func(args []string) (any, error){
	"fill":  fillChild,
	"open":  openChild,
	"pile":  pileChild,
	"many":  manyChild,
	"steps": stepsChild,
	"hooks": hooksChild,
	"read":  readChild,
	"hash":  hashChild,
	"lists": listsChild,
}

func runChild(argv arguments) error {
	task, ok := children[argv[0]]
	if !ok {
		return fmt.Errorf("no task is called %q", argv[0])
	}
	out, err := task(argv[1:])
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// program builds the program as the binary in the same environment would.
func program(workdir string) (*app.App, error) {
	var model string
	if url := os.Getenv("ANTHROPIC_BASE_URL"); url != "" {
		model = scripted
	}
	return app.New(app.Options{
		Flags: app.Flags{Model: model}, Environ: os.Environ(), UserHome: os.Getenv("HOME"), Workdir: workdir, Version: "bench",
	})
}

// dataDir makes the store of the program and returns where it is.
func dataDir(workdir string) (string, error) {
	a, err := program(workdir)
	if err != nil {
		return "", err
	}
	return a.Config().Data, a.Close()
}

// closing ends the program and adds what went wrong with that.
func closing(a *app.App, err error) error { return errors.Join(err, a.Close()) }

// prose is size bytes of lines, others for another seed.
func prose(seed, size int) string {
	b := make([]byte, 0, size+80)
	for i := 0; len(b) < size; i++ {
		b = fmt.Appendf(b, "%08x func part%d(x int) int { return x*%d + %d }\n", uint32(seed*2654435761+i*40503), i, seed%97, i)
	}
	return string(b[:size])
}
