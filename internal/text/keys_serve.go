package text

// The messages about lending tools and sessions to other agents.
const (
	HelpMCPServe Key = iota + lendKeys
	FlagServeHTTP
	FlagServeTools
	FlagServeSessions
	FlagServeAnswers
	ServeAt
	ServeToken
	ServeReach
	ServeShort
	ServeAsks
	ServeWhy
	ServeAnswer
	ServeOnce
	ServeSession
	ServeDeny

	scheduleKeys = iota + lendKeys // where those of the next file begin
)

// serveTexts are the messages of the keys above.
var serveTexts = [scheduleKeys - lendKeys]both{
	HelpMCPServe - lendKeys:      {"lend the tools, and sessions, to other agents", "다른 에이전트에 도구와 세션 제공"},
	FlagServeHTTP - lendKeys:     {"serve over HTTP at this address, such as 127.0.0.1:0, and not over standard input and output", "표준 입출력 대신 이 주소에서 HTTP로 제공 (예: 127.0.0.1:0)"},
	FlagServeTools - lendKeys:    {"lend these tools alone; group:NAME is all of a group", "이 도구만 제공; group:이름은 그룹 전체"},
	FlagServeSessions - lendKeys: {"none, own (those that clients start) or folder (all of this folder)", "none, own(클라이언트가 시작한 것) 또는 folder(이 폴더의 모든 것)"},
	FlagServeAnswers - lendKeys:  {"clients that cannot ask anybody may allow by themselves what their sessions ask", "사람에게 물을 수 없는 클라이언트가 자기 세션의 질문에 스스로 허용할 수 있음"},
	ServeAt - lendKeys:           {"serving at {url}", "{url}에서 제공 중"},
	ServeToken - lendKeys:        {"clients need the header  Authorization: Bearer {token}", "클라이언트에 필요한 헤더  Authorization: Bearer {token}"},
	ServeReach - lendKeys:        {"an address of this machine, such as 127.0.0.1:0", "이 컴퓨터의 주소 (예: 127.0.0.1:0)"},
	ServeShort - lendKeys:        {"{name} has to have {n} characters or more", "{name}: {n}자 이상이어야 합니다"},
	ServeAsks - lendKeys:         {"dure asks whether {tool} may run:", "dure의 질문: {tool|을/를} 실행해도 됩니까?"},
	ServeWhy - lendKeys:          {"Why it asks: {why}", "묻는 까닭: {why}"},
	ServeAnswer - lendKeys:       {"Your answer", "답"},
	ServeOnce - lendKeys:         {"allow it once", "이번만 허용"},
	ServeSession - lendKeys:      {"allow it as long as this connection is served", "연결된 동안 허용"},
	ServeDeny - lendKeys:         {"deny it", "거부"},
}
