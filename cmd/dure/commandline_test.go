package main

import (
	"encoding/json"
	"io"
	"os"
)

// commandLine is a command of the program, and what it has written.
type commandLine struct {
	Args     []string
	In       string
	Code     int
	Out, Err string
}

// commandLines is a main function that runs command lines one after the other in one process,
// which costs less than a process each.
func commandLines() {
	var list []commandLine
	if err := json.NewDecoder(os.Stdin).Decode(&list); err != nil {
		panic(err)
	}
	stdout := os.Stdout
	for i := range list {
		list[i].run()
	}
	if err := json.NewEncoder(stdout).Encode(list); err != nil {
		panic(err)
	}
}

func (l *commandLine) run() {
	var files [3]*os.File
	for i := range files {
		f, err := os.CreateTemp("", "line")
		if err != nil {
			panic(err)
		}
		defer f.Close()
		defer os.Remove(f.Name())
		files[i] = f
	}
	if _, err := files[0].WriteAt([]byte(l.In), 0); err != nil {
		panic(err)
	}
	os.Stdin, os.Stdout, os.Stderr = files[0], files[1], files[2]
	l.Code = run(l.Args)
	for i, text := range []*string{&l.Out, &l.Err} {
		data, err := io.ReadAll(io.NewSectionReader(files[i+1], 0, 64<<20))
		if err != nil {
			panic(err)
		}
		*text = string(data)
	}
}
