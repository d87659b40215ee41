package sandbox

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/internal/prooftest"
	"dure/internal/safety/sandbox/egress"
)

// An escape is an attempt to get out. It writes ESCAPED into a file outside or to
// its output if it succeeds. OUT is a folder outside, PORT that of a server on
// this machine, PID the number of a process outside.
type escape struct {
	name, script string
	needs        string // program
	reduced      bool   // it is known to succeed where there are no namespaces
}

var escapes = []escape{
	{name: "write outside", script: `echo ESCAPED > OUT/file`},
	{name: "write outside by a link", script: `ln -s OUT/file link; echo ESCAPED > link`},
	{name: "append outside", script: `echo ESCAPED >> OUT/there`},
	{name: "cut outside", script: `: > OUT/there; [ -s OUT/there ] || echo ESCAPED`},
	{name: "remove outside", script: `rm -f OUT/there; [ -e OUT/there ] || echo ESCAPED`},
	{name: "rename outside", script: `mv OUT/there OUT/file && echo ESCAPED`},
	{name: "hard link from outside", script: `ln OUT/there here && echo ESCAPED >> here`},
	{name: "change rights outside", script: `chmod 777 OUT; [ "$(stat -c %a OUT)" = 777 ] && echo ESCAPED`, reduced: true},
	{name: "absent protected file", script: `echo ESCAPED > .mcp.json; cat .mcp.json`, reduced: true},
	{name: "absent protected folder", script: `mkdir -p .claude/x && echo ESCAPED > .claude/settings.json; cat .claude/settings.json`, reduced: true},
	{name: "absent protected by rename", script: `mkdir x; echo ESCAPED > x/settings.json; mv -T x .vscode; cat .vscode/settings.json`, reduced: true},
	{name: "absent protected by link", script: `mkdir x; echo ESCAPED > x/settings.json; ln -sfn x .idea; cat .idea/settings.json`, reduced: true},
	{name: "absent protected removed first", script: `rm -rf .dure; mkdir .dure && echo ESCAPED > .dure/x; cat .dure/x`, reduced: true},
	{name: "hook of git", script: `echo ESCAPED > .git/hooks/pre-commit; cat .git/hooks/pre-commit`, reduced: true},
	{name: "settings of git", script: `echo ESCAPED >> .git/config; grep ESCAPED .git/config`, reduced: true},
	{name: "settings of git by rename", script: `echo ESCAPED > c; mv -f c .git/config; cat .git/config`, reduced: true},
	{name: "settings of git by git", script: `git config core.fsmonitor ESCAPED; cat .git/config`, needs: "git", reduced: true},
	{name: "another .git", script: `mv .git .g; mkdir .git; echo ESCAPED > .git/config; cat .git/config`, reduced: true},
	{name: "hooks replaced", script: `rm -rf .git/hooks; mkdir .git/hooks && echo ESCAPED > .git/hooks/x; cat .git/hooks/x`, reduced: true},
	{name: "hard link out of protected", script: `ln .git/config c && echo ESCAPED >> c; cat .git/config`, reduced: true},
	{name: "protected by its descriptor", script: `exec 3< .git/config; echo ESCAPED > /dev/fd/3; cat .git/config`, reduced: true},
	{name: "bare repository", script: `echo ESCAPED > HEAD`, reduced: true},
	{name: "another common folder", script: `echo ESCAPED > .git/commondir`, reduced: true},
	{name: "credentials", script: `cat OUT/secret/key`},
	{name: "credentials by a link", script: `ln -s OUT/secret s; cat s/key`},
	{name: "credentials by the root of a process", script: `cat /proc/1/root/OUT/secret/key /proc/self/root/OUT/secret/key`},
	{name: "outside by the root of a process", script: `echo ESCAPED > /proc/1/root/OUT/file`},
	{name: "unmount what hides", script: `umount OUT/secret; umount -l OUT/secret; cat OUT/secret/key`},
	{name: "mount over", script: `mount --bind OUT .; mount -o remount,rw /; mount -o remount,rw,bind /; echo ESCAPED > OUT/file`},
	{name: "user namespace", script: `unshare -Urm sh -c 'mount -o remount,rw /; umount OUT/secret; cat OUT/secret/key; echo ESCAPED'`, needs: "unshare"},
	{name: "mount namespace", script: `unshare -m echo ESCAPED`, needs: "unshare"},
	{name: "chroot", script: `chroot / echo ESCAPED`},
	{name: "namespaces of others", script: `nsenter -t 1 -m echo ESCAPED; nsenter -t PID -m -U echo ESCAPED`, needs: "nsenter"},
	{name: "signal to others", script: `kill -0 PID && echo ESCAPED`},
	{name: "look into others", script: `cat /proc/PID/environ | tr '\0' '\n' | grep ^PATH= && echo ESCAPED`},
	{name: "memory of the parent", script: `for p in $PPID 1; do python3 -c 'import sys; open("/proc/%s/mem" % sys.argv[1], "r+b"); print("ESC" + "APED")' $p; done`, needs: "python3"},
	{name: "trace a sibling", script: `sleep 5 & python3 -c 'import ctypes,sys; l=ctypes.CDLL(None); print("ESC" + "APED" if l.ptrace(16, int(sys.argv[1]), 0, 0) == 0 else "")' $!; kill $!`, needs: "python3"},
	{name: "type into the terminal", script: `python3 -c 'import fcntl,pty; m,s=pty.openpty(); fcntl.ioctl(s, 0x5412, b"x"); print("ESC" + "APED")'`, needs: "python3"},
	{name: "abstract socket", script: `python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.connect("\0SOCKET"); print("ESC" + "APED")'`, needs: "python3"},
	{name: "socket of an agent", script: `python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.connect("OUT/agent"); print("ESC" + "APED")'`, needs: "python3"},
	{name: "IPv4 loopback of this machine", script: `python3 -c 'import socket; socket.create_connection(("127.0.0.1", PORT), 1); print("ESC" + "APED")'`, needs: "python3"},
	{name: "IPv6 loopback of this machine", script: `python3 -c 'import socket; socket.create_connection(("::1", PORT), 1); print("ESC" + "APED")'`, needs: "python3"},
	{name: "metadata of a cloud", script: `python3 -c 'import socket; socket.create_connection(("169.254.169.254", 80), 1); print("ESC" + "APED")'`, needs: "python3"},
	{name: "names", script: `python3 -c 'import socket; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b"x", ("192.0.2.1", 53)); print("ESC" + "APED")'`, needs: "python3"},
	{name: "raw socket", script: `python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print("ESC" + "APED")'`, needs: "python3"},
	{name: "VM socket", script: `python3 -c 'import socket; socket.socket(40, socket.SOCK_STREAM); print("ESC" + "APED")'`, needs: "python3"},
	{name: "knobs of the machine", script: `cat /proc/sys/kernel/core_pattern > OLD; cat OLD > /proc/sys/kernel/core_pattern && echo ESCAPED`},
	{name: "devices of the machine", script: `ls /dev | grep -E '^(sd|vd|nvme|mem|kmsg)' && echo ESCAPED`, reduced: true},
	{name: "write to a disk", script: `for d in /dev/sd? /dev/vd? /dev/nvme?n?; do [ -b $d ] && dd if=$d of=$d count=0 conv=notrunc 2>/dev/null && echo ESCAPED; done`},
	{name: "huge file", script: `head -c 3000000 /dev/zero > big; [ $(stat -c %s big) -gt 2000000 ] && echo ESCAPED`},
}

