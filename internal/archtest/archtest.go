// Package archtest checks the shape of the module: who may import whom, one
// package comment each, sizes of files and functions, words that name nothing,
// and pages of docs/ that say what the code says.
//
// It parses files itself, because what a "go list" reads is hidden from the
// test cache and a broken rule would pass as "(cached)". Checks are functions of
// a [Tree], so each of them is tested on a small tree that breaks it. Nothing
// imports this package, it changes no file and starts no goroutines.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Module is the path of the module whose rules these are.
const Module = "dure"

// A Tree is the source of a module.
type Tree struct {
	Go   []*File // sorted by path
	Text []Page  // every other text file, and Go files too; sorted by path
}

// A File is one parsed Go file.
type File struct {
	Path string // slash-separated, from the root of the module
	Dir  string
	Test bool
	AST  *ast.File
	fset *token.FileSet
}

// A Page is the text of one file.
type Page struct {
	Path string
	Text string
}

// A Fault is one place where a rule is broken.
type Fault struct {
	Path string
	Line int // 0 = the whole file or folder
	What string
}

func (f Fault) String() string {
	if f.Line == 0 {
		return f.Path + ": " + f.What
	}
	return fmt.Sprintf("%s:%d: %s", f.Path, f.Line, f.What)
}

// Load reads and parses the module at the root of fsys. It leaves out what git
// ignores by the rules of .gitignore that name folders and binaries, nested
// modules, and Go files below a testdata folder, which may be broken on purpose.
func Load(fsys fs.FS) (*Tree, error) {
	t := &Tree{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if left(fsys, name) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || notText(name) {
			return nil
		}
		return t.add(fsys, name)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the module: %w", err)
	}
	return t, nil
}

// left reports whether a folder is no part of the module.
func left(fsys fs.FS, dir string) bool {
	switch dir {
	case ".":
		return false
	case ".git", "bin", "dist":
		return true
	}
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return err == nil
}

func notText(name string) bool {
	switch path.Ext(name) {
	case ".test", ".out", ".prof", ".exe", ".png", ".gz", ".zip":
		return true
	}
	return path.Base(name) == ".DS_Store" || name == "dure"
}

func (t *Tree) add(fsys fs.FS, name string) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	t.Text = append(t.Text, Page{name, string(src)})
	if path.Ext(name) != ".go" || slices.Contains(strings.Split(name, "/"), "testdata") {
		return nil
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.Go = append(t.Go, &File{
		Path: name,
		Dir:  path.Dir(name),
		Test: strings.HasSuffix(name, "_test.go"),
		AST:  f,
		fset: fset,
	})
	return nil
}

// Page returns the text of the file at name, or "".
func (t *Tree) Page(name string) string {
	for _, p := range t.Text {
		if p.Path == name {
			return p.Text
		}
	}
	return ""
}

func (f *File) line(p token.Pos) int { return f.fset.Position(p).Line }

// lines returns the number of lines of the file.
func (f *File) lines() int { return f.fset.File(f.AST.FileStart).LineCount() }
