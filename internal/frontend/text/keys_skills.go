package text

// The messages about skills.
const (
	HelpSkills Key = iota + skillKeys
	HelpSkillsList
	HelpSkillsShow
	HelpSkillsValidate
	HelpSkillsImport
	HelpSkillsExport
	HelpSkillsNew
	FlagSkillScope
	SkillsNone
	SkillOff
	SkillsReady
	SkillValid
	SkillInvalid
	SkillNames
	SkillsNoneOwn
	SkillScopes
	SkillMade
	SkillTaken
	SkillGiven
	SkillDrops
	SkillStarted
	SkillByFile
	SkillByTyping
	SkillFailed
	SkillDone
	ColWhatFor
	ProblemSkill
	FixSkill
	FixSkillName

	toolKeys = iota + skillKeys // where those of the next file begin
)

// skillTexts are the messages of the keys above.
var skillTexts = [toolKeys - skillKeys]both{
	HelpSkills - skillKeys:         {"skills: how kinds of work are done", "스킬: 일의 종류마다 하는 방법"},
	HelpSkillsList - skillKeys:     {"list the skills of a folder", "폴더의 스킬 목록"},
	HelpSkillsShow - skillKeys:     {"show one skill", "스킬 하나 보기"},
	HelpSkillsValidate - skillKeys: {"check skills against the open standard", "공개 표준에 맞는지 확인"},
	HelpSkillsImport - skillKeys:   {"take over a skill from a folder", "폴더에서 스킬 가져오기"},
	HelpSkillsExport - skillKeys:   {"copy a skill into a folder", "스킬을 폴더로 내보내기"},
	HelpSkillsNew - skillKeys:      {"begin a skill from a template", "틀에서 새 스킬 만들기"},
	FlagSkillScope - skillKeys:     {"project or user: where it is kept", "project 또는 user: 둘 곳"},
	SkillsNone - skillKeys:         {"There are no skills. Begin one with: dure skills new NAME", "스킬이 없습니다. 시작하려면: dure skills new 이름"},
	SkillOff - skillKeys:           {"not used: {why}", "쓰지 않음: {why}"},
	SkillsReady - skillKeys:        {"built in: {list}", "기본 제공: {list}"},
	SkillValid - skillKeys:         {"{path}: as the standard wants it", "{path}: 표준에 맞습니다"},
	SkillInvalid - skillKeys:       {"{path}: not as the standard wants it", "{path}: 표준에 맞지 않습니다"},
	SkillsNoneOwn - skillKeys:      {"There are no skills here but those that come with the program.", "기본 제공 말고는 스킬이 없습니다."},
	SkillNames - skillKeys:         {"name one skill, or a folder with a SKILL.md", "스킬 이름이나 SKILL.md가 있는 폴더를 쓰십시오"},
	SkillScopes - skillKeys:        {"{name}: a skill is kept for the project or for the user", "{name}: 스킬은 project나 user에 둡니다"},
	SkillMade - skillKeys:          {"made {path}", "만들었습니다: {path}"},
	SkillTaken - skillKeys:         {"{name} is in {path}", "{name|을/를} {path}에 두었습니다"},
	SkillGiven - skillKeys:         {"{name} was copied to {path}", "{name|을/를} {path}(으)로 복사했습니다"},
	SkillDrops - skillKeys:         {"tools that nobody knows here: {list}", "여기서 모르는 도구: {list}"},
	SkillStarted - skillKeys:       {"skill {name}", "스킬 {name}"},
	SkillByFile - skillKeys:        {"skill {name}, for a file that was touched", "스킬 {name}, 다룬 파일에 맞춤"},
	SkillByTyping - skillKeys:      {"/{name} holds for this turn", "/{name}: 이 차례에 적용"},
	SkillFailed - skillKeys:        {"skill {name}: {error}", "스킬 {name}: {error}"},
	SkillDone - skillKeys:          {"skill {name} has ended in {steps?a step/{steps} steps}", "스킬 {name} 끝: {steps}단계"},
	ColWhatFor - skillKeys:         {"WHAT FOR", "쓰임"},
	ProblemSkill - skillKeys:       {"skill {name}: {error}", "스킬 {name}: {error}"},
	FixSkillName - skillKeys:       {"dure skills new {right}", "dure skills new {right}"},
	FixSkill - skillKeys:           {"dure skills list shows those that there are.", "dure skills list로 있는 것을 볼 수 있습니다."},
}
