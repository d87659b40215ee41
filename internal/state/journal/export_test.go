package journal

import "hash/crc32"

// Again opens a store in memory again, with what it has.
func Again(s *Local) *Local {
	return newLocal(s.d, LocalOptions{Now: s.now, NewID: s.newID})
}

func crcOf(b []byte, seed uint32) uint32 { return crc32.Update(seed, castagnoli(), b) }
