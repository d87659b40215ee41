package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"dure/agent"
)

// newSuffix is behind the name of a mended file until it takes the old one's place.
const newSuffix = ".mended"

// write makes the new files. What is in front of the damage stays as it is, to the
// byte.
func (d *mender) write() error {
	d.seal = newSealing(1, "")
	missing := int64(0)
	for _, l := range d.chosen {
		if err := d.ctx.Err(); err != nil {
			return err
		}
		if missing += l.seq - d.at.seq - 1; missing > maxMissing {
			return fmt.Errorf("%w: more than %d events are missing", ErrDamaged, maxMissing)
		}
		for d.at.seq+1 < l.seq {
			if err := d.lost("its line is missing or was altered"); err != nil {
				return err
			}
		}
		if err := d.keep(l); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("the log was repaired: %d events were lost, and %d lines were left out", d.out.Lost, d.out.Broken+d.out.Twice)
	if err := d.append(agent.Event{Time: d.s.now().UTC(), Body: agent.Note{Level: "warn", Code: "repaired", Text: text}}, payload{}); err != nil {
		return err
	}
	return d.finish()
}

// lost puts a note in the place of an event. The first one says whose log it is.
func (d *mender) lost(why string) error {
	d.out.Lost++
	d.changed = true
	seq := d.at.seq + 1
	d.problem("event %d is lost: %s", seq, why)
	if seq > 1 {
		return d.append(agent.Event{Body: agent.Note{Level: "warn", Code: "lost", Text: fmt.Sprintf("event %d was lost: %s", seq, why)}}, payload{})
	}
	m, _ := d.s.readMeta(d.dir) // as far as that is known
	return d.append(agent.Event{Body: agent.SessionOpened{Session: d.out.Session, Title: m.Title, Workdir: m.Workdir, Model: m.Model}}, payload{})
}

// keep writes an event again: as its line stands there, as long as nothing was wrong.
func (d *mender) keep(l found) error {
	raw := d.raw(l)
	if was, err := readLine(raw, d.at.sum); err == nil && !d.changed && d.at.follow(was) == nil {
		e, err := was.event(d.s.fetch(d.dir))
		if want, bad := d.seal.body(d.at.seq, nil); err == nil && (was.kind != kindSealed || bad == nil && e.Body == agent.Body(want)) {
			d.out.Events++
			d.when = e.Time
			d.at = chain{was.seq, was.epoch, was.sum}
			return d.line(e, append(raw, '\n'))
		}
	}
	d.changed = true
	_, sum, _ := storedSum(raw)
	was := line{raw: raw, sum: sum}
	var err error
	if was, err = was.parseAny(raw); err != nil {
		return d.lost("its line cannot be read")
	}
	e, err := was.event(d.s.fetch(d.dir))
	if err != nil {
		return d.lost("what it says cannot be read: " + err.Error())
	}
	if was.kind == kindSealed {
		d.out.Seals++
		sealed, err := d.seal.body(d.at.seq, nil)
		if err != nil {
			return err
		}
		e.Body = sealed
		d.out.Events++
		return d.append(e, payload{})
	}
	p := payload{data: was.data, x: was.x}
	if was.ref != nil {
		ref, err := was.blobRef()
		if err != nil {
			return d.lost("what it says cannot be found")
		}
		p = payload{ref: &ref, x: was.x}
	}
	d.out.Events++
	return d.append(e, p)
}

// append writes an event behind the last one, as an append of its own. Its number is
// the next; what it does not have it takes from the one before.
func (d *mender) append(e agent.Event, p payload) error {
	if e.Time.IsZero() {
		e.Time = d.when
		if e.Time.IsZero() {
			e.Time = d.s.now().UTC()
		}
	}
	if e.ID == "" {
		e.ID = d.s.newID(d.s.now())
	}
	e.Seq, e.Epoch = d.at.seq+1, max(e.Epoch, d.at.epoch, 1)
	if p.data == nil && p.ref == nil {
		data, err := encodeBody(e.Body)
		if err != nil {
			return err
		}
		p.data = data
	}
	var sum uint32
	d.buf, sum = appendLine(d.buf[:0], e, p, d.at.sum)
	d.when = e.Time
	d.at = chain{e.Seq, e.Epoch, sum}
	return d.line(e, d.buf)
}

// line puts a line into the file in progress.
func (d *mender) line(e agent.Event, text []byte) error {
	d.seal.line(e.Seq, e.Body, text)
	if d.dry {
		return nil
	}
	if d.file == nil || d.size > 0 && d.size+int64(len(text)) > d.s.segment {
		if err := d.finish(); err != nil {
			return err
		}
		name := segmentName(d.dir, len(d.news)+1) + newSuffix
		if err := d.s.d.remove(name); err != nil { // left by a crash
			return err
		}
		f, err := d.s.d.open(name, toCreate)
		if err != nil {
			return err
		}
		d.news = append(d.news, name)
		d.file, d.w, d.size = f, bufio.NewWriterSize(f, 256<<10), 0
	}
	d.size += int64(len(text))
	_, err := d.w.Write(text)
	return err
}

func (d *mender) finish() error {
	if d.file == nil {
		return nil
	}
	err := errors.Join(d.w.Flush(), d.file.Sync(), d.file.Close())
	d.file = nil
	return err
}

// drop removes what was written and is not in place.
func (d *mender) drop() {
	if d.file != nil {
		_ = d.file.Close() // it is given up
	}
	for _, name := range d.news {
		_ = d.s.d.remove(name) // the next one that mends removes it
	}
}

// replace keeps the files as they are in a folder, and puts the new ones in their
// place. What was derived from them goes.
func (d *mender) replace(names []string) error {
	s := d.s
	kept := d.dir + "/damaged-" + s.now().UTC().Format("20060102T150405.000000000Z")
	s.fault("repair.keep")
	if err := s.d.mkdir(kept); err != nil {
		return err
	}
	for _, name := range names {
		if err := s.copyFile(name, kept+name[len(d.dir):]); err != nil {
			return fmt.Errorf("keeping the log as it is: %w", err)
		}
	}
	if err := errors.Join(s.d.syncDir(kept), s.d.syncDir(d.dir)); err != nil {
		return err
	}
	d.out.Kept = kept
	if real := s.d.real(kept); real != "" {
		d.out.Kept = real
	}
	for i, name := range d.news {
		s.fault("repair.replace")
		if err := s.d.rename(name, segmentName(d.dir, i+1)); err != nil {
			return err
		}
	}
	for _, name := range names {
		if name > segmentName(d.dir, len(d.news)) {
			if err := s.d.remove(name); err != nil {
				return err
			}
		}
	}
	s.fault("repair.replaced")
	old, _ := s.readMeta(d.dir) // labels and tenant are not in the log
	m := Meta{Tenant: old.Tenant, Labels: old.Labels}
	m.ID = d.out.Session
	err := errors.Join(s.d.remove(d.dir+"/snap"), s.d.syncDir(d.dir), s.writeMeta(d.dir, m))
	if err == nil {
		s.index(entry{Meta: s.derive(d.dir)})
	}
	return err
}

// copyFile copies a file and syncs it.
func (s *Local) copyFile(from, to string) error {
	src, err := s.d.open(from, toRead)
	if err != nil {
		return err
	}
	defer src.Close()
	size, err := src.Size()
	if err != nil {
		return err
	}
	dst, err := s.d.open(to, toCreate)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, io.NewSectionReader(src, 0, size))
	return errors.Join(err, dst.Sync(), dst.Close())
}
