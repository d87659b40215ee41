package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"dure/internal/safety/sandbox/egress"
	"dure/internal/safety/sandbox/inner"
)

// proxyPort is where a confined command finds its proxy: on a loopback that is
// its own, so the port is free.
const proxyPort = 3128

// Walls are the confinement of one command on Linux. The program itself, started
// anew, builds them from inside; see package inner.
type walls struct {
	namespaces bool
	spec       inner.Spec
	profile    *profile
	release    func() // of the holds

	inner   *spare               // until it has its Spec
	ends    [inner.Ends]*os.File // input, output and error output of the command
	null    *os.File             // one of them, where there is nothing
	control *net.UnixConn        // to the inner program
	command int                  // number of the command's group; 0 = it is gone already
	status  *unix.WaitStatus

	server *egress.Server // nil = no proxy
	served sync.WaitGroup

	mu      sync.Mutex
	refused []Denial
}

// jail prepares the walls of cmd, which itself is not started; see the type of that
// name.
func (b *Box) jail(cmd *exec.Cmd, c Cmd) (jail, error) {
	f := b.cell.find(b.watcher.ready)
	if f.mechanism == "" {
		return nil, nil
	}
	at, err := b.cell.places(&b.watcher)
	if err != nil {
		return nil, err
	}
	open := b.confinement.Net == NetOpen
	start := func() (*spare, error) { return f.spare([]string{b.watcher.ready()}, open, nil) }
	one, err := b.cell.spares.take(start)
	if err != nil {
		return nil, err
	}
	if f.mechanism != byLandlock { // elsewhere a spare would stand in the sight of commands
		b.cell.spares.keep(start)
	}
	w, err := b.plan(f, at, c)
	if err != nil {
		one.end()
		return nil, err
	}
	w.inner = one
	w.spec.Path, w.spec.Argv, w.spec.Dir = cmd.Path, cmd.Args, cmd.Dir
	if !filepath.IsAbs(cmd.Path) {
		w.spec.Path = filepath.Join(cmd.Dir, cmd.Path)
	}
	w.spec.Env = cmd.Env
	switch set := slices.ContainsFunc(cmd.Env, func(e string) bool { return strings.HasPrefix(e, "TMPDIR=") }); {
	case !w.namespaces:
		w.spec.Env = Overlay(cmd.Env, []string{"TMPDIR=" + at.temp})
	case set: // to a folder outside
		w.spec.Env = Overlay(cmd.Env, []string{"TMPDIR=/tmp"})
	}
	if w.spec.Listen != 0 {
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(proxyPort))
		w.spec.Env = Overlay(w.spec.Env, proxyEnv(at, b.confinement.Egress.Token))
	}
	if err = w.raise(b, c); err == nil {
		err = w.connect(cmd)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// plan works out the walls of a command.
func (b *Box) plan(f *finding, at places, c Cmd) (*walls, error) {
	b.cell.holds.settle(c.Grant.Writes)
	p, err := profileOf(b.confinement, c.Grant)
	if err != nil {
		return nil, err
	}
	w := &walls{profile: p, namespaces: f.mechanism != byLandlock, release: func() {}}
	s := &w.spec
	s.Namespaces, s.Terminal = w.namespaces, c.PTY != nil
	if f.landlock >= landlockFrom {
		s.Landlock, s.Write = f.landlock, p.writable(at, w.namespaces)
	}
	open := b.confinement.Net == NetOpen
	if w.namespaces {
		s.Mounts = p.mounts(at, b.confinement.Net)
		for _, l := range b.confinement.Layers {
			s.Mounts = append(s.Mounts, inner.Mount{Kind: inner.Over, Path: l.Path, Source: l.Below, Work: l.Work})
		}
		s.Loopback = !open
		if !open && (b.confinement.Net == NetProxy || len(c.Grant.Hosts) > 0) {
			s.Listen = proxyPort
		}
	} else {
		s.Read = p.readable()
		s.NoInet, s.NoUnix = !open, true
	}
	l := b.confinement.Limits
	s.FileSize = limitOf(l.FileSize, defaultFileSize)
	s.OpenFiles, s.Memory = int64(max(l.OpenFiles, 0)), max(l.Memory, 0)
	if w.namespaces { // otherwise all processes of the user would count
		s.Processes = limitOf(int64(l.Processes), defaultProcesses)
		s.Tasks = s.Processes
	}
	return w, nil
}

func limitOf(set, otherwise int64) int64 {
	switch {
	case set < 0:
		return 0
	case set == 0:
		return otherwise
	}
	return set
}

// raise makes what the walls consist of outside.
func (w *walls) raise(b *Box, c Cmd) error {
	if w.namespaces {
		holds := w.profile.holds()
		release, err := b.cell.holds.take(holds)
		if err != nil {
			return err
		}
		w.release = release
		for _, path := range holds {
			b.watcher.leave("h", path)
		}
		w.dropLost(&b.cell.holds, holds)
	}
	if w.spec.Listen != 0 {
		return w.serve(b.confinement.Egress, c.Grant.Hosts)
	}
	return nil
}

// dropLost leaves out the mounts on holds that could not be made: in folders that
// the user cannot write in either. One that was made and has vanished since fails
// the command.
func (w *walls) dropLost(h *holds, wanted []string) {
	w.spec.Mounts = slices.DeleteFunc(w.spec.Mounts, func(m inner.Mount) bool {
		_, hold := slices.BinarySearch(wanted, m.Path)
		return hold && !h.has(m.Path) && !isHold(m.Path) && !present(m.Path)
	})
}

// serve makes the proxy of the command.
func (w *walls) serve(cfg egress.Config, hosts []string) error {
	told := cfg.Denied
	cfg.Allow = slices.Concat(cfg.Allow, hosts)
	cfg.Denied = func(host string, port int, why string) {
		w.refuse(Denial{DeniedHost, net.JoinHostPort(host, strconv.Itoa(port)), why})
		if told != nil {
			told(host, port, why)
		}
	}
	server, err := egress.New(cfg)
	if err != nil {
		return fmt.Errorf("making the way to the network: %w", err)
	}
	w.server = server
	return nil
}

func (w *walls) refuse(d Denial) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.refused) < maxDenials && !slices.Contains(w.refused, d) {
		w.refused = append(w.refused, d)
	}
}

