//go:build unix && !linux

package shell

import "time"

// listCommand is what is run to list processes.
var listCommand = []string{"ps", "-xww", "-o", "pid=", "-o", "ppid=", "-o", "etime=", "-o", "%cpu=", "-o", "rss=", "-o", "command="}

// rootDir is a folder that no project has settings for programs in.
const rootDir = "/"

func parseListing(text string) []process { return parsePS(text, time.Now()) }