// The canaries are a folder outside with a secret, a server and two sockets.
type canaries struct {
	out, port string
	reached   func() bool
}

func plant(t *testing.T) canaries {
	t.Helper()
	out, err := os.MkdirTemp("/var/tmp", "dure-test-") // commands have a /tmp of their own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(out) })
	for name, text := range map[string]string{"there": "untouched\n", "secret/key": "ESCAPED\n"} {
		path := filepath.Join(out, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var hits atomic.Int32
	listen := func(network, address string) net.Listener {
		ln, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				hits.Add(1)
				c.Close()
			}
		}()
		t.Cleanup(func() { ln.Close() })
		return ln
	}
	tcp := listen("tcp", "127.0.0.1:0")
	listen("unix", filepath.Join(out, "agent"))
	listen("unix", "@"+out)
	return canaries{out, fmt.Sprint(tcp.Addr().(*net.TCPAddr).Port), func() bool { return hits.Load() > 0 }}
}

// repository empties root, and makes it look like a repository of git.
func repository(t *testing.T, root string) {
	t.Helper()
	old, _ := filepath.Glob(filepath.Join(root, "*"))
	hidden, _ := filepath.Glob(filepath.Join(root, ".[a-z]*"))
	for _, path := range append(old, hidden...) {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\trepositoryformatversion = 0\n", ".git/hooks/sample": "", ".git/objects/x": "", ".git/refs/x": "",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// tried returns the escapes that are tried by a mechanism. Two of them use namespaces: the
// short form tries all escapes by one. It leaves out those that Landlock does not prevent.
func tried(t *testing.T, mechanism string) []escape {
	switch {
	case mechanism == byBwrap:
		return prooftest.Sample(t, escapes, 3, nil)
	case mechanism == byLandlock && !prooftest.Long():
		return slices.DeleteFunc(slices.Clone(escapes), func(e escape) bool { return e.reduced })
	}
	return escapes
}

// No attempt gets out, by any mechanism, but those that Explain owns up to where
// there are no namespaces; and whatever was tried, what is protected is as it was.
func TestEscapes(t *testing.T) {
	t.Parallel()
	python := interpreter()
	for _, m := range mechanisms {
		t.Run(m, func(t *testing.T) {
			t.Parallel()
			c := plant(t)
			b, root := confined(t, m, func(f *Confinement) {
				f.Hide = []string{filepath.Join(c.out, "secret"), filepath.Join(c.out, "agent")}
				f.Limits = Limits{FileSize: 1 << 20}
			})
			for _, e := range tried(t, m) {
				t.Run(e.name, func(t *testing.T) {
					if e.needs != "" {
						needs(t, e.needs)
					}
					repository(t, root)
					before := filesOf(t, filepath.Join(root, ".git"))
					script := strings.NewReplacer("OUT", c.out, "PORT", c.port, "SOCKET", c.out, "PID", fmt.Sprint(os.Getpid()), "python3", python).Replace(e.script)
					out, _ := output(t, b, root, script, Grant{})
					escaped := strings.Contains(out, "ESCAPED") || present(filepath.Join(c.out, "file")) ||
						present(filepath.Join(root, ".git/commondir")) || present(filepath.Join(root, "HEAD"))
					if text, _ := os.ReadFile(filepath.Join(c.out, "there")); string(text) != "untouched\n" {
						escaped = true
					}
					if escaped && (m != byLandlock || !e.reduced) {
						t.Errorf("it got out: %s", out)
					}
					if m == byLandlock {
						return
					}
					if diff := cmp.Diff(before, filesOf(t, filepath.Join(root, ".git"))); diff != "" {
						t.Errorf("the repository has changed:\n%s", diff)
					}
					b.cell.holds.wait()
					for _, name := range ProtectNames() {
						if !strings.HasPrefix(name, ".git/") && (present(filepath.Join(root, name)) || isHold(filepath.Join(root, name))) {
							t.Errorf("%s was left", name)
						}
					}
				})
			}
			if c.reached() {
				t.Error("a server outside was reached")
			}
		})
	}
}

// interpreter returns how Python is started quickest: without what may start it.
func interpreter() string {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return "python3"
	}
	return strings.TrimSpace(string(out)) + " -I -S"
}

// filesOf lists files and what they hold.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		all[path] = d.Type().String()
		if d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			all[path] += " " + string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A bomb of processes goes off inside, and ends with its command.
func TestForkBomb(t *testing.T) {
	needs(t, "bash")
	for _, m := range []string{byBwrap, byNamespaces} {
		t.Run(m, func(t *testing.T) {
			t.Parallel()
			b, root := confined(t, m, func(c *Confinement) { c.Limits.Processes = 350 })
			cmd := sh(`f() { f | f & }; f; sleep 600`)
			cmd.Argv[0], cmd.Dir, cmd.Timeout = "bash", root, 700*time.Millisecond
			p := start(t, b, cmd)
			most := 0
			for over := false; !over; {
				select {
				case <-p.Exited():
					over = true
				case <-time.After(50 * time.Millisecond):
					most = max(most, count(p.mark))
				}
			}
			if most > 350 {
				t.Errorf("there were %d processes", most)
			}
			eventually(t, "all are gone", func() bool { return count(p.mark) == 0 })
		})
	}
}

// count counts the processes that carry a mark.
func count(mark string) int {
	n := 0
	for _, pid := range processes() {
		if env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); strings.Contains(string(env), mark+"\x00") {
			n++
		}
	}
	return n
}

