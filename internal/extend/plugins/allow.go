package plugins

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Allow is what the administrator says of where plugins may come from.
type Allow struct {
	Strict  bool     // nothing but Known may be used
	Known   []Source // of marketplaces
	Blocked []Source

	// Unread says that an entry of Blocked cannot be read: then nothing is used, because
	// nobody knows what was meant.
	Unread bool
}

// ErrForbidden says that the administrator does not let something be used.
var ErrForbidden = errors.New("the administrator does not allow it")

// Check judges the source of a marketplace, or of a plugin that comes from none.
func (a Allow) Check(src Source) error {
	switch {
	case a.Unread:
		return fmt.Errorf("%w: blockedMarketplaces has an entry that cannot be read", ErrForbidden)
	case slices.ContainsFunc(a.Blocked, func(b Source) bool { return covers(b, src, false) }):
		return fmt.Errorf("%w: %s is in blockedMarketplaces", ErrForbidden, clip(SourceText(src)))
	case a.Strict && !slices.ContainsFunc(a.Known, func(k Source) bool { return covers(k, src, true) }):
		return fmt.Errorf("%w: %s is not in strictKnownMarketplaces", ErrForbidden, clip(SourceText(src)))
	}
	return nil
}

// covers reports whether an entry of a list means a source. To permit, the branch or the
// commit has to be the one that is named; to forbid, the repository is enough.
func covers(s, src Source, exact bool) bool {
	switch {
	case s.Kind == "hostPattern" || s.Host != "":
		return hostOf(src) != "" && fits(s.Host, hostOf(src), !exact)
	case s.Kind == "pathPattern" || s.Place != "":
		return hostOf(src) == "" && fits(s.Place, src.Path, !exact)
	}
	if exact && (s.Ref != src.Ref || s.SHA != src.SHA || s.SHA256 != src.SHA256) {
		return false
	}
	at, of := place(s), place(src)
	return at != "" && at == of
}

// fits matches a whole text with a pattern. One that cannot be read forbids all, and
// permits nothing.
func fits(pattern, text string, bad bool) bool {
	re, err := regexp.Compile("^(?:" + pattern + ")$")
	if err != nil || pattern == "" {
		return bad
	}
	return re.MatchString(text)
}

// place is where a source is, in one spelling: a repository of GitHub is the same by its
// name and by its address.
func place(s Source) string {
	switch s.Kind {
	case FromFolder, FromFile:
		return s.Path
	case FromNPM:
		return "npm:" + s.Package
	}
	at := strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(address(s), "/"), ".git"))
	if at == "" {
		return ""
	}
	if s.Kind == FromGitSub {
		return at + "//" + s.Path
	}
	return at
}
