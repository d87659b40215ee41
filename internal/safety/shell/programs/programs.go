// Package programs knows what programs do with their arguments: which of those
// are files that they read, write or remove, which are hosts, which make them run
// something else, and which programs only ever print. It also knows which variables
// steer programs.
//
// What it knows stands in tables, one file for each family of programs, and in
// the readers of the small languages that some of them are given (find, sed, awk).
// A program or a flag that no table has is not harmless. It never touches the
// disk and starts no goroutines.
package programs

import "dure/agent"

// A Word is an argument as a shell would pass it on. The text of an unknown one is
// what stands in the command line: what it will be is known only when it runs.
type Word struct {
	Text  string
	Known bool

	// One says of an unknown word that it will be exactly one, as a quoted one is
	// (but not "$@"). Others can become any number of words.
	One bool
}

// Call is a program with its arguments.
type Call struct {
	Args []Word // the program first
}

// Use is what a program does with its arguments. Paths are as they were given:
// relative ones are relative to the folder that the program runs in. Its zero
// value is a program that nobody knows, which can do anything.
type Use struct {
	// Kind is set only when all that the program does is in this value.
	Kind agent.CommandKind

	Flagged     string // see agent.SimpleCommand
	Critical    string // see agent.SimpleCommand
	Destructive string // see agent.Effects

	// Unreadable says which argument decides over what the program runs or
	// changes, and cannot be known.
	Unreadable string

	Reads, Writes, Removes, Hosts []string

	// Dir is the folder that it works in, or a file in that, if a flag names one.
	Dir string

	// Runs are the commands that it starts. With More they get further arguments,
	// which nobody knows. Transparent: it does nothing else of interest.
	Runs        [][]Word
	More        bool
	Transparent bool

	// Scripts are command lines that it has a shell read (sh -c, eval, trap).
	Scripts []Word

	// Hints are texts of its arguments in languages that are not read. Talks: so is
	// what it reads as its input.
	Hints []Hint
	Talks bool

	// Elsewhere: what it runs, it runs on another machine or in a container, so
	// that paths are not ours.
	Elsewhere bool
}
