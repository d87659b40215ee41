package read

import (
	"context"
	"slices"
	"strings"
	"time"

	"dure/agent/query"
	"dure/internal/knowledge/mention"
	"dure/internal/safety/workspace"
)

// list returns the files of the workspace, as they were half a minute ago or later.
func (m *mentions) list(ctx context.Context) workspace.Listing {
	m.listing.Lock()
	defer m.listing.Unlock()
	if !m.listed.IsZero() && time.Since(m.listed) < listingHolds {
		return m.files
	}
	l, err := m.ws.List(ctx, m.ws.Root())
	if err != nil {
		return m.files
	}
	m.files, m.folders, m.listed = l, foldersOf(l.Paths), time.Now()
	return l
}

// foldersOf returns the folders that sorted paths lie in, sorted.
func foldersOf(paths []string) (all []string) {
	seen := map[string]bool{}
	for _, p := range paths {
		for i := len(p) - 1; i >= 0; i-- {
			if p[i] != '/' {
				continue
			}
			if seen[p[:i+1]] {
				break
			}
			seen[p[:i+1]] = true
			all = append(all, p[:i+1])
		}
	}
	slices.Sort(all)
	return all
}

// lists reports whether a path below the root is one of the files that the repository
// does not ignore, or a folder with such files. A list that is cut off knows nothing.
func (m *mentions) lists(ctx context.Context, rel string) bool {
	l := m.list(ctx)
	if l.More || rel == "." {
		return true
	}
	_, file := slices.BinarySearch(l.Paths, rel)
	m.listing.Lock()
	defer m.listing.Unlock()
	_, folder := slices.BinarySearch(m.folders, rel+"/")
	return file || folder
}

// complete returns what may stand behind an @.
func (m *mentions) complete(ctx context.Context, q query.CompleteMention) []string {
	const most = 50
	limit := q.Limit
	if limit <= 0 || limit > most {
		limit = most
	}
	if id, ok := strings.CutPrefix(q.Typed, "session:"); ok {
		return m.c.Sessions(ctx, m.b.ID, m.ws.Root(), id, limit)
	}
	l := m.list(ctx)
	m.listing.Lock()
	all := slices.Concat(l.Paths, m.folders)
	m.listing.Unlock()
	for _, address := range m.Servers.Addresses() {
		if !strings.ContainsAny(address, " \t") {
			all = append(all, address)
		}
	}
	found := mention.Complete(q.Typed, all, limit)
	return slices.DeleteFunc(found, func(p string) bool { return mention.IsSecret(p) })
}
