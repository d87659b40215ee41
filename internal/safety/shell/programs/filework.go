package programs

import (
	"path"
	"slices"
	"strings"
)

// readCp, readMv and readInstall read programs that take sources and, at the end
// or with -t, where these go.
func readCp(r *reading) { r.copy(r.reads) }

func readMv(r *reading) { r.copy(r.removes) }

func readCopy(r *reading) { r.copy(r.reads) }

func readInstall(r *reading) {
	if _, ok := r.has("-d", "--directory"); ok {
		for _, w := range r.operands {
			r.writes(w)
		}
		return
	}
	r.copy(r.reads)
}

// copy notes each source, and what it becomes. Whether the target is a folder is
// not known here, so that it and what would stand in it are both written.
func (r *reading) copy(source func(Word)) {
	sources := r.operands
	target, into := r.has("-t", "--target-directory")
	if !into {
		if len(sources) < 2 {
			r.odd = true
			for _, w := range sources {
				source(w)
			}
			return
		}
		target = sources[len(sources)-1]
		sources = sources[:len(sources)-1]
		r.writes(target)
	}
	_, whole := r.has("--parents")
	_, plain := r.has("-T", "--no-target-directory")
	for _, w := range sources {
		source(w)
		if plain || !w.Known || !target.Known {
			continue
		}
		name := path.Base(strings.TrimRight(w.Text, "/"))
		if whole {
			name = strings.TrimLeft(w.Text, "/")
		}
		switch name {
		case "", ".", "/":
		case "..":
			r.odd = true
		default:
			r.use.Writes = append(r.use.Writes, r.at(inside(target.Text, name)))
		}
	}
}

