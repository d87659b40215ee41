package text

// The messages about settings and how they are changed.
const (
	HelpConfig Key = iota + settingKeys
	HelpConfigList
	HelpConfigGet
	HelpConfigSet
	HelpConfigUnset
	HelpConfigEdit
	HelpConfigExplain
	HelpConfigPath
	HelpConfigSchema
	FlagConfigScope
	FlagConfigAll
	ConfigUnknown
	ConfigKeysOf
	FixConfigKeys
	ConfigNoScope
	FixConfigScope
	ConfigNeedsKey
	FixConfigKey
	ConfigNeedsValue
	FixConfigValue
	ConfigNone
	ConfigSet
	ConfigUnset
	ConfigSame
	ConfigLive
	ConfigStart
	ConfigOver
	ConfigNotFolder
	ConfigNotAnyMore
	ConfigNotRepo
	ConfigNotOthers
	ConfigLess
	ConfigCounts
	ConfigValue
	ConfigNobody
	ConfigType
	ConfigWho
	ConfigChecked
	ConfigNoEditor
	ConfigThere
	ConfigMissing
	ConfigTheirs
	ConfigGroup

	launchKeys = iota + settingKeys // where those of the next file begin
)

// settingTexts are the messages of the keys above.
var settingTexts = [launchKeys - settingKeys]both{
	HelpConfig - settingKeys:        {"settings: show, explain and change them", "설정 보기, 설명, 바꾸기"},
	HelpConfigList - settingKeys:    {"list the settings that somebody has made", "정해 둔 설정 목록"},
	HelpConfigGet - settingKeys:     {"the value of a setting", "설정의 값"},
	HelpConfigSet - settingKeys:     {"change a setting; a text is added to a list, a JSON list takes its place", "설정 바꾸기. 글은 목록에 더하고, JSON 목록은 그 자리를 대신함"},
	HelpConfigUnset - settingKeys:   {"take a setting away, or one entry of a list", "설정을 없애거나 목록에서 하나 빼기"},
	HelpConfigEdit - settingKeys:    {"open the file of a scope in your editor, and check it", "범위의 파일을 편집기로 열고 확인하기"},
	HelpConfigExplain - settingKeys: {"what each layer says of a setting, and which counts", "설정마다 각 층이 말하는 것과 적용되는 것"},
	HelpConfigPath - settingKeys:    {"the files that settings are read from", "설정을 읽는 파일"},
	HelpConfigSchema - settingKeys:  {"a JSON Schema of settings files", "설정 파일의 JSON Schema"},
	FlagConfigScope - settingKeys:   {"whose file: user, project or local", "누구의 파일: user, project, local"},
	FlagConfigAll - settingKeys:     {"also what is built in", "기본값도"},
	ConfigUnknown - settingKeys:     {"there is no setting {name}", "{name} 설정은 없습니다"},
	ConfigKeysOf - settingKeys:      {"Did you mean {name}?", "혹시 {name}입니까?"},
	FixConfigKeys - settingKeys:     {"All of them: dure config list --all", "모두 보기: dure config list --all"},
	ConfigNoScope - settingKeys:     {"there is no scope {name}", "{name} 범위는 없습니다"},
	FixConfigScope - settingKeys:    {"The scopes are {list}.", "범위는 {list}입니다."},
	ConfigNeedsKey - settingKeys:    {"name a setting", "설정의 이름을 쓰십시오"},
	FixConfigKey - settingKeys:      {"For example: {line}", "예: {line}"},
	ConfigNeedsValue - settingKeys:  {"say what {name} is to be", "{name}에 둘 값을 쓰십시오"},
	FixConfigValue - settingKeys:    {"For example: dure config set {name} {value}", "예: dure config set {name} {value}"},
	ConfigNone - settingKeys:        {"Nobody has set anything.", "정해 둔 설정이 없습니다."},
	ConfigSet - settingKeys:         {"{name} = {value} in {path}", "{name} = {value}, 파일 {path}"},
	ConfigUnset - settingKeys:       {"{name} is no more in {path}", "{path}에서 {name|을/를} 없앴습니다"},
	ConfigSame - settingKeys:        {"{path} is as it was", "{path}: 그대로입니다"},
	ConfigLive - settingKeys:        {"It holds from the next call on.", "다음 호출부터 적용됩니다."},
	ConfigStart - settingKeys:       {"It holds from the next start on.", "다음 시작부터 적용됩니다."},
	ConfigOver - settingKeys:        {"stronger is {by}", "{by} 쪽이 더 셉니다"},
	ConfigNotAnyMore - settingKeys:  {"not in force: changed since the folder was trusted: {list} (dure trust show, then dure trust)", "적용되지 않음: 폴더를 신뢰한 뒤 바뀜: {list} (dure trust show, 그다음 dure trust)"},
	ConfigNotFolder - settingKeys:   {"not in force: the folder is not trusted (dure trust)", "적용되지 않음: 믿지 않는 폴더(dure trust)"},
	ConfigNotRepo - settingKeys:     {"not in force: no repository may set it, or not like this", "적용되지 않음: 저장소가 정할 수 없거나 이렇게는 정할 수 없음"},
	ConfigNotOthers - settingKeys:   {"not in force: it is left to the administrator", "적용되지 않음: 관리자만 정할 수 있음"},
	ConfigLess - settingKeys:        {"of it not in force: {list}", "그 가운데 적용되지 않음: {list}"},
	ConfigCounts - settingKeys:      {"counts", "적용됨"},
	ConfigValue - settingKeys:       {"value: {value}", "값: {value}"},
	ConfigNobody - settingKeys:      {"nobody says anything", "정한 곳 없음"},
	ConfigType - settingKeys:        {"type: {type}", "종류: {type}"},
	ConfigWho - settingKeys:         {"who may set it: {who}", "정할 수 있는 곳: {who}"},
	ConfigChecked - settingKeys:     {"The settings can be read.", "설정을 읽을 수 있습니다."},
	ConfigNoEditor - settingKeys:    {"set VISUAL or EDITOR to open it", "열려면 VISUAL이나 EDITOR를 정하십시오"},
	ConfigThere - settingKeys:       {"there", "있음"},
	ConfigMissing - settingKeys:     {"not there", "없음"},
	ConfigTheirs - settingKeys:      {"only read", "읽기만 함"},
	ConfigGroup - settingKeys:       {"{name} is a group of settings, and no setting", "{name}: 설정이 아니라 설정 묶음입니다"},
}
