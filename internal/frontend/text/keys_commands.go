package text

// The messages about slash commands from files and their results.
const (
	CommandUsage Key = iota + commandKeys
	CommandAliases
	CommandValues
	CommandNeedsSession
	CommandOff
	CommandNear
	CommandsFiles
	CommandsSkills
	CommandsPrompts
	CommandNotHere
	AsideBusy
	CommitLooking
	CommitNot
	CommitNothing
	CommitUntracked
	CommitSecrets
	CommitChanged
	CommitStaged
	CommitNoMessage
	CommitPrompt
	CommitPromptStaged
	CommitChosen
	CommitHunks
	CommitNoHunks
	CommitMaking

	projectKeys = iota + commandKeys // where those of the next file begin
)

// commandTexts are the messages of the keys above.
var commandTexts = [projectKeys - commandKeys]both{
	CommandUsage - commandKeys:        {"Usage: {usage}", "사용법: {usage}"},
	CommandAliases - commandKeys:      {"Also: {list}", "같은 명령: {list}"},
	CommandValues - commandKeys:       {"One of: {list}", "쓸 수 있는 값: {list}"},
	CommandNeedsSession - commandKeys: {"{name} needs a session that is open.", "{name} 명령에는 열린 세션이 필요합니다."},
	CommandOff - commandKeys:          {"{name} cannot be used: {why}", "{name} 명령을 쓸 수 없습니다: {why}"},
	CommandNear - commandKeys:         {"Did you mean {list}?", "혹시 {list}입니까?"},
	CommandsFiles - commandKeys:       {"From files:", "파일의 명령:"},
	CommandsSkills - commandKeys:      {"Skills:", "스킬:"},
	CommandsPrompts - commandKeys:     {"Prompts of servers:", "서버의 프롬프트:"},
	CommandNotHere - commandKeys:      {"{name} works in a conversation alone: start dure without -p.", "{name} 명령은 대화에서만 됩니다. -p 없이 dure를 시작하십시오."},
	AsideBusy - commandKeys:           {"something goes on already; Ctrl-C stops it", "이미 진행 중인 것이 있습니다. Ctrl-C로 멈춥니다"},
	CommitLooking - commandKeys:       {"looking at the changes …", "변경을 살펴보는 중 …"},
	CommitNot - commandKeys:           {"nothing was done", "아무것도 하지 않았습니다"},
	CommitNothing - commandKeys:       {"There is nothing to commit.", "커밋할 것이 없습니다."},
	CommitUntracked - commandKeys:     {"not in the commit, because git does not know them: {list}", "git이 모르는 파일이라 커밋에 넣지 않음: {list}"},
	CommitSecrets - commandKeys:       {"these look like secrets: {list}", "비밀로 보이는 파일: {list}"},
	CommitChanged - commandKeys:       {"nothing is staged: all changes of tracked files would be committed ({n} {n?file/files})", "스테이징한 것이 없어 추적 중인 파일의 변경을 모두 커밋합니다(파일 {n}개)"},
	CommitStaged - commandKeys:        {"what is staged would be committed ({n} {n?file/files})", "스테이징한 것을 커밋합니다(파일 {n}개)"},
	CommitNoMessage - commandKeys:     {"no message was proposed: {why}", "제안된 메시지가 없습니다: {why}"},
	CommitPrompt - commandKeys:        {"commit this? y, n, d (show the changes), e MESSAGE: ", "이대로 커밋할까요? y, n, d(변경 보기), e 메시지: "},
	CommitPromptStaged - commandKeys:  {"commit this? y, n, d (show the changes), h (choose from it), e MESSAGE: ", "이대로 커밋할까요? y, n, d(변경 보기), h(골라 담기), e 메시지: "},
	CommitChosen - commandKeys:        {"{n} of {all} hunks of what is staged would be committed; the others stay staged", "스테이징한 조각 {all}개 중 {n}개를 커밋하고 나머지는 스테이징된 채로 둡니다"},
	CommitHunks - commandKeys:         {"choose with h and numbers, as in h 1 3-4; h all takes all", "h와 번호로 고르세요. 예: h 1 3-4. h all은 전부"},
	CommitNoHunks - commandKeys:       {"there are no such hunks", "그런 조각이 없습니다"},
	CommitMaking - commandKeys:        {"committing …", "커밋하는 중 …"},
}

