package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
)

// sandboxExec starts a program in a profile. Apple calls it deprecated, and has
// nothing else that does without an entitlement.
const sandboxExec = "/usr/bin/sandbox-exec"

// bySeatbelt is the name of the mechanism.
const bySeatbelt = "seatbelt"

// A cell is what a box confines its commands with. It tries the mechanism when
// the first command is confined, with a command that does nothing.
type cell struct {
	allowed []string // mechanisms; nil = all
	parent  string   // of temp

	mu     sync.Mutex
	tried  bool
	fault  error  // of trying
	temp   string // for the commands of the box; "" until there is one
	closed bool
}

func (c *cell) init(cfg Config) { c.allowed, c.parent = cfg.Mechanisms, cfg.Temp }

// close removes the folder of the box.
func (c *cell) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.temp != "" {
		_ = os.RemoveAll(c.temp) // what is left of it lies in a folder for such things
	}
}

// works says why the mechanism cannot be used, or nil.
func (c *cell) works() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.tried {
		c.tried, c.fault = true, c.try()
	}
	return c.fault
}

func (c *cell) try() error {
	if c.allowed != nil && !slices.Contains(c.allowed, bySeatbelt) {
		return errors.New("not to be used")
	}
	s, err := newSeatbelt(Confinement{}, Grant{}, os.TempDir(), 0)
	if err != nil {
		return err
	}
	argv, err := s.argv("/usr/bin/true")
	if err != nil {
		return err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = []string{}, "/"
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("trying %s: %w", sandboxExec, err)
	}
	return nil
}

// argv is what starts a command in the profile.
func (s *seatbelt) argv(command ...string) ([]string, error) {
	text, params, err := s.profile()
	if err != nil {
		return nil, err
	}
	argv := []string{sandboxExec}
	for _, p := range params {
		argv = append(argv, "-D", p)
	}
	return append(append(argv, "-p", text, "--"), command...), nil
}

// place returns the folder for what commands of the box put aside.
func (c *cell) place() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return "", ErrClosed
	}
	if c.temp == "" {
		dir, err := os.MkdirTemp(c.parent, "dure-box-")
		if err != nil {
			return "", fmt.Errorf("making a folder for commands: %w", err)
		}
		c.temp = dir
	}
	return c.temp, nil
}

// What the profile does, and does not, for people.
var (
	seatbeltHolds = []string{
		"Only the workspace, caches and a private folder for temporary files can be written.",
		"Protected paths of the workspace are read-only, and cannot be made, moved or replaced.",
		"Credentials and the sockets of agents cannot be read.",
		"Apple events, the keychain and most programs of the system cannot be reached.",
	}
	seatbeltLacks = []string{
		"Servers on this machine cannot be reached, not even those of the command itself.",
		"What leaves its group outlives the command, but stays confined.",
		"Memory, processes and the size of files are not bounded.",
		"Repositories in folders below the workspace are not protected: only those at its top are.",
	}
	seatbeltNetworks = map[Net]string{
		"":       "There is no network.",
		NetOff:   "There is no network.",
		NetProxy: "The network is reached through the proxy alone, which looks names up itself.",
		NetOpen:  "The network is that of the user.",
	}
)

// Explain says what holds for the commands of the box on this machine. The first
// call tries the mechanism out, which takes some milliseconds.
func (b *Box) Explain() Report {
	if b.confinement == nil {
		return Report{Level: None, Missing: []string{"Nothing is confined: this was not asked for."}}
	}
	if err := b.cell.works(); err != nil {
		return Report{
			Level:   None,
			Parts:   []Part{{Name: bySeatbelt, Detail: err.Error()}},
			Missing: []string{"Nothing is confined: commands do what the user can."},
		}
	}
	return Report{
		Level: Full, Mechanism: bySeatbelt,
		Parts:    []Part{{Name: bySeatbelt, Used: true, Detail: sandboxExec}},
		Enforced: append(slices.Clone(seatbeltHolds), seatbeltNetworks[b.confinement.Net]),
		Missing:  seatbeltLacks,
	}
}

// ExplainCmd says what a command could do with which paths: the longest that a
// path lies below counts. Mounts is nil where nothing is confined.
func (b *Box) ExplainCmd(c Cmd) ([]Mount, error) {
	if b.confinement == nil || c.Unconfined || b.cell.works() != nil {
		return nil, nil
	}
	temp, err := b.cell.place()
	if err != nil {
		return nil, err
	}
	s, err := newSeatbelt(*b.confinement, c.Grant, temp, 0)
	if err != nil {
		return nil, err
	}
	return s.view(temp), nil
}

// jail makes cmd start the command in a profile.
func (b *Box) jail(cmd *exec.Cmd, c Cmd) (jail, error) {
	if b.cell.works() != nil {
		return nil, nil
	}
	temp, err := b.cell.place()
	if err != nil {
		return nil, err
	}
	for _, dir := range b.confinement.Writable {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("making a cache: %w", err)
		}
	}
	j := &seatbeltJail{}
	if b.confinement.Net == NetProxy {
		if j.gate, err = openGate(b.confinement.Egress, c.Grant.Hosts); err != nil {
			return nil, err
		}
		cmd.Env = Overlay(cmd.Env, j.gate.env())
	}
	if j.seatbelt, err = newSeatbelt(*b.confinement, c.Grant, temp, j.gate.port()); err != nil {
		j.close()
		return nil, err
	}
	if file, ok := cmd.Stdin.(*os.File); ok && c.PTY != nil {
		j.tty = file.Name()
	}
	program, err := filepath.Abs(cmd.Path)
	if err != nil {
		j.close()
		return nil, fmt.Errorf("finding %s: %w", cmd.Path, err)
	}
	argv, err := j.argv(append([]string{program}, cmd.Args[1:]...)...)
	if err != nil {
		j.close()
		return nil, err
	}
	cmd.Path, cmd.Args = sandboxExec, argv
	cmd.Env = Overlay(cmd.Env, []string{"TMPDIR=" + temp})
	return j, nil
}

// A seatbeltJail is the confinement of one command.
type seatbeltJail struct {
	*seatbelt
	gate *gate // to the network; nil = none
}

// start has nothing to wait for: sandbox-exec becomes the command.
func (*seatbeltJail) start(g *group, cmd *exec.Cmd) (*exec.Cmd, error) { return cmd, g.start(cmd) }

func (*seatbeltJail) exit(e Exit) Exit { return e }

func (j *seatbeltJail) judge(path string, c complaint) (Denial, bool) {
	if c == missing {
		return Denial{}, false
	}
	return j.seatbelt.judge(path)
}

func (j *seatbeltJail) denied() []Denial { return j.gate.denied() }

func (j *seatbeltJail) close() { j.gate.close() }
