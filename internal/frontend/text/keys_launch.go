package text

// The messages about what is launched from the prompt: calculator, snippets, links, notices.
const (
	HelpCalc Key = iota + launchKeys
	HelpEmoji
	HelpSnippet
	HelpSnippetList
	HelpSnippetShow
	HelpSnippetUse
	HelpSnippetNew
	HelpLink
	HelpLinkList
	HelpLinkOpen
	HelpLinkAdd
	HelpLinkRemove
	HelpFind
	HelpFiles
	HelpSystem
	HelpPalette
	HelpNotify
	FlagEmojis
	FlagFilesMost
	FlagPlainFind
	FlagFound
	FlagPrintLink
	FlagSnippetText
	FlagPaletteKind
	WantEntryKind
	WantFew
	EmojiNone
	SnippetsNone
	SnippetMissing
	FixSnippetMissing
	SnippetUnused
	SnippetPair
	SnippetWhich
	SnippetBroken
	LinksNone
	LinkWhich
	LinkWhat
	LinkOpened
	LinkKept
	LinkRemoved
	FindWhat
	FindNone
	FindNoSummary
	FilesNone
	PaletteNone
	SystemRuns
	SystemSelf
	SystemCPUs
	SystemMemory
	SystemDisk
	SystemFolder
	SystemHome
	SystemData
	SystemTime
	NoticeDone
	NoticeFailed
	NoticeAsks
	NotifyOff
	NotifyTest
	LaunchMore

	planKeys = iota + launchKeys // where those of the next file begin
)

