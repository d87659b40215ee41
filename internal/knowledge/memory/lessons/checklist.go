package lessons

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"dure/internal/base/record"
	"dure/internal/knowledge/memory"
)

// maxChecks is how many checks of a kind are kept, each of at most MaxItem bytes.
const maxChecks = 50

// A Checklist is what to verify after a change. Its items are text for a model.
type Checklist struct {
	Code  []string `json:"code_checks"`
	Files []string `json:"file_checks"`
}

// Checks returns the checklist of a user who has not changed it.
func Checks() Checklist {
	return Checklist{
		Code:  []string{"no syntax errors", "references lead somewhere", "no use of what may be null"},
		Files: []string{"the file was really changed", "its encoding is right (UTF-8)"},
	}
}

// LoadChecklist reads a checklist, that of [Checks] when there is no file.
func LoadChecklist(path string) (Checklist, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Checks(), nil
	}
	if err != nil {
		return Checklist{}, fmt.Errorf("reading the checklist: %w", err)
	}
	defer f.Close()
	var c Checklist
	if err := json.NewDecoder(io.LimitReader(f, 1<<20)).Decode(&c); err != nil {
		return Checklist{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return c.clean(), nil
}

// SaveChecklist replaces a checklist. The folder has to be there.
func SaveChecklist(path string, c Checklist) error {
	data, err := json.MarshalIndent(c.clean(), "", "  ")
	if err != nil {
		return fmt.Errorf("writing the checklist: %w", err)
	}
	return record.Write(path, append(data, '\n'))
}

// OwnChecks is a checklist for a model, without what is usual; "" = nothing else is in it.
func OwnChecks(path string) (string, error) {
	list, err := LoadChecklist(path)
	if err != nil {
		return "", err
	}
	usual := Checks()
	var b strings.Builder
	for _, item := range slices.Concat(list.Code, list.Files) {
		if !slices.Contains(usual.Code, item) && !slices.Contains(usual.Files, item) {
			b.WriteString("- " + item + "\n")
		}
	}
	if b.Len() == 0 {
		return "", nil
	}
	return "Files have been changed. The user wants this to be checked before you end:\n" + b.String(), nil
}

func (c Checklist) clean() Checklist {
	for _, list := range []*[]string{&c.Code, &c.Files} {
		kept := []string{}
		for _, s := range *list {
			if s = memory.OneLine(s, MaxItem); s != "" && len(kept) < maxChecks {
				kept = append(kept, s)
			}
		}
		*list = kept
	}
	return c
}
