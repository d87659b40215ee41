package text

// Messages on instruction files and on what agents note.
const (
	HelpMemory Key = iota + memoryKeys
	HelpMemoryList
	HelpMemoryShow
	HelpMemoryEdit
	HelpMemoryPath
	ColScope
	ColChars
	ColFile
	MemoryOff
	MemoryNone
	MemoryPlace
	MemoryMore
	MemoryAt
	MemoryMade
	MemoryEdit
	MemoryWhere
	MemoryPrompt
	MemoryNot
	MemoryNoted
	MemoryUndone
	MemoryNothing
	MemoryNoScope
	FixMemoryScope
	MemoryNoEditor
	HelpMemoryNotes
	FlagNotesDelete
	FlagNotesScope
	NotesWhich
	NotesNone
	NotesOf
	NotesGone

	ProblemMemory
	FixMemory
	ProblemEditor
	FixEditor

	careKeys = iota + memoryKeys // where those of the next file begin
)
