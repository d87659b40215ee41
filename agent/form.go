package agent

// FormTool is the canonical name of the tool by which a model gives its answer in the form
// that was asked for, see [Open.Schema]. The input of a call of it that came out well is the
// answer.
const FormTool = "answer__structured"
