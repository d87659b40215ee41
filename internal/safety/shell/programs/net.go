package programs

import (
	"path"
	"strings"
)

// readSSH reads a host, and a command line that runs there.
func readSSH(r *reading) {
	r.sshSettings()
	if len(r.operands) == 0 {
		return
	}
	r.remoteLogin(r.operands[0])
	if len(r.operands) > 1 {
		r.use.Elsewhere = true
		r.scripts(r.operands[1:])
	}
}

// readSCP reads scp and sftp, which have the settings of ssh.
func readSCP(r *reading) {
	r.sshSettings()
	if r.g.names[0] == "scp" {
		r.assign(r.operands)
		return
	}
	for _, w := range r.operands {
		if h, ok := remoteHost(w.Text); ok && w.Known && !strings.Contains(w.Text, "://") {
			w.Text = h
		}
		r.remoteLogin(w)
	}
}

func (r *reading) sshSettings() {
	for _, s := range r.seen {
		if s.name == "-o" {
			r.sshSetting(s.value)
		}
	}
}

func (r *reading) remoteLogin(w Word) {
	if scheme, rest, ok := cutScheme(w.Text); ok && w.Known && (scheme == "ssh" || scheme == "sftp") {
		w.Text = authority(rest)
	}
	r.host(w)
}

// connectionSettings are settings of ssh that only decide over the connection.
var connectionSettings = map[string]bool{
	"stricthostkeychecking": true, "connecttimeout": true, "connectionattempts": true, "batchmode": true, "loglevel": true,
	"port": true, "user": true, "identitiesonly": true, "serveraliveinterval": true, "serveralivecountmax": true,
	"passwordauthentication": true, "preferredauthentications": true, "pubkeyauthentication": true, "compression": true,
	"numberofpasswordprompts": true, "tcpkeepalive": true, "requesttty": true, "addressfamily": true, "checkhostip": true,
	"kexalgorithms": true, "ciphers": true, "macs": true, "hostkeyalgorithms": true, "controlpersist": true,
}

// sshSetting reads -o KEY=VALUE, or with a blank between.
func (r *reading) sshSetting(w Word) {
	text := strings.TrimLeft(w.Text, " \t")
	key, value := text, ""
	if i := strings.IndexAny(text, "= \t"); i >= 0 {
		key, value = text[:i], strings.TrimLeft(text[i:], "= \t")
	}
	v := Word{Text: value, Known: w.Known, One: w.One}
	switch key = strings.ToLower(key); {
	case key == "hostname" || key == "proxyjump":
		r.host(v)
		r.odd = true
	case key == "identityfile" || key == "certificatefile":
		r.reads(v)
	case key == "userknownhostsfile" || key == "globalknownhostsfile":
		r.writes(v)
	case key == "proxycommand" || key == "localcommand" || key == "knownhostscommand":
		r.flag("-o " + key)
		r.role(roleRun, "", v)
	case key == "remotecommand":
		r.flag("-o " + key)
		r.use.Elsewhere = true
		r.role(roleRun, "", v)
	case !connectionSettings[key] || !w.Known:
		r.flag("-o " + key)
		r.known(w)
	}
}

// readCurl reads URLs, which may stand for several, and what flags have beside
// plain values.
func readCurl(r *reading) {
	urls := r.operands
	for _, s := range r.seen {
		switch s.name {
		case "--url":
			urls = append(urls, s.value)
		case "-d", "--data", "--data-ascii", "--data-binary", "--json", "-H", "--header", "--proxy-header", "--url-query":
			if f, ok := strings.CutPrefix(s.value.Text, "@"); ok {
				r.reads(Word{Text: f, Known: s.value.Known})
			}
		case "--data-urlencode":
			name, f, ok := strings.Cut(s.value.Text, "@")
			if ok && !strings.Contains(name, "=") {
				r.reads(Word{Text: f, Known: s.value.Known})
			}
		case "-F", "--form":
			_, f, _ := strings.Cut(s.value.Text, "=")
			if f != "" && (f[0] == '@' || f[0] == '<') {
				f, _, _ = strings.Cut(f[1:], ";")
				for _, one := range strings.Split(f, ",") {
					r.reads(Word{Text: strings.Trim(one, `"`), Known: s.value.Known})
				}
			}
		case "-b", "--cookie":
			if !strings.Contains(s.value.Text, "=") {
				r.reads(s.value)
			}
		case "-w", "--write-out":
			if f, ok := strings.CutPrefix(s.value.Text, "@"); ok {
				r.reads(Word{Text: f, Known: s.value.Known})
			}
			if strings.Contains(s.value.Text, "%output") {
				r.flag(s.name)
			}
		case "--resolve", "--connect-to":
			r.redirected(s.value)
		}
	}
	for _, w := range urls {
		r.curlURL(w)
	}
	r.curlFiles(urls)
}

// curlFiles notes what is written: with -O a file named like the end of the URL.
func (r *reading) curlFiles(urls []Word) {
	dir, _ := r.has("--output-dir")
	for _, s := range r.seen {
		if s.name == "-o" || s.name == "--output" {
			w := s.value
			if w.Known && dir.Text != "" && !strings.HasPrefix(w.Text, "/") {
				w.Text = inside(dir.Text, w.Text)
			}
			r.writes(w)
		}
	}
	if _, ok := r.has("-O", "--remote-name", "--remote-name-all", "-J", "--remote-header-name"); !ok {
		return
	}
	for _, w := range urls {
		if !w.Known {
			continue
		}
		_, rest, _ := cutScheme(w.Text)
		rest, _, _ = strings.Cut(rest, "?")
		w.Text = path.Base(rest)
		if dir.Text != "" {
			w.Text = inside(dir.Text, w.Text)
		}
		r.writes(w)
	}
	if _, ok := r.has("-J", "--remote-header-name"); ok { // a name that the server chooses
		r.flag("-J")
		r.use.Writes = append(r.use.Writes, ".")
	}
}

