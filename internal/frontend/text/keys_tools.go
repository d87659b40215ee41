package text

// The messages about the tools that a model has.
const (
	ToolsNow Key = toolKeys + iota
	ProblemTool
	FixTool
	HelpTools
	HelpToolsList
	HelpToolsShow
	ToolWhich
	ToolOff
	ToolByRule
	ToolBySession
	ToolRenamed
	ToolLeft
	ToolFrom
	ToolKind
	ToolState
	ToolInput
	ToolsNone
	ToolsOfServers

	agentKeys = iota + toolKeys // where those of the next file begin
)

// toolTexts are the messages of the keys above, in English and Korean.
var toolTexts = [agentKeys - toolKeys]both{
	ToolsNow - toolKeys:       {"tools: {what}", "도구: {what}"},
	ProblemTool - toolKeys:    {"tool {name}: {error}", "도구 {name}: {error}"},
	FixTool - toolKeys:        {"{fix}", "{fix}"},
	HelpTools - toolKeys:      {"tools: which there are, and which of them a model has", "도구: 무엇이 있고 모델에 무엇을 주는지"},
	HelpToolsList - toolKeys:  {"the tools that a session in this folder begins with", "이 폴더의 세션이 처음에 갖는 도구 목록"},
	HelpToolsShow - toolKeys:  {"all that is known of a tool, with what it takes", "도구 하나 자세히 보기. 받는 값까지"},
	ToolWhich - toolKeys:      {"which tool?", "어느 도구입니까?"},
	ToolOff - toolKeys:        {"{state}: {why}", "{state}: {why}"},
	ToolByRule - toolKeys:     {"the rule {rule} denies it ({at})", "규칙 {rule}에서 거부함({at})"},
	ToolBySession - toolKeys:  {"switched off in this session; back with /tools enable {rule}", "이 세션에서 끔. 다시 켜기: /tools enable {rule}"},
	ToolRenamed - toolKeys:    {"{name} came as {own}, which is the name of another one ({before})", "{name}: 원래 이름 {own}은 다른 도구({before})의 이름"},
	ToolLeft - toolKeys:       {"cannot be used: {name} ({source}): {why}", "쓸 수 없음: {name}({source}): {why}"},
	ToolFrom - toolKeys:       {"from: {source}", "출처: {source}"},
	ToolKind - toolKeys:       {"group {group}, calls are {class}, risk {risk}", "그룹 {group}, 호출 성격 {class}, 위험도 {risk}"},
	ToolState - toolKeys:      {"state: {state}", "상태: {state}"},
	ToolInput - toolKeys:      {"what it takes:", "받는 값:"},
	ToolsNone - toolKeys:      {"no tools", "도구 없음"},
	ToolsOfServers - toolKeys: {"Servers bring theirs when a session connects them: /tools lists them there, and dure mcp test NAME here.", "서버의 도구는 세션에서 연결된 뒤에 보입니다. 세션에서는 /tools, 여기서는 dure mcp test 이름."},
}
