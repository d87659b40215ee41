package programs

import (
	"path"
	"strings"
)

// readDate flags what sets the clock: an operand that is no format.
func readDate(r *reading) {
	_, parses := r.has("-f", "-j", "-v", "-r")
	for _, w := range r.operands {
		r.harmless(w)
		if !strings.HasPrefix(strings.TrimPrefix(w.Text, `"`), "+") && !parses {
			r.flag("sets the clock")
		}
	}
}

// firewalls are the units whose end opens a machine to the network.
var firewalls = []string{"ufw", "firewalld", "nftables", "iptables", "ip6tables", "netfilter-persistent"}

// readSystemctl reads a verb and units; service, a unit and a verb.
func readSystemctl(r *reading) {
	args := r.operands
	for _, w := range args {
		r.harmless(w)
	}
	if len(args) < 2 {
		return
	}
	verb, units := args[0].Text, args[1:]
	if r.g.names[0] == "service" {
		verb, units = args[1].Text, args[:1]
	}
	switch verb {
	case "disable", "mask", "stop", "kill":
	default:
		return
	}
	for _, w := range units {
		unit := strings.TrimSuffix(w.Text, ".service")
		for _, f := range firewalls {
			if unit == f {
				r.destroy(r.program + " " + verb + " " + unit)
			}
		}
	}
}

// readDiskutil looks for the verbs that erase; case does not matter.
func readDiskutil(r *reading) {
	for i, w := range r.operands {
		verb := strings.ToLower(w.Text)
		if i == 0 && strings.EqualFold(w.Text, "apfs") {
			continue
		}
		if i > 1 {
			r.harmless(w)
			continue
		}
		r.known(w)
		for _, erases := range []string{"erase", "zerodisk", "randomdisk", "secureerase", "partitiondisk", "reformat", "delete"} {
			if strings.HasPrefix(verb, erases) {
				r.destroy("diskutil " + w.Text)
			}
		}
	}
}

// readNetsh looks for delete at any place but the first.
func readNetsh(r *reading) {
	for _, w := range r.operands {
		r.known(w)
		if strings.EqualFold(w.Text, "delete") {
			r.destroy("netsh delete")
		}
	}
}

// readRemoveItem reads the parameters of PowerShell's Remove-Item, which may be
// cut short, and the paths. Nobody has to see a drive or its root go.
func readRemoveItem(r *reading) {
	recurse, force := false, false
	var paths []Word
	for i := 0; i < len(r.operands); i++ {
		w := r.operands[i]
		name, value, joined := strings.Cut(strings.ToLower(w.Text), ":")
		param := strings.HasPrefix(name, "-") && len(name) > 1
		switch {
		case !param:
			for _, p := range strings.Split(w.Text, ",") {
				paths = append(paths, Word{Text: strings.Trim(p, `"' `), Known: w.Known, One: w.One})
			}
		case strings.HasPrefix("-recurse", name):
			recurse = !joined || value != "$false"
		case strings.HasPrefix("-force", name) && name != "-f":
			force = !joined || value != "$false"
		case strings.HasPrefix("-path", name) || strings.HasPrefix("-literalpath", name) || name == "-lp" || name == "-pspath":
		case strings.HasPrefix("-include", name) || strings.HasPrefix("-exclude", name) || strings.HasPrefix("-filter", name) ||
			strings.HasPrefix("-stream", name) || strings.HasPrefix("-erroraction", name) || name == "-ea":
			i++
		default:
			r.odd = true
		}
	}
	for _, w := range paths {
		if recurse && force && driveRoot(w.Text) {
			r.destroy("Remove-Item -Recurse -Force " + w.Text)
		}
		r.removes(w)
	}
}

// driveRoot says that a path is all of a drive, or of the file system.
func driveRoot(p string) bool {
	t := strings.ReplaceAll(p, `\`, "/")
	if len(t) >= 2 && t[1] == ':' {
		t = "/" + t[2:]
	}
	return strings.HasPrefix(t, "/") && path.Clean(strings.TrimRight(t, "*")) == "/" ||
		strings.EqualFold(strings.TrimRight(t, "/*"), "$env:systemdrive")
}

// readDel reads del of Windows: with /f, /s and /q it takes all that matches, in
// all folders, without a question.
func readDel(r *reading) {
	_, f := r.has("/f")
	_, s := r.has("/s")
	_, q := r.has("/q")
	if f && s && q {
		r.destroy("del /f /s /q")
	}
	for _, w := range r.operands {
		r.removes(w)
	}
}

// readFormat reads format of Windows, which is about a drive.
func readFormat(r *reading) {
	for _, w := range r.operands {
		if len(w.Text) >= 2 && w.Text[1] == ':' || strings.HasPrefix(w.Text, `\\`) {
			r.destroy("format " + w.Text)
		}
		r.known(w)
	}
}

// readSqlite reads a database and statements. One that begins with a dot may run
// programs.
func readSqlite(r *reading) {
	for i, w := range r.operands {
		if i == 0 {
			r.reads(w)
			r.writes(w)
			continue
		}
		r.known(w)
		if strings.HasPrefix(strings.TrimSpace(w.Text), ".") || strings.Contains(w.Text, "load_extension") ||
			strings.Contains(w.Text, "writefile") || strings.Contains(strings.ToLower(w.Text), "attach") || strings.Contains(strings.ToLower(w.Text), "copy ") {
			r.flag("a command of its own")
			r.hint(w.Text, false)
		}
	}
}

// readCompile reads sources. Flags that are not known are many, and harmless
// where they begin like these.
func readCompile(r *reading) {
	for _, w := range r.operands {
		r.reads(w)
	}
	if _, ok := r.has("-o"); !ok && len(r.operands) > 0 && !r.alone {
		r.use.Writes = append(r.use.Writes, ".")
	}
}
