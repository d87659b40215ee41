package text

// The messages about hooks.
const (
	ProblemHook Key = hookKeys + iota
	FixHook
	HookRuns
	HookSaid
	HookFailed
	HookLate
	HookBlocked
	HookDropped
	HookTakenBack
	HookAsks
	HookIdle
	HelpHooks
	HelpHooksList
	HelpHooksEvents
	HelpHooksTest
	FlagHooksDry
	HooksNone
	HooksFix
	HooksAlways
	HooksOff
	HooksOffUntrusted
	HooksOffManaged
	HooksOffDisabled
	HooksFault
	HookOnce
	HookAsync
	HookRewake
	HookForbids
	HookIf
	HookSeconds
	HooksEvent
	HooksMatches
	HooksForbids
	HooksTypes
	HookTestInput
	HookTestHead
	HookTestNone
	HookTestLeft
	HooksOffChanged
	HookSkipMatcher
	HookSkipIf
	HookSkipOnce
	HookSkipSame
	HookSkipDry
	HookSkipSession
	HookSkipBroken
	HookTook
	HookEffectNone
	HookEffectDenied
	HookEffectTold
	HookEffectGoesOn
	HookEffectStop
	HookEffectAllow
	HookEffectAsk
	HookEffectInput
	HookEffectOutput
	HookEffectReads
	HookNoEvent
	HookFixEvent
	HookDeferred
	HookDeferredFix
	HookGranted
	FlagInit
	FlagInitOnly
	FlagMaintenance
	SetupDone
	MoveNot
	MoveNoFolder
	HookMute

	skillKeys = iota + hookKeys // where those of the next file begin
)

