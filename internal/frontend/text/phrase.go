package text

import "strings"

// phrases are sentences that other packages write in English, because a log or a
// model reads them too, and what they are in Korean. {name} stands for a piece
// that is carried over; one that begins with a capital is looked up itself.
var phrases = [...][2]string{
	// Why a call is allowed, asked about or denied.
	{"mode {mode}: {Why}, and nothing is changed before the plan is approved", "{mode} 모드: {Why}. 계획을 승인받기 전에는 아무것도 바꾸지 않습니다"},
	{"{Why} (mode dontAsk: nobody is asked)", "{Why}(dontAsk 모드: 묻지 않음)"},
	{"mode {mode}: {Why}", "{mode} 모드: {Why}"},
	{"deny rule {rule}", "금지 규칙 {rule}"},
	{"ask rule {rule}", "물음 규칙 {rule}"},
	{"allow rule {rule}", "허용 규칙 {rule}"},
	{"no rule allows what cannot be read: {Why}", "내용을 알 수 없는 호출은 규칙으로 허용되지 않습니다: {Why}"},
	{"what it would do cannot be told: {Why}", "무엇을 할지 알 수 없습니다: {Why}"},
	{"the call needs the user's answer", "사용자의 답이 필요합니다"},
	{"the call is transactional: each one is approved on its own", "거래라서 하나씩 승인해야 합니다"},
	{"{path} is a protected path", "{path|은/는} 보호된 경로입니다"},
	{"it touches nothing", "아무것도 건드리지 않습니다"},
	{"it reads inside the workspace", "작업 폴더 안을 읽습니다"},
	{"it changes {path}", "{path|을/를} 바꿉니다"},
	{"{path} is outside of the workspace", "{path|은/는} 작업 폴더 밖입니다"},
	{"it runs a command", "명령을 실행합니다"},
	{"it runs {command}", "실행: {command}"},
	{"it removes {path}", "{path|을/를} 지웁니다"},
	{"it removes all of {path}", "{path|을/를} 모두 지웁니다"},
	{"it cannot be reviewed: {Why}", "검토할 수 없습니다: {Why}"},
	{"it is a tool of a server", "서버의 도구입니다"},
	{"without the rule {rule}", "규칙 {rule|이/가} 없으면"},
	{"what the group has by default", "묶음의 기본값"},
	{"by class and risk", "종류와 위험에 따라"},
	{"mode bypassPermissions is switched off by {origin}", "bypassPermissions 모드는 {origin}에서 꺼 두었습니다"},

	// Why an instruction file is not read.
	{"the folder is not trusted", "폴더를 신뢰하지 않음"},
	{"excluded by the settings", "설정에서 제외"},
	{"the same file as {path}", "{path|과/와} 같은 파일"},
	{"the same text as {path}", "{path|과/와} 같은 내용"},
	{"included by {path}", "{path|이/가} 포함함"},
	{"too many files", "파일이 너무 많음"},
	{"too much text became active", "적용할 내용이 너무 많음"},
	{"it is outside of the project", "프로젝트 밖에 있음"},
	{"it may hold credentials", "인증 정보가 들어 있을 수 있음"},
	{"it is not text", "텍스트가 아님"},

	// Why a turn ends before its budget is exceeded.
	{"the next request may cost {cost}, and {left} of {all} are left", "다음 요청에 {cost}까지 들 수 있는데 {all} 중 {left}만 남았습니다"},
	{"the next request may take {cost} tokens, and {left} of {all} are left", "다음 요청에 토큰 {cost}개까지 들 수 있는데 {all}개 중 {left}개만 남았습니다"},
	{"the price of the model is not known, and the budget is in money", "모델의 가격을 알 수 없어 금액 예산을 지킬 수 없습니다"},

	{"what is done to files from now on cannot be taken back: {Error}", "지금부터 파일에 하는 일은 되돌릴 수 없습니다: {Error}"},

	// What confines commands.
	{"Only the workspace, caches and a private /tmp can be written.", "작업 폴더와 캐시와 따로 둔 /tmp에만 쓸 수 있습니다."},
	{"Only the workspace, caches and a private folder for temporary files can be written.", "작업 폴더와 캐시와 따로 둔 임시 폴더에만 쓸 수 있습니다."},
	{"Protected paths of the workspace are read-only, and cannot be made, moved or replaced.", "작업 폴더의 보호된 경로는 읽기 전용이며 만들거나 옮기거나 바꿀 수 없습니다."},
	{"Credentials and the sockets of agents look empty; below /run there is nothing.", "자격 증명과 에이전트 소켓은 빈 것으로 보이고 /run 아래에는 아무것도 없습니다."},
	{"Credentials cannot be read; nor can what is new beside them.", "자격 증명과 그 옆에 새로 생긴 것은 읽을 수 없습니다."},
	{"Other processes cannot be seen, traced or signalled, and everything ends with the command.", "다른 프로세스를 보거나 추적하거나 신호를 보낼 수 없고, 모두 명령과 함께 끝납니다."},
	{"Namespaces, mounts, kernel keys, BPF, io_uring and typing into terminals are refused.", "네임스페이스, 마운트, 커널 키, BPF, io_uring, 터미널 입력 흉내는 거부됩니다."},
	{"Core dumps are off; the size of files and the number of processes are bounded.", "코어 덤프는 없고 파일 크기와 프로세스 수에 한도가 있습니다."},
	{"There is no network but a loopback of the command's own.", "명령 자신의 루프백 말고는 네트워크가 없습니다."},
	{"Landlock refuses writes a second time.", "Landlock이 쓰기를 한 번 더 막습니다."},
	{"Memory is bounded for each process at most, not for the command as a whole.", "메모리 한도는 프로세스마다 있고 명령 전체에는 없습니다."},
	{"Repositories in folders below the workspace are not protected: only those at its top are.", "작업 폴더 맨 위의 저장소만 보호되고 아래 폴더의 저장소는 보호되지 않습니다."},
	{"Local sockets that stand in files outside of /run and /tmp, and are not hidden, can be connected to.", "/run과 /tmp 밖의 숨기지 않은 소켓 파일에는 연결할 수 있습니다."},
	{"Programs of another architecture, 32-bit ones among them, do not run.", "32비트를 비롯해 다른 아키텍처의 프로그램은 실행되지 않습니다."},
	{"Protected paths in the workspace can be written: settings and hooks of git, editors and agents.", "작업 폴더의 보호된 경로(git, 편집기, 에이전트의 설정과 훅)에 쓸 수 있습니다."},
	{"All of the workspace can be read, also what rules and settings forbid to read there.", "작업 폴더는 규칙과 설정이 읽기를 금지한 것까지 모두 읽을 수 있습니다."},
	{"The network is off even where hosts were allowed: there is no way to the proxy.", "허용된 호스트가 있어도 프록시로 가는 길이 없어 네트워크가 꺼져 있습니다."},
	{"Nothing is confined: commands do what the user can.", "아무것도 가두지 않습니다. 명령은 사용자가 할 수 있는 일을 모두 합니다."},
	{"Nothing is confined: this was not asked for.", "가두지 않도록 설정되어 있습니다."},

	// What is odd about rules and settings.
	{"{place}: the rule {rule} cannot be read: {why}", "{place}: 규칙 {rule|을/를} 읽을 수 없습니다: {why}"},
	{"{n} more rules cannot be read", "읽을 수 없는 규칙 {n}개가 더 있습니다"},
	{"no telemetry is sent: {name}: {Why}", "원격 측정을 보내지 않습니다. {name}: {Why}"},
	{"telemetry is not sent to {host}, which would not be encrypted: take https, or set telemetry.insecure", "암호화되지 않아 {host|으로/로}는 원격 측정을 보내지 않습니다. https를 쓰거나 telemetry.insecure를 켜세요"},
	{"telemetry is not sent to {host}: the network mode {mode} does not let it be asked", "네트워크 모드 {mode}에서는 {host}에 닿을 수 없어 원격 측정을 보내지 않습니다"},
	{"{name} is {value}: dure knows otlp and none", "{name} 값이 {value}입니다. dure가 아는 것은 otlp와 none입니다"},
	{"{place}: {key} is for administrators", "{place}: {key|은/는} 관리자만 정합니다"},
	{"every call is denied until this is mended: {Error}", "고칠 때까지 모든 호출을 거부합니다: {Error}"},
	{"line {n}, column {m}: {Error}", "{n}번째 줄 {m}번째 글자: {Error}"},
	{"the key {key} means nothing here", "{key|이라는/라는} 키는 없습니다"},
	{"the key {key} stands there twice", "{key} 키가 두 번 있습니다"},
	{"{key} has more than {n} entries", "{key} 항목이 {n}개보다 많습니다"},
	{"mend the policy", "정책 파일을 고치세요"},
	{"another program is changing settings", "다른 프로그램이 설정을 바꾸고 있습니다"},
	{"it contacts {host}", "{host}에 접속합니다"},
	{"it reads what is private", "민감한 정보를 읽습니다"},
	{"it changes what runs later: {Why}", "나중에 실행될 것을 바꿉니다: {Why}"},
	{"what the bundle has its agents, tools and code do", "번들의 에이전트와 도구, 코드가 하는 일"},
	{"it is not known to be harmless", "해가 없는지 알 수 없습니다"},
	{"what the call would touch contains a NUL character", "건드릴 대상에 NUL 문자가 있습니다"},
	{"it needs approval, and {Why}; do it in smaller steps", "승인이 필요한데, {Why}. 더 작게 나누어 하세요"},
	{"the host cannot be asked, because the request has {n} bytes, and hosts take at most {most}", "요청이 {n}바이트라서 호스트에 물어볼 수 없습니다. 호스트는 한 번에 {most}바이트까지 받습니다"},
	{"it needs approval ({Why}), and nobody is there to ask", "승인이 필요하지만 물어볼 사람이 없습니다({Why})"},
	{"nobody is there to ask", "물어볼 사람이 없습니다"},
	{"the user interrupted", "사용자가 중단함"},
	{"a shell command is not analysed", "셸 명령은 분석하지 않습니다"},

	// What is odd about settings.
	{"{place}: the key {key} means nothing here; did you mean {near}?", "{place}: {key|이라는/라는} 키는 없습니다. {near|을/를} 뜻했나요?"},
	{"{place}: the key {key} means nothing here", "{place}: {key|이라는/라는} 키는 없습니다"},
	{"{place}: {n} more keys mean nothing here", "{place}: 알 수 없는 키 {n}개가 더 있습니다"},
	{"{place}: {key} is not taken from a repository; set it in your own settings", "{place}: 저장소의 {key|은/는} 쓰지 않습니다. 사용자 설정에 쓰세요"},
	{"{key} is set by your administrator ({path}), which overrides {before}", "{key|은/는} 관리자({path})가 정했으며 {before}보다 우선합니다"},
	{"the folder {path} counts as part of the workspace: what the model reads there, keys and passwords too, goes to its provider", "폴더 {path|이/가} 작업 공간에 들어갑니다. 모델이 그 안에서 읽는 것은 키와 암호까지 제공자에게 갑니다"},
	{"the folder {path} is to count as part of the workspace, and is not there", "작업 공간에 넣을 폴더 {path|이/가} 없습니다"},
	{"the rule {rule} matches no tool that is known", "규칙 {rule|은/는} 아는 어느 도구에도 맞지 않습니다"},
	{"this is no valid JSON: {error}", "올바른 JSON이 아닙니다: {error}"},
	{"it is larger than {n} bytes", "{n}바이트보다 큽니다"},
	{"it ends too early", "도중에 끝났습니다"},
	{"reading it: {Error}", "읽지 못했습니다: {Error}"},
	{"{value} is none of: {List}", "{value} 값은 쓸 수 없습니다. 쓸 수 있는 값: {List}"},
	{"{key} is {value} and has to be one of: {List}", "{key}: {value} 값은 쓸 수 없습니다. 쓸 수 있는 값: {List}"},
	{"{key} is {Kind} and has to be {Want}", "{key}: {Kind} 대신 {Want} 값이어야 합니다"},
	{"an address such as https://host/path", "https://호스트/경로 같은 주소"},
	{"an array", "목록"},
	{"an object", "객체"},
	{"a string", "문자열"},
	{"a number", "숫자"},
	{"a whole number", "정수"},
	{"a bool", "참/거짓"},
	{"true or false", "true나 false"},
	{"a list", "목록"},
	{"a list of strings", "문자열 목록"},
	{"there is a key for {provider}, and no model of it to take by itself", "{provider} 키는 있지만 저절로 고를 모델이 없습니다"},
	{"name one: --model {model}, or {key} in your settings", "--model {model} 또는 설정의 {key|으로/로} 모델을 정하세요"},
	{"the user has no home folder: HOME is not set", "홈 폴더가 없습니다. HOME이 설정되지 않았습니다"},
	{"Set HOME, or name a folder for everything that dure keeps with DURE_HOME.", "HOME을 설정하거나 DURE_HOME으로 dure가 쓸 폴더를 정하세요."},
	{"the certificates in {path} cannot be used: {Error}", "{path}의 인증서를 쓸 수 없습니다: {Error}"},
	{"there is no PEM certificate in it", "PEM 인증서가 없습니다"},
	{"it is no file of at most 4 MiB", "4MiB 이하의 파일이 아닙니다"},

	// What is wrong with a search.
	{"the query has no word to look for", "찾을 낱말이 없습니다"},
	{"the beginning of a word needs two letters", "낱말의 앞부분은 두 글자 이상이어야 합니다"},
	{"the query is longer than {n} bytes", "검색어가 {n}바이트보다 깁니다"},
	{"the query has more than {n} words", "검색어의 낱말이 {n}개보다 많습니다"},
	{"a kind is one of input, answer, call, result, title", "kind 값은 input, answer, call, result, title 중 하나입니다"},
	{"since is a time span or a day, such as 7d, 12h or 2026-01-31", "since 값은 7d, 12h, 2026-01-31 같은 기간이나 날짜입니다"},
	{"see what can be looked for with: dure help search", "찾는 방법: dure help search"},
	{"another process is using the search index", "다른 프로세스가 검색 색인을 쓰고 있습니다"},
	{"wait until it has ended", "끝날 때까지 기다리세요"},

	// What is wrong with logs and connections.
	{"opening session {id}: {Error}", "세션 {id}: {Error}"},
	{"the log is damaged: {Error}", "기록이 손상됨: {Error}"},
	{"the line after event {n}: {Error}", "이벤트 {n} 다음 줄: {Error}"},
	{"the checksum is wrong", "체크섬이 다름"},
	{"it has no end: {Error}", "끝이 없음: {Error}"},
	{"the seal does not fit: what it covers was changed", "봉인이 맞지 않음: 봉인된 내용이 바뀜"},
	{"the listing is not as it was written: {Error}", "목록이 쓰인 그대로가 아님: {Error}"},
	{"blob {sha} is gone", "블롭 {sha|이/가} 없음"},
	{"the snapshot is not as it was written: {Error}", "스냅샷이 쓰인 그대로가 아님: {Error}"},
	{"the log has had {n} events, and ends behind event {m}: its end was cut off", "이벤트가 {n}개였는데 {m}에서 끝남: 끝이 잘림"},
	{"{n} bytes stand behind the last event", "마지막 이벤트 뒤에 {n}바이트가 더 있음"},
	{"cannot connect to {host}: {Error}", "{host}에 연결할 수 없음: {Error}"},
	{"cannot reach {host} through the proxy: {Error}", "프록시로 {host}에 연결할 수 없음: {Error}"},
	{"the certificate of {host} is not trusted: {Error}", "{host}의 인증서를 믿을 수 없음: {Error}"},
	{"the endpoint does not speak the Messages API; check the base URL. It said: {text}", "Messages API를 쓰는 서비스가 아님. 기본 URL을 확인하세요. 응답: {text}"},
	{"{host} does not speak TLS; check whether the base URL begins with http or https", "{host|은/는} TLS를 쓰지 않음. 기본 URL이 http로 시작하는지 https로 시작하는지 확인하세요"},

	// What systems say.
	{"no such file or directory", "그런 파일이나 폴더가 없음"},
	{"permission denied", "권한 없음"},
	{"is a directory", "폴더임"},
	{"not a directory", "폴더가 아님"},
	{"not a regular file", "보통 파일이 아님"},
	{"read-only file system", "읽기 전용 파일 시스템"},
	{"no space left on device", "디스크가 가득 참"},
	{"connection refused", "연결이 거부됨"},
	{"connection reset by peer", "상대가 연결을 끊음"},
	{"no such host", "그런 호스트가 없음"},
	{"i/o timeout", "시간 초과"},
	{"context deadline exceeded", "시간 초과"},
	{"{before}: {Error}", "{before}: {Error}"},
}

