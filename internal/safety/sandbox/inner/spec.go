// Package inner is the part of the confinement that runs inside of it. A program
// that links it and is started as [Arg] waits for a [Spec], builds the walls that it describes
// around itself, starts the command of the Spec, and reports its end. It starts
// no goroutine, and never returns to the program that it is part of.
//
// It begins while packages are initialised, before most of them are: a confined
// command waits for it. A package is initialised as soon as all that it imports
// are, which is why this one imports next to nothing.
package inner

import (
	"encoding/binary"
	"errors"
)

// Arg is the first argument that makes a program an inner one.
const Arg = "sandbox-inner"

// The descriptors of an inner program.
const (
	ControlFD = 3 // a stream socket, to the program outside
	ExeFD     = 4 // the program itself, for what starts it
)

// Ends is how many descriptors come with the length of a Spec, in one piece: the
// input, output and error output of the command.
const Ends = 3

// The reports of an inner program: a letter, and what is named.
const (
	Started  = 'S' // a descriptor of the command's process, and its number inside, four bytes, the least first
	Listens  = 'L' // a descriptor of the listener
	Finished = 'F' // the wait status, four bytes, the least first
	Failed   = 'E' // errno, four bytes, and what failed
)

// Starting is what an inner program reports to have failed at when it could not start the
// command within its walls.
const Starting = "starting the program"

// A MountKind says what comes to stand at a path.
type MountKind byte

// The kinds.
const (
	Bind   MountKind = 'w' // the source as it is
	BindRO MountKind = 'r' // the source and all mounts below it, read-only
	Tmpfs  MountKind = 't' // an empty folder, writable while mounts are made and read-only then
	Fresh  MountKind = 'f' // an empty folder, writable
	Proc   MountKind = 'p' // processes of the confinement
	Dev    MountKind = 'd' // the harmless devices
	Over   MountKind = 'o' // the path over the source, if the system can do that
)

// A Mount is one step of building the file tree.
type Mount struct {
	Kind   MountKind
	Path   string
	Source string // of binds; of a path over it
	Work   string // the empty folder that this needs
	Make   bool   // make the mount point: what it stands in is private
}

// A Spec says what to run, and within which walls.
type Spec struct {
	Path      string // the program, absolute; "" = none: the walls are tried out
	Argv, Env []string
	Dir       string

	Namespaces bool // there are namespaces: the tree is built, capabilities are dropped
	Mounts     []Mount
	Loopback   bool  // bring up the loopback device
	Listen     int64 // port of 127.0.0.1 there, to be listened at by the program outside; 0 = none
	Terminal   bool  // standard input is the terminal of the command's own session

	// Landlock: the version of its interface that is there, 0 = none; folders and
	// files that may be written; those that may be read, nil = all.
	Landlock    int
	Write, Read []string

	NoInet, NoUnix bool // no sockets of these families

	// Limits; 0 = none. Tasks bounds the whole confinement, and needs namespaces.
	Tasks, Processes, Memory, FileSize, OpenFiles int64
}

// maxSpec bounds the text of a Spec: arguments and environment of a command are
// bounded by the system at 6 MiB and less.
const maxSpec = 16 << 20

// Encode returns the text of a Spec, with its length before it.
func (s *Spec) Encode() []byte {
	e := coder{out: make([]byte, 4, 4096), writing: true}
	s.code(&e)
	binary.LittleEndian.PutUint32(e.out, uint32(len(e.out)-4))
	return e.out
}

// Decode reads what Encode wrote, without the length.
func Decode(text []byte) (*Spec, error) {
	var s Spec
	d := coder{in: text}
	s.code(&d)
	if d.bad || len(d.in) > 0 {
		return nil, errors.New("reading what to run: it is damaged")
	}
	return &s, nil
}

func (s *Spec) code(c *coder) {
	c.text(&s.Path)
	c.texts(&s.Argv)
	c.texts(&s.Env)
	c.text(&s.Dir)
	for _, b := range []*bool{&s.Namespaces, &s.Loopback, &s.Terminal, &s.NoInet, &s.NoUnix} {
		c.bool(b)
	}
	c.int(&s.Listen)
	n := int64(len(s.Mounts))
	c.int(&n)
	if !c.writing {
		s.Mounts = make([]Mount, c.count(n))
	}
	for i := range s.Mounts {
		m := &s.Mounts[i]
		kind := int64(m.Kind)
		c.int(&kind)
		m.Kind = MountKind(kind)
		c.text(&m.Path)
		c.text(&m.Source)
		c.text(&m.Work)
		c.bool(&m.Make)
	}
	abi := int64(s.Landlock)
	c.int(&abi)
	s.Landlock = int(abi)
	c.texts(&s.Write)
	c.texts(&s.Read)
	for _, n := range []*int64{&s.Tasks, &s.Processes, &s.Memory, &s.FileSize, &s.OpenFiles} {
		c.int(n)
	}
}

// A coder writes values, or reads them in the same order. What is damaged reads
// as nothing, and is remembered.
type coder struct {
	writing bool
	out, in []byte
	bad     bool
}

func (c *coder) int(n *int64) {
	if c.writing {
		c.out = binary.AppendVarint(c.out, *n)
		return
	}
	v, size := binary.Varint(c.in)
	if size <= 0 {
		c.bad, c.in = true, nil
		return
	}
	*n, c.in = v, c.in[size:]
}

func (c *coder) bool(b *bool) {
	var n int64
	if *b {
		n = 1
	}
	c.int(&n)
	*b = n != 0
}

// count returns n, as far as there can be so many things in what is left.
func (c *coder) count(n int64) int {
	if n < 0 || n > int64(len(c.in)) {
		c.bad, c.in = true, nil
		return 0
	}
	return int(n)
}

func (c *coder) text(s *string) {
	n := int64(len(*s))
	c.int(&n)
	if c.writing {
		c.out = append(c.out, *s...)
		return
	}
	size := c.count(n)
	*s, c.in = string(c.in[:size]), c.in[size:]
}

func (c *coder) texts(list *[]string) {
	n := int64(len(*list))
	if c.writing && *list == nil {
		n = -1
	}
	c.int(&n)
	if !c.writing {
		if n < 0 {
			return
		}
		*list = make([]string, c.count(n))
	}
	for i := range *list {
		c.text(&(*list)[i])
	}
}
