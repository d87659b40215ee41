package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
)

// openToRead opens a store without a lock, and changes nothing of it. A record that
// is being written, or is damaged, ends what can be read.
func (s *Store) openToRead() error {
	s.blobs = newBlobs(filepath.Join(s.dir, "packs"), s.maxBytes, false, s.fault)
	f, err := openOwn(filepath.Join(s.dir, "log"), os.O_RDONLY)
	if err != nil {
		return err
	}
	s.log = &log{dir: s.dir, fault: s.fault, f: f}
	if _, _, err := s.log.load(func(r *record) { s.blobs.learn(r.blobs) }); err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}