// hookTexts are the messages of the keys above.
var hookTexts = [skillKeys - hookKeys]both{
	ProblemHook - hookKeys:       {"the hook {hook} forbids it: {reason}", "{hook} 훅이 막았습니다: {reason}"},
	FixHook - hookKeys:           {"see what runs, and where it stands, with: dure hooks list", "실행되는 훅과 그 위치: dure hooks list"},
	HookRuns - hookKeys:          {"hook {hook}", "{hook} 훅"},
	HookSaid - hookKeys:          {"hook {hook}: {message}", "{hook} 훅: {message}"},
	HookFailed - hookKeys:        {"the hook {hook} failed at {event}: {message}", "{event}에서 {hook} 훅이 실패했습니다: {message}"},
	HookLate - hookKeys:          {"the hook {hook} was stopped at {event}: {message}", "{event}에서 {hook} 훅을 중단했습니다: {message}"},
	HookBlocked - hookKeys:       {"the hook {hook} objects at {event}: {message}", "{event}에서 {hook} 훅이 막았습니다: {message}"},
	HookTakenBack - hookKeys:     {"not sent: you interrupted while hooks looked at it", "보내지 않음: 훅이 살펴보는 동안 중단했습니다"},
	HookDropped - hookKeys:       {"not sent, by {by}: {reason}", "보내지 않음({by}): {reason}"},
	HookAsks - hookKeys:          {"dure needs your permission to use {tool}", "dure가 {tool} 사용 허락을 기다립니다"},
	HookIdle - hookKeys:          {"dure is waiting for your input", "dure가 입력을 기다립니다"},
	HelpHooks - hookKeys:         {"what runs at the moments of a session", "세션의 순간마다 실행되는 것"},
	HelpHooksList - hookKeys:     {"the hooks that are defined, by event", "정의된 훅을 이벤트별로 보기"},
	HelpHooksEvents - hookKeys:   {"the events at which hooks run", "훅이 실행되는 이벤트"},
	HelpHooksTest - hookKeys:     {"try the hooks of an event; what they are told is read from the input", "이벤트의 훅을 시험하기. 훅에 알릴 것은 입력에서 읽음"},
	FlagHooksDry - hookKeys:      {"say which hooks would run, and run none", "실행될 훅만 보이고 실행하지 않기"},
	HooksNone - hookKeys:         {"No hooks are defined.", "정의된 훅이 없습니다."},
	HooksFix - hookKeys:          {"They stand in settings under \"hooks\"; the events are listed by: dure hooks events", "설정의 \"hooks\"에 씁니다. 이벤트 목록: dure hooks events"},
	HooksAlways - hookKeys:       {"always", "항상"},
	HooksOff - hookKeys:          {"not in force: {source} ({why})", "적용되지 않음: {source} ({why})"},
	HooksOffUntrusted - hookKeys: {"the folder is not trusted; trust it with: dure trust", "폴더를 신뢰하지 않음. 신뢰하려면: dure trust"},
	HooksOffManaged - hookKeys:   {"the administrator permits his own hooks alone", "관리자가 자신의 훅만 허용함"},
	HooksOffDisabled - hookKeys:  {"disableAllHooks is set", "disableAllHooks가 켜져 있음"},
	HooksFault - hookKeys:        {"{source}: {at}: {message}", "{source}: {at}: {message}"},
	HookOnce - hookKeys:          {"once", "한 번"},
	HookAsync - hookKeys:         {"nobody waits", "기다리지 않음"},
	HookRewake - hookKeys:        {"nobody waits, exit code 2 wakes the model", "기다리지 않음, 종료 코드 2면 모델을 깨움"},
	HookForbids - hookKeys:       {"failing forbids", "실패하면 막음"},
	HookIf - hookKeys:            {"if {if}", "조건 {if}"},
	HookSeconds - hookKeys:       {"{n} s", "{n}초"},
	HooksEvent - hookKeys:        {"EVENT", "이벤트"},
	HooksMatches - hookKeys:      {"MATCHER LOOKS AT", "매처 대상"},
	HooksForbids - hookKeys:      {"BLOCKING", "막으면"},
	HooksTypes - hookKeys:        {"TYPES", "종류"},
	HookTestInput - hookKeys:     {"What hooks are to be told is read from the input until its end (Ctrl-D).", "훅에 알릴 것을 입력 끝(Ctrl-D)까지 읽습니다."},
	HookTestHead - hookKeys:      {"{event}: {n} defined, {run} would run", "{event}: 정의 {n}개, 실행 {run}개"},
	HookTestNone - hookKeys:      {"No hook is defined for {event}.", "{event}에 정의된 훅이 없습니다."},
	HookTestLeft - hookKeys:      {"No hook for {event} is in force.", "{event}에 쓰이는 훅이 없습니다."},
	HooksOffChanged - hookKeys:   {"changed since the folder was trusted: {list}; look with dure trust show, then trust it again with: dure trust", "폴더를 신뢰한 뒤 바뀜: {list}. dure trust show로 살펴보고 다시 신뢰하려면: dure trust"},
	HookSkipMatcher - hookKeys:   {"does not run: its matcher {matcher} does not fit {value}", "실행 안 함: 매처 {matcher}이(가) {value}에 맞지 않음"},
	HookSkipIf - hookKeys:        {"does not run: its condition does not hold: {if}", "실행 안 함: 조건이 맞지 않음: {if}"},
	HookSkipOnce - hookKeys:      {"does not run: it has run once", "실행 안 함: 이미 한 번 실행됨"},
	HookSkipSame - hookKeys:      {"does not run: other settings have the same hook", "실행 안 함: 다른 설정에 같은 훅이 있음"},
	HookSkipDry - hookKeys:       {"would run", "실행될 것임"},
	HookSkipSession - hookKeys:   {"would run; what it asks can be asked in a session alone", "실행될 것임. 이것이 묻는 것은 세션에서만 물을 수 있음"},
	HookSkipBroken - hookKeys:    {"cannot tell whether it is meant: {why}", "해당하는지 알 수 없음: {why}"},
	HookTook - hookKeys:          {"{outcome} after {ms} ms", "{outcome}, {ms}밀리초"},
	HookEffectNone - hookKeys:    {"Nothing would change.", "달라지는 것이 없습니다."},
	HookEffectDenied - hookKeys:  {"It would not happen: {reason}", "일어나지 않습니다: {reason}"},
	HookEffectTold - hookKeys:    {"The model would read: {reason}", "모델이 읽습니다: {reason}"},
	HookEffectGoesOn - hookKeys:  {"It would go on with: {reason}", "다음으로 이어집니다: {reason}"},
	HookEffectStop - hookKeys:    {"Everything would stop: {reason}", "모두 멈춥니다: {reason}"},
	HookEffectAllow - hookKeys:   {"It would be allowed, unless a rule forbids it or has it asked about: {reason}", "규칙이 막거나 묻게 하지 않으면 허용됩니다: {reason}"},
	HookEffectAsk - hookKeys:     {"A person would be asked: {reason}", "사람에게 묻습니다: {reason}"},
	HookEffectInput - hookKeys:   {"The input would be: {input}", "입력이 바뀝니다: {input}"},
	HookEffectOutput - hookKeys:  {"The output would be: {output}", "출력이 바뀝니다: {output}"},
	HookEffectReads - hookKeys:   {"The model would read: {text}", "모델이 읽습니다: {text}"},
	HookNoEvent - hookKeys:       {"{event} is no event of hooks", "{event}은(는) 훅 이벤트가 아닙니다"},
	HookFixEvent - hookKeys:      {"See them with: dure hooks events", "이벤트 목록: dure hooks events"},
	HookDeferred - hookKeys:      {"put aside by {by}: {call}", "미룸({by}): {call}"},
	HookDeferredFix - hookKeys:   {"It is decided on anew when you go on with: dure -p -r {session}", "이어서 하면 다시 결정합니다: dure -p -r {session}"},
	HookGranted - hookKeys:       {"allowed from now on by {by}: {rules}", "이제부터 허용({by}): {rules}"},
	FlagInit - hookKeys:          {"have the Setup hooks make the place ready first", "Setup 훅으로 준비부터 하기"},
	FlagInitOnly - hookKeys:      {"have them make it ready, and end", "준비만 하고 끝내기"},
	FlagMaintenance - hookKeys:   {"have the Setup hooks put the place in order first", "Setup 훅으로 정리부터 하기"},
	SetupDone - hookKeys:         {"Ready.", "준비했습니다."},
	MoveNot - hookKeys:           {"the folders cannot be changed here", "여기서는 폴더를 바꿀 수 없습니다"},
	HookMute - hookKeys:          {"a hook has something for the terminal, and this one takes nothing: it is left out", "훅이 터미널에 보낼 것이 있지만 이 터미널은 받지 못해서 뺐습니다"},
	MoveNoFolder - hookKeys:      {"{path} is not a folder that exists", "{path}은(는) 있는 폴더가 아닙니다"},
}
