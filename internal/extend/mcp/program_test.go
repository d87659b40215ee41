package mcp

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// hanging is what the program says when a call of it hangs.
const hanging = "now it hangs"

// program is this test as the program of a server. Its tool t starts a process of its
// own and answers with the numbers of both, die ends it, and hang says that it does nothing.
func program(mode string) {
	if mode == "child" {
		select {}
	}
	p := &peer{in: bufio.NewReader(os.Stdin), out: os.Stdout}
	fmt.Fprintln(os.Stdout, "Welcome to the server!")
	p.serve(func(p *peer, m message) bool {
		switch {
		case m.Method != "tools/call":
			return false
		case strings.Contains(string(m.Params), "die"):
			fmt.Fprintln(os.Stderr, "something is wrong: I give up")
			os.Exit(3)
		case strings.Contains(string(m.Params), "hang"):
			fmt.Fprintln(os.Stderr, hanging)
			return true
		}
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "DURE_MCP_SERVER=child")
		if err := c.Start(); err != nil {
			p.fail(m, 1, err.Error())
			return true
		}
		p.reply(m, fmt.Sprintf(`{"content":[{"type":"text","text":"%d %d"}]}`, os.Getpid(), c.Process.Pid))
		return true
	})
}
