package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"

	"dure/agent"
)

// group is a job object. The system kills its processes when the last handle to
// it is closed, which the death of this program does.
type group struct {
	id       int
	terminal bool // never: there are none
	job      windows.Handle
	err      error
}

func (g *group) start(cmd *exec.Cmd) error {
	job, err := newJob()
	if err != nil {
		return err
	}
	if cmd.SysProcAttr == nil { // else it has a token
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// Suspended, so that it has no children before it is in the job.
	cmd.SysProcAttr.HideWindow, cmd.SysProcAttr.CreationFlags = true, windows.CREATE_SUSPENDED|windows.CREATE_NEW_PROCESS_GROUP
	if err := cmd.Start(); err != nil {
		_ = windows.CloseHandle(job)
		return err
	}
	if err := enter(job, uint32(cmd.Process.Pid)); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = windows.CloseHandle(job)
		return fmt.Errorf("putting the process into a job: %w", err)
	}
	g.id, g.job = cmd.Process.Pid, job
	return nil
}

func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("making a job: %w", err)
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, fmt.Errorf("making a job: %w", err)
	}
	return job, nil
}

// enter puts a suspended process into the job and lets it run.
func enter(job windows.Handle, pid uint32) error {
	const rights = windows.PROCESS_SET_QUOTA | windows.PROCESS_TERMINATE | windows.PROCESS_SUSPEND_RESUME
	p, err := windows.OpenProcess(rights, false, pid)
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(p) }()
	if err := windows.AssignProcessToJobObject(job, p); err != nil {
		return err
	}
	resume := windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")
	if status, _, _ := resume.Call(uintptr(p)); status != 0 {
		return windows.NTStatus(status)
	}
	return nil
}

func (g *group) terminate() { g.kill() }

func (g *group) kill() {
	if g.job != 0 {
		_ = windows.TerminateJobObject(g.job, 1)
	}
}

func (g *group) send(sig syscall.Signal) error {
	if sig != syscall.SIGTERM && sig != syscall.SIGKILL {
		return fmt.Errorf("sending %s: there are no signals on Windows, only the end of a process", sig)
	}
	g.kill()
	return nil
}

// killSession and killMarked have nothing to do: nobody leaves a job.
func (g *group) killSession() {}

func killMarked(string) {}

func (g *group) await(cmd *exec.Cmd) { g.err = cmd.Wait() }

// wait ends the job: nothing of it is left.
func (g *group) wait(*exec.Cmd) error {
	_ = windows.CloseHandle(g.job)
	g.job = 0
	return g.err
}

func (g *group) identity() agent.Process { return agent.Process{PID: g.id, PGID: g.id} }

// Reap does nothing: the system has killed what a crash left behind.
func Reap(agent.Process) bool { return false }

func exitOf(s *os.ProcessState) Exit { return Exit{Code: s.ExitCode()} }

// tempFile makes a private file that is deleted when it is closed.
func tempFile(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "dure-*")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	name, err := windows.UTF16PtrFromString(f.Name())
	if err != nil {
		return nil, err
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, share, nil,
		windows.OPEN_EXISTING, windows.FILE_ATTRIBUTE_TEMPORARY|windows.FILE_FLAG_DELETE_ON_CLOSE, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), f.Name()), nil
}

// watchdog is not needed where there are jobs.
type watchdog struct{}

func (*watchdog) ready() string { return "" }

func (*watchdog) add(*group) {}

func (*watchdog) remove(*group) {}

func (*watchdog) close() error { return nil }
