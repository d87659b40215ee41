package text

// The messages about the tools that a model has.
const (
	ToolsNow Key = toolKeys + iota

	agentKeys = iota + toolKeys // where those of the next file begin
)

// toolTexts are the messages of the keys above, in English and Korean.
var toolTexts = [agentKeys - toolKeys]both{
	ToolsNow - toolKeys: {"tools: {what}", "도구: {what}"},
}
