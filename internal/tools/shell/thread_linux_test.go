package shell

import (
	"errors"
	"os"
	"strconv"
	"testing"
)

// A thread has a number too, and a signal to it would reach its process.
func TestThreadsAreNoProcesses(t *testing.T) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name())
		if tid == os.Getpid() {
			continue
		}
		if err := sendSignal(tid, "CONT", func() error { return mayEnd(tid) }); !errors.Is(err, errGone) {
			t.Errorf("thread %d: %v", tid, err)
		}
		if err := mayEnd(tid); !errors.Is(err, errGone) {
			t.Errorf("thread %d: %v", tid, err)
		}
	}
}
