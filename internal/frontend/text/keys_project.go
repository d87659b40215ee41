package text

// Messages on what a session is written to, on the skills of a folder, on the rules that
// hold, and on a project that is begun with.
const (
	ExportWriting Key = iota + projectKeys
	ExportForce
	ExportForm
	FixExportForm
	ExportLink
	SkillUnknown
	RulesNone
	RuleOff
	RuleAdded
	RuleRemoved
	RuleTaken
	RuleSame
	RuleLeft
	HelpPolicyRules
	HelpInit
	FlagInitPrint
	InitThere
	FixInitThere
	InitMade
	InitFound
	InitNext
	InitHook
	InitSkill
	InitOverview
	InitConventions
	InitCommands
	InitWork
	InitCautions
	InitLanguages
	InitFrameworks
	InitFolders
	InitOthers
	InitSay
	InitBuild
	InitTest
	InitLint
	InitFormat
	InitRun
	InitCI

	settingKeys = iota + projectKeys // where those of the next file begin
)

// projectTexts are the messages of the keys above.
var projectTexts = [settingKeys - projectKeys]both{
	ExportWriting - projectKeys:   {"writing {path} …", "{path} 쓰는 중 …"},
	ExportForce - projectKeys:     {"{path} is there already. /export --force {path} writes over it.", "{path} 파일이 이미 있습니다. /export --force {path}로 덮어씁니다."},
	ExportForm - projectKeys:      {"{path}: what it is to be cannot be told", "{path}: 형식을 알 수 없습니다"},
	FixExportForm - projectKeys:   {"Name it .md, .html or .jsonl.", "이름을 .md, .html, .jsonl로 하십시오."},
	ExportLink - projectKeys:      {"{path}: {link} is a link, and nothing is written through one", "{path}: {link}은(는) 링크이며, 링크를 거쳐 쓰지 않습니다"},
	SkillUnknown - projectKeys:    {"There is no skill {name}.", "{name|이라는/라는} 스킬은 없습니다."},
	RulesNone - projectKeys:       {"There are no rules: the mode decides.", "규칙이 없어 모드가 정합니다."},
	RuleOff - projectKeys:         {"not in force: {why}", "적용 안 됨: {why}"},
	RuleAdded - projectKeys:       {"{rule} stands in {path} now; it holds from your next request on", "{rule} 규칙을 {path}에 더했습니다. 다음 요청부터 적용됩니다"},
	RuleRemoved - projectKeys:     {"{rule} was taken out of {path}", "{rule} 규칙을 {path}에서 뺐습니다"},
	RuleTaken - projectKeys:       {"{rule} does not hold for this session any more", "{rule} 규칙은 이제 이 세션에 적용되지 않습니다"},
	RuleSame - projectKeys:        {"nothing to change for {rule}", "{rule}: 바꿀 것이 없습니다"},
	RuleLeft - projectKeys:        {"it still stands here, where /permissions does not write: {at}", "/permissions가 쓰지 않는 곳에 아직 있습니다: {at}"},
	HelpPolicyRules - projectKeys: {"list the rules that hold here, and where they stand", "여기에 적용되는 규칙과 그 위치"},
	HelpInit - projectKeys:        {"write a first file of instructions for agents (AGENTS.md), without a model", "에이전트 지침의 초안(AGENTS.md)을 모델 없이 쓰기"},
	FlagInitPrint - projectKeys:   {"print what would be written, and write nothing", "쓰지 않고 내용만 출력"},
	InitThere - projectKeys:       {"{path} is there already, and stays as it is", "{path} 파일이 이미 있어 그대로 둡니다"},
	FixInitThere - projectKeys:    {"Improve it in a conversation with /init, or edit it: dure memory edit.", "대화에서 /init으로 다듬거나 직접 고치십시오: dure memory edit"},
	InitMade - projectKeys:        {"wrote {path}", "{path} 파일을 썼습니다"},
	InitFound - projectKeys:       {"found: {what}", "찾은 것: {what}"},
	InitNext - projectKeys:        {"Next: fill in what only you know, or have a model do it: /init in a conversation. Agents read it where the folder is trusted: dure trust.", "다음: 직접 아는 것을 채우거나 대화에서 /init으로 모델에게 맡기십시오. 신뢰하는 폴더에서만 읽습니다: dure trust"},
	InitHook - projectKeys:        {"a hook that may be of use at {name}: {run} (dure hooks)", "쓸 만한 훅({name}): {run} (dure hooks)"},
	InitSkill - projectKeys:       {"a skill that may be of use: /{name}", "쓸 만한 스킬: /{name}"},
	InitOverview - projectKeys:    {"Overview", "프로젝트 개요"},
	InitConventions - projectKeys: {"Code conventions", "코드 규칙"},
	InitCommands - projectKeys:    {"Build and test", "빌드와 테스트"},
	InitWork - projectKeys:        {"How to work", "작업 지침"},
	InitCautions - projectKeys:    {"Cautions", "주의 사항"},
	InitLanguages - projectKeys:   {"Languages (files)", "언어(파일 수)"},
	InitFrameworks - projectKeys:  {"Frameworks", "프레임워크"},
	InitFolders - projectKeys:     {"Folders", "폴더"},
	InitOthers - projectKeys:      {"Other instructions", "다른 지침"},
	InitSay - projectKeys:         {"Say what nobody could guess from the code.", "코드만 보고는 알 수 없는 것을 쓰십시오."},
	InitBuild - projectKeys:       {"build", "빌드"},
	InitTest - projectKeys:        {"test", "테스트"},
	InitLint - projectKeys:        {"lint", "정적 검사"},
	InitFormat - projectKeys:      {"format", "형식"},
	InitRun - projectKeys:         {"run", "실행"},
	InitCI - projectKeys:          {"run by CI", "CI에서 실행"},
}
