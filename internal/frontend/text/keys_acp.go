package text

// The messages of the front-end for editors.
const (
	HelpACP Key = iota + acpKeys
	FlagACPLogin
	ACPDefault
	ACPDefaultIs
	ACPAcceptEdits
	ACPAcceptEditsIs
	ACPPlan
	ACPPlanIs
	ACPDontAsk
	ACPDontAskIs
	ACPBypass
	ACPBypassIs
	ACPMode
	ACPModel
	ACPEffort
	ACPEffortIs
	ACPKept
	ACPKeptIs
	ACPLogin
	ACPLoginIs
	ACPOnce
	ACPSession
	ACPAlways
	ACPDeny
	ACPNoAnswer
	ACPDropped
	ACPCompacted

	scheduleKeys = iota + acpKeys // where those of the next file begin
)

// acpTexts are the messages of the keys above.
var acpTexts = [scheduleKeys - acpKeys]both{
	HelpACP - acpKeys:          {"serve an editor over the Agent Client Protocol, at standard input and output", "편집기에 에이전트 클라이언트 프로토콜(ACP)로 제공 (표준 입출력)"},
	FlagACPLogin - acpKeys:     {"sign in within this terminal, and end", "이 터미널에서 로그인하고 끝내기"},
	ACPDefault - acpKeys:       {"Ask", "묻기"},
	ACPDefaultIs - acpKeys:     {"asks before it changes files or runs commands", "파일을 바꾸거나 명령을 실행하기 전에 묻습니다"},
	ACPAcceptEdits - acpKeys:   {"Accept edits", "편집 허용"},
	ACPAcceptEditsIs - acpKeys: {"changes files of the folder without asking", "폴더의 파일을 묻지 않고 바꿉니다"},
	ACPPlan - acpKeys:          {"Plan", "계획"},
	ACPPlanIs - acpKeys:        {"reads and plans, and changes nothing", "읽고 계획만 하며 아무것도 바꾸지 않습니다"},
	ACPDontAsk - acpKeys:       {"Do not ask", "묻지 않기"},
	ACPDontAskIs - acpKeys:     {"denies what it would have to ask about", "물어야 할 일은 거부합니다"},
	ACPBypass - acpKeys:        {"Allow everything", "모두 허용"},
	ACPBypassIs - acpKeys:      {"asks nothing but what rules want asked", "규칙이 묻게 한 것 말고는 묻지 않습니다"},
	ACPMode - acpKeys:          {"Permission mode", "권한 모드"},
	ACPModel - acpKeys:         {"Model", "모델"},
	ACPEffort - acpKeys:        {"Effort", "노력"},
	ACPEffortIs - acpKeys:      {"how much the model thinks", "모델이 얼마나 생각하는지"},
	ACPKept - acpKeys:          {"Key of a provider", "제공자의 키"},
	ACPKeptIs - acpKeys:        {"uses the key that dure login has kept, or a variable such as ANTHROPIC_API_KEY", "dure login으로 보관한 키나 ANTHROPIC_API_KEY 같은 변수를 씁니다"},
	ACPLogin - acpKeys:         {"Sign in within a terminal", "터미널에서 로그인"},
	ACPLoginIs - acpKeys:       {"asks for the key of a provider, and keeps it", "제공자의 키를 물어 보관합니다"},
	ACPOnce - acpKeys:          {"Allow once", "이번만 허용"},
	ACPSession - acpKeys:       {"Allow in this session: {rules}", "이 세션에서 허용: {rules}"},
	ACPAlways - acpKeys:        {"Always allow: {rules}", "항상 허용: {rules}"},
	ACPDeny - acpKeys:          {"Deny", "거부"},
	ACPNoAnswer - acpKeys:      {"No answer", "답하지 않기"},
	ACPDropped - acpKeys:       {"The message was not taken: {why}", "메시지를 받지 않았습니다: {why}"},
	ACPCompacted - acpKeys:     {"The conversation was shortened: {before} → {after} tokens", "대화를 줄였습니다: {before} → {after} 토큰"},
}