// A link that is swapped all the time leads nowhere outside.
func TestSwappedLink(t *testing.T) {
	t.Parallel()
	swaps := "100"
	if prooftest.Long() {
		swaps = "300"
	}
	for _, m := range mechanisms {
		t.Run(m, func(t *testing.T) {
			t.Parallel()
			c := plant(t)
			b, root := confined(t, m, nil)
			output(t, b, root, strings.NewReplacer("OUT", c.out, "SWAPS", swaps).Replace(`mkdir in; (for i in $(seq SWAPS); do ln -sfn OUT l; ln -sfn in l; done) & for i in $(seq 300); do echo ESCAPED > l/file; done 2>/dev/null; wait`), Grant{})
			if present(filepath.Join(c.out, "file")) {
				t.Error("it got out")
			}
		})
	}
}

// What a grant opens is open for that command, and what is refused is told.
func TestGrantsAndDenials(t *testing.T) {
	for _, m := range []string{byBwrap, byNamespaces} {
		t.Run(m, func(t *testing.T) {
			c := plant(t)
			secret := filepath.Join(c.out, "secret")
			b, root := confined(t, m, func(f *Confinement) { f.Hide = []string{secret} })
			repository(t, root)
			for _, tt := range []struct {
				name, script string
				grant        Grant
				out          string
				denied       []Denial
			}{
				{name: "outside", script: "echo x > " + c.out + "/new", denied: []Denial{{DeniedWrite, c.out + "/new", whyOutside}}},
				{name: "protected", script: "echo x >> .git/config", denied: []Denial{{DeniedWrite, root + "/.git/config", whyProtected}}},
				{name: "held", script: "mkdir .vscode", denied: []Denial{{DeniedWrite, root + "/.vscode", whyProtected}}},
				{name: "hidden", script: "cat " + secret + "/key", denied: []Denial{{DeniedRead, secret + "/key", whyHidden}}},
				{name: "no fault of the confinement", script: "cat missing; cat " + c.out + "/missing; rmdir .git"},
				{name: "granted write", script: "echo x >> .git/config && tail -n 1 .git/config", grant: Grant{Writes: []string{root + "/.git/config"}}, out: "x\n"},
				{name: "granted, missing", script: "echo y > .mcp.json && cat .mcp.json && rm .mcp.json", grant: Grant{Writes: []string{root + "/.mcp.json"}}, out: "y\n"},
				{name: "granted outside", script: "echo z > " + c.out + "/there && cat " + c.out + "/there", grant: Grant{Writes: []string{c.out + "/there"}}, out: "z\n"},
				{name: "granted outside, missing", script: "mkdir " + c.out + "/dir/ && echo made", grant: Grant{Writes: []string{c.out + "/plain/dir"}}},
				{name: "granted read", script: "cat " + secret + "/key", grant: Grant{Reads: []string{secret + "/key"}}, out: "ESCAPED\n"},
				{name: "reading only", script: "touch a", grant: Grant{ReadOnly: true}, denied: []Denial{{DeniedWrite, root + "/a", whyPlan}}},
			} {
				out, exit := output(t, b, root, "exec 2>/dev/null; "+tt.script, tt.grant)
				if tt.denied != nil || tt.out == "" {
					_, exit = output(t, b, root, tt.script, tt.grant)
					out = tt.out
				}
				if out != tt.out {
					t.Errorf("%s: output %q, want %q", tt.name, out, tt.out)
				}
				if diff := cmp.Diff(tt.denied, exit.Denied); diff != "" && tt.out == "" && tt.grant.Writes == nil {
					t.Errorf("%s: denied:\n%s", tt.name, diff)
				}
			}
		})
	}
}

