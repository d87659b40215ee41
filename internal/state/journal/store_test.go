package journal_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"dure/internal/state/journal"
	"dure/internal/state/journal/storetest"
)

func TestStore(t *testing.T) {
	for _, durability := range []string{journal.DurabilityBarrier, journal.DurabilityAlways, journal.DurabilityOS} {
		t.Run(durability, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) storetest.Harness { return local(t, durability) })
		})
	}
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(t *testing.T) storetest.Harness {
			s := journal.NewMemory(journal.MemoryOptions{})
			h := storetest.Harness{Store: s}
			h.Reopen = func() journal.Store {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				s = journal.Again(s)
				return s
			}
			return h
		})
	})
}

func local(t *testing.T, durability string) storetest.Harness {
	dir := t.TempDir()
	open := func() *journal.Local {
		s, err := journal.NewLocal(journal.LocalOptions{Dir: dir, Durability: durability})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	s := open()
	folder := func(id string) string {
		found, err := filepath.Glob(filepath.Join(dir, "sessions", "*", id))
		if err != nil || len(found) != 1 {
			t.Fatalf("the folder of %s: %v, %v", id, found, err)
		}
		return found[0]
	}
	return storetest.Harness{
		Store: s,
		Reopen: func() journal.Store {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			s = open()
			return s
		},
		Lines: func(id string) []byte {
			files, err := filepath.Glob(filepath.Join(folder(id), "log.*.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			var all bytes.Buffer
			for _, name := range files {
				b, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				all.Write(b)
			}
			return all.Bytes()
		},
		Load: func(id string, lines []byte) {
			if err := os.WriteFile(filepath.Join(folder(id), "log.000001.jsonl"), lines, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	}
}
