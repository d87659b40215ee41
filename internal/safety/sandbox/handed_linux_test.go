package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// What this program was started with, and its user works at, is nothing for its
// commands: the terminal, in which they could read what is typed and write what
// looks as if it came from here, and files that were open before.
func TestWhatTheProgramWasHanded(t *testing.T) {
	for _, m := range append([]string{""}, mechanisms...) {
		t.Run("by "+m, func(t *testing.T) {
			if m != "" {
				confined(t, m, nil)
			}
			const script = `
(echo ESCAPED > /dev/tty) 2>/dev/null && echo TERMINAL
(echo ESCAPED >&9) 2>/dev/null && echo FILE
echo END`
			ours, tty, err := openTerminal(Size{Cols: 80, Rows: 24})
			if err != nil {
				t.Fatal(err)
			}
			defer ours.Close()
			file, err := os.Create(filepath.Join(t.TempDir(), "file"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			program := exec.Command(os.Args[0])
			program.Env = append(os.Environ(), "DURE_TEST_CONFINED="+m, "DURE_TEST_PARENT="+script)
			program.Stdin = tty
			program.ExtraFiles = []*os.File{file, file, file, file, file, file, file} // 9 is the last
			program.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			out, err := program.Output()
			tty.Close()
			if err != nil {
				t.Fatal(err)
			}
			want := "END\n"
			if m == "" { // whoever is not confined may write to files anyway
				want = "FILE\nEND\n"
			}
			if string(out) != want {
				t.Errorf("it reached %q, want %q", out, want)
			}
		})
	}
}
