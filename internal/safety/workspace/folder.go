package workspace

import "strings"

// OpenFolder opens the folder at path, for who reads many files below it.
func (w *Workspace) OpenFolder(path string) (*Folder, error) {
	_, resolved, err := w.Resolve(path)
	if err != nil {
		return nil, err
	}
	root, err := w.OpenRoot(resolved)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return openFolder(root, resolved)
}

// Trail leads to folders below a first one. It keeps those open that lead to the
// last: the next is most often near. One trail serves one goroutine.
type Trail struct {
	top   *Folder
	names []string
	open  []*Folder // of names, each in the one before
}

// NewTrail begins at an open folder, which stays the caller's to close.
func NewTrail(top *Folder) *Trail { return &Trail{top: top} }

// To returns the folder at a path below the first one, with slashes and without
// links; "" = the first one. It is good until the next call.
func (t *Trail) To(dir string) (*Folder, error) {
	keep := 0
	for keep < len(t.names) && dir != "" {
		rest, ok := strings.CutPrefix(dir, t.names[keep])
		if !ok || rest != "" && rest[0] != '/' {
			break
		}
		dir = strings.TrimPrefix(rest, "/")
		keep++
	}
	t.back(keep)
	for dir != "" {
		name, rest, _ := strings.Cut(dir, "/")
		f, err := t.last().folder(name)
		if err != nil {
			return nil, err
		}
		t.names, t.open, dir = append(t.names, name), append(t.open, f), rest
	}
	return t.last(), nil
}

func (t *Trail) last() *Folder {
	if len(t.open) == 0 {
		return t.top
	}
	return t.open[len(t.open)-1]
}

// back closes the folders behind the first n.
func (t *Trail) back(n int) {
	for _, f := range t.open[n:] {
		f.Close()
	}
	t.names, t.open = t.names[:n], t.open[:n]
}

// Close closes the folders that the trail opened.
func (t *Trail) Close() { t.back(0) }
