package text

// The messages about flags whose value is not to be gone on with.
const (
	WantStdio Key = iota + flagKeys
	WantNone
	FixUnpriced

	keyCount = iota + flagKeys // where those of the next file begin
)

// flagTexts are the messages of the keys above.
var flagTexts = [keyCount - flagKeys]both{
	WantStdio - flagKeys:   {"stdio, by which a host answers what is asked", "호스트가 질문에 답하는 stdio"},
	WantNone - flagKeys:    {"a whole number of 0 or more; 0 switches thinking off", "0(생각 끄기) 이상의 정수"},
	FixUnpriced - flagKeys: {`Give its price in the settings: "models", with "id", "provider" and "price" ("input", "output": US dollars for a million tokens); or bound tokens in place of money: --max-budget-tokens.`, `설정의 "models"에 "id", "provider", "price"("input", "output": 토큰 백만 개당 미국 달러)로 가격을 쓰거나, 금액 대신 --max-budget-tokens로 토큰을 제한하세요.`},
}