// connect takes the ends of the command from cmd; what is no file is nothing.
func (w *walls) connect(cmd *exec.Cmd) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	w.null = null
	for i, end := range [inner.Ends]any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		w.ends[i] = null
		if file, ok := end.(*os.File); ok && file != nil {
			w.ends[i] = file
		}
	}
	return nil
}

// start has the inner program start the command, which is then in its group.
func (w *walls) start(g *group, _ *exec.Cmd) (*exec.Cmd, error) {
	one := w.inner
	w.inner = nil
	if err := w.occupy(one); err != nil {
		one.end()
		return nil, err
	}
	g.id, g.walls = one.cmd.Process.Pid, w
	return one.cmd, nil
}

// occupy gives an inner program its Spec, and waits until it has started the
// command.
func (w *walls) occupy(s *spare) error {
	w.control = s.control
	_ = w.control.SetDeadline(time.Now().Add(handshakeTime)) // an error shows below
	if err := w.send(); err != nil {
		return fmt.Errorf("confining the command: %w", err)
	}
	for {
		m, err := w.receive()
		if err != nil {
			return fmt.Errorf("confining the command: %w", err)
		}
		switch m.kind {
		case inner.Listens:
			if err := w.listen(m.file); err != nil {
				return err
			}
		case inner.Started, inner.Finished:
			w.command = w.commandOf(m)
			_ = w.control.SetDeadline(time.Time{})
			return nil
		case inner.Failed:
			if m.doing() == inner.Starting {
				return blamed(m.failure(), w.spec.Dir, w.spec.Path)
			}
			return m.failure()
		}
	}
}

// commandOf returns the number of the command's group. Without namespaces it is the
// same inside: what is left of the group is found by it even if the command itself
// has ended by now.
func (w *walls) commandOf(m message) int {
	if m.file == nil {
		return 0
	}
	defer m.file.Close()
	if !w.namespaces && len(m.text) == 4 {
		return int(binary.LittleEndian.Uint32(m.text))
	}
	return pidOf(m.file)
}

// send sends the Spec, and the ends of the command with its length.
func (w *walls) send() error {
	text := w.spec.Encode()
	head := text[:4]
	var ends [inner.Ends]int
	for i, file := range w.ends {
		ends[i] = int(file.Fd()) // it blocks from now on, as a command expects
	}
	if n, _, err := w.control.WriteMsgUnix(head, unix.UnixRights(ends[:]...), nil); err != nil || n != len(head) {
		return errors.Join(err, io.ErrShortWrite)
	}
	_, err := w.control.Write(text[len(head):])
	return err
}

// listen serves the proxy on a listener from inside.
func (w *walls) listen(f *os.File) error {
	if f == nil {
		return errors.New("confining the command: there is no listener")
	}
	defer f.Close()
	ln, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("confining the command: %w", err)
	}
	w.served.Go(func() { _ = w.server.Serve(ln) }) // a command without a proxy is told of it by its own programs
	return nil
}

