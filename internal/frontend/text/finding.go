package text

import (
	"strings"

	"dure/agent"
	"dure/agent/query"
)

// said is what a finding says, in both languages: what is so, and how to mend it.
type said struct {
	code          string
	detail, fix   string // English
	detailK, fixK string // Korean
}

// findings are the sentences of a diagnosis, by the code of the finding. As in
// messages, {name} marks what is filled in.
var findings = [...]said{
	{"version", "{version}", "", "{version}", ""},
	{"settings.files", "read from {files}", "", "{files}에서 읽음", ""},
	{"settings.none", "there is no settings file; {path} would be read", "", "설정 파일이 없음. 있으면 읽을 곳: {path}", ""},
	{"settings.note", "{text}", "mend or remove it", "{text}", "고치거나 지우세요"},
	{"data.ok", "sessions are kept in {path}", "", "세션을 두는 곳: {path}", ""},
	{
		"data.fail", "nothing can be written in {path}: {error}", "make the folder writable, or name another one in DURE_HOME",
		"{path}에 쓸 수 없음: {error}", "쓸 수 있게 하거나 DURE_HOME으로 다른 폴더를 정하세요",
	},
	{
		"memory-long", "{path} has {chars} characters, more than {limit}: splitting it is recommended", "move parts of it to rules with paths",
		"{path}: {chars}자로 {limit}자를 넘음. 나누는 것이 좋음", "일부를 paths가 있는 규칙 파일로 옮기세요",
	},
	{
		"memory-rule", "{path}:{line}: {error}: the rule is not applied", "mend the lines between the two ---",
		"{path}:{line}: {error}: 이 규칙은 적용되지 않음", "두 --- 사이의 줄을 고치세요",
	},
	{
		"memory-refused", "{path} was not read: {error}", "mend the file, or move it away",
		"{path|을/를} 읽지 않음: {error}", "파일을 고치거나 다른 곳으로 옮기세요",
	},
	{
		"memory-many", "there are too many instruction files: what is beyond {limit} was not read", "keep fewer of them",
		"지침 파일이 너무 많음: {limit}개를 넘는 것은 읽지 않음", "수를 줄이세요",
	},
	{
		"memory-outside", "{path} includes {include}, which is outside of the project: it was not read", "if you know the file, set memory.outside in your settings",
		"{path|이/가} 프로젝트 밖의 {include|을/를} 포함함: 읽지 않음", "아는 파일이면 설정에서 memory.outside를 켜세요",
	},
	{
		"memory-total", "the instructions have more than {limit} characters; not given in full: {dropped}", "shorten them, or move parts to rules with paths",
		"지침이 {limit}자를 넘음. 전부 주지 않은 것: {dropped}", "줄이거나, 일부를 paths가 있는 규칙 파일로 옮기세요",
	},
	{
		"memory-untrusted", "{path} is not trusted: {n} instruction {n?file/files} in it not read", "look at them, then: dure trust {path}",
		"{path|을/를} 신뢰하지 않아 지침 파일 {n}개를 읽지 않음", "살펴본 뒤 신뢰하려면: dure trust {path}",
	},
	{"memory.ok", "{n} {n?file/files}, {chars} characters", "", "파일 {n}개, {chars}자", ""},
	{"mcp.ok", "{list}", "", "{list}", ""},
	{"mcp.waiting", "they wait for your yes: {list}", "look at one with dure mcp get NAME, then dure mcp approve NAME", "승인 대기: {list}", "dure mcp get 이름으로 살펴본 뒤 dure mcp approve 이름"},
	{"mcp.broken", "{name} cannot be used: {error}", "set what is missing; dure mcp get {name} shows the definition", "{name|을/를} 쓸 수 없음: {error}", "빠진 것을 정하기. 정의 보기: dure mcp get {name}"},
	{"memory.none", "none; {path} would be read", "", "없음. 있으면 읽을 곳: {path}", ""},
	{"memory.off", "not read: memory.enabled is false, from {where}", "", "읽지 않음: memory.enabled가 꺼져 있음, 출처: {where}", ""},
	{"profile", "{profile}, from {where}", "", "{profile}, 출처: {where}", ""},
	{"model.ok", "{model} of {provider}, from {where}", "", "{provider}의 {model}, 출처: {where}", ""},
	{
		"model.price", "{model} of {provider}, from {where}; its price is unknown", "add it to \"models\" in the settings",
		"{provider}의 {model}, 출처: {where}. 가격을 모름", "설정의 \"models\"에 추가하세요",
	},
	{"fallback.none", "none: when the model has failed for good, the turn ends", "", "없음: 모델이 끝내 실패하면 턴이 끝남", ""},
	{"fallback.ok", "{models}", "", "{models}", ""},
	{"fallback.bad", "{model}: {error}", "mend fallbackModel in the settings, or --fallback-model", "{model}: {error}", "설정의 fallbackModel이나 --fallback-model을 고치세요"},
	{"provider", "{provider} at {url}, spoken to as {type}", "", "{provider}, {url}, 형식 {type}", ""},
	{"key.ok", "of {provider}, from {where}", "", "{provider} 키, 출처: {where}", ""},
	{
		"key.needless", "none needed: the endpoint is on this machine, or the settings have headers for it", "",
		"필요 없음: 이 컴퓨터의 서버이거나 설정에 헤더가 있음", "",
	},
	{"keychain.ok", "keeps keys that dure login is given", "", "dure login으로 받은 키를 보관함", ""},
	{
		"keychain.none", "none answers ({error}); keys are kept in {path}, which only you can read", "",
		"응답하지 않음({error}). 키는 본인만 읽을 수 있는 {path}에 보관함", "",
	},
	{"keychain.off", "not used; keys are kept in {path}, which only you can read", "", "쓰지 않음. 키는 본인만 읽을 수 있는 {path}에 보관함", ""},
	{"proxy.none", "none: requests go straight to {host}", "", "없음: {host|으로/로} 바로 연결", ""},
	{"proxy.set", "requests to {host} go through {proxy}, from {where}", "", "{host} 요청은 {proxy}를 거침, 출처: {where}", ""},
	{
		"proxy.bad", "the proxy of the environment cannot be used: {error}", "mend HTTPS_PROXY or HTTP_PROXY, or set network.proxy",
		"환경 변수의 프록시를 쓸 수 없음: {error}", "HTTPS_PROXY나 HTTP_PROXY를 고치거나 network.proxy를 정하세요",
	},
	{"ca.system", "those of the system", "", "시스템의 인증서", ""},
	{"ca.file", "those of the system, and those in {path}", "", "시스템의 인증서와 {path}의 인증서", ""},
	{"network.external", "external: any provider and public web pages", "", "external: 모든 제공자와 공개 웹 페이지", ""},
	{"network.internal", "internal: this machine, and {hosts}", "", "internal: 이 컴퓨터와 {hosts}", ""},
	{"network.off", "off: this machine only, and no web tools", "", "off: 이 컴퓨터만, 웹 도구 없음", ""},
	{"ai.on", "on: models may be asked", "", "켜짐: 모델을 쓸 수 있음", ""},
	{"ai.off", "off, by {where}: no model is asked", "change \"ai\" there", "꺼짐({where}): 모델을 쓰지 않음", "그곳의 \"ai\"를 바꾸세요"},
	{"search.none", "none: there is no web search", "", "없음: 웹 검색을 하지 않음", ""},
	{"search.ok", "{kind} at {url}", "", "{kind}, {url}", ""},
	{"search.key", "{kind}: the variable {variable} for its key is empty", "set {variable}", "{kind}: 키를 담을 환경 변수 {variable|이/가} 비어 있음", "{variable|을/를} 설정하세요"},
	{"updates.off", "not looked for", "", "확인하지 않음", ""},
	{"updates.on", "looked for at {url}, once a day", "", "하루 한 번 {url}에서 확인함", ""},

	{"endpoint.none", "not looked for: there is no model to ask", "mend what is said above", "확인하지 않음: 쓸 모델이 없음", "위에서 알려 준 것부터 고치세요"},
	{"endpoint.closed", "not looked for: {why}", "", "확인하지 않음: {why}", ""},
	{"endpoint.ok", "{url} answers in {ms} ms", "", "{url} 응답함({ms} ms)", ""},
	{
		"endpoint.bad", "{url} is no address: {error}", "mend the address of the provider {provider}; it begins with https://",
		"{url|은/는} 주소가 아님: {error}", "제공자 {provider}의 주소를 고치세요. https://로 시작합니다",
	},
	{
		"endpoint.fail", "{url}: {error}", "check the network, the proxy, and the address of the provider {provider}",
		"{url}: {error}", "네트워크, 프록시, 제공자 {provider}의 주소를 확인하세요",
	},
	{
		"endpoint.tls", "{url}: {error}", "name the certificates of your network in network.ca; an address that begins with http:// is for servers without TLS",
		"{url}: {error}", "네트워크의 인증서를 network.ca에 정하세요. TLS가 없는 서버의 주소는 http://로 시작합니다",
	},
	{"proxy.ok", "{proxy} takes connections", "", "{proxy} 연결됨", ""},
	{"proxy.fail", "{proxy}: {error}", "mend {where}", "{proxy}: {error}", "고칠 곳: {where}"},
	{"local.none", "none answers on this machine", "", "이 컴퓨터에서 응답하는 서버 없음", ""},
	{"local.found", "{list}", "", "{list}", ""},
	{"clock.ok", "{seconds} s off the endpoint's", "", "서비스와 {seconds}초 차이", ""},
	{"clock.unknown", "not compared: the endpoint did not say what time it is", "", "비교하지 못함: 서비스가 시각을 알려 주지 않음", ""},
	{
		"clock.fail", "{seconds} s off the endpoint's: certificates and signatures may not be accepted", "set the clock of this machine",
		"서비스와 {seconds}초 차이: 인증서와 서명이 받아들여지지 않을 수 있음", "이 컴퓨터의 시계를 맞추세요",
	},

	{"sandbox.full", "full, by {mechanism}: commands write in the workspace and in caches, and reach the hosts that are allowed", "", "완전({mechanism}): 명령은 작업 폴더와 캐시에만 쓰고 허용된 호스트에만 접속함", ""},
	{
		"sandbox.reduced", "reduced, by {mechanism}: not everything holds, see dure sandbox explain", "install bubblewrap, or allow user namespaces",
		"일부({mechanism}): 모두 지켜지지는 않음. dure sandbox explain 참고", "bubblewrap을 설치하거나 user namespace를 허용하세요",
	},
	{
		"sandbox.none", "none: commands run with your own rights, and every one is asked about", "see dure sandbox explain, and read each command before you allow it",
		"없음: 명령은 당신의 권한 그대로 실행되며 모두 물어봄", "dure sandbox explain을 보고, 허용하기 전에 명령을 읽어 보세요",
	},
	{
		"sandbox.off", "off, from {where}: commands run with your own rights, and every one is asked about", "leave sandbox.mode out of the settings",
		"꺼짐, 출처 {where}: 명령은 당신의 권한 그대로 실행되며 모두 물어봄", "설정에서 sandbox.mode를 빼세요",
	},
	{
		"sandbox.bypass", "none, and the mode asks nothing: commands run with your own rights", "choose another mode, or mend the sandbox: dure sandbox explain",
		"없음, 게다가 묻지 않는 모드: 명령은 당신의 권한 그대로 실행됨", "다른 모드를 고르거나 샌드박스를 고치세요: dure sandbox explain",
	},
	{"egress.none", "none for commands", "", "명령의 접속 없음", ""},
	{"egress.hosts", "{list}", "", "{list}", ""},
	{"trust.yes", "{path} is trusted: what it brings counts", "", "{path} 신뢰함: 가져온 것이 쓰임", ""},
	{"trust.nothing", "{path} brings nothing that would need trust", "", "{path|은/는} 신뢰가 필요한 것을 가져오지 않음", ""},
	{"trust.stale", "{path} has changed since it was trusted: {list}", "look with dure trust show, then dure trust", "{path|이/가} 신뢰한 뒤 바뀜: {list}", "dure trust show로 살펴보고 dure trust로 다시 신뢰하세요"},
	{"trust.no", "{path} is not trusted: {n} files that it brings do not count", "look at them with dure trust show, then dure trust", "{path} 신뢰하지 않음: 가져온 파일 {n}개가 쓰이지 않음", "dure trust show로 살펴보고 dure trust로 신뢰하세요"},
	{"root", "dure runs as root: what is allowed has no other bound than the sandbox", "run it as an ordinary user", "root로 실행 중: 허용된 일은 샌드박스 말고 막을 것이 없음", "일반 사용자로 실행하세요"},
	{"mode.default", "default, from {where}: reading in the workspace runs, all else is asked about", "", "default, 출처 {where}: 작업 폴더 안 읽기는 그대로, 나머지는 물어봄", ""},
	{"mode.acceptEdits", "acceptEdits, from {where}: changes of files in the workspace run too", "", "acceptEdits, 출처 {where}: 작업 폴더 안 파일 고치기도 묻지 않음", ""},
	{"mode.plan", "plan, from {where}: nothing is changed", "", "plan, 출처 {where}: 아무것도 바꾸지 않음", ""},
	{"mode.dontAsk", "dontAsk, from {where}: what would be asked about is denied", "", "dontAsk, 출처 {where}: 물어볼 일은 거부함", ""},
	{
		"mode.bypassPermissions", "bypassPermissions, from {where}: everything runs that no rule denies or asks about", "choose another mode where others' text is read",
		"bypassPermissions, 출처 {where}: 규칙이 막거나 묻게 하지 않은 모든 것이 실행됨", "남이 쓴 글을 읽는 곳에서는 다른 모드를 고르세요",
	},
	{"rules", "{allow} allow, {ask} ask, {deny} deny", "", "허용 {allow}개, 물음 {ask}개, 금지 {deny}개", ""},
	{"folders", "{list}", "", "{list}", ""},

	{"program.ok", "{path}", "", "{path}", ""},
	{"program.git", "not found: repositories are listed without their ignore rules, and there are no git tools", "install git", "없음: 무시 규칙 없이 목록을 만들고 git 도구가 없음", "git을 설치하세요"},
	{"program.bash", "not found: commands run in sh", "install bash", "없음: 명령을 sh로 실행함", "bash를 설치하세요"},
	{"servers.none", "none found: no diagnostics after edits", "", "없음: 고친 뒤 진단이 없음", ""},
	{"servers.ok", "{list}", "", "{list}", ""},
	{"pty.ok", "commands can be given a terminal", "", "명령에 터미널을 줄 수 있음", ""},
	{"pty.none", "commands cannot be given a terminal here", "", "여기서는 명령에 터미널을 줄 수 없음", ""},

	{"disk.ok", "{free} free for sessions", "", "세션용 여유 {free}", ""},
	{"disk.low", "{free} free for sessions in {path}", "make room, or name another folder in DURE_HOME", "{path}의 여유 {free}", "공간을 비우거나 DURE_HOME으로 다른 폴더를 정하세요"},
	{"disk.unknown", "how much room there is cannot be told: {error}", "", "여유 공간을 알 수 없음: {error}", ""},
	{"terminal.none", "none: output goes to a file or a program", "", "없음: 출력이 파일이나 프로그램으로 감", ""},
	{"terminal.ok", "{columns} columns, {rows} rows, {colour}", "", "{columns}칸, {rows}줄, {colour}", ""},
	{"terminal.small", "{columns} columns, {rows} rows, {colour}", "from 50 columns on nothing is cut off", "{columns}칸, {rows}줄, {colour}", "50칸부터는 잘리는 것이 없습니다"},
	{"locale.ok", "{locale}: UTF-8", "", "{locale}: UTF-8", ""},
	{"locale.none", "{locale}: not UTF-8, so that Korean and other letters may not show", "set LANG to one that ends in .UTF-8, such as C.UTF-8", "{locale}: UTF-8이 아니어서 한글이 깨질 수 있음", "LANG을 C.UTF-8처럼 .UTF-8로 끝나는 것으로 정하세요"},
}

