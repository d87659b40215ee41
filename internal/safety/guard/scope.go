package guard

// A scope says what is done to the results of a group of tools.
//
// Credentials are masked everywhere. Numbers of cards, accounts and people are
// masked wherever they may be data, and left alone where a text is most likely
// source code, which must not be damaged by a look-alike. Files are exact: an edit
// has to find again what was read, so what does not show is given a sign there and
// nothing is written over. A file can still not be damaged by a mask: the tools
// that change files refuse text with a mask that the file does not have, see
// [Masked].
type scope struct {
	exact     bool
	financial bool
}

func scopeOf(group string) scope {
	switch group {
	case "files":
		return scope{exact: true}
	case "code", "git", "planning":
		return scope{}
	}
	return scope{financial: true}
}
