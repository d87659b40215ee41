package shell

// listCommand is what is run to list processes. It lists those of other users
// too, and does not tell of parents and start times.
var listCommand = []string{"tasklist.exe", "/FO", "CSV", "/NH"}

// rootDir is a folder that no project has settings for programs in.
const rootDir = `C:\`

func parseListing(text string) []process { return parseTasklist(text) }
