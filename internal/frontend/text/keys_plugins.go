package text

import "strings"

// The messages about plugins.
const (
	ProblemPlugin Key = iota + pluginKeys
	FixPlugin
	HelpPlugin
	HelpPluginList
	HelpPluginShow
	HelpPluginInstall
	HelpPluginUpdate
	HelpPluginEnable
	HelpPluginDisable
	HelpPluginRemove
	HelpPluginRollback
	HelpPluginValidate
	HelpPluginSet
	HelpMarket
	HelpMarketAdd
	HelpMarketList
	HelpMarketRemove
	HelpMarketUpdate
	FlagPluginYes
	FlagPluginHash
	FlagPluginForce
	FlagPluginScope
	FlagPluginSet
	FlagPluginUnset
	FlagKeepData
	FlagPluginDir
	PluginName
	PluginWhich
	FixPluginWhich
	PluginNeedsHash
	PluginAskFirst
	FixPluginAsk
	PluginOtherHash
	PluginFrom
	PluginHash
	PluginCan
	PluginCanNothing
	PluginMore
	PluginLess
	PluginAsBefore
	PluginOtherFiles
	PluginLeft
	PluginOdd
	PluginAsk
	PluginInstalledNow
	PluginInstalledOff
	PluginNot
	PluginSame
	PluginSameVersion
	PluginEnabled
	PluginDisabled
	PluginStronger
	PluginRemoved
	PluginBack
	PluginValid
	PluginValidMarket
	PluginNone
	PluginUnused
	PluginMissing
	PluginBefore
	PluginNoOptions
	PluginOptionSet
	PluginOptionUnset
	PluginSecretInArgs
	PluginNoValue
	PluginPrompt
	PluginNeeds
	FixPluginNeeds
	FixPluginSecret
	PluginNoOption
	PluginUnknownScope
	FixPluginScope
	MarketName
	MarketAdded
	MarketRemoved
	MarketNone
	CanHook
	CanServer
	CanProgram
	CanShell
	CanTools
	CanMode
	CanNetwork
	CanSetting
	CanSecret
	CanSkill
	CanCommand
	CanAgent

	commandKeys = iota + pluginKeys // where those of the next file begin
)

