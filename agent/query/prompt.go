package query

// PromptSection is a part of the system prompt as it was considered for a session.
type PromptSection struct {
	ID       string `json:"id"`
	Title    string `json:"title"`
	Content  string `json:"content"`  // as the model reads it, title included
	Priority int    `json:"priority"` // of two that do not both fit, the higher one stays
	Required bool   `json:"required"` // it is never left out
	Tokens   int    `json:"tokenEstimate"`
	Dropped  bool   `json:"dropped"` // it is left out, because it does not fit
}

// PromptReport is what a system prompt is made of.
type PromptReport struct {
	Profile  string          `json:"profile"`
	Kind     string          `json:"kind"`
	Model    string          `json:"model,omitempty"`
	Path     string          `json:"path"`   // of the user's own text for the profile
	Budget   int             `json:"budget"` // tokens that the sections may have; 0 = no limit
	Tokens   int             `json:"tokens"` // of the sections that are kept
	Hash     string          `json:"hash"`   // of the sections that are kept: the blob that requests refer to
	Sections []PromptSection `json:"sections"`

	// Tools are those that the model is offered, with what their descriptions take.
	Tools []PromptTool `json:"tools,omitempty"`
}

// PromptTool is a tool as the model is told of it.
type PromptTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Tokens      int    `json:"tokenEstimate"`
}
