package query

// InitProject surveys the working folder, writes a first file of instructions for it, and asks
// for the ProjectInit. No model is asked, and no file is replaced.
type InitProject struct {
	Dry bool `json:"dry,omitempty"` // nothing is written
}

// Query returns the name of the query on the wire.
func (InitProject) Query() string { return "init" }

// ProjectInit is the first file of instructions of a project, and what it was made from.
type ProjectInit struct {
	Path    string       `json:"path"`
	Made    bool         `json:"made"` // the file was written
	Text    string       `json:"text"` // of the file
	Survey  Survey       `json:"survey"`
	Suggest []Suggestion `json:"suggestions,omitempty"`
}

// A Survey is what was found in a project. Lists have the weightiest first.
type Survey struct {
	Files        int             `json:"files"`
	More         bool            `json:"more,omitempty"` // it is not all
	Languages    []SurveyCount   `json:"languages"`
	Frameworks   []string        `json:"frameworks,omitempty"`
	Tests        []string        `json:"testFrameworks,omitempty"`
	Manifests    []string        `json:"manifests,omitempty"`
	Commands     []SurveyCommand `json:"commands,omitempty"`
	CI           []string        `json:"ci,omitempty"`
	Containers   []string        `json:"containers,omitempty"`   // files
	Instructions []string        `json:"instructions,omitempty"` // files for agents
	Folders      []SurveyCount   `json:"folders,omitempty"`      // at the top
	Tree         []string        `json:"tree,omitempty"`         // folders, three levels deep
	Readme       *SurveyReadme   `json:"readme,omitempty"`
}

// SurveyCount is a language, or a folder at the top, and how many files are in it.
type SurveyCount struct {
	Name  string `json:"name"`
	Files int    `json:"files"`
}

// SurveyCommand is one that somebody who works on the project gives.
type SurveyCommand struct {
	Kind string `json:"kind"` // build, test, lint, format, run or ci
	Run  string `json:"run"`
	Dir  string `json:"dir,omitempty"` // in which; "" = the project's
	From string `json:"from"`          // the file that says so
}

// SurveyReadme is the beginning of a README.
type SurveyReadme struct {
	Path    string `json:"path"`
	Title   string `json:"title,omitempty"`
	Summary string `json:"summary,omitempty"`
}

// A Suggestion is what may be of use in the project: a hook or a skill.
type Suggestion struct {
	Kind  string `json:"kind"` // hook or skill
	Name  string `json:"name"` // of the skill; of a hook its event
	Run   string `json:"run,omitempty"`
	About string `json:"about,omitempty"`
}
