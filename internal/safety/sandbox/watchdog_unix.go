//go:build unix

package sandbox

import (
	"crypto/rand"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// watchScript keeps a list of groups as it is told of them, and kills those on
// it when its input ends: then the program that fed it has died. On Linux it
// then kills whatever else carries the mark of the box in its environment: a
// group that it had not been told of yet, and processes that left their group.
// It looks several times, because a process has no environment while it is
// becoming another program.
// After "q", which an orderly end sends, only the groups on the list die. Without
// it, it removes the box's holds, which are empty folders, as far as nobody else
// has locked one, and the folder of the box. The dot behind a hold's name keeps
// flock from making a file where the hold is gone.
const watchScript = `trap '' INT TERM HUP QUIT
g=" "
q= h= t=
while read -r l; do
case $l in
+*) g="$g${l#+} " ;;
-*) p=${l#-}; case $g in *" $p "*) g="${g%%" $p "*} ${g#*" $p "}" ;; esac ;;
h*) h="$h
${l#h}" ;;
t*) t=${l#t} ;;
q) q=1 ;;
esac
done
exec 2>/dev/null
for p in $g; do kill -s KILL -- "-$p"; done
for i in 1 2 3 4 5; do
[ -z "$q" ] && [ -r /proc/self/environ ] || break
for p in $(grep -lsF "$1" /proc/[0-9]*/environ); do p=${p#/proc/}; kill -s KILL "${p%/environ}"; done
sleep 0.05
done
[ -z "$q" ] || exit
IFS="
"
set -f
for p in $h; do flock -nx "$p/." rmdir -- "$p"; done
case $t in /*/dure-box-*) chmod -R u+rwX "$t"; rm -rf -- "$t" ;; esac`

// markName is the variable that marks the processes of a box.
const markName = "DURE_BOX"

// watchdog is a process that outlives this one just long enough to kill its
// commands, even if this one is killed without notice. Its zero value starts
// the process when there is something to watch.
type watchdog struct {
	mu     sync.Mutex
	mark   string // NAME=value in the environment of every command
	cmd    *exec.Cmd
	pipe   *os.File // what it is told; its end is our death
	groups map[int]bool
	left   map[string]bool // holds and folders, each behind the letter for it
	closed bool
}

// ready starts the process, so that it is there before the first command, and
// returns the mark that commands carry.
func (w *watchdog) ready() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mark == "" {
		w.mark = markName + "=" + rand.Text()
	}
	if w.pipe == nil {
		w.start()
	}
	return w.mark
}

// add has the group killed when this program dies. A machine without a shell
// has no watchdog.
func (w *watchdog) add(g *group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups == nil {
		w.groups = map[int]bool{}
	}
	w.groups[g.id] = true
	if w.pipe == nil || !w.tell("+", g.id) {
		w.start()
	}
}

// remove is called before the group's number can be used again.
func (w *watchdog) remove(g *group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.groups, g.id)
	if w.pipe != nil {
		w.tell("-", g.id)
	}
}

// leave has something removed when this program dies: "h" is a hold, "t" the
// folder of the box. It does not matter when it is gone by then.
func (w *watchdog) leave(kind, path string) {
	line := kind + path
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == nil {
		w.left = map[string]bool{}
	}
	if w.left[line] || strings.Contains(path, "\n") { // lines are all that it reads
		return
	}
	w.left[line] = true
	if w.pipe != nil {
		_, _ = w.pipe.WriteString(line + "\n") // one that is gone learns of it when it is started anew
	}
}

// tell reports whether the watchdog is there to listen.
func (w *watchdog) tell(sign string, id int) bool {
	_, err := w.pipe.WriteString(sign + strconv.Itoa(id) + "\n")
	return err == nil
}

// start starts the process, or starts it anew when somebody killed it.
func (w *watchdog) start() {
	if w.closed {
		return
	}
	w.end()
	read, write, err := os.Pipe()
	if err != nil {
		return
	}
	defer read.Close()
	cmd := exec.Command("/bin/sh", "-c", watchScript, "watch", w.mark)
	cmd.Env, cmd.Dir, cmd.Stdin = []string{"PATH=/usr/bin:/bin"}, "/", read
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no signal from a terminal reaches it
	if err := cmd.Start(); err != nil {
		write.Close()
		return
	}
	w.cmd, w.pipe = cmd, write
	var all strings.Builder
	for id := range w.groups {
		all.WriteString("+" + strconv.Itoa(id) + "\n")
	}
	for line := range w.left {
		all.WriteString(line + "\n")
	}
	_, _ = write.WriteString(all.String()) // it has only just begun to listen
}

// end closes the pipe and waits for the process, which takes no time.
func (w *watchdog) end() {
	if w.pipe == nil {
		return
	}
	w.pipe.Close()
	_ = w.cmd.Wait() // how it ends does not matter
	w.pipe, w.cmd = nil, nil
}

func (w *watchdog) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.pipe != nil {
		_, _ = w.pipe.WriteString("q\n") // one that is gone has nothing to do
	}
	w.end()
	return nil
}
