package plugins

import (
	"context"
	"crypto/sha1" //nolint:gosec // of an old package of npm that has nothing better
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Getter writes what is at an address, at most so many bytes; more are an error. It
// decides which hosts may be asked.
type Getter func(ctx context.Context, address string, most int64, to io.Writer) error

// fetched is what a source has given.
type fetched struct {
	dir     string // the tree, in the folder that was staged
	commit  string // of a repository
	archive string // SHA-256 of an archive
	version string // of a package
}

// fetch brings a source into a staged folder, which has nothing in it. What is fetched
// is copied once more, within limits, so that no link or device of it counts.
func (s *Store) fetch(ctx context.Context, src Source, stage string) (fetched, error) {
	if err := check(src); err != nil {
		return fetched{}, err
	}
	tree := filepath.Join(stage, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		return fetched{}, fmt.Errorf("fetching a plugin: %w", err)
	}
	var got fetched
	var err error
	switch src.Kind {
	case FromFolder:
		err = s.copyTree(src.Path, tree)
	case FromFile:
		got.archive, err = s.unpackFile(src.Path, src.SHA256, tree)
	case FromArchive:
		got.archive, err = s.download(ctx, src, stage, tree)
	case FromNPM:
		got.version, err = s.npm(ctx, src, stage, tree)
	case FromGit, FromGitHub, FromGitSub:
		got.commit, err = s.clone(ctx, src, stage, tree)
	default:
		err = noSource("%s cannot be fetched", clip(src.Kind))
	}
	if err != nil {
		return fetched{}, fmt.Errorf("fetching %s: %w", clip(SourceText(src)), err)
	}
	got.dir, err = within(tree, src.Kind)
	return got, err
}

// within returns the folder of an archive that all of it lies in, where nothing lies
// beside it: most archives of a repository or a package have one.
func within(tree, kind string) (string, error) {
	if kind != FromFile && kind != FromArchive && kind != FromNPM {
		return tree, nil
	}
	entries, err := os.ReadDir(tree)
	if err != nil {
		return "", fmt.Errorf("looking into an archive: %w", err)
	}
	if len(entries) == 1 && entries[0].IsDir() && !slices.Contains(ownFolders, entries[0].Name()) {
		return filepath.Join(tree, entries[0].Name()), nil
	}
	return tree, nil
}

// ownFolders mean something in a plugin, and are no wrapping of it.
var ownFolders = []string{".claude-plugin", "skills", "commands", "agents", "hooks", "bin"}

// copyTree copies a folder into one that is staged.
func (s *Store) copyTree(from, to string) error {
	src, err := os.OpenRoot(from)
	if err != nil {
		return bare(err)
	}
	defer src.Close()
	dst, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	return newGrower(dst, s.limits(), 0).graft(src)
}

// unpackFile unpacks an archive that has to have a hash; "" = any. It returns its hash.
func (s *Store) unpackFile(path, want, to string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", bare(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, errors.New("it is no file"))
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, s.limits().Archive+1))
	if err != nil {
		return "", err
	}
	if n > s.limits().Archive {
		return "", fmt.Errorf("%w: the archive has more than %d MiB", ErrLarge, s.limits().Archive>>20)
	}
	have := hex.EncodeToString(sum.Sum(nil))
	if want != "" && have != want {
		return "", fmt.Errorf("%w: the archive has the SHA-256 %s, and has to have %s", ErrChanged, have, want)
	}
	dst, err := os.OpenRoot(to)
	if err != nil {
		return "", err
	}
	defer dst.Close()
	return have, unpack(f, dst, s.limits())
}

// download fetches an archive and unpacks it.
func (s *Store) download(ctx context.Context, src Source, stage, to string) (string, error) {
	file := filepath.Join(stage, "archive")
	if err := s.get(ctx, src.URL, file, s.limits().Archive); err != nil {
		return "", err
	}
	return s.unpackFile(file, src.SHA256, to)
}

// get writes what is at an address into a new file.
func (s *Store) get(ctx context.Context, address, file string, most int64) error {
	if s.Get == nil {
		return errors.New("nothing is fetched from the network here")
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(s.Get(ctx, address, most, f), f.Close())
}

// npmHost serves packages unless a source names another registry.
const npmHost = "registry.npmjs.org"

// maxPackument bounds what a registry says of a package, in bytes.
const maxPackument = 32 << 20

// npm fetches a package: its archive alone, checked with the hash that the registry has
// of it. None of its scripts runs, and nothing that it depends on comes with it.
func (s *Store) npm(ctx context.Context, src Source, stage, to string) (string, error) {
	base := src.URL
	if base == "" {
		base = "https://" + npmHost
	}
	about := filepath.Join(stage, "package.json")
	if err := s.get(ctx, strings.TrimRight(base, "/")+"/"+strings.ReplaceAll(src.Package, "/", "%2F"), about, maxPackument); err != nil {
		return "", err
	}
	data, err := os.ReadFile(about)
	if err != nil {
		return "", err
	}
	var pkg struct {
		Tags     map[string]string `json:"dist-tags"`
		Versions map[string]struct {
			Dist struct{ Tarball, Integrity, Shasum string }
		}
	}
	if err := json.Unmarshal(data, &pkg); err != nil {
		return "", errors.New("the registry answers with something else than a package")
	}
	version := src.Version
	if version == "" {
		version = "latest"
	}
	if tagged, ok := pkg.Tags[version]; ok {
		version = tagged
	}
	one, ok := pkg.Versions[version]
	if !ok {
		return "", fmt.Errorf("%w: the package has no version %s", ErrUnknown, clip(version))
	}
	if err := sameHost(base, one.Dist.Tarball); err != nil {
		return "", err
	}
	file := filepath.Join(stage, "archive")
	if err := s.get(ctx, one.Dist.Tarball, file, s.limits().Archive); err != nil {
		return "", err
	}
	if err := checkIntegrity(file, one.Dist.Integrity, one.Dist.Shasum); err != nil {
		return "", err
	}
	_, err = s.unpackFile(file, "", to)
	return version, err
}

// sameHost keeps a registry from sending its readers elsewhere.
func sameHost(base, tarball string) error {
	if err := checkAddress(tarball, false); err != nil {
		return err
	}
	a, err := url.Parse(base)
	if err != nil {
		return noSource("the address of the registry")
	}
	b, err := url.Parse(tarball)
	if err != nil || a.Host != b.Host {
		return errors.New("the registry names an archive on another host")
	}
	return nil
}

// checkIntegrity compares a file with what a registry says of it, by the best hash that
// it gives.
func checkIntegrity(path, integrity, shasum string) error {
	var h hash.Hash
	want := ""
	for one := range strings.FieldsSeq(integrity) {
		if sum, ok := strings.CutPrefix(one, "sha512-"); ok {
			h, want = sha512.New(), sum
		}
	}
	if h == nil && shasum != "" && integrity == "" {
		raw, err := hex.DecodeString(shasum)
		if err != nil {
			return fmt.Errorf("%w: the registry's hash cannot be read", ErrChanged)
		}
		h, want = sha1.New(), base64.StdEncoding.EncodeToString(raw) //nolint:gosec // see above
	}
	if h == nil {
		return fmt.Errorf("%w: the registry has no hash of it that is known here", ErrChanged)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if base64.StdEncoding.EncodeToString(h.Sum(nil)) != want {
		return fmt.Errorf("%w: the archive is not the one that the registry describes", ErrChanged)
	}
	return nil
}
