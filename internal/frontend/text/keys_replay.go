package text

// Messages on replays, on forks over files, on sessions side by side, and on lists of
// many.
const (
	WantSpeed Key = iota + replayKeys
	WantTime
	FlagForkFiles
	FlagForkForce
	FlagRun
	FlagForkPrompt
	ForkAppend
	ForkNeedsAt
	ForkConflicts
	HelpCompare
	NeedTwo
	BusyCompare
	CompareSame
	ComparePart
	CompareApart
	CompareCalls
	CompareFiles
	CompareCut
	CompareSession
	CompareModel
	CompareAsked
	CompareOutcome
	CompareSteps
	CompareCount
	CompareUse
	CompareAnswer
	ReplayMore
	ReplayWant
	ReplayCame
	StandHead
	StandUse
	StandRunning
	StandWaiting
	StandTasks
	StandFiles
	StandTalk
	Playing
	PlayPaused
	PlayEnd
	PlayKeys
	PlaySeek
	PlayNoEvent
	PlayLong
	FixPlayLong
	FlagPlayFrom
	FlagUntil
	FlagSpeed
	FlagNoWait
	FlagMaxPause
	SessionsMore
	PickMore
	FlagListed
	WantListed

	nameKeys = iota + replayKeys // where those of the next file begin
)

