package serve

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dure/agent/query"
)

// maxEntries is how much of one folder is listed.
const maxEntries = 10_000

// Files are those in one folder. Paths are relative to it, with slashes; "." is the folder
// itself. What is not allowed is [fs.ErrPermission], and what is no regular file or no
// folder [fs.ErrInvalid].
type Files interface {
	Open(path string) (*os.File, error)
	ReadDir(path string, most int) ([]fs.DirEntry, error)
	Close() error
}

// Listing is a folder.
type Listing struct {
	Path    string  `json:"path"`
	Entries []Entry `json:"entries"` // by name
	More    bool    `json:"more,omitempty"`
}

// Entry is what stands in a folder.
type Entry struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind"` // file, folder, link or other
	Size     int64     `json:"size,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
}

func (s *Server) fileRoutes() []Route {
	at := []Parameter{{Name: "path", Summary: "relative to the folder of the session, with slashes"}}
	need := []Parameter{{Name: "path", Summary: at[0].Summary, Needed: true}}
	routes := []Route{{
		Method: http.MethodGet, Path: "/v1/sessions/{id}/diff", Answer: s.diff, Name: "diff", Summary: "What a session has changed.", Out: query.DiffReport{},
		Query: []Parameter{
			{Name: "from", Type: reflect.Int64, Summary: "compare with how files were after this event; 0 = at the beginning"},
			{Name: "to", Type: reflect.Int64, Summary: "up to this event; 0 = as they are now"},
			{Name: "all", Type: reflect.Bool, Summary: "what was accepted, too"},
			{Name: "path", Many: true, Summary: "of these files and folders alone"},
		},
	}}
	if s.cfg.Files == nil {
		return routes
	}
	return append(
		routes,
		Route{Method: http.MethodGet, Path: "/v1/sessions/{id}/files", Answer: s.folder, Name: "listFiles", Summary: "A folder of a session.", Query: at, Out: Listing{}},
		Route{Method: http.MethodGet, Path: "/v1/sessions/{id}/file", Serve: s.file, Name: "readFile", Summary: "A file of a session; ranges are possible.", Query: need, OutType: "application/octet-stream"},
	)
}

func (s *Server) diff(r *http.Request) (any, error) {
	v := r.URL.Query()
	from, err := number("from", v.Get("from"))
	to, wrong := number("to", v.Get("to"))
	all, wrong2 := flag(r, "all", false)
	if err = errors.Join(err, wrong, wrong2); err != nil {
		return nil, err
	}
	info, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return s.ask(r, query.Diff{Session: info.ID, From: from, To: to, All: all, Paths: v["path"]})
}

// local returns a path in the folder of a session; what could lead out of it, here or on
// another system, is an error.
func local(r *http.Request) (string, error) {
	given := r.URL.Query().Get("path")
	if given == "" {
		return ".", nil
	}
	wrong := func(why string) (string, error) {
		return "", &refused{Status: http.StatusBadRequest, Code: badPath, Detail: "path: " + why, Fix: "give one relative to the folder of the session, with slashes", Args: map[string]string{"path": given}}
	}
	switch {
	case len(given) > 4096:
		return wrong("it is longer than 4096 bytes")
	case !utf8.ValidString(given) || strings.ContainsFunc(given, unicode.IsControl):
		return wrong("it has characters that no name has")
	case strings.Contains(given, `\`):
		return wrong("it has backslashes")
	case path.IsAbs(given) || !filepath.IsLocal(filepath.FromSlash(given)):
		return wrong("it leads out of the folder")
	case path.Clean(given) != strings.TrimSuffix(given, "/"):
		return wrong("it is not as short as it could be")
	}
	return path.Clean(given), nil
}

// in calls f with the files of a session.
func (s *Server) in(r *http.Request, f func(Files, string) error) error {
	name, err := local(r)
	if err != nil {
		return err
	}
	info, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	files, err := s.cfg.Files(r.Context(), info.ID)
	if err != nil {
		return err
	}
	defer files.Close()
	err = f(files, name)
	args := map[string]string{"path": name}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return &refused{Status: http.StatusNotFound, Code: noFile, Detail: "there is no " + name, Args: args}
	case errors.Is(err, fs.ErrPermission):
		return &refused{Status: http.StatusForbidden, Code: badPath, Detail: name + " is not shown", Args: args}
	case errors.Is(err, context.Canceled):
		return err
	}
	return &refused{Status: http.StatusBadRequest, Code: badPath, Detail: name + ": " + err.Error(), Args: args}
}

func (s *Server) folder(r *http.Request) (any, error) {
	list := Listing{Entries: []Entry{}}
	err := s.in(r, func(files Files, dir string) error {
		all, err := files.ReadDir(dir, maxEntries+1)
		if err != nil {
			return err
		}
		list.Path, list.More = dir, len(all) > maxEntries
		for _, e := range all[:min(len(all), maxEntries)] {
			list.Entries = append(list.Entries, entry(e))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

func entry(e fs.DirEntry) Entry {
	out := Entry{Name: e.Name(), Kind: "other"}
	switch m := e.Type(); {
	case m.IsRegular():
		out.Kind = "file"
	case m.IsDir():
		out.Kind = "folder"
	case m&fs.ModeSymlink != 0:
		out.Kind = "link"
	}
	if info, err := e.Info(); err == nil { // else it has gone meanwhile
		out.Modified = info.ModTime().UTC()
		if out.Kind == "file" {
			out.Size = info.Size()
		}
	}
	return out
}

func (s *Server) file(w http.ResponseWriter, r *http.Request) {
	err := s.in(r, func(files Files, name string) error {
		f, err := files.Open(name)
		if err != nil {
			return err
		}
		defer f.Close() // it was only read
		info, err := f.Stat()
		if err != nil {
			return err
		}
		// A browser that is led here shows nothing of it, and runs nothing.
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", "attachment")
		http.ServeContent(w, r, "", info.ModTime(), f)
		return nil
	})
	if err != nil {
		Refuse(w, err)
	}
}