// Phrase returns what s, a sentence that another package wrote in English, is in
// the language. What is not known stays as it is.
func (c Catalog) Phrase(s string) string {
	if c.Language() != "ko" {
		return s
	}
	const deepest = 6 // sentences in each other
	return koreanPhrase(s, deepest)
}

func koreanPhrase(s string, deep int) string {
	const longest = 8 << 10 // bytes; nothing of ours is longer
	if deep == 0 || len(s) > longest {
		return s
	}
	last := len(phrases) - 1 // fits nearly all
	for _, list := range [...][][2]string{flaggings[:], phrases[:last], filings[:], readings[:], mendings[:], namings[:], launchings[:], pluggings[:], hookings[:], skillings[:], servings[:], bundlings[:], phrases[last:]} {
		for _, p := range list {
			args, ok := match(p[0], s)
			if !ok {
				continue
			}
			for name, v := range args {
				if name[0] >= 'A' && name[0] <= 'Z' {
					args[name] = koreanPhrase(v, deep-1)
				}
			}
			return fill(p[1], func(name string) (string, bool) { v, ok := args[name]; return v, ok })
		}
	}
	return s
}

// match reads s as a pattern with placeholders: each takes as little as it can,
// the last one all that is left, and none takes nothing.
func match(pattern, s string) (map[string]string, bool) {
	literal, rest, found := strings.Cut(pattern, "{")
	if !found {
		return nil, pattern == s
	}
	s, ok := strings.CutPrefix(s, literal)
	if !ok {
		return nil, false
	}
	args := map[string]string{}
	for {
		name, after, _ := strings.Cut(rest, "}")
		literal, next, more := strings.Cut(after, "{")
		var value string
		if !more {
			if value, ok = strings.CutSuffix(s, literal); !ok || value == "" {
				return nil, false
			}
			args[name] = value
			return args, true
		}
		at := strings.Index(s, literal)
		if at < 1 {
			return nil, false
		}
		args[name], s, rest = s[:at], s[at+len(literal):], next
	}
}