// pluginTexts are the messages of the keys above.
var pluginTexts = [commandKeys - pluginKeys]both{
	ProblemPlugin - pluginKeys:      {"plugin {name}: {error}", "플러그인 {name}: {error}"},
	FixPlugin - pluginKeys:          {"{fix}", "{fix}"},
	HelpPlugin - pluginKeys:         {"plugins: install, look at, switch on and off", "플러그인: 설치, 살펴보기, 켜고 끄기"},
	HelpPluginList - pluginKeys:     {"plugins that are installed", "설치된 플러그인"},
	HelpPluginShow - pluginKeys:     {"what a plugin is and can do", "플러그인이 무엇이고 무엇을 할 수 있는지"},
	HelpPluginInstall - pluginKeys:  {"fetch a plugin, show what it can do, and install it: a folder, an archive, OWNER/REPOSITORY, an address, npm:PACKAGE, NAME@MARKETPLACE", "플러그인을 받아 할 수 있는 일을 보여 주고 설치하기: 폴더, 압축 파일, OWNER/REPOSITORY, 주소, npm:PACKAGE, NAME@MARKETPLACE"},
	HelpPluginUpdate - pluginKeys:   {"fetch what a plugin has become, and show what has changed", "플러그인의 새 상태를 받아 달라진 것을 보여 주기"},
	HelpPluginEnable - pluginKeys:   {"switch a plugin on", "플러그인 켜기"},
	HelpPluginDisable - pluginKeys:  {"switch a plugin off", "플러그인 끄기"},
	HelpPluginRemove - pluginKeys:   {"remove a plugin, with what it kept", "플러그인과 그것이 둔 자료를 지우기"},
	HelpPluginRollback - pluginKeys: {"go back to the state before the last update", "마지막 업데이트 앞으로 되돌리기"},
	HelpPluginValidate - pluginKeys: {"read a plugin or a marketplace in a folder, and say what is wrong", "폴더의 플러그인이나 마켓플레이스를 읽고 잘못된 것을 알려 주기"},
	HelpPluginSet - pluginKeys:      {"what a plugin can be told; set an option: KEY=VALUE, or KEY alone to type it unseen", "플러그인 설정 보기, 값 정하기: KEY=VALUE, 또는 KEY만 쓰고 보이지 않게 입력"},
	HelpMarket - pluginKeys:         {"marketplaces: lists of plugins", "마켓플레이스: 플러그인 목록"},
	HelpMarketAdd - pluginKeys:      {"add a marketplace: a folder, OWNER/REPOSITORY, an address", "마켓플레이스 더하기: 폴더, OWNER/REPOSITORY, 주소"},
	HelpMarketList - pluginKeys:     {"marketplaces that were added, or the plugins of one", "더한 마켓플레이스, 또는 하나의 플러그인 목록"},
	HelpMarketRemove - pluginKeys:   {"forget a marketplace; its plugins stay", "마켓플레이스 지우기. 플러그인은 남음"},
	HelpMarketUpdate - pluginKeys:   {"ask marketplaces anew", "마켓플레이스 새로 받기"},
	FlagPluginYes - pluginKeys:      {"install without a question what has the hash of --sha256", "--sha256의 해시를 가진 것을 묻지 않고 설치"},
	FlagPluginHash - pluginKeys:     {"hash that was shown", "보여 준 해시"},
	FlagPluginForce - pluginKeys:    {"update although the version is the same", "버전이 같아도 업데이트"},
	FlagPluginScope - pluginKeys:    {"user: everywhere; local: in this folder alone; project: for everybody who works on the project", "user: 모든 곳. local: 이 폴더에서만. project: 프로젝트를 함께 쓰는 모두"},
	FlagPluginSet - pluginKeys:      {"what the plugin is to be told: KEY=VALUE, or KEY of a secret, which is typed or piped in (may be given more than once)", "플러그인에 정해 줄 값: KEY=VALUE. 비밀은 KEY만 쓰고 입력하거나 파이프로 넣음(여러 번 쓸 수 있음)"},
	FlagKeepData - pluginKeys:       {"leave what the plugin kept", "플러그인이 둔 자료 남기기"},
	FlagPluginDir - pluginKeys:      {"a plugin for this run, from a folder (may be given more than once)", "이번 실행에만 쓸 플러그인 폴더(여러 번 쓸 수 있음)"},
	PluginName - pluginKeys:         {"a plugin has to be named; dure plugin list has those that are installed", "플러그인 이름을 쓰십시오. 설치된 것은 dure plugin list가 보여 줍니다"},
	PluginWhich - pluginKeys:        {"a source has to be named", "받을 곳을 쓰십시오"},
	FixPluginWhich - pluginKeys:     {"Name a folder, an archive, OWNER/REPOSITORY, an address, npm:PACKAGE or NAME@MARKETPLACE.", "폴더, 압축 파일, OWNER/REPOSITORY, 주소, npm:PACKAGE, NAME@MARKETPLACE 가운데 하나를 쓰십시오."},
	PluginNeedsHash - pluginKeys:    {"--yes says yes to what --sha256 names, and to nothing else", "--yes는 --sha256이 가리키는 것에만 동의합니다"},
	PluginAskFirst - pluginKeys:     {"nothing was installed: nobody is here to be asked", "설치하지 않았습니다. 물어볼 사람이 없습니다"},
	FixPluginAsk - pluginKeys:       {"If that is what you want: {command}", "원하는 것이 맞으면: {command}"},
	PluginOtherHash - pluginKeys:    {"nothing was installed: it has the SHA-256 {have}, and not {want}", "설치하지 않았습니다. SHA-256이 {want}가 아니라 {have}입니다"},
	PluginFrom - pluginKeys:         {"from {source}", "받은 곳: {source}"},
	PluginHash - pluginKeys:         {"SHA-256 {hash}", "SHA-256 {hash}"},
	PluginCan - pluginKeys:          {"Once it is enabled:", "켜면 할 수 있는 일:"},
	PluginCanNothing - pluginKeys:   {"It can do nothing that would have to be asked about.", "물어볼 만한 일은 하지 않습니다."},
	PluginMore - pluginKeys:         {"New in it:", "새로 생긴 것:"},
	PluginLess - pluginKeys:         {"No more in it:", "없어진 것:"},
	PluginAsBefore - pluginKeys:     {"It can do what it could before.", "할 수 있는 일은 그대로입니다."},
	PluginOtherFiles - pluginKeys:   {"Its files have changed.", "파일이 바뀌었습니다."},
	PluginLeft - pluginKeys:         {"Does not count here:", "여기서는 쓰지 않는 것:"},
	PluginOdd - pluginKeys:          {"Odd about it:", "이상한 점:"},
	PluginAsk - pluginKeys:          {"Install {id}? It is checked with this hash whenever it is loaded.", "{id|을/를} 설치할까요? 불러올 때마다 이 해시와 비교합니다."},
	PluginInstalledNow - pluginKeys: {"{id} {version} is installed", "{id} {version} 설치됨"},
	PluginInstalledOff - pluginKeys: {"{id} {version} is installed, and off: dure plugin enable {id}", "{id} {version} 설치됨. 꺼져 있습니다. 켜기: dure plugin enable {id}"},
	PluginNot - pluginKeys:          {"nothing was installed", "설치하지 않았습니다"},
	PluginSame - pluginKeys:         {"{id} is up to date", "{id|은/는} 최신입니다"},
	PluginSameVersion - pluginKeys:  {"{id} has changed and calls itself {version} as before; --force takes it", "{id|이/가} 바뀌었지만 버전은 그대로 {version}입니다. --force로 받을 수 있습니다"},
	PluginEnabled - pluginKeys:      {"{id} is on", "{id} 켜짐"},
	PluginDisabled - pluginKeys:     {"{id} is off", "{id} 꺼짐"},
	PluginStronger - pluginKeys:     {"{id} stays as it is: {by} decides", "{id|은/는} 그대로입니다. {by|이/가} 정합니다"},
	PluginRemoved - pluginKeys:      {"{id} is removed", "{id} 지움"},
	PluginBack - pluginKeys:         {"{id} is {version} again", "{id|이/가} 다시 {version}입니다"},
	PluginValid - pluginKeys:        {"{path} is a plugin: {name} {version}", "{path|은/는} 플러그인입니다: {name} {version}"},
	PluginValidMarket - pluginKeys:  {"{path} is a marketplace: {name}, plugins: {n}", "{path|은/는} 마켓플레이스입니다: {name}, 플러그인 {n}개"},
	PluginNone - pluginKeys:         {"No plugins are installed. dure plugin install SOURCE installs one.", "설치된 플러그인이 없습니다. dure plugin install SOURCE로 설치합니다."},
	PluginUnused - pluginKeys:       {"not used: {why}", "쓰지 않음: {why}"},
	PluginMissing - pluginKeys:      {"has to be told: {list}", "정해야 하는 것: {list}"},
	PluginBefore - pluginKeys:       {"before: {version}", "이전: {version}"},
	PluginNoOptions - pluginKeys:    {"{id} takes no options", "{id|은/는} 정할 것이 없습니다"},
	FlagPluginUnset - pluginKeys:    {"an option that the plugin is not to be told any more (may be given more than once)", "플러그인에 더는 정해 주지 않을 값(여러 번 쓸 수 있음)"},
	PluginOptionUnset - pluginKeys:  {"{id}: {key} is not set any more", "{id}: {key} 지움"},
	PluginOptionSet - pluginKeys:    {"{id}: {key} is set", "{id}: {key} 정함"},
	PluginSecretInArgs - pluginKeys: {"{key} is a secret, and what is written on a command line stays there: leave out the value, and type it when you are asked, or pipe it in", "{key|은/는} 비밀이며 명령줄에 쓴 것은 남습니다. 값을 빼고 물을 때 입력하거나 파이프로 넣으십시오"},
	PluginNoValue - pluginKeys:      {"{key} has no value", "{key}의 값이 없습니다"},
	PluginPrompt - pluginKeys:       {"{key}:", "{key}:"},
	PluginNeeds - pluginKeys:        {"nothing was done: {id} has to be told first: {list}", "아무것도 하지 않았습니다. {id|은/는} 먼저 정해야 할 것이 있습니다: {list}"},
	FixPluginSecret - pluginKeys:    {"It is kept with the keys, and never in settings: {command}   (or: {command} < FILE)", "키와 함께 보관하며 설정에는 쓰지 않습니다: {command}   (또는: {command} < 파일)"},
	FixPluginNeeds - pluginKeys:     {"Say it: {command}", "이렇게 정하십시오: {command}"},
	PluginNoOption - pluginKeys:     {"{id} has no option {key}", "{id}에는 {key} 설정이 없습니다"},
	PluginUnknownScope - pluginKeys: {"the scope {scope} is not known here", "{scope} 범위는 없습니다"},
	FixPluginScope - pluginKeys:     {"Take user, local or project.", "user나 local이나 project를 쓰십시오."},
	MarketName - pluginKeys:         {"a marketplace has to be named; dure plugin marketplace list has those that were added", "마켓플레이스 이름을 쓰십시오. 더한 것은 dure plugin marketplace list가 보여 줍니다"},
	MarketAdded - pluginKeys:        {"marketplace {name}: plugins: {n}", "마켓플레이스 {name}: 플러그인 {n}개"},
	MarketRemoved - pluginKeys:      {"marketplace {name} is forgotten", "마켓플레이스 {name} 지움"},
	MarketNone - pluginKeys:         {"No marketplaces were added. dure plugin marketplace add SOURCE adds one.", "더한 마켓플레이스가 없습니다. dure plugin marketplace add SOURCE로 더합니다."},
	CanHook - pluginKeys:            {"runs at events", "이벤트에서 실행"},
	CanServer - pluginKeys:          {"brings servers", "서버를 가져옴"},
	CanProgram - pluginKeys:         {"brings programs that commands find", "명령이 찾는 프로그램을 가져옴"},
	CanShell - pluginKeys:           {"runs commands while a skill or a command is read", "스킬이나 명령을 읽을 때 명령 실행"},
	CanTools - pluginKeys:           {"lets tools run without a question", "도구를 묻지 않고 실행"},
	CanMode - pluginKeys:            {"agents with a permission mode of their own (not in force)", "자기 권한 모드를 가진 에이전트(적용하지 않음)"},
	CanNetwork - pluginKeys:         {"asks hosts", "호스트에 접속"},
	CanSetting - pluginKeys:         {"changes settings", "설정을 바꿈"},
	CanSecret - pluginKeys:          {"asks for secrets", "비밀을 요구"},
	CanSkill - pluginKeys:           {"skills", "스킬"},
	CanCommand - pluginKeys:         {"commands", "명령"},
	CanAgent - pluginKeys:           {"agents", "에이전트"},
}

// Capability returns what a kind of capability of plugins means.
func (c Catalog) Capability(kind string) string {
	key, ok := map[string]Key{
		"hook": CanHook, "server": CanServer, "program": CanProgram, "shell": CanShell, "tools": CanTools, "mode": CanMode,
		"network": CanNetwork, "setting": CanSetting, "secret": CanSecret, "skill": CanSkill, "command": CanCommand, "agent": CanAgent,
	}[kind]
	if !ok {
		return kind
	}
	return c.Say(key)
}

// PluginBy returns who decides whether a plugin is on.
func (c Catalog) PluginBy(by string) string {
	const words = "plugin.by."
	return strings.TrimPrefix(c.Word(words+by), words)
}