// Through the proxy, and only through it, a confined command reaches what it may.
func TestProxied(t *testing.T) {
	t.Parallel()
	needs(t, "python3")
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	t.Cleanup(served.Close)
	host := strings.TrimPrefix(served.URL, "http://")
	const fetch = `unset no_proxy NO_PROXY; python3 -c 'import urllib.request,sys; print(urllib.request.build_opener(urllib.request.ProxyHandler({"http":__import__("os").environ["http_proxy"]})).open(sys.argv[1]).read())' `
	for _, m := range []string{byBwrap, byNamespaces} {
		t.Run(m, func(t *testing.T) {
			t.Parallel()
			b, root := confined(t, m, func(c *Confinement) {
				c.Net = NetProxy
				c.Egress = egress.Config{AllowLoopback: true}
			})
			if out, exit := output(t, b, root, fetch+served.URL, Grant{Hosts: []string{host}}); !strings.Contains(out, "hello") || exit.Denied != nil {
				t.Errorf("granted: %s %v", out, exit.Denied)
			}
			out, exit := output(t, b, root, fetch+served.URL, Grant{})
			if want := []Denial{{DeniedHost, host, egress.WhyHost}}; strings.Contains(out, "hello") || !slices.Equal(exit.Denied, want) {
				t.Errorf("not granted: %s %v, want %v", out, exit.Denied, want)
			}
			if out, _ := output(t, b, root, "unset http_proxy HTTP_PROXY; python3 -c 'import urllib.request; print(urllib.request.urlopen(\""+served.URL+"\").read())'", Grant{Hosts: []string{host}}); strings.Contains(out, "hello") {
				t.Error("without the proxy it got out")
			}
		})
	}
}

// Each mechanism that is taken away lowers what holds.
func TestLevels(t *testing.T) {
	for _, tt := range []struct {
		mechanisms []string
		level      Level
		by         string
	}{
		{nil, Full, byBwrap},
		{[]string{byNamespaces, byLandlock}, Full, byNamespaces},
		{[]string{byLandlock}, Reduced, byLandlock},
		{[]string{}, None, ""},
	} {
		b := New(Config{Temp: t.TempDir(), Confine: &Confinement{}, Mechanisms: tt.mechanisms})
		r := b.Explain()
		if tt.level != None && r.Level == None {
			prooftest.Lacking(t, "sandbox", fmt.Sprint(tt.mechanisms, " do not confine: ", r.Parts))
		}
		if r.Level != tt.level || r.Mechanism != tt.by || (r.Level == Full) != (r.Mend == nil) {
			t.Errorf("%v: %+v", tt.mechanisms, r)
		}
		if _, err := b.Run(context.Background(), sh("true")); err != nil {
			t.Error(err)
		}
		b.Close()
	}
}