// word is a name in both languages.
type word struct{ key, en, ko string }

// words are the headings and names of a diagnosis, and the small words that are
// filled into its sentences.
var words = [...]word{
	{"setting.text", "a text", "글"},
	{"setting.switch", "true or false", "true 또는 false"},
	{"setting.count", "a whole number", "정수"},
	{"setting.number", "a number", "수"},
	{"setting.texts", "a list of texts", "글의 목록"},
	{"setting.rules", "a list of rules", "규칙의 목록"},
	{"setting.list", "a list of objects", "객체의 목록"},
	{"setting.object", "an object", "객체"},
	{"setting.strings", "an object of texts", "글의 객체"},
	{"setting.switches", "an object of true and false", "true와 false의 객체"},
	{"setting.all", "every layer", "모든 층"},
	{"setting.own", "every layer but the project's", "프로젝트를 뺀 모든 층"},
	{"setting.trusted", "every layer, and a project in a trusted folder", "모든 층, 믿는 폴더의 프로젝트"},
	{"setting.tighter", "every layer, and a project where that is stricter", "모든 층, 더 엄격하게 하는 프로젝트"},
	{"setting.managed", "the administrator", "관리자"},
	{"command", "command", "명령"},
	{"skill", "skill", "스킬"},
	{"agent", "agent", "에이전트"},
	{"snippet", "snippet", "글"},
	{"link", "link", "주소"},
	{"configured", "Configured", "설정"},
	{"reachable", "Reachable", "연결"},
	{"enforced", "Enforced", "제한"},
	{"programs", "Programs", "프로그램"},
	{"machine", "Machine", "컴퓨터"},
	{"version", "version", "버전"},
	{"settings", "settings", "설정"},
	{"note", "note", "알림"},
	{"data", "data", "자료"},
	{"profile", "profile", "작업 종류"},
	{"model", "model", "모델"},
	{"fallback", "fallback", "대체 모델"},
	{"mcp", "MCP servers", "MCP 서버"},
	{"provider", "provider", "제공자"},
	{"key", "key", "키"},
	{"keychain", "keychain", "키체인"},
	{"proxy", "proxy", "프록시"},
	{"certificates", "certificates", "인증서"},
	{"network", "network", "네트워크"},
	{"ai", "models", "모델 사용"},
	{"search", "web search", "웹 검색"},
	{"updates", "updates", "새 버전"},
	{"endpoint", "endpoint", "서비스"},
	{"local", "local models", "로컬 모델"},
	{"clock", "clock", "시계"},
	{"sandbox", "sandbox", "샌드박스"},
	{"egress", "network of commands", "명령의 네트워크"},
	{"root", "user", "사용자"},
	{"trust", "trust", "신뢰"},
	{"mode", "mode", "모드"},
	{"rules", "rules", "규칙"},
	{"folders", "folders", "폴더"},
	{"servers", "language servers", "언어 서버"},
	{"pty", "terminals", "가상 터미널"},
	{"disk", "disk", "디스크"},
	{"terminal", "terminal", "터미널"},
	{"locale", "locale", "로캘"},
	{"colour", "colours", "색 있음"},
	{"plain", "no colours", "색 없음"},
	{"built-in", "built in", "내장 값"},
	{"environment", "environment", "환경 변수"},
	{"flag", "flag", "옵션"},
	{"user", "user settings", "사용자 설정"},
	{"project", "project settings", "프로젝트 설정"},
	{"local settings", "local settings", "로컬 설정"},
	{"managed", "administrator", "관리자 설정"},
	{"--settings", "--settings", "--settings"},
	{"idle", "idle", "대기"},
	{"running", "running", "실행 중"},
	{"waiting", "waiting", "답을 기다림"},
	{"interrupted", "interrupted", "중단됨"},
	{"damaged", "damaged", "손상됨"},
	{"file", "the file with keys", "키 파일"},
	{"hook.passed", "passed", "통과"},
	{"hook.blocked", "blocked", "막음"},
	{"hook.failed", "failed", "실패"},
	{"hook.timeout", "stopped at its time limit", "시간 제한으로 중단"},
	{"hook.cancelled", "cancelled", "취소"},
	{"hook.denied", "it does not happen", "일어나지 않음"},
	{"hook.told", "the model reads why", "모델이 이유를 읽음"},
	{"hook.goes on", "it goes on", "이어서 함"},
	{"level.full", "full", "완전"},
	{"level.reduced", "reduced", "일부"},
	{"level.none", "none", "없음"},
	{"brings.settings", "settings", "설정"},
	{"brings.hook", "hooks", "훅"},
	{"brings.skill", "skills", "스킬"},
	{"brings.command", "commands", "명령"},
	{"brings.agent", "agents", "에이전트"},
	{"brings.rule", "rules", "규칙"},
	{"brings.server", "servers", "서버"},
	{"brings.plugin", "plugins", "플러그인"},
	{"brings.text", "instructions for the model", "모델에게 주는 지침"},
	{"brings.other", "other files", "그 밖의 파일"},
	{"change.added", "added", "추가됨"},
	{"change.removed", "removed", "사라짐"},
	{"change.changed", "changed", "바뀜"},
	{"allow", "allow", "허용"},
	{"ask", "ask", "물음"},
	{"deny", "deny", "거부"},
	{"rule", "rule", "규칙"},
	{"mode", "mode", "모드"},
	{"user", "user", "사용자"},
	{"floor", "floor", "최소 기준"},
	{"import.new", "new", "새것"},
	{"import.exists", "imported", "가져옴"},
	{"end.done", "done", "마침"},
	{"end.interrupted", "interrupted", "중단됨"},
	{"end.failed", "failed", "실패"},
	{"end.limit", "stopped at a limit", "한도에서 멈춤"},
	{"end.refused", "refused by the model", "모델이 거절함"},
	{"end.stopped", "stopped", "멈춤"},
	{"file.changed", "changed", "바꿈"},
	{"file.deleted", "deleted", "지움"},
	{"file.untouched", "untouched", "그대로"},
	{"load.ok", "whole", "온전함"},
	{"load.recovered", "recovered", "복구됨"},
	{"load.refused", "refused", "거부됨"},
	{"system_prompt", "instructions", "지침"},
	{"system_tools", "tools", "도구"},
	{"mcp_tools", "tools of servers", "서버의 도구"},
	{"mcp_tools_deferred", "tools on request", "요청 시 도구"},
	{"custom_agents", "agents", "에이전트"},
	{"memory", "instructions", "지침"},
	{"plugin.by.managed", "managed", "관리자"},
	{"plugin.by.flag", "flag", "명령줄"},
	{"plugin.by.local", "local", "로컬 설정"},
	{"plugin.by.project", "project", "프로젝트 설정"},
	{"plugin.by.user", "user", "사용자 설정"},
	{"plugin.by.command", "command", "명령"},
	{"plugin.by.folder", "folder", "이 폴더"},
	{"plugin.by.plugin", "plugin", "플러그인"},
	{"tool.on", "on", "켬"},
	{"tool.named", "loaded when the model looks for it", "모델이 찾으면 불러옴"},
	{"tool.off", "off", "끔"},
	{"tool.off.role", "not for this kind of work", "이 작업 종류에는 주지 않음"},
	{"tool.off.useless", "of no use here", "여기서는 쓸모없음"},
	{"tool.off.none-named", "there is nothing to look for", "찾을 것이 없음"},
	{"tool.from.built-in", "built in", "내장"},
	{"tool.from.config", "bundle", "번들"},
	{"tool.from.skill", "skill", "스킬"},
	{"tool.from.plugin", "plugin", "플러그인"},
	{"tool.from.extension", "extension", "확장"},
	{"tool.from.mcp", "server", "서버"},
	{"rule.switched", "switched off in this session", "이 세션에서 끔"},
	{"server.ready", "ready", "준비됨"},
	{"server.waiting", "waits for your yes", "승인 대기"},
	{"server.changed", "changed since you said yes", "승인 뒤 바뀜"},
	{"server.rejected", "you said no", "거부함"},
	{"server.untrusted", "its folder is not trusted", "폴더를 신뢰하지 않음"},
	{"server.off", "off", "끔"},
	{"server.forbidden", "forbidden", "금지됨"},
	{"server.broken", "cannot be used", "쓸 수 없음"},
	{"server.hidden", "hidden by another", "다른 것에 가려짐"},
	{"server.connecting", "connecting", "연결 중"},
	{"server.connected", "connected", "연결됨"},
	{"server.failed", "failed", "실패"},
	{"server.login", "wants you to sign in", "로그인 필요"},
	{"scope.managed", "managed", "관리자"},
	{"scope.given", "command line", "명령줄"},
	{"scope.local", "local", "로컬"},
	{"scope.project", "project", "프로젝트"},
	{"scope.user", "user", "사용자"},
	{"scope.agent", "agent", "에이전트"},
	{"scope.plugin", "plugin", "플러그인"},
	{"memory.managed", "managed", "관리자"},
	{"rule.managed", "of the machine", "컴퓨터 관리자"},
	{"rule.flags", "command line", "명령줄"},
	{"rule.local", "local", "로컬"},
	{"rule.project", "project", "프로젝트"},
	{"rule.user", "user", "사용자"},
	{"rule.granted", "answered: always, in this folder", "이 폴더에서 항상 허용으로 답함"},
	{"rule.session", "answered: for this session", "이 세션에서 허용으로 답함"},
	{"memory.user", "user", "사용자"},
	{"memory.project", "project", "프로젝트"},
	{"memory.local", "local", "로컬"},
	{"memory.active", "active", "적용"},
	{"memory.waiting", "waiting", "대기"},
	{"memory.untrusted", "not trusted", "신뢰 안 함"},
	{"memory.excluded", "excluded", "제외"},
	{"memory.same", "the same", "중복"},
	{"memory.refused", "refused", "거부"},
	{"memory_files", "memory files", "메모리 파일"},
	{"skills", "skills", "스킬"},
	{"messages", "messages", "메시지"},
	{"mentions", "files that were named", "언급한 파일"},
	{"lessons", "lessons", "배운 점"},
	{"hooks", "hooks", "훅"},
	{"effort", "effort", "생각 정도"},
	{"steps", "steps", "단계"},
	{"budget", "budget", "예산"},
	{"verification", "verification", "검증"},
	{"plan", "plan", "계획"},
	{"plan.proposed", "proposed", "제안"},
	{"plan.changed", "changed", "변경"},
	{"plan.approved", "approved", "승인"},
	{"plan.rejected", "rejected", "거부"},
	{"plan.regenerate", "another", "다시"},
	{"on", "on", "켬"},
	{"off", "off", "끔"},
	{"required", "required", "필수"},
	{"optional", "optional", "선택"},
	{"left out", "left out for want of room", "자리가 없어 뺌"},
	{"no limit", "none", "없음"},
	{"autocompact_buffer", "kept free", "비워 두는 공간"},
	{"free_space", "free", "빈 공간"},
	{"input", "input", "입력"},
	{"answer", "answer", "답변"},
	{"call", "call", "호출"},
	{"result", "result", "결과"},
	{"title", "title", "제목"},
	{"checklist", "your checklist", "점검 목록"},
	{"left.missing", "not there", "없음"},
	{"left.outside", "outside the folder", "폴더 밖"},
	{"left.secret", "may hold secrets", "비밀이 있을 수 있음"},
	{"left.denied", "denied by a rule", "규칙이 막음"},
	{"left.binary", "no text", "텍스트가 아님"},
	{"left.no-lines", "has no such lines", "그런 줄이 없음"},
	{"left.full", "too much already", "이미 너무 많음"},
	{"left.too-large", "too large", "너무 큼"},
	{"left.no-media", "the model takes no such media", "모델이 받지 않는 형식"},
	{"left.unreadable", "cannot be read", "읽을 수 없음"},
	{"left.named", "address only", "주소만"},
	{"high", "high", "높음"},
	{"medium", "medium", "보통"},
	{"low", "low", "낮음"},
}

