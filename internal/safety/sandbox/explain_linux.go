package sandbox

import (
	"fmt"
	"slices"
)

// Explain says what holds for the commands of the box on this machine. The first
// call tries the mechanisms out, which takes some milliseconds.
func (b *Box) Explain() Report {
	if b.confinement == nil {
		return Report{Level: None, Missing: []string{"Nothing is confined: this was not asked for."}}
	}
	f := b.cell.find(b.watcher.ready)
	r := Report{Level: None, Mechanism: f.mechanism, Parts: slices.Clone(f.parts)}
	switch f.mechanism {
	case byBwrap, byNamespaces:
		r.Level = Full
		b.explainFull(&r, f)
	case byLandlock:
		r.Level = Reduced
		b.explainReduced(&r, f)
	default:
		r.Missing = []string{"Nothing is confined: commands do what the user can."}
	}
	if r.Level != Full {
		r.Mend = mend
	}
	r.Parts = append(r.Parts,
		Part{Name: "seccomp", Used: f.mechanism != "", Detail: "a filter of system calls"},
		Part{Name: "rlimits", Used: f.mechanism != "", Detail: "limits of each process"},
		Part{Name: "cgroups", Detail: "not used"},
	)
	return r
}

// mend is what helps where namespaces are missing.
var mend = []string{
	"Install bubblewrap as /usr/bin/bwrap, with a profile of the system's AppArmor that lets it make user namespaces.",
	"Or allow user namespaces: user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0, as far as this kernel has them.",
	"In a container, its runtime has to permit them.",
}

func (b *Box) explainFull(r *Report, f *finding) {
	r.Enforced = []string{
		"Only the workspace, caches and a private /tmp can be written.",
		"Protected paths of the workspace are read-only, and cannot be made, moved or replaced.",
		"Credentials and the sockets of agents look empty; below /run there is nothing.",
		"Other processes cannot be seen, traced or signalled, and everything ends with the command.",
		"Namespaces, mounts, kernel keys, BPF, io_uring and typing into terminals are refused.",
		"Core dumps are off; the size of files and the number of processes are bounded.",
		networks[b.confinement.Net],
	}
	if f.landlock >= landlockFrom {
		r.Enforced = append(r.Enforced, "Landlock refuses writes a second time.")
	}
	r.Missing = []string{
		"Memory is bounded for each process at most, not for the command as a whole.",
		"Repositories in folders below the workspace are not protected: only those at its top are.",
		"Local sockets that stand in files outside of /run and /tmp, and are not hidden, can be connected to.",
		"Programs of another architecture, 32-bit ones among them, do not run.",
	}
	if b.confinement.Net == NetOpen {
		r.Missing = append(r.Missing, "The network is open.")
	}
}

// networks says what holds of each network.
var networks = map[Net]string{
	"":       "There is no network but a loopback of the command's own.",
	NetOff:   "There is no network but a loopback of the command's own.",
	NetProxy: "The network is reached through the proxy alone, which looks names up itself.",
	NetOpen:  "The network is that of the user.",
}

func (b *Box) explainReduced(r *Report, f *finding) {
	r.Enforced = []string{
		"Only the workspace, caches and a private folder for temporary files can be written.",
		fmt.Sprintf("Credentials cannot be read; nor can what is new beside them. At most %d places are told apart.", maxReadable),
		"Sockets of the internet and of this machine cannot be opened.",
		"Other processes cannot be traced, and namespaces, mounts, kernel keys, BPF, io_uring and typing into terminals are refused.",
	}
	r.Missing = []string{
		"Protected paths in the workspace can be written: settings and hooks of git, editors and agents.",
		"All of the workspace can be read, also what rules and settings forbid to read there.",
		"The network is off even where hosts were allowed: there is no way to the proxy.",
		"What leaves its group and its environment outlives the command, and the number of processes is not bounded.",
		"The names of files and of other processes can be seen.",
	}
	if f.landlock < scopesFrom {
		r.Missing = append(r.Missing, "Other processes of the user can be signalled: this takes version 6 of Landlock.")
	}
	if b.confinement.Net == NetOpen {
		r.Enforced[2] = "Local sockets cannot be opened."
		r.Missing = append(r.Missing, "The network is open.")
	}
}

// scopesFrom is the first version of Landlock that keeps signals inside.
const scopesFrom = 6

// ExplainCmd says what a command could do with which paths: the longest that a
// path lies below counts. Mounts is nil where nothing is confined.
func (b *Box) ExplainCmd(c Cmd) ([]Mount, error) {
	if b.confinement == nil || c.Unconfined || b.cell.find(b.watcher.ready).mechanism == "" {
		return nil, nil
	}
	p, err := profileOf(b.confinement, c.Grant)
	if err != nil {
		return nil, err
	}
	return p.view(b.cell.find(b.watcher.ready).mechanism != byLandlock), nil
}
