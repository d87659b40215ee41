package text

// The messages about agents from files and children.
const (
	HelpAgents Key = agentKeys + iota
	HelpAgentsList
	HelpAgentsShow
	HelpAgentsValidate
	HelpAgentsNew
	FlagAgent
	FlagAgents
	FlagAgentProject
	FlagAgentAbout
	AgentActive
	AgentInvalid
	AgentHidden
	AgentUntrusted
	AgentFault
	AgentWarning
	AgentsWhich
	AgentsUnknown
	AgentsSound
	AgentMade
	AgentTools
	AgentAllTools
	AgentNamesWhich

	pluginKeys = iota + agentKeys // where those of the next file begin
)

// agentTexts are the messages of the keys above, in English and Korean.
var agentTexts = [pluginKeys - agentKeys]both{
	HelpAgents - agentKeys:         {"types of agents that work can be handed to", "일을 맡길 수 있는 에이전트 종류"},
	HelpAgentsList - agentKeys:     {"list them, with what is wrong with their files", "종류와 파일의 잘못을 보여 주기"},
	HelpAgentsShow - agentKeys:     {"show one, with its prompt", "하나를 지시문과 함께 보여 주기"},
	HelpAgentsValidate - agentKeys: {"check files, or all that are found", "파일, 또는 찾은 것을 모두 검사"},
	HelpAgentsNew - agentKeys:      {"write a file for a new one", "새 종류의 파일 만들기"},
	FlagAgent - agentKeys:          {"run the session as an agent, see: dure agents; none for none", "세션을 에이전트로 실행 (dure agents 참고, none: 쓰지 않음)"},
	FlagAgents - agentKeys:         {`further agents, as JSON: {"NAME": {"description": "...", "prompt": "..."}}`, `에이전트 추가 (JSON): {"이름": {"description": "...", "prompt": "..."}}`},
	FlagAgentProject - agentKeys:   {"for the project: in .dure/agents", "프로젝트용: .dure/agents에 만들기"},
	FlagAgentAbout - agentKeys:     {"when to use it", "언제 쓰는지"},
	AgentActive - agentKeys:        {"in use", "사용 중"},
	AgentInvalid - agentKeys:       {"cannot be used", "쓸 수 없음"},
	AgentHidden - agentKeys:        {"hidden by {path}", "{path}에 가려짐"},
	AgentUntrusted - agentKeys:     {"not in force: the folder is not trusted", "폴더를 신뢰하지 않아 쓰지 않음"},
	AgentFault - agentKeys:         {"error: {what}", "오류: {what}"},
	AgentWarning - agentKeys:       {"note: {what}", "알림: {what}"},
	AgentsWhich - agentKeys:        {"name an agent", "에이전트 이름을 쓰십시오"},
	AgentsUnknown - agentKeys:      {"there is no agent {name}", "{name}(이)라는 에이전트는 없습니다"},
	AgentsSound - agentKeys:        {"{n} agents, nothing is wrong", "에이전트 {n}개, 잘못 없음"},
	AgentMade - agentKeys:          {"written: {path}", "만들었습니다: {path}"},
	AgentTools - agentKeys:         {"tools: {list}", "도구: {list}"},
	AgentAllTools - agentKeys:      {"all", "모두"},
	AgentNamesWhich - agentKeys:    {"They are listed by: dure agents", "목록: dure agents"},
}
