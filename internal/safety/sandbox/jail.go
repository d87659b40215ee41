package sandbox

import (
	"errors"
	"os/exec"
)

// A jail is the confinement of one command that is about to start. Each system
// has a function
//
//	func (b *Box) jail(cmd *exec.Cmd, c Cmd) (jail, error)
//
// that prepares what confines cmd, whose folder, environment and ends are set, and
// may change it. It returns nil where this machine has no confinement,
// which [Box.Explain] says; an error starts nothing.
type jail interface {
	// start starts cmd, or something in its place, as the head of the group, and
	// returns what it started once the command itself runs. With an error nothing
	// does; errShifted says that another jail may do.
	start(*group, *exec.Cmd) (*exec.Cmd, error)

	// exit says how the command ended, given how cmd did. The group is dead.
	exit(Exit) Exit

	// judge says whether the confinement was what kept the command from a path that
	// it complained of, and how: read tells of a thing that it found missing.
	judge(path string, complaint complaint) (Denial, bool)

	// denied returns the hosts that were refused, and what was removed again.
	denied() []Denial

	// close takes down what was set up. The group is dead, or was never started.
	close()
}

// errShifted is that what a jail was planned on is gone: others work in the same folders,
// as the program does that removes a work tree beside a command.
var errShifted = errors.New("the file tree has changed meanwhile")

// maxPlans is how many jails are tried for a command.
const maxPlans = 4

// confine prepares a command to be started in the confinement of the box.
func (p *Process) confine(c Cmd) error {
	if p.box.confinement == nil || c.Unconfined {
		return nil
	}
	if p.cmd.Err != nil {
		return blame{p.cmd.Err}
	}
	vars, err := p.box.prepare()
	if err != nil {
		return err
	}
	p.cmd.Env = Overlay(p.cmd.Env, vars)
	j, err := p.box.jail(p.cmd, c)
	if err != nil || j == nil {
		return err
	}
	p.jail = j
	p.watch = &witness{dir: c.Dir, judge: j.judge}
	for _, pipe := range p.pipes {
		pipe.to = p.watch.over(pipe.to)
	}
	return nil
}

// begin starts the command, confined or not. Of a jail that does not fit any more, again
// makes another one.
func (p *Process) begin(again func() (jail, error)) error {
	if p.jail == nil {
		return blamed(p.group.start(p.cmd), p.cmd.Dir, p.cmd.Path)
	}
	for tries := 1; ; tries++ {
		cmd, err := p.jail.start(&p.group, p.cmd)
		if err == nil {
			p.cmd = cmd
			return nil
		}
		p.jail.close()
		if tries == maxPlans || !errors.Is(err, errShifted) {
			return err
		}
		next, err := again()
		if err != nil {
			return err
		}
		if next == nil {
			return errShifted // what confines is gone too
		}
		p.jail, p.watch.judge = next, next.judge
	}
}