// inside joins a folder, as it was given, and a name.
func inside(dir, name string) string {
	if dir == "" || strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// readRmdir notes, with -p, the folders above as well.
func readRmdir(r *reading) {
	_, parents := r.has("-p", "--parents")
	for _, w := range r.operands {
		if strings.EqualFold(w.Text, "/s") { // the flag of Windows
			r.destroy("rmdir /s")
		}
		r.removes(w)
		if !parents || !w.Known {
			continue
		}
		for p := path.Dir(path.Clean(w.Text)); p != "." && p != "/" && p != ".."; p = path.Dir(p) {
			r.removes(Word{Text: p, Known: true})
		}
	}
}

// readChmod reads chmod, chown and chgrp: what to set, then files.
func readChmod(r *reading) {
	files := r.operands
	_, reference := r.has("--reference")
	_, minus := r.has("-r", "-w", "-x", "-X", "-s", "-t")
	if len(files) > 0 && !reference && !minus {
		r.harmless(files[0])
		files = files[1:]
	}
	_, recursive := r.has("-R", "--recursive")
	for _, w := range files {
		t := strings.Trim(w.Text, `"'`)
		if recursive && strings.HasPrefix(t, "/") && path.Clean(strings.TrimSuffix(t, "*")) == "/" {
			r.destroy(r.program + " -R of the root folder")
		}
		r.writes(w)
	}
}

// readDD reads key=value.
func readDD(r *reading) {
	for _, w := range r.operands {
		key, value, _ := strings.Cut(w.Text, "=")
		v := Word{Text: value, Known: w.Known, One: w.One}
		switch key {
		case "if":
			r.reads(v)
		case "of":
			if DiskDevice(value) {
				r.destroy("dd of=" + value)
			}
			r.writes(v)
		case "bs", "ibs", "obs", "count", "skip", "seek", "conv", "status", "iflag", "oflag", "cbs":
			r.harmless(v)
		default:
			r.known(w)
		}
	}
}

func readShred(r *reading) {
	_, removes := r.has("-u", "--remove")
	for _, w := range r.operands {
		if DiskDevice(w.Text) {
			r.destroy("shred " + w.Text)
		}
		if removes {
			r.removes(w)
			continue
		}
		r.critical(w)
		r.writes(w)
	}
}

func readMkfs(r *reading) {
	for _, w := range r.operands {
		r.destroy(r.program + " makes a new file system")
		r.writes(w)
	}
}

// readUniq writes its second operand.
func readUniq(r *reading) {
	for i, w := range r.operands {
		if i == 0 {
			r.reads(w)
			continue
		}
		r.flag("its second operand is written")
		r.writes(w)
	}
}

// readGrep takes its first operand as a pattern, unless a flag has one.
func readGrep(r *reading) {
	files := r.operands
	if _, ok := r.has("-e", "--regexp", "-f", "--file"); !ok && len(files) > 0 {
		r.harmless(files[0])
		files = files[1:]
	}
	if _, ok := r.has("--files"); ok { // of ripgrep: no pattern
		files = r.operands
	}
	for _, w := range files {
		r.reads(w)
	}
	_, recurses := r.has("-r", "-R", "--recursive", "--dereference-recursive")
	if d, ok := r.has("-d", "--directories"); ok && d.Text == "recurse" {
		recurses = true
	}
	if len(files) == 0 && (recurses || r.g.empty != "") {
		r.use.Reads = append(r.use.Reads, ".")
	}
}

// readGzip replaces each file, unless it only prints.
func readGzip(r *reading) {
	_, prints := r.has("-c", "--stdout", "--to-stdout", "-l", "--list", "-t", "--test")
	for _, w := range r.operands {
		r.reads(w)
		if !prints {
			r.writes(w)
		}
	}
}

func readUnzip(r *reading) {
	for i, w := range r.operands {
		if i == 0 {
			r.reads(w)
			continue
		}
		r.harmless(w)
	}
	_, prints := r.has("-l", "-t", "-p", "-c", "-v", "-z", "-Z")
	_, elsewhere := r.has("-d")
	if !prints && !elsewhere && len(r.operands) > 0 {
		r.use.Writes = append(r.use.Writes, ".")
	}
}

// checkpointActions run nothing.
var checkpointActions = []string{"dot", ".", "echo", "bell", "ttyout", "sleep", "totals"}

// readTar reads or writes the archive, and the folder that it works in, by what
// it is asked to do.
func readTar(r *reading) {
	archive, named := r.has("-f", "--file")
	_, list := r.has("-t", "--list", "-d", "--diff", "--compare")
	_, extract := r.has("-x", "--extract", "--get")
	_, prints := r.has("-O", "--to-stdout")
	_, local := r.has("--force-local")
	dir, moved := r.has("-C", "--directory")
	for _, s := range r.seen {
		if (s.name == "-C" || s.name == "--directory") && s.value != dir {
			r.reads(s.value) // which operands are in which folder is not followed
			r.odd = true
		}
	}
	if named {
		switch {
		case local && (list || extract):
			r.reads(archive)
		case local:
			r.writes(archive)
		default:
			r.remote(archive, !list && !extract)
		}
	}
	if action, ok := r.has("--checkpoint-action"); ok {
		if verb, _, _ := strings.Cut(action.Text, "="); !slices.Contains(checkpointActions, verb) || !action.Known {
			r.flag("--checkpoint-action")
			r.known(action)
		}
		if cmd, ok := strings.CutPrefix(action.Text, "exec="); ok {
			r.use.Scripts = append(r.use.Scripts, Word{Text: cmd, Known: action.Known, One: action.One})
		}
	}
	switch {
	case list || prints:
	case extract && moved:
		r.writes(dir)
	case extract:
		r.use.Writes = append(r.use.Writes, ".")
	default:
		for _, w := range r.operands {
			if moved && w.Known && dir.Known && !strings.HasPrefix(w.Text, "/") {
				w.Text = inside(dir.Text, w.Text)
			}
			r.reads(w)
		}
		return
	}
	for _, w := range r.operands {
		r.harmless(w)
	}
}

// DiskDevice says whether a path names a device that holds what would be lost by
// writing to it: anything in /dev but streams, terminals and the like, and raw
// disks of Windows. It judges the text alone.
func DiskDevice(p string) bool {
	if strings.HasPrefix(strings.ToLower(p), `\\.\`) {
		return true
	}
	name, ok := strings.CutPrefix(path.Clean(p), "/dev/")
	if !ok {
		return false
	}
	switch name {
	case "null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "ptmx", "console", "kmsg", "log",
		"kvm", "fuse", "dsp", "audio", "mixer", "hwrng":
		return false
	}
	for _, harmless := range []string{"tty", "pts/", "fd/", "shm/", "mqueue/", "tcp/", "udp/", "net/", "snd/", "dri/", "input/", "bus/", "video", "usb/lp", "lp", "cu.", "nvidia", "serial/"} {
		if strings.HasPrefix(name, harmless) {
			return false
		}
	}
	return true
}