// redirected reads host:port:address, which sends a name's connections elsewhere.
func (r *reading) redirected(w Word) {
	if !r.known(w) {
		return
	}
	parts := strings.SplitN(w.Text, ":", 3)
	if len(parts) < 3 {
		return
	}
	for _, a := range strings.Split(parts[2], ",") {
		r.host(Word{Text: a, Known: true})
	}
}

// curlURL expands lists in braces in the host. What has ranges there cannot be
// told.
func (r *reading) curlURL(w Word) {
	_, off := r.has("-g", "--globoff")
	_, rest, _ := cutScheme(w.Text)
	h := authority(rest)
	if !w.Known || off || !strings.ContainsAny(h, "{[") || strings.HasPrefix(h, "[") && strings.Count(h, "[") == 1 && strings.Contains(h, ":") {
		r.url(w)
		return
	}
	open, closed := strings.IndexByte(h, '{'), strings.IndexByte(h, '}')
	if strings.Contains(h, "[") || open < 0 || closed < open || strings.ContainsAny(h[closed+1:], "{}") {
		w.Known = false
		r.unreadable(w)
		return
	}
	for _, one := range strings.Split(h[open+1:closed], ",") {
		r.host(Word{Text: h[:open] + one + h[closed+1:], Known: true})
	}
}

// readWget notes the files that the URLs become.
func readWget(r *reading) {
	for _, w := range r.operands {
		r.url(w)
	}
	_, named := r.has("-O", "--output-document")
	_, spider := r.has("--spider")
	if named || spider || r.alone {
		return
	}
	dir, ok := r.has("-P", "--directory-prefix")
	if !ok {
		dir = Word{Text: ".", Known: true}
		r.writes(dir)
	}
	for _, w := range r.operands {
		_, rest, _ := cutScheme(w.Text)
		rest, _, _ = strings.Cut(rest, "?")
		if _, name, ok := strings.Cut(rest, "/"); ok && w.Known && dir.Known && name != "" {
			r.writes(Word{Text: inside(dir.Text, path.Base(name)), Known: true})
		}
	}
}

// readSocat reads addresses: TYPE:parameters,options.
func readSocat(r *reading) {
	for _, w := range r.operands {
		if !r.known(w) {
			continue
		}
		for _, end := range strings.Split(w.Text, "!!") {
			r.socatAddress(end)
		}
	}
}

func (r *reading) socatAddress(text string) {
	kind, rest, _ := strings.Cut(text, ":")
	value, _, _ := strings.Cut(rest, ",")
	v := Word{Text: value, Known: true}
	switch kind = strings.ToLower(kind); {
	case strings.HasPrefix(kind, "exec") || strings.HasPrefix(kind, "system") || strings.HasPrefix(kind, "shell"):
		r.flag(strings.ToUpper(kind))
		r.role(roleRun, "", v)
	case strings.Contains(kind, "listen") || strings.HasSuffix(kind, "-l") || kind == "-" || kind == "stdio" || kind == "stdin" || kind == "stdout":
	case strings.HasPrefix(kind, "tcp") || strings.HasPrefix(kind, "udp") || strings.HasPrefix(kind, "openssl") ||
		strings.HasPrefix(kind, "ssl") || strings.HasPrefix(kind, "sctp") || strings.HasPrefix(kind, "socks") || strings.HasPrefix(kind, "proxy"):
		r.host(v)
	case kind == "open" || kind == "file" || kind == "gopen" || kind == "create" || kind == "creat" || kind == "pipe" || kind == "fifo":
		r.reads(v)
		r.writes(v)
	case rest == "" && strings.Contains(kind, "/"):
		r.reads(Word{Text: text, Known: true})
		r.writes(Word{Text: text, Known: true})
	default:
		r.odd = true
		r.flag(strings.ToUpper(kind))
	}
}

// readDig reads names to ask for and servers to ask. Both leave the machine.
func readDig(r *reading) {
	for _, w := range r.operands {
		if !r.known(w) || strings.HasPrefix(w.Text, "+") || strings.HasPrefix(w.Text, "-") || recordTypes[strings.ToUpper(w.Text)] {
			continue
		}
		r.host(Word{Text: strings.TrimPrefix(w.Text, "@"), Known: true})
	}
}

var recordTypes = map[string]bool{
	"A": true, "AAAA": true, "ANY": true, "CAA": true, "CNAME": true, "DNSKEY": true, "DS": true, "HTTPS": true, "MX": true, "NS": true,
	"PTR": true, "SOA": true, "SRV": true, "SVCB": true, "TXT": true, "IN": true,
}

// readIP flags what is not a look at an interface.
func readIP(r *reading) {
	for i, w := range r.operands {
		r.known(w)
		switch w.Text {
		case "add", "del", "delete", "set", "change", "replace", "append", "flush", "save", "restore", "up", "down":
			r.flag("changes the network")
		default:
			if i == 0 && r.g.raw && len(r.operands) > 1 && !strings.HasPrefix(w.Text, "-") {
				r.flag("changes the network")
			}
		}
	}
}

func readGitRemoteAdd(r *reading) {
	for i, w := range r.operands {
		if i == 1 {
			r.gitURL(w)
			continue
		}
		r.harmless(w)
	}
}