// replayTexts are the messages of the keys above, in English and Korean.
var replayTexts = [nameKeys - replayKeys]both{
	WantSpeed - replayKeys:      {"a number above 0 and at most 1000", "0보다 크고 1000 이하인 수"},
	WantTime - replayKeys:       {"a time such as 2s or 500ms", "2s나 500ms 같은 시간"},
	FlagForkFiles - replayKeys:  {"the files that it works on: keep, restore (as they were at --at), or a new folder for them", "작업할 파일: keep, restore(--at 때로 되돌림), 또는 담을 새 폴더"},
	FlagForkForce - replayKeys:  {"with --files restore: put back what somebody else has changed since, too", "--files restore에서 그 뒤 다른 곳에서 바뀐 것까지 되돌림"},
	FlagRun - replayKeys:        {"go on at once with the turn that it is in, and show the answer", "속해 있던 턴을 바로 이어 가고 답을 보여 줌"},
	FlagForkPrompt - replayKeys: {"say this in it at once, and show the answer", "바로 이 말을 하고 답을 보여 줌"},
	ForkAppend - replayKeys:     {"--append-system-prompt holds for what runs now: add --run, --prompt or --edit", "--append-system-prompt는 지금 실행하는 것에만 쓰입니다: --run, --prompt, --edit 중 하나와 함께 쓰세요"},
	ForkNeedsAt - replayKeys:    {"--files needs the event that the files go back to: --at", "--files에는 되돌릴 이벤트가 필요합니다: --at"},
	ForkConflicts - replayKeys:  {"{n} {n?file/files} changed by others since; nothing was put back. Overwrite them with --force, or use another folder: --files DIR", "그 뒤 다른 곳에서 바뀐 파일이 {n}개라 되돌리지 않았습니다. 덮어쓰려면 --force, 다른 폴더에 담으려면 --files 폴더"},
	HelpCompare - replayKeys:    {"put two sessions side by side: where they part, answers, calls, files, cost", "두 세션을 나란히 비교: 갈라진 곳, 답, 호출, 파일, 비용"},
	NeedTwo - replayKeys:        {"name two sessions: dure compare A B", "두 세션을 적으세요: dure compare A B"},
	BusyCompare - replayKeys:    {"comparing", "비교하는 중"},
	CompareSame - replayKeys:    {"they are the same {n} {n?event/events}", "같은 이벤트 {n}개입니다"},
	ComparePart - replayKeys:    {"{n} {n?event/events} together; what follows is what each did since", "이벤트 {n}개를 함께 갖고, 아래는 그 뒤의 일입니다"},
	CompareApart - replayKeys:   {"they have no event together", "함께 갖는 이벤트가 없습니다"},
	CompareCalls - replayKeys:   {"Calls (= both, A and B one of them)", "호출(= 둘 다, A와 B는 한쪽)"},
	CompareFiles - replayKeys:   {"Files that ended up different", "달라진 파일"},
	CompareCut - replayKeys:     {"there is more than a comparison holds; the first of it is shown", "비교에 다 담을 수 없어 앞부분만 보여 줍니다"},
	CompareSession - replayKeys: {"session", "세션"},
	CompareModel - replayKeys:   {"model", "모델"},
	CompareAsked - replayKeys:   {"asked", "요청"},
	CompareOutcome - replayKeys: {"outcome", "결과"},
	CompareSteps - replayKeys:   {"work", "일"},
	CompareCount - replayKeys:   {"{turns} {turns?turn/turns}, {steps} {steps?step/steps}, {calls} {calls?call/calls}, {failed} failed", "턴 {turns}, 단계 {steps}, 호출 {calls}, 실패 {failed}"},
	CompareUse - replayKeys:     {"used", "사용"},
	CompareAnswer - replayKeys:  {"answer", "답"},
	ReplayMore - replayKeys:     {"{decisions} {decisions?decision/decisions} on calls, {again} of them made again and equal; the state compared {folds} {folds?time/times}", "호출에 대한 결정 {decisions}개 중 {again}개를 다시 내렸고 같습니다. 상태를 {folds}번 비교했습니다"},
	ReplayWant - replayKeys:     {"  recorded: {value}", "  기록: {value}"},
	ReplayCame - replayKeys:     {"  replayed: {value}", "  재현: {value}"},
	StandHead - replayKeys:      {"{session} at event {seq} of {head}, {time}", "{session} 이벤트 {seq}/{head}, {time}"},
	StandUse - replayKeys:       {"{turns} {turns?turn/turns}, {context} tokens of context, {in} in, {out} out, {cost}", "턴 {turns}개, 컨텍스트 {context} 토큰, 입력 {in}, 출력 {out}, {cost}"},
	StandRunning - replayKeys:   {"a turn was running", "턴이 진행 중이었습니다"},
	StandWaiting - replayKeys:   {"waiting for a word on: {call}", "허락을 기다리던 호출: {call}"},
	StandTasks - replayKeys:     {"Tasks", "할 일"},
	StandFiles - replayKeys:     {"Files seen (* written)", "본 파일(* 쓴 파일)"},
	StandTalk - replayKeys:      {"Conversation", "대화"},
	Playing - replayKeys:        {"playing", "재생"},
	PlayPaused - replayKeys:     {"paused", "멈춤"},
	PlayEnd - replayKeys:        {"end", "끝"},
	PlayKeys - replayKeys:       {"q quit · space pause · ←/→ event · [ ] turn · g seek · f fork", "q 끝내기 · 스페이스 멈춤 · ←/→ 이벤트 · [ ] 턴 · g 이동 · f 갈라 나가기"},
	PlaySeek - replayKeys:       {"go to event: {seq}", "이동할 이벤트: {seq}"},
	PlayNoEvent - replayKeys:    {"there is no event {seq}; the last one is {head}", "이벤트 {seq|이/가} 없습니다. 마지막은 {head}입니다"},
	PlayLong - replayKeys:       {"the session has more than {n} events, too many to go back and forth in", "이벤트가 {n}개보다 많아 앞뒤로 오갈 수 없습니다"},
	FixPlayLong - replayKeys:    {"Name the last one to play with --to, or take the timeline: --json.", "--to로 마지막 이벤트를 정하거나 --json으로 연대표를 보세요."},
	FlagPlayFrom - replayKeys:   {"play from this event on", "이 이벤트부터 재생"},
	FlagUntil - replayKeys:      {"up to this event; without --from, show how the session stood there", "이 이벤트까지. --from 없이 쓰면 그때의 세션을 보여 줌"},
	FlagSpeed - replayKeys:      {"how much faster than it was (on a terminal)", "실제보다 몇 배 빠르게(터미널에서)"},
	FlagNoWait - replayKeys:     {"without the time between events", "이벤트 사이를 기다리지 않음"},
	FlagMaxPause - replayKeys:   {"the longest pause; 0 = as long as it was", "가장 긴 멈춤. 0 = 실제 그대로"},
	SessionsMore - replayKeys:   {"{n} more: --limit 0 lists them; --all does, with those put away", "{n}개 더 있습니다. --limit 0은 모두, --all은 보관한 것까지 모두 보여 줍니다"},
	PickMore - replayKeys:       {"{n} more are listed by: dure sessions --limit 0", "{n}개 더 있습니다. 목록: dure sessions --limit 0"},
	FlagListed - replayKeys:     {"at most so many, the pinned and the newest; 0 = all", "고정한 것과 새로운 것부터 이만큼만. 0 = 모두"},
	WantListed - replayKeys:     {"a number; 0 = all", "수. 0 = 모두"},
}