// Word returns a small word of a diagnosis in the language; what is none of them
// stays as it is.
func (c Catalog) Word(key string) string {
	for _, w := range words {
		if w.key == key {
			if c.Language() == "ko" {
				return w.ko
			}
			return w.en
		}
	}
	return key
}

// Group returns the heading of a group of findings.
func (c Catalog) Group(group string) string { return c.Word(group) }

// Finding returns what to tell a person of f. One whose code is not known speaks
// for itself. A finding that is a problem has the problem's code behind
// "problem.". fix may be "".
func (c Catalog) Finding(f query.Finding) (name, detail, fix string) {
	name = c.Word(f.Name)
	if code, ok := strings.CutPrefix(f.Code, "problem."); ok {
		p := &agent.Problem{Code: agent.ProblemCode(code), Message: f.Detail, Fix: f.Fix, Args: f.Args}
		detail, fix = c.Problem(p)
		return name, detail, fix
	}
	for _, s := range findings {
		if s.code != f.Code {
			continue
		}
		value := func(arg string) (string, bool) {
			v, ok := f.Args[arg]
			return c.argument(arg, v), ok
		}
		if c.Language() == "ko" {
			return name, fill(s.detailK, value), fill(s.fixK, value)
		}
		return name, fill(s.detail, value), fill(s.fix, value)
	}
	return name, f.Detail, f.Fix
}

// argument translates what is filled in, where it is one of our own words.
func (c Catalog) argument(arg, v string) string {
	switch arg {
	case "where":
		return c.Origin(v)
	case "colour":
		return c.Word(v)
	case "text", "why", "error", "fix":
		return c.Phrase(v)
	}
	return v
}

// Origin returns where a setting comes from: a layer, and the place in it.
func (c Catalog) Origin(origin string) string {
	layer, place, found := strings.Cut(origin, " ")
	if !found {
		return c.Word(layer)
	}
	return c.Word(layer) + " " + place
}

// KeySource returns where a key comes from, as [query.ProviderInfo] has it.
func (c Catalog) KeySource(from string) string {
	name, ok := strings.CutPrefix(from, "environment (")
	switch {
	case from == "":
		return c.Say(KeyNone)
	case ok:
		return c.Say(KeyEnvironment, "name", strings.TrimSuffix(name, ")"))
	case from == "keychain":
		return c.Word("keychain")
	}
	return c.Word(from)
}
