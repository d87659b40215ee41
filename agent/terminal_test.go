package agent_test

import (
	"strings"
	"testing"

	"dure/agent"
)

// What is no title, notice, progress or bell does not reach a terminal, nor anything
// behind it.
func TestForTerminal(t *testing.T) {
	long := strings.Repeat("x", agent.MaxTerminal)
	for _, tt := range []struct {
		s, want string
		all     bool
	}{
		{"", "", true},
		{"\a", "\a", true},
		{"\x1b]0;한국 title\x1b\\\a", "\x1b]0;한국 title\a\a", true},
		{"\x1b]9;said\a\x1b]9;4;1;50\a\x1b]99;i=1;x\a\x1b]777;notify;a;b\a", "\x1b]9;said\a\x1b]9;4;1;50\a\x1b]99;i=1;x\a\x1b]777;notify;a;b\a", true},
		{"\x1b]0;a\a\x1b[2J\x1b]0;b\a", "\x1b]0;a\a", false},
		{"words", "", false},
		{"\x1b]52;c;eA==\a", "", false},
		{"\x1b]9;7;\"calc\"\a", "", false},
		{"\x1b]9; 7;\"calc\"\a", "", false},
		{"\x1b]8;;http://x\a", "", false},
		{"\x1b]0;open", "", false},
		{"\x1b]0;a\x1b]52;c;eA==\a", "", false},
		{"\x1b]0;a\x1b[2J\a", "", false},
		{"\x1b]0;a\nb\a", "", false},
		{"\x1b]0;a\u009cb\u009b2J\a", "", false},
		{"\x1b]0;a\xffb\a", "", false},
		{"\x1b]0;" + long + "\a", "", false},
		{strings.Repeat("\a", agent.MaxTerminal+1), strings.Repeat("\a", agent.MaxTerminal), false},
	} {
		if got, all := agent.ForTerminal(tt.s); got != tt.want || all != tt.all {
			t.Errorf("%.40q: %q, %v, want %q, %v", tt.s, got, all, tt.want, tt.all)
		}
	}
}
