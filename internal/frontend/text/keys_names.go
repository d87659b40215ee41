package text

// Messages on what somebody names: sessions, commands and flags that there are, nearly
// are, or are not.
const (
	NearSessions Key = iota + nameKeys
	NoneTagged
	NoneHere
	NoneShown
	JustNow
	UnknownWithin
	SeeHelp
	WantWhole
	TagWhich
	EditedAway
	TooFewTurns
	FixTooFewTurns
	OnlyWith
	WriteOver
	RememberUnread
	RememberHow
	ResumeHere
	ResumeNone
	ResumeWhich
	ResumeBusy
	FromBehindTo

	// How the session that is open is kept, and where one cannot be.
	MemoryEdited
	FlagEditTakeover
	FlagListProfile
	FlagForkSession
	FlagResumeAt
	ProblemGone
	FixGone
	Kept

	hookKeys = iota + nameKeys // where those of the next file begin
)

// nameTexts are the messages of the keys above, in English and Korean.
var nameTexts = [hookKeys - nameKeys]both{
	NearSessions - nameKeys:     {"Did you mean {list}? dure sessions lists all.", "{list|을/를} 뜻했나요? 모두 보려면: dure sessions"},
	NoneTagged - nameKeys:       {"No session has the tag {tag}.", "{tag} 태그가 달린 세션이 없습니다."},
	NoneHere - nameKeys:         {"There are no sessions of this folder.", "이 폴더의 세션이 없습니다."},
	NoneShown - nameKeys:        {"All sessions have been put away. dure sessions --all lists them.", "모든 세션을 보관했습니다. 모두 보려면: dure sessions --all"},
	JustNow - nameKeys:          {"now", "방금"},
	UnknownWithin - nameKeys:    {"{command} has no command {name}", "{command}에는 {name} 명령이 없습니다"},
	SeeHelp - nameKeys:          {"See {command} --help.", "{command} --help를 보세요."},
	WantWhole - nameKeys:        {"a whole number", "정수"},
	TagWhich - nameKeys:         {"name the session: dure sessions tag ID [TAG...]", "세션을 적으세요: dure sessions tag ID [TAG...]"},
	EditedAway - nameKeys:       {"put away", "보관함"},
	TooFewTurns - nameKeys:      {"{session} has {n} {n?request/requests} to go back behind, not {turns}", "{session}에는 되돌아갈 요청이 {turns}개가 아니라 {n}개 있습니다"},
	FixTooFewTurns - nameKeys:   {"See them with: dure show {session}", "보려면: dure show {session}"},
	OnlyWith - nameKeys:         {"{one} needs {other}", "{one}에는 {other|이/가} 필요합니다"},
	WriteOver - nameKeys:        {"Name another file, or write over it with --force.", "다른 파일을 적거나 --force로 덮어쓰세요."},
	RememberUnread - nameKeys:   {"this folder is not trusted, so that nothing in it is read: dure trust", "이 폴더를 신뢰하지 않아 그 안의 것을 읽지 않습니다: dure trust"},
	RememberHow - nameKeys:      {"# TEXT adds a line to an instruction file: # Use tabs", "# 글은 지침 파일에 한 줄을 더합니다: # 탭을 쓴다"},
	ResumeHere - nameKeys:       {"this is that session", "지금 이 세션입니다"},
	ResumeNone - nameKeys:       {"there is no other session of this folder", "이 폴더의 다른 세션이 없습니다"},
	ResumeWhich - nameKeys:      {"/resume NUMBER goes on with one of them", "/resume 번호로 이어 합니다"},
	ResumeBusy - nameKeys:       {"a turn is running: wait for it, or interrupt it with Ctrl-C", "턴이 진행 중입니다. 기다리거나 Ctrl-C로 멈추세요"},
	MemoryEdited - nameKeys:     {"Changes hold from your next request on.", "바꾼 내용은 다음 요청부터 적용됩니다."},
	FlagEditTakeover - nameKeys: {"end the process that has the session, if it hangs", "세션을 가진 프로세스가 멈춰 있으면 끝내기"},
	FlagListProfile - nameKeys:  {"of this kind of work only", "이 종류의 작업만"},
	ProblemGone - nameKeys:      {"session {session} cannot go on in {path}: {error}", "세션 {session|은/는} {path}에서 이어 갈 수 없습니다: {error}"},
	FixGone - nameKeys:          {"Make the folder again, or go on over its files in another one with: dure fork {session} --at NO --files FOLDER", "폴더를 다시 만들거나, 다른 폴더에서 이어 가세요: dure fork {session} --at 번호 --files 폴더"},
	Kept - nameKeys:             {"{session} · {title}", "{session} · {title}"},
	FlagForkSession - nameKeys:  {"with --resume or --continue: go on in a copy", "--resume나 --continue와 함께: 복사본에서 이어 가기"},
	FlagResumeAt - nameKeys:     {"with --resume or --continue: go on in a copy up to this message or event", "--resume나 --continue와 함께: 이 메시지나 이벤트까지의 복사본에서 이어 가기"},
	FromBehindTo - nameKeys:     {"--from {from} is behind --to {to}", "--from {from|이/가} --to {to}보다 뒤입니다"},
}
