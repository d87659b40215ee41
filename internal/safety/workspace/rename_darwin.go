package workspace

import "golang.org/x/sys/unix"

func renameFree(oldDir int, from string, newDir int, to string) error {
	return unix.RenameatxNp(oldDir, from, newDir, to, unix.RENAME_EXCL)
}
