package config

// Worktree says how the work trees of agents are made.
type Worktree struct {
	From  string   // head or fresh; "" = head
	Links []string // folders of the repository that they have links to
	Only  []string // folders that they have alone; nil = all
}

// maxTreePaths bounds the lists of folders of work trees.
const maxTreePaths = 200

var baseRefs = []string{"head", "fresh"}