// launchTexts are the messages of the keys above.
var launchTexts = [planKeys - launchKeys]both{
	HelpCalc - launchKeys:          {"calculate, and convert units: dure calc '5 ft 3 in to cm'", "계산과 단위 변환: dure calc '5 ft 3 in to cm'"},
	HelpEmoji - launchKeys:         {"find emoji by a word", "낱말로 이모지 찾기"},
	HelpSnippet - launchKeys:       {"texts with variables of your own", "변수가 있는 나만의 글"},
	HelpSnippetList - launchKeys:   {"the snippets there are", "있는 글 목록"},
	HelpSnippetShow - launchKeys:   {"a snippet as it is written", "글을 쓴 그대로 보기"},
	HelpSnippetUse - launchKeys:    {"fill a snippet in: NAME and VARIABLE=VALUE", "글 채우기: 이름과 변수=값"},
	HelpSnippetNew - launchKeys:    {"make a snippet, and edit it", "글을 만들고 고치기"},
	HelpLink - launchKeys:          {"addresses with parameters of your own", "매개변수가 있는 나만의 주소"},
	HelpLinkList - launchKeys:      {"the links there are", "있는 주소 목록"},
	HelpLinkOpen - launchKeys:      {"fill a link in and open it", "주소를 채워 열기"},
	HelpLinkAdd - launchKeys:       {"keep a link: its parameters stand in braces", "주소 남기기: 매개변수는 중괄호 안에"},
	HelpLinkRemove - launchKeys:    {"forget a link", "주소 지우기"},
	HelpFind - launchKeys:          {"search the web, and sum up what is found", "웹에서 찾아 간추리기"},
	HelpFiles - launchKeys:         {"find files of this folder by a part of their path", "경로의 일부로 이 폴더의 파일 찾기"},
	HelpSystem - launchKeys:        {"what dure runs on", "dure가 돌아가는 시스템"},
	HelpPalette - launchKeys:       {"all commands, skills, agents, snippets and links", "모든 명령, 스킬, 에이전트, 글, 주소"},
	HelpNotify - launchKeys:        {"show a notice, as \"notify\" in the settings says", "설정의 notify대로 알림 띄우기"},
	FlagEmojis - launchKeys:        {"how many at most", "최대 개수"},
	FlagFilesMost - launchKeys:     {"how many at most, up to 50", "최대 개수(50까지)"},
	FlagPlainFind - launchKeys:     {"list what is found, and ask no model", "찾은 것만 나열하고 모델에 묻지 않기"},
	FlagFound - launchKeys:         {"how many results, up to 20", "결과 개수(20까지)"},
	FlagPrintLink - launchKeys:     {"print the address, and do not open it", "열지 않고 주소만 쓰기"},
	FlagSnippetText - launchKeys:   {"its text; without it, the editor is opened", "글의 내용. 없으면 편집기를 엽니다"},
	FlagPaletteKind - launchKeys:   {"only: command, skill, agent, snippet or link", "command, skill, agent, snippet, link 중 하나만"},
	WantEntryKind - launchKeys:     {"command, skill, agent, snippet or link", "command, skill, agent, snippet, link 중 하나"},
	WantFew - launchKeys:           {"a number from 1 to {n}", "1부터 {n}까지의 수"},
	EmojiNone - launchKeys:         {"No emoji fits.", "맞는 이모지가 없습니다."},
	SnippetsNone - launchKeys:      {"There are no snippets yet. Make one with: dure snippet new NAME", "아직 글이 없습니다. 만들기: dure snippet new 이름"},
	SnippetMissing - launchKeys:    {"nothing is given for {list}", "{list}의 값이 없습니다"},
	FixSnippetMissing - launchKeys: {"Write behind the name: {example}", "이름 뒤에 쓰십시오: {example}"},
	SnippetUnused - launchKeys:     {"the snippet has no variable {list}", "글에 변수 {list|이/가} 없습니다"},
	SnippetPair - launchKeys:       {"{word} is no VARIABLE=VALUE", "{word|은/는} 변수=값이 아닙니다"},
	SnippetWhich - launchKeys:      {"name a snippet", "글의 이름을 쓰십시오"},
	SnippetBroken - launchKeys:     {"cannot be used: {error}", "쓸 수 없음: {error}"},
	LinksNone - launchKeys:         {"There are no links yet. Keep one with: dure link add NAME 'https://example.com/?q={query}'", "아직 주소가 없습니다. 남기기: dure link add 이름 'https://example.com/?q={query}'"},
	LinkWhich - launchKeys:         {"name a link", "주소의 이름을 쓰십시오"},
	LinkWhat - launchKeys:          {"a link needs a name and an address: dure link add docs 'https://example.com/?q={query}'", "이름과 주소가 필요합니다: dure link add docs 'https://example.com/?q={query}'"},
	LinkOpened - launchKeys:        {"opened: {url}", "열었습니다: {url}"},
	LinkKept - launchKeys:          {"kept: {name}", "남겼습니다: {name}"},
	LinkRemoved - launchKeys:       {"removed: {name}", "지웠습니다: {name}"},
	FindWhat - launchKeys:          {"say what to search for", "무엇을 찾을지 쓰십시오"},
	FindNone - launchKeys:          {"Nothing was found.", "찾은 것이 없습니다."},
	FindNoSummary - launchKeys:     {"no summary: {error}", "요약 없음: {error}"},
	FilesNone - launchKeys:         {"No file fits.", "맞는 파일이 없습니다."},
	PaletteNone - launchKeys:       {"Nothing fits.", "맞는 것이 없습니다."},
	SystemRuns - launchKeys:        {"System     {name} ({os}/{arch})", "시스템     {name} ({os}/{arch})"},
	SystemSelf - launchKeys:        {"dure       {version}, {language}", "dure       {version}, {language}"},
	SystemCPUs - launchKeys:        {"Processors {n}", "프로세서   {n}"},
	SystemMemory - launchKeys:      {"Memory     {free} of {all} free", "메모리     {all} 중 {free} 사용 가능"},
	SystemDisk - launchKeys:        {"Disk       {free} free here", "디스크     여기에 {free} 남음"},
	SystemFolder - launchKeys:      {"Folder     {path}", "폴더       {path}"},
	SystemHome - launchKeys:        {"Settings   {path}", "설정       {path}"},
	SystemData - launchKeys:        {"Sessions   {path}", "세션       {path}"},
	SystemTime - launchKeys:        {"Time       {time}", "시각       {time}"},
	NoticeDone - launchKeys:        {"{folder}: done", "{folder}: 끝났습니다"},
	NoticeFailed - launchKeys:      {"{folder}: the turn did not end well", "{folder}: 턴이 제대로 끝나지 않았습니다"},
	NoticeAsks - launchKeys:        {"{folder}: a question waits ({tool})", "{folder}: 물음이 기다립니다({tool})"},
	NotifyOff - launchKeys:         {"\"notify\" is off in the settings: set it to bell, terminal or system", "설정의 notify가 off입니다. bell, terminal, system 중 하나로 바꾸십시오"},
	NotifyTest - launchKeys:        {"this is a notice", "알림입니다"},
	LaunchMore - launchKeys:        {"… and {n} more: name a word of it", "… 그 밖에 {n}개: 낱말을 쓰십시오"},
}
