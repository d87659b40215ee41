package text

import "dure/agent"

// The messages about bundles.
const (
	ProblemBundle Key = iota + bundleKeys
	FixBundle
	HelpBundle
	HelpBundleValidate
	HelpBundleGraph
	HelpBundleLock
	BundleErrs
	BundleWarns
	BundleFine
	BundleWrong
	BundleLacks
	BundleLocked
	HelpBundleRun
	HelpBundleLogin
	PrintSignInFix
	FlagSwarm
	FlagWithout
	FlagReload
	BundleServes
	BundleFailed
	BundleDisabled
	NeedsSignIn
	NeedsSignInCode
	BundleContinues
	BundleStays
	BundleUndelivered
	BundleProgress

	lendKeys = iota + bundleKeys // where those of the next file begin
)

// bundleTexts are the messages of the keys above.
var bundleTexts = [lendKeys - bundleKeys]both{
	ProblemBundle - bundleKeys:      {"bundle {name}: {error}", "번들 {name}: {error}"},
	FixBundle - bundleKeys:          {"A bundle is a folder with goondan.yaml, or that file; dure bundle validate says what is wrong with one.", "번들은 goondan.yaml이 있는 폴더나 그 파일입니다. dure bundle validate로 무엇이 잘못되었는지 볼 수 있습니다."},
	HelpBundle - bundleKeys:         {"bundles: agents, tools and connections in files", "번들: 파일에 적은 에이전트, 도구, 연결"},
	HelpBundleValidate - bundleKeys: {"tell all mistakes of a bundle at once", "번들의 잘못을 한꺼번에 보기"},
	HelpBundleGraph - bundleKeys:    {"show what a bundle is made of", "번들의 구성 보기"},
	HelpBundleLock - bundleKeys:     {"write down the packages that a bundle needs", "번들에 필요한 패키지를 적어 두기"},
	BundleErrs - bundleKeys:         {"error {code}: {message}", "오류 {code}: {message}"},
	BundleWarns - bundleKeys:        {"warning {code}: {message}", "주의 {code}: {message}"},
	BundleFine - bundleKeys:         {"{n} {n?resource/resources}, no errors", "리소스 {n}개, 오류 없음"},
	BundleWrong - bundleKeys:        {"{n} {n?error/errors}; nothing of the bundle can be started", "오류 {n}개. 이 번들은 시작할 수 없습니다"},
	BundleLacks - bundleKeys:        {"(not there)", "(없음)"},
	HelpBundleRun - bundleKeys:      {"run a swarm: one prompt, or what its connections bring", "스웜 실행: 프롬프트 하나, 또는 연결로 오는 메시지"},
	FlagSwarm - bundleKeys:          {"swarm to run; default: the one named default, or the only one", "실행할 스웜. 기본값: default라는 스웜, 또는 하나뿐인 스웜"},
	FlagWithout - bundleKeys:        {"extensions of the bundle that are not started, with commas between them", "시작하지 않을 번들의 확장, 쉼표로 구분"},
	FlagReload - bundleKeys:         {"run code of the bundle that changes as it is then, whoever has changed it", "실행 중 바뀐 번들 코드를, 누가 바꾸었든 바뀐 대로 실행"},
	BundleServes - bundleKeys:       {"{name}: {where}", "{name}: {where}"},
	BundleDisabled - bundleKeys:     {"{name} failed {n} times in a row, and is not started again: {error}; mend it, and start the bundle anew", "{name} 연속 {n}번 실패하여 다시 시작하지 않습니다: {error}; 고친 뒤 번들을 다시 시작하세요"},
	NeedsSignIn - bundleKeys:        {"{what}. Open: {url}", "로그인이 필요합니다({what}). 여세요: {url}"},
	NeedsSignInCode - bundleKeys:    {"{what}. Open: {url}, and type: {code}", "로그인이 필요합니다({what}). 여세요: {url}, 입력할 코드: {code}"},
	HelpBundleLogin - bundleKeys:    {"sign in for the tools of a bundle", "번들의 도구가 쓸 서비스에 로그인합니다"},
	PrintSignInFix - bundleKeys:     {"That address works as long as dure runs. Sign in with dure bundle login PATH, then ask again.", "이 주소는 dure가 실행되는 동안만 쓸 수 있습니다. dure bundle login PATH로 로그인한 뒤 다시 요청하세요."},
	BundleFailed - bundleKeys:       {"{name} failed, and is started again in {wait}: {error}", "{name} 실패, {wait} 뒤에 다시 시작: {error}"},
	BundleContinues - bundleKeys:    {"a conversation that was cut short goes on: {session}", "끊긴 대화를 이어감: {session}"},
	BundleUndelivered - bundleKeys:  {"{name}: a message is not taken: {error}", "{name}: 메시지를 받지 않음: {error}"},
	BundleStays - bundleKeys:        {"a conversation that was cut short does not go on: {session}: {error}", "끊긴 대화를 잇지 못함: {session}: {error}"},
	BundleProgress - bundleKeys:     {"{session}: {line}", "{session}: {line}"},
	BundleLocked - bundleKeys:       {"The packages are written down in {path}.", "패키지를 {path}에 적었습니다."},
}

// bundleProblem returns the messages of a problem about bundles.
func bundleProblem(code agent.ProblemCode) (pair, bool) {
	return pair{ProblemBundle, FixBundle}, code == agent.ProblemBundle
}
