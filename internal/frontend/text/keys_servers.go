package text

// The messages about servers of the Model Context Protocol.
const (
	ProblemServer Key = iota + serverKeys
	FixServer
	HelpMCP
	HelpMCPList
	HelpMCPGet
	HelpMCPTest
	ServerTested
	ServerTools
	ServerPrompts
	ServerResources
	HelpMCPAdd
	HelpMCPAddJSON
	HelpMCPRemove
	HelpMCPApprove
	HelpMCPReject
	HelpMCPEnable
	HelpMCPDisable
	HelpMCPReset
	FlagMCPScope
	FlagMCPTransport
	FlagMCPEnv
	FlagMCPHeader
	FlagMCPClientID
	FlagMCPPort
	FlagMCPConfig
	FlagMCPStrict
	ServersNone
	ServersFault
	ServerWhich
	ServerAddWhat
	FixServerAdd
	ServerPair
	ServerBadJSON
	ServerAdded
	ServerAddedIn
	ServerRemoved
	ServerApproved
	ServerApprovedLater
	ServerRejected
	ServerOn
	ServerOff
	ServersReset
	ServerFrom
	ServerEnv
	ServerHeaders
	ServerVars
	ServerState
	ServerFixWaiting
	ServerFixUntrusted
	ServerFixOff
	ServerFixRejected
	ServerHas
	ServerWithheld
	HelpMCPLogin
	HelpMCPLogout
	FlagAnswer
	SignInOpen
	SignInCode
	SignInWait
	SignInDone
	SignedOut
	SignInPage
	SignInPageFailed
	SignInPageUnknown
	AskedSecret
	AskedForm
	AskedPlain
	AskedURL
	AskedAnswer
	AskedOpen
	AskedAgree
	AskedDecline
	AskedCancel
	AskedLeave
	AskedYes
	AskedNo
	AskedRequired
	AskedOptional
	AskedValues
	AskedUsual
	AskedMisfit
	AskedModel
	AskedOnce
	AskedSession
	HookElicits
	HookElicited
	HookElicitDone

	bundleKeys = iota + serverKeys // where those of the next file begin
)

