// Package tuning keeps the library for the Model Context Protocol from ending the program
// before it begins: it panics over a variable MCPGODEBUG that it cannot read.
//
// Packages of one program are initialised in the order of their paths, as soon as what they
// import is. This one imports nothing that the library's reader of the variable does not
// import too, and its path comes first: the variable is gone when the library looks.
package tuning

import (
	"os"
	"strings"
)

const variable = "MCPGODEBUG"

func init() {
	if value := os.Getenv(variable); !readable(value) {
		_ = os.Unsetenv(variable) // where that fails, the library says what is wrong
	}
}

// readable reports whether a value is empty, or a list of NAME=VALUE.
func readable(value string) bool {
	if value == "" {
		return true
	}
	for part := range strings.SplitSeq(value, ",") {
		if !strings.Contains(part, "=") {
			return false
		}
	}
	return true
}
