package files

import (
	"strings"

	"dure/internal/tools/kit"
)

// maxMask bounds a mask, in bytes.
const maxMask = 64

// unmasked refuses a text for a file with a mask that the file does not have, or
// not so often: the model was shown the mask in the place of what is in the file.
func (f *files) unmasked(ch *change, text string) error {
	if !f.Masked(text) {
		return nil
	}
	seen := map[string]int{}
	for end := range len(text) {
		if text[end] != ']' {
			continue
		}
		from := max(0, end-maxMask)
		i := strings.LastIndexByte(text[from:end], '[')
		if i < 0 {
			continue
		}
		mask := text[from+i : end+1]
		if _, known := seen[mask]; !known && !f.Masked(mask) {
			continue
		}
		if seen[mask]++; seen[mask] > strings.Count(ch.before, mask) {
			return kit.Refuse(ErrFileMasked,
				"the text has "+mask+", which is not in "+kit.Name(ch.path)+": it stands for a secret that you are not shown",
				"Leave the line with the secret alone, and change what is around it; or ask the user to make this change.")
		}
	}
	return nil
}