// serverTexts are the messages of the keys above.
var serverTexts = [bundleKeys - serverKeys]both{
	ProblemServer - serverKeys:       {"server {name}: {error}", "서버 {name}: {error}"},
	FixServer - serverKeys:           {"{fix}", "{fix}"},
	HelpMCP - serverKeys:             {"servers of the Model Context Protocol: which there are, and which are used", "MCP 서버: 무엇이 있고 무엇을 쓰는지"},
	HelpMCPList - serverKeys:         {"the servers of this folder", "이 폴더의 서버 목록"},
	HelpMCPGet - serverKeys:          {"all that is known of a server", "서버 하나 자세히 보기"},
	HelpMCPTest - serverKeys:         {"connect a server, and list what it has", "서버에 연결해서 무엇이 있는지 보기"},
	ServerTested - serverKeys:        {"{name} ({title}, protocol {protocol}) has answered in {ms} ms", "{name}({title}, 프로토콜 {protocol}) 응답: {ms}ms"},
	ServerTools - serverKeys:         {"{n} {n?tool/tools}:", "도구 {n}개:"},
	ServerPrompts - serverKeys:       {"{n} {n?prompt/prompts}:", "프롬프트 {n}개:"},
	ServerResources - serverKeys:     {"{n} {n?resource/resources}:", "리소스 {n}개:"},
	HelpMCPAdd - serverKeys:          {"add a server: a command line behind --, or an address", "서버 추가: -- 뒤에 명령줄, 또는 주소"},
	HelpMCPAddJSON - serverKeys:      {"add a server by its definition in JSON", "JSON 정의로 서버 추가"},
	HelpMCPRemove - serverKeys:       {"take a server out", "서버 빼기"},
	HelpMCPApprove - serverKeys:      {"say yes to a server that the project names", "프로젝트의 서버를 승인"},
	HelpMCPReject - serverKeys:       {"say no to a server that the project names", "프로젝트의 서버를 거부"},
	HelpMCPEnable - serverKeys:       {"use a server in this folder again", "이 폴더에서 서버를 다시 쓰기"},
	HelpMCPDisable - serverKeys:      {"do not use a server in this folder", "이 폴더에서 서버를 쓰지 않기"},
	HelpMCPReset - serverKeys:        {"forget what was said to the project's servers", "프로젝트의 서버에 답한 것 잊기"},
	FlagMCPScope - serverKeys:        {"local: yours in this folder; project: .mcp.json; user: yours everywhere", "local: 이 폴더의 내 것, project: .mcp.json, user: 모든 곳의 내 것"},
	FlagMCPTransport - serverKeys:    {"stdio, http or sse", "stdio, http, sse 중 하나"},
	FlagMCPEnv - serverKeys:          {"a variable for the program: NAME=VALUE", "프로그램에 줄 변수: 이름=값"},
	FlagMCPHeader - serverKeys:       {"a header of each request: \"Name: value\"", "요청마다 보낼 헤더: \"이름: 값\""},
	FlagMCPClientID - serverKeys:     {"the client ID for signing in", "로그인에 쓸 클라이언트 ID"},
	FlagMCPPort - serverKeys:         {"the port that signing in comes back to", "로그인이 돌아올 포트"},
	FlagMCPConfig - serverKeys:       {"servers for this run: a file, or JSON", "이번 실행에 쓸 서버: 파일 또는 JSON"},
	FlagMCPStrict - serverKeys:       {"no other servers than those of --mcp-config", "--mcp-config의 서버만 쓰기"},
	ServersNone - serverKeys:         {"no servers; add one: dure mcp add NAME -- COMMAND, or dure mcp add NAME https://...", "서버가 없습니다. 추가: dure mcp add 이름 -- 명령, 또는 dure mcp add 이름 https://..."},
	ServersFault - serverKeys:        {"does not count: {source}: {message}", "쓰지 않음: {source}: {message}"},
	ServerWhich - serverKeys:         {"which server?", "어느 서버입니까?"},
	ServerAddWhat - serverKeys:       {"a name and a command line, or a name and an address", "이름과 명령줄, 또는 이름과 주소가 필요합니다"},
	FixServerAdd - serverKeys:        {"dure mcp add NAME -- COMMAND ARGUMENT..., or dure mcp add NAME https://HOST/PATH", "dure mcp add 이름 -- 명령 인자..., 또는 dure mcp add 이름 https://호스트/경로"},
	ServerPair - serverKeys:          {"{flag} takes {want}", "{flag} 값은 {want} 꼴이어야 합니다"},
	ServerBadJSON - serverKeys:       {"the definition is no JSON object", "정의가 JSON 객체가 아닙니다"},
	ServerAdded - serverKeys:         {"added {name} ({scope})", "{name} 추가함({scope})"},
	ServerAddedIn - serverKeys:       {"added {name} ({scope}) in {path}", "{name} 추가함({scope}): {path}"},
	ServerRemoved - serverKeys:       {"removed {name} ({scope})", "{name} 뺌({scope})"},
	ServerApproved - serverKeys:      {"{name} may be used: {run}", "{name|을/를} 쓸 수 있습니다: {run}"},
	ServerApprovedLater - serverKeys: {"you said yes to {name}, and it is not used: {state}", "{name|을/를} 승인했지만 쓰지 않습니다: {state}"},
	ServerRejected - serverKeys:      {"{name} is not used", "{name|을/를} 쓰지 않습니다"},
	ServerOn - serverKeys:            {"{name} is on in this folder: {state}", "이 폴더에서 {name} 켬: {state}"},
	ServerOff - serverKeys:           {"{name} is off in this folder", "이 폴더에서 {name} 끔"},
	ServersReset - serverKeys:        {"{n} {n?answer/answers} forgotten", "답 {n}개를 잊었습니다"},
	ServerFrom - serverKeys:          {"named in {source} ({scope})", "있는 곳: {source}({scope})"},
	ServerEnv - serverKeys:           {"variables of its own: {list}", "따로 주는 변수: {list}"},
	ServerHeaders - serverKeys:       {"headers: {list}", "헤더: {list}"},
	ServerVars - serverKeys:          {"it is given these variables of yours: {list}", "받아 가는 내 변수: {list}"},
	ServerState - serverKeys:         {"state: {state}", "상태: {state}"},
	ServerFixWaiting - serverKeys:    {"say yes with: dure mcp approve {name}", "승인: dure mcp approve {name}"},
	ServerFixUntrusted - serverKeys:  {"look at the folder with dure trust show, then trust it: dure trust", "dure trust show로 폴더를 살펴본 뒤 신뢰하기: dure trust"},
	ServerFixOff - serverKeys:        {"use it again with: dure mcp enable {name}", "다시 쓰기: dure mcp enable {name}"},
	ServerHas - serverKeys:           {"{tools} {tools?tool/tools}, {prompts} {prompts?prompt/prompts}, {resources} {resources?resource/resources}", "도구 {tools}개, 프롬프트 {prompts}개, 리소스 {resources}개"},
	ServerWithheld - serverKeys:      {"left out, as they describe themselves otherwise than before: {list}; agree with dure mcp approve {name}, or /mcp approve {name}", "전과 다르게 설명해서 뺀 도구: {list}. 동의하기: dure mcp approve {name}, 또는 /mcp approve {name}"},
	ServerFixRejected - serverKeys:   {"say yes all the same with: dure mcp approve {name}", "그래도 승인하기: dure mcp approve {name}"},
	HelpMCPLogin - serverKeys:        {"sign in to a server", "서버에 로그인"},
	HelpMCPLogout - serverKeys:       {"give back what a server has granted, and forget it", "서버가 준 권한을 돌려주고 잊기"},
	FlagAnswer - serverKeys:          {"the address that the browser shows at the end, from another machine", "다른 기기의 브라우저가 마지막에 보여 준 주소"},
	SignInOpen - serverKeys:          {"Open this address and agree: {url}", "이 주소를 열고 동의하세요: {url}"},
	SignInCode - serverKeys:          {"Type this code there: {code}", "그곳에 이 코드를 입력하세요: {code}"},
	SignInWait - serverKeys:          {"Waiting. If the browser runs on another machine, copy the address that it shows at the end: dure mcp login {name} --answer 'ADDRESS'", "기다리는 중입니다. 브라우저가 다른 기기에 있으면 마지막에 보이는 주소를 복사하세요: dure mcp login {name} --answer '주소'"},
	SignInDone - serverKeys:          {"you are signed in to {name}", "{name}에 로그인했습니다"},
	SignedOut - serverKeys:           {"signed out of {name}", "{name}에서 로그아웃했습니다"},
	SignInPage - serverKeys:          {"You are signed in. You can close this page and go back to dure.", "로그인했습니다. 이 페이지를 닫고 dure로 돌아가세요."},
	SignInPageFailed - serverKeys:    {"The sign-in did not come about. You can close this page; dure says what to do next.", "로그인하지 못했습니다. 이 페이지를 닫으세요. 다음에 할 일은 dure가 알려 줍니다."},
	SignInPageUnknown - serverKeys:   {"This page does not belong to a sign-in that is open.", "진행 중인 로그인의 페이지가 아닙니다."},
	AskedSecret - serverKeys:         {"It looks as if it wants a secret. No server may ask for one in a form: decline.", "비밀 값을 요구하는 것으로 보입니다. 서버는 양식으로 비밀 값을 물을 수 없으니 거절하십시오."},
	AskedForm - serverKeys:           {"The MCP server \"{server}\" asks for: {fields}. In its own words:\n{message}", "MCP 서버 \"{server}\"의 요청 항목: {fields}. 서버가 한 말:\n{message}"},
	AskedPlain - serverKeys:          {"The MCP server \"{server}\" asks you to agree. In its own words:\n{message}", "MCP 서버 \"{server}\"의 동의 요청. 서버가 한 말:\n{message}"},
	AskedURL - serverKeys:            {"The MCP server \"{server}\" wants you to open an address of the host {host}:\n{url}\nIf you agree, open it yourself: dure does not. In the words of the server:\n{message}", "MCP 서버 \"{server}\"의 주소 열기 요청. 호스트: {host}\n{url}\n동의하면 직접 여십시오. dure는 열지 않습니다. 서버가 한 말:\n{message}"},
	AskedAnswer - serverKeys:         {"Answer", "답하기"},
	AskedOpen - serverKeys:           {"Agree, I open it", "동의하고 직접 열기"},
	AskedAgree - serverKeys:          {"Agree", "동의"},
	AskedDecline - serverKeys:        {"Decline", "거절"},
	AskedCancel - serverKeys:         {"Cancel", "취소"},
	AskedLeave - serverKeys:          {"Leave it", "비워 두기"},
	AskedYes - serverKeys:            {"Yes", "예"},
	AskedNo - serverKeys:             {"No", "아니요"},
	AskedRequired - serverKeys:       {"({type}, required)", "({type}, 필수)"},
	AskedOptional - serverKeys:       {"({type}, may be left out)", "({type}, 생략 가능)"},
	AskedValues - serverKeys:         {"One of: {values}", "값: {values}"},
	AskedUsual - serverKeys:          {"If you leave it: {value}", "비워 두면: {value}"},
	AskedMisfit - serverKeys:         {"What you have said does not fit.", "답이 형식에 맞지 않습니다."},
	AskedModel - serverKeys:          {"The MCP server \"{server}\" wants to ask the model something at your cost: {n} {n?message/messages}, up to {tokens} tokens of answer. It begins:\n{text}", "MCP 서버 \"{server}\"의 모델 질문 요청(비용은 본인 부담): 메시지 {n}개, 답은 최대 {tokens}토큰. 첫머리:\n{text}"},
	AskedOnce - serverKeys:           {"This once", "이번만"},
	AskedSession - serverKeys:        {"In this session", "이 세션 동안"},
	HookElicits - serverKeys:         {"the MCP server {server} asks you something", "MCP 서버 {server}의 질문이 있습니다"},
	HookElicited - serverKeys:        {"the MCP server {server} gets the answer: {action}", "MCP 서버 {server}에 보낼 답: {action}"},
	HookElicitDone - serverKeys:      {"what the MCP server {server} wanted you to do is finished", "MCP 서버 {server|이/가} 부탁한 일이 끝났습니다"},
}
