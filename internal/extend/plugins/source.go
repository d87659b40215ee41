package plugins

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// Kinds of a [Source].
const (
	FromFolder      = "directory"
	FromFile        = "file" // an archive on this machine, or the file of a marketplace
	FromGitHub      = "github"
	FromGit         = "git"
	FromGitSub      = "git-subdir"
	FromArchive     = "archive"
	FromNPM         = "npm"
	FromURL         = "url" // of a marketplace: its file; of a plugin: a git repository
	FromMarketplace = "marketplace"
	FromRelative    = "relative" // to the root of its marketplace
	FromCommand     = "command"
)

// SourceText returns a source as one line. Addresses carry no password: such are refused.
func SourceText(s Source) string {
	at := ""
	if s.Ref != "" {
		at = "#" + s.Ref
	}
	if s.SHA != "" {
		at = "#" + s.SHA
	}
	switch s.Kind {
	case FromGitHub:
		return "github:" + s.Repo + at
	case FromGitSub:
		return s.URL + at + " (" + s.Path + ")"
	case FromNPM:
		return "npm:" + s.Package + "@" + s.Version
	case FromFolder, FromFile, FromRelative:
		return s.Path
	case FromMarketplace:
		return s.Package
	}
	return s.URL + at
}

var (
	isRepo    = lazy(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}/[A-Za-z0-9._-]{1,100}$`)
	isCommit  = lazy(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	isHash    = lazy(`^[0-9a-f]{64}$`)
	isRef     = lazy(`^[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}$`)
	isPackage = lazy(`^(@[a-z0-9][a-z0-9._-]{0,99}/)?[a-z0-9][a-z0-9._-]{0,99}$`)
	isVersion = lazy(`^[A-Za-z0-9][A-Za-z0-9.+-]{0,99}$`)
	isSSH     = lazy(`^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:`)
	isID      = lazy(`^[a-z0-9._-]+@[a-z0-9._-]+$`)
)

// ErrSource is something that names no source.
var ErrSource = errors.New("it names no source")

func noSource(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSource, fmt.Sprintf(format, args...))
}

// check refuses what cannot be fetched, or what git or a shell might read as an option.
func check(s Source) error {
	if s.Ref != "" && (!isRef().MatchString(s.Ref) || strings.Contains(s.Ref, "..")) {
		return noSource("the ref %q", clip(s.Ref))
	}
	if s.SHA != "" && !isCommit().MatchString(s.SHA) {
		return noSource("sha has to be the whole name of a commit, in small letters: %q", clip(s.SHA))
	}
	if s.SHA256 != "" && !isHash().MatchString(s.SHA256) {
		return noSource("sha256 has 64 hexadecimal digits, in small letters")
	}
	switch s.Kind {
	case FromFolder, FromFile:
		if !filepath.IsAbs(s.Path) {
			return noSource("the path %q is not absolute", clip(s.Path))
		}
	case FromRelative:
		_, err := local(s.Path)
		return err
	case FromGitHub:
		if !isRepo().MatchString(s.Repo) || strings.Contains(s.Repo, "..") {
			return noSource("repo has to be owner/name: %q", clip(s.Repo))
		}
	case FromGit, FromURL:
		return checkAddress(s.URL, s.Kind == FromGit)
	case FromGitSub:
		if _, err := local(s.Path); err != nil {
			return err
		}
		if isRepo().MatchString(s.URL) {
			return nil
		}
		return checkAddress(s.URL, true)
	case FromArchive:
		return checkAddress(s.URL, false)
	case FromNPM:
		if !isPackage().MatchString(s.Package) || s.Version != "" && !isVersion().MatchString(s.Version) {
			return noSource("the package %q in the version %q", clip(s.Package), clip(s.Version))
		}
		if s.URL != "" {
			return checkAddress(s.URL, false)
		}
	case FromMarketplace:
		if !isID().MatchString(s.Package) {
			return noSource("%q is not NAME@MARKETPLACE", clip(s.Package))
		}
	case FromCommand:
		return noSource("commands that fetch a plugin are not run here")
	default:
		return noSource("the kind %q is not known here", clip(s.Kind))
	}
	return nil
}

// checkAddress takes addresses of the encrypted web, and of this machine. Git may take a
// file as well; it has no way to ask for a password, and so no use for ssh.
func checkAddress(s string, git bool) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || len(s) > maxLine || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }):
		return noSource("the address cannot be read")
	case u.User != nil:
		return noSource("the address of %s has a user or a password in it", clip(u.Host))
	case u.Scheme == "https" && u.Host != "":
		return nil
	case u.Scheme == "http" && isHere(strings.ToLower(u.Hostname())):
		return nil
	case git && u.Scheme == "file" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
		return nil
	}
	return noSource("%q is no address that begins with https://", clip(s))
}

// isHere reports whether a host is this machine.
func isHere(host string) bool { return host == "127.0.0.1" || host == "::1" || host == "localhost" }

// ReadSource reads a source as marketplaces and settings write it: a path that begins
// with ./, or an object.
func ReadSource(data []byte) (Source, error) {
	var p string
	if json.Unmarshal(data, &p) == nil {
		if p == "" {
			return Source{}, noSource("an empty text")
		}
		return Source{Kind: FromRelative, Path: p}, nil
	}
	var with struct {
		Source
		Registry string `json:"registry"`
	}
	if err := json.Unmarshal(data, &with); err != nil {
		return Source{}, noSource("it has to be a path, or an object with a kind in \"source\"")
	}
	if with.Kind == FromNPM {
		with.URL = with.Registry
	}
	return with.Source, nil
}

// ParseSource reads what a person writes: a folder, an archive, an address, owner/name,
// npm:PACKAGE@VERSION, or NAME@MARKETPLACE. dir is where relative paths begin. Behind #
// stands a branch, a tag or a commit.
func ParseSource(word, dir string) (Source, error) {
	s := Source{}
	rest, ref, _ := strings.Cut(word, "#")
	if isCommit().MatchString(ref) {
		s.SHA = ref
	} else {
		s.Ref = ref
	}
	lower := strings.ToLower(rest)
	switch pkg, isNPM := strings.CutPrefix(rest, "npm:"); {
	case word == "":
		return s, noSource("nothing is there")
	case isNPM:
		s = Source{Kind: FromNPM, Package: pkg}
		if at := strings.LastIndexByte(pkg, '@'); at > 0 {
			s.Package, s.Version = pkg[:at], pkg[at+1:]
		}
	case strings.HasPrefix(rest, "github:"):
		s.Kind, s.Repo = FromGitHub, strings.TrimPrefix(rest, "github:")
	case strings.HasPrefix(rest, "git+"):
		s.Kind, s.URL = FromGit, strings.TrimPrefix(rest, "git+")
	case strings.Contains(rest, "://") && isArchive(lower):
		s.Kind, s.URL = FromArchive, rest
	case strings.HasPrefix(lower, "file://") || strings.Contains(rest, "://") && !strings.HasSuffix(lower, ".json"):
		s.Kind, s.URL = FromGit, rest
	case strings.Contains(rest, "://"):
		s.Kind, s.URL = FromURL, rest
	case isID().MatchString(word):
		s = Source{Kind: FromMarketplace, Package: word}
	case isSSH().MatchString(word):
		return s, noSource("repositories are asked with https, and not with ssh: write https://HOST/OWNER/REPOSITORY")
	case !strings.HasPrefix(word, ".") && isRepo().MatchString(rest):
		s.Kind, s.Repo = FromGitHub, rest
	default:
		s = Source{Kind: FromFolder, Path: word}
		if !filepath.IsAbs(word) {
			s.Path = filepath.Join(dir, word)
		}
		if isArchive(strings.ToLower(word)) || strings.HasSuffix(word, ".json") {
			s.Kind = FromFile
		}
	}
	return s, check(s)
}

// isArchive reports whether a name ends like that of an archive, without regard to what
// stands behind a question mark.
func isArchive(name string) bool {
	name, _, _ = strings.Cut(name, "?")
	for _, end := range []string{".zip", ".tgz", ".tar.gz", ".tar"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// address is where a repository is.
func address(s Source) string {
	switch {
	case s.Kind == FromGitHub:
		return "https://github.com/" + strings.TrimSuffix(s.Repo, ".git") + ".git"
	case s.Kind == FromGitSub && isRepo().MatchString(s.URL):
		return "https://github.com/" + strings.TrimSuffix(s.URL, ".git") + ".git"
	}
	return s.URL
}

// hostOf is whom a source is asked of; "" = this machine.
func hostOf(s Source) string {
	if s.Kind == FromNPM && s.URL == "" {
		return npmHost
	}
	u, err := url.Parse(address(s))
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}