// commandHelp has what each command that is built in does, by its name.
var commandHelp = [...]struct {
	name string
	both
}{
	{"add-dir", both{"one more folder to work in", "함께 작업할 폴더 더하기"}},
	{"agents", both{"types of agents that work can be handed to, or one with its prompt", "일을 맡길 수 있는 에이전트 종류, 또는 하나를 지시문과 함께"}},
	{"bad", both{"say that the newest answer is not good", "가장 최근 답변이 나쁘다고 알리기"}},
	{"calc", both{"calculate, and convert units", "계산하고 단위 바꾸기"}},
	{"cd", both{"go on in another folder; without one, show which it is", "다른 폴더에서 이어 하기. 쓰지 않으면 지금 폴더"}},
	{"changes", both{"accept or reject what was changed, file by file", "바뀐 것을 파일별로 받아들이거나 되돌리기"}},
	{"clear", both{"begin a new session; this one is kept", "새 세션 시작. 이 세션은 남음"}},
	{"commit", both{"commit what is staged, or else what was changed, once you have seen it", "스테이징한 것, 없으면 바뀐 것을 확인 후 커밋하기"}},
	{"compact", both{"shorten the conversation, keeping what you name above all", "쓴 것을 우선해서 대화 줄이기"}},
	{"config", both{"the settings: list them, explain one, or give it another value", "설정: 목록, 하나의 설명, 또는 값 바꾸기"}},
	{"context", both{"what fills the model's window; read files that you name, or only with an @", "모델의 창을 채우는 것. 이름을 쓴 파일 읽기, 또는 @만"}},
	{"continue", both{"go on with a turn that was cut short", "도중에 끊긴 턴을 이어 하기"}},
	{"cost", both{"tokens and money so far", "지금까지의 토큰과 비용"}},
	{"diff", both{"what was changed in files", "파일에서 바뀐 것"}},
	{"edit", both{"say the Nth newest request differently, and go on from there", "뒤에서 N번째 요청을 바꿔 말하고 거기서 이어 가기"}},
	{"emoji", both{"find emoji by a word", "낱말로 이모지 찾기"}},
	{"export", both{"write this session to a file: Markdown, a page, or JSON lines", "이 세션을 파일로 쓰기: 마크다운, 웹 페이지, JSON 줄"}},
	{"fork", both{"make a session that goes on from here", "여기서 이어지는 세션 만들기"}},
	{"good", both{"say that the newest answer is good", "가장 최근 답변이 좋다고 알리기"}},
	{"help", both{"this list, or more on one command", "이 목록, 또는 한 명령의 설명"}},
	{"hooks", both{"what runs at which moment, and where it is defined", "어느 순간에 무엇이 실행되며 어디에 정의됐는지"}},
	{"init", both{"have instructions for agents written for this project, or improved", "이 프로젝트의 에이전트 지침을 쓰거나 다듬게 하기"}},
	{"link", both{"open a link of your own; without one, list them", "나만의 주소 열기. 쓰지 않으면 목록"}},
	{"mcp", both{"servers of the Model Context Protocol and how it stands with them; or switch one or all on or off, or connect them anew", "MCP 서버와 그 상태. 하나나 전부를 켜고 끄기, 다시 연결하기"}},
	{"memory", both{"instruction files: list them, or edit one", "지침 파일: 목록, 또는 하나 고치기"}},
	{"mode", both{"show the permission modes, or use another one", "권한 모드 목록, 또는 바꾸기"}},
	{"model", both{"show the models, or use another one", "모델 목록, 또는 바꾸기"}},
	{"palette", both{"find commands, skills, agents, snippets and links", "명령, 스킬, 에이전트, 글, 주소 찾기"}},
	{"permissions", both{"the rules on what may run, and where they stand; or add one, or take one away", "실행 허용 규칙과 그 위치. 규칙 더하기와 빼기"}},
	{"pin", both{"keep this session on top, or no more", "이 세션을 맨 위에 고정하거나 풀기"}},
	{"plan", both{"plan before anything is changed: when that is done, the plan itself, or ask for one", "바꾸기 전에 계획하기: 언제 계획할지, 계획 보기와 고치기, 계획 요청"}},
	{"plugin", both{"plugins that are installed, or what one of them can do", "설치된 플러그인, 또는 하나가 할 수 있는 일"}},
	{"profile", both{"what holds for this kind of work", "이 작업 종류에 적용되는 것"}},
	{"prompt", both{"what the system prompt is made of", "시스템 프롬프트를 이루는 것"}},
	{"quit", both{"end (Ctrl-D)", "끝내기(Ctrl-D)"}},
	{"rename", both{"give this session a title", "이 세션의 제목 정하기"}},
	{"resume", both{"go on with another session; without one, list them", "다른 세션을 이어 하기. 쓰지 않으면 목록"}},
	{"retry", both{"ask for the newest answer again", "가장 최근 답변 다시 받기"}},
	{"review", both{"have changes reviewed: a pull request, a range, or what this branch has", "변경 검토 받기: 풀 리퀘스트, 범위, 또는 이 브랜치의 것"}},
	{"rewind", both{"back to before the last N requests: files, conversation or both", "마지막 요청 N개 앞으로: 파일, 대화, 또는 둘 다"}},
	{"search", both{"find text in this session", "이 세션에서 찾기"}},
	{"skills", both{"skills of this folder, and whether they count; or one of them", "이 폴더의 스킬과 적용 여부, 또는 하나"}},
	{"snippet", both{"say a text of your own, with its variables filled in; without one, list them", "나만의 글을 채워 보내기. 쓰지 않으면 목록"}},
	{"status", both{"session, model, mode, folder", "세션, 모델, 모드, 폴더"}},
	{"tag", both{"give this session tags; - takes them away", "이 세션에 태그 달기. -는 모두 떼기"}},
	{"task", both{"what the agent has noted on its work", "에이전트가 작업에 대해 적어 둔 것"}},
	{"tools", both{"the tools: which the model has and why not the others; or take one away for this session, or give it back", "도구: 모델에 준 것과 주지 않은 까닭. 이 세션에서 끄기와 다시 켜기"}},
	{"uncompact", both{"take the last shortening back", "마지막 줄이기 되돌리기"}},
}

// Command returns what a command that is built in does; "" = there is none of that name.
func (c Catalog) Command(name string) string {
	for _, h := range commandHelp {
		if h.name != name {
			continue
		}
		if c.table == &korean {
			return h.ko
		}
		return h.en
	}
	return ""
}