// A message is a report of the inner program.
type message struct {
	kind byte
	text []byte
	file *os.File
}

// maxMessage bounds what an inner program reports.
const maxMessage = 64 << 10

// receive reads a report.
func (w *walls) receive() (message, error) {
	var head [5]byte
	file, err := w.fill(head[:])
	if err != nil {
		return message{}, err
	}
	n := binary.LittleEndian.Uint32(head[1:])
	if n > maxMessage {
		return message{}, errors.New("its report is too long")
	}
	text := make([]byte, n)
	if _, err := w.fill(text); err != nil {
		return message{}, err
	}
	return message{head[0], text, file}, nil
}

// fill reads as much as there is room for, and a descriptor that comes with it.
func (w *walls) fill(b []byte) (file *os.File, err error) {
	rights := make([]byte, unix.CmsgSpace(4))
	for len(b) > 0 {
		n, rn, _, _, err := w.control.ReadMsgUnix(b, rights)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, errors.New("it ended at once")
		}
		if rn > 0 && file == nil {
			file = fileOf(rights[:rn])
		}
		b = b[n:]
	}
	return file, nil
}

func fileOf(rights []byte) *os.File {
	list, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(list) != 1 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&list[0])
	if err != nil || len(fds) != 1 {
		return nil
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "from inside")
}

// doing is what a report says that failed.
func (m message) doing() string { return string(m.text[min(len(m.text), 4):]) }

// failure is the error of a report that something failed.
func (m message) failure() error {
	if len(m.text) < 4 {
		return errors.New("confining the command: it failed")
	}
	errno := unix.Errno(binary.LittleEndian.Uint32(m.text))
	if doing := m.doing(); errno == unix.ENOENT && (strings.HasPrefix(doing, "opening ") || strings.HasPrefix(doing, "mounting ")) {
		return fmt.Errorf("confining the command: %s: %w: %w", doing, errno, errShifted)
	}
	return fmt.Errorf("confining the command: %s: %w", m.doing(), errno)
}

// pidOf returns the number of a process, as seen from here, or 0 if it has ended.
func pidOf(pidfd *os.File) int {
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(pidfd.Fd())))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(info) {
		if number, ok := bytes.CutPrefix(line, []byte("Pid:")); ok {
			pid, _ := strconv.Atoi(string(bytes.TrimSpace(number)))
			return max(pid, 0)
		}
	}
	return 0
}

// await returns when the command has ended, or everything has.
func (w *walls) await() {
	for {
		m, err := w.receive()
		if err != nil {
			return
		}
		if m.file != nil {
			m.file.Close()
		}
		if m.kind == inner.Finished && len(m.text) == 4 {
			status := unix.WaitStatus(binary.LittleEndian.Uint32(m.text))
			w.status = &status
			return
		}
	}
}

// exit says how the command ended: as it told, or else as what started it.
func (w *walls) exit(e Exit) Exit {
	if w.status == nil {
		return e
	}
	if w.status.Signaled() {
		return Exit{Code: 128 + int(w.status.Signal()), Signal: signalName(w.status.Signal())}
	}
	return Exit{Code: w.status.ExitStatus()}
}

func (w *walls) denied() []Denial {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.refused)
}

// close is called when nobody is inside any more.
func (w *walls) close() {
	if w.null != nil {
		w.null.Close()
	}
	if w.inner != nil {
		w.inner.end()
	}
	if w.control != nil {
		w.control.Close()
	}
	if w.server != nil {
		w.server.Close()
		w.served.Wait()
	}
	for _, path := range w.profile.sweep {
		if present(path) {
			_ = removeAll(path) // where it cannot be removed it could not be made
			w.refuse(Denial{DeniedWrite, path, whyProtected})
		}
	}
	w.release()
}

// judge tells whether the profile was what a complaint is about: the user could
// have done it.
func (w *walls) judge(path string, c complaint) (Denial, bool) {
	real := path
	if dir := resolve(filepath.Dir(path)); dir != "" {
		real = filepath.Join(dir, filepath.Base(path))
	}
	if to := resolve(real); to != "" && !isHold(real) {
		real = to
	}
	_, r := w.profile.at(real)
	switch {
	case r.access == Masked && c != blocked && permitted(real, false):
		return Denial{DeniedRead, real, r.why}, true
	case r.access != ReadOnly || c == missing || c == blocked && !r.hold:
	case r.hold || permitted(real, true):
		return Denial{DeniedWrite, real, r.why}, true
	}
	return Denial{}, false
}
