package text

// The messages about flags whose value is not to be gone on with.
const (
	WantStdio Key = iota + flagKeys
	WantNone
	FixUnpriced
	WantDrain
	PortTaken
	FixPortTaken

	keyCount = iota + flagKeys // where those of the next file begin
)

// flagTexts are the messages of the keys above.
var flagTexts = [keyCount - flagKeys]both{
	WantStdio - flagKeys:    {"stdio, by which a host answers what is asked", "호스트가 질문에 답하는 stdio"},
	WantNone - flagKeys:     {"a whole number of 0 or more; 0 switches thinking off", "0(생각 끄기) 이상의 정수"},
	WantDrain - flagKeys:    {"a time of at most {most}, such as 30s or 5m", "30s나 5m처럼 {most} 이하의 시간"},
	PortTaken - flagKeys:    {"{flag}: port {port} is in use", "{flag}: {port}번 포트를 이미 쓰고 있습니다"},
	FixPortTaken - flagKeys: {"Choose another one, or :0 for any that is free: {flag} {free}", "다른 포트를 쓰거나, 비어 있는 아무 포트나 고르는 :0을 쓰세요: {flag} {free}"},
	FixUnpriced - flagKeys:  {`Give its price in the settings: "models", with "id", "provider" and "price" ("input", "output": US dollars for a million tokens); or bound tokens in place of money: --max-budget-tokens.`, `설정의 "models"에 "id", "provider", "price"("input", "output": 토큰 백만 개당 미국 달러)로 가격을 쓰거나, 금액 대신 --max-budget-tokens로 토큰을 제한하세요.`},
}
