package journal

// Again opens a store in memory again, with what it has.
func Again(s *Local) *Local {
	return newLocal(s.d, LocalOptions{Now: s.now, NewID: s.newID})
}
