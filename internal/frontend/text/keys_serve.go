package text

// The messages about lending tools and sessions to other agents, and about serving sessions.
const (
	HelpMCPServe Key = iota + lendKeys
	FlagServeHTTP
	FlagServeTools
	FlagServeSessions
	FlagServeAnswers
	ServeAt
	ServeToken
	ServeReach
	FixParams
	ServeShort
	ServeAsks
	ServeWhy
	ServeAnswer
	ServeOnce
	ServeSession
	ServeDeny
	HelpControl
	ControlHook
	ControlHooksOff
	HostCommand
	HelpServe
	FlagServeAddr
	FlagServeGuarded
	FlagServeDrain
	ServeStop
	HelpServeUser
	HelpServeUserAdd
	HelpServeUserList
	HelpServeUserRemove
	FlagServeScope
	FlagServeCert
	FlagServeKey
	ServeBeyond
	ServeOthers
	ServePair

	acpKeys = iota + lendKeys // where those of the next file begin
)

// serveTexts are the messages of the keys above.
var serveTexts = [acpKeys - lendKeys]both{
	HelpMCPServe - lendKeys:        {"lend the tools, and sessions, to other agents", "다른 에이전트에 도구와 세션 제공"},
	FlagServeHTTP - lendKeys:       {"serve over HTTP at this address, such as 127.0.0.1:0, and not over standard input and output", "표준 입출력 대신 이 주소에서 HTTP로 제공 (예: 127.0.0.1:0)"},
	FlagServeTools - lendKeys:      {"lend these tools alone; group:NAME is all of a group", "이 도구만 제공; group:이름은 그룹 전체"},
	FlagServeSessions - lendKeys:   {"none, own (those that clients start) or folder (all of this folder)", "none, own(클라이언트가 시작한 것) 또는 folder(이 폴더의 모든 것)"},
	FlagServeAnswers - lendKeys:    {"clients that cannot ask anybody may allow by themselves what their sessions ask", "사람에게 물을 수 없는 클라이언트가 자기 세션의 질문에 스스로 허용할 수 있음"},
	ServeAt - lendKeys:             {"serving at {url}", "{url}에서 제공 중"},
	ServeToken - lendKeys:          {"clients need the header  Authorization: Bearer {token}", "클라이언트에 필요한 헤더  Authorization: Bearer {token}"},
	FixParams - lendKeys:           {"send what the protocol and the page on editors describe", "프로토콜과 편집기 안내에 설명된 대로 보내세요"},
	ServeReach - lendKeys:          {"an address of this machine, such as 127.0.0.1:0", "이 컴퓨터의 주소 (예: 127.0.0.1:0)"},
	ServeShort - lendKeys:          {"{name} has to have {n} characters or more", "{name}: {n}자 이상이어야 합니다"},
	ServeAsks - lendKeys:           {"dure asks whether {tool} may run:", "dure의 질문: {tool|을/를} 실행해도 됩니까?"},
	ServeWhy - lendKeys:            {"Why it asks: {why}", "묻는 까닭: {why}"},
	ServeAnswer - lendKeys:         {"Your answer", "답"},
	ServeOnce - lendKeys:           {"allow it once", "이번만 허용"},
	ServeSession - lendKeys:        {"allow it as long as this connection is served", "연결된 동안 허용"},
	ServeDeny - lendKeys:           {"deny it", "거부"},
	HelpControl - lendKeys:         {"be driven by another program, over standard input and output", "다른 프로그램이 표준 입출력으로 dure를 다루게 하기"},
	ControlHook - lendKeys:         {"a hook of the host is not taken: {error}", "호스트의 훅을 쓸 수 없습니다: {error}"},
	ControlHooksOff - lendKeys:     {"hooks are switched off by the settings", "설정에서 훅이 꺼져 있습니다"},
	HostCommand - lendKeys:         {"{name} is for people at a terminal. A host can send {list} and the commands that the session lists.", "{name} 명령은 터미널 앞의 사람을 위한 것입니다. 호스트는 {list} 명령과 세션이 나열하는 명령을 보낼 수 있습니다."},
	HelpServe - lendKeys:           {"serve sessions over HTTP, to front-ends and programs", "프런트엔드와 프로그램에 HTTP로 세션 제공"},
	FlagServeAddr - lendKeys:       {"where to serve: an address of this machine; port 0 is any that is free", "제공할 주소: 이 컴퓨터의 주소; 포트 0은 비어 있는 아무 포트"},
	FlagServeGuarded - lendKeys:    {"answer questions that delete or import sessions, make commits, or change tools and servers", "세션 삭제와 가져오기, 커밋, 도구와 서버 변경 질문에도 응답"},
	FlagServeDrain - lendKeys:      {"how long turns have to come to their end when the server is told to end", "서버가 종료될 때 진행 중인 턴을 기다리는 시간"},
	HelpServeUser - lendKeys:       {"who may come in beside you, each with a token of their own", "함께 들어올 수 있는 사용자와 각자의 토큰"},
	HelpServeUserAdd - lendKeys:    {"add a user, and show their token once", "사용자를 추가하고 토큰을 한 번 표시"},
	HelpServeUserList - lendKeys:   {"list the users", "사용자 목록"},
	HelpServeUserRemove - lendKeys: {"take a user's access away", "사용자의 접근 권한 제거"},
	FlagServeScope - lendKeys:      {"metrics, read, write or admin", "metrics, read, write 또는 admin"},
	FlagServeCert - lendKeys:       {"certificate for addresses that others can reach", "다른 컴퓨터에서 닿는 주소에 쓸 인증서"},
	FlagServeKey - lendKeys:        {"key of the certificate", "인증서의 키"},
	ServeBeyond - lendKeys:         {"Beyond this machine it takes --tls-cert, --tls-key and users (dure serve user add NAME).", "이 컴퓨터 밖에서는 --tls-cert, --tls-key와 사용자가 필요합니다 (dure serve user add 이름)."},
	ServeOthers - lendKeys:         {"--addr {addr}: others could reach it", "--addr {addr}: 다른 컴퓨터에서 닿을 수 있습니다"},
	ServePair - lendKeys:           {"--tls-cert and --tls-key go together", "--tls-cert와 --tls-key는 함께 써야 합니다"},
	ServeStop - lendKeys:           {"Ctrl+C ends it: turns that run have {time}", "Ctrl+C로 종료: 진행 중인 턴을 {time} 기다립니다"},
}
