package sandbox

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/windows"
)

// byToken is the name of the mechanism: a token without the privileges of the
// user. It is no confinement. A token of low integrity would be one, but could
// not write to any workspace, and what could name folders needs an installer.
const byToken = "restricted token"

// A cell is what a box takes from its commands. It makes a token when the first
// command is confined.
type cell struct {
	allowed []string // mechanisms; nil = all

	mu    sync.Mutex
	tried bool
	token windows.Token // 0 = none
	fault error
}

func (c *cell) init(cfg Config) { c.allowed = cfg.Mechanisms }

// close gives the token back. No command is about to start any more.
func (c *cell) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != 0 {
		_ = c.token.Close()
		c.token = 0
	}
	c.tried, c.fault = true, ErrClosed
}

// restricted returns the token, which stays the cell's.
func (c *cell) restricted() (windows.Token, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.tried {
		c.tried = true
		c.token, c.fault = c.makeToken()
	}
	return c.token, c.fault
}

// The flags of CreateRestrictedToken.
const (
	disableMaxPrivilege = 0x1 // of all privileges, only that of passing through folders stays
	luaToken            = 0x4 // no rights of an administrator
)

func (c *cell) makeToken() (windows.Token, error) {
	if c.allowed != nil && !slices.Contains(c.allowed, byToken) {
		return 0, errors.New("not to be used")
	}
	var own, less windows.Token
	const rights = windows.TOKEN_DUPLICATE | windows.TOKEN_QUERY | windows.TOKEN_ASSIGN_PRIMARY | windows.TOKEN_ADJUST_DEFAULT
	if err := windows.OpenProcessToken(windows.CurrentProcess(), rights, &own); err != nil {
		return 0, fmt.Errorf("opening the token of this program: %w", err)
	}
	defer own.Close()
	ok, err := createRestrictedToken(own, disableMaxPrivilege|luaToken, &less)
	if !ok {
		return 0, fmt.Errorf("making a token with fewer privileges: %w", err)
	}
	return less, nil
}

// Explain says what holds for the commands of the box: nothing that would keep
// them from a file or a host.
func (b *Box) Explain() Report {
	if b.confinement == nil {
		return Report{Level: None, Missing: []string{"Nothing is confined: this was not asked for."}}
	}
	r := Report{
		Level:    None,
		Parts:    []Part{{Name: "job object", Used: true, Detail: "ends the processes of a command"}},
		Enforced: []string{"No process of a command outlives it."},
		Missing: []string{
			"Commands read and write what the user can.",
			"Commands reach every host that the user can.",
		},
		Mend: []string{"Run this program in the Windows Subsystem for Linux, where commands are confined."},
	}
	if _, err := b.cell.restricted(); err != nil {
		r.Parts = append(r.Parts, Part{Name: byToken, Detail: err.Error()})
		return r
	}
	r.Parts = append(r.Parts, Part{Name: byToken, Used: true, Detail: "without privileges and without the rights of an administrator"})
	r.Enforced = append(r.Enforced, "Commands have no rights of an administrator and no privileges.")
	return r
}

// ExplainCmd has no paths to tell of.
func (*Box) ExplainCmd(Cmd) ([]Mount, error) { return nil, nil }

// jail makes cmd start with the token, where there is one.
func (b *Box) jail(cmd *exec.Cmd, _ Cmd) (jail, error) {
	token, err := b.cell.restricted()
	if err != nil {
		return nil, nil //nolint:nilerr // Explain says so
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Token: syscall.Token(token)}
	return tokenJail{}, nil
}

// A tokenJail has nothing to do once the command has its token.
type tokenJail struct{}

func (tokenJail) start(g *group, cmd *exec.Cmd) (*exec.Cmd, error) { return cmd, g.start(cmd) }

func (tokenJail) exit(e Exit) Exit { return e }

func (tokenJail) judge(string, complaint) (Denial, bool) { return Denial{}, false }

func (tokenJail) denied() []Denial { return nil }

func (tokenJail) close() {}
