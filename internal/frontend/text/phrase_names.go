package text

// namings are phrases about files and sessions that somebody has named.
var namings = [...][2]string{
	{"no session of another product has this ID", "다른 제품의 세션에 이 ID가 없음"},
	{"no such product: claude, codex, opencode or jsonl", "그런 제품이 없음: claude, codex, opencode, jsonl"},
	{"it holds no sessions that can be read", "읽을 수 있는 세션이 없음"},
	{"it holds no conversation", "대화가 없음"},
	{"no conversation can be made of it", "대화로 만들 수 없음"},
	{"the session is too large", "세션이 너무 큼"},
	{"whose session it is cannot be told; --from says it: claude, codex, opencode or jsonl", "어느 제품의 세션인지 알 수 없음. --from으로 정하세요: claude, codex, opencode, jsonl"},
	{"see what there is with: dure import", "무엇이 있는지 보려면: dure import"},
	{"file already exists", "이미 있는 파일"},
	{"name another file", "다른 파일을 적으세요."},
	{"managed settings let no rules count but their own", "관리 설정이 다른 규칙을 막음"},
	{"it is for somebody else", "다른 사람에게 적용되는 규칙"},
	{"the folder is not trusted", "신뢰하지 않는 폴더"},
	{"no repository may decide it", "저장소가 정할 수 없음"},
	{"the administrator leaves it to nobody else", "관리자만 정할 수 있음"},
	{"write it as in Bash(go test *), Read(~/notes/**) or WebFetch(domain:example.com)", "Bash(go test *), Read(~/notes/**), WebFetch(domain:example.com)처럼 쓰세요"},
	{"/init changes instructions that were there before only when you agree", "이미 있던 지침은 동의해야만 /init이 바꿈"},
}
