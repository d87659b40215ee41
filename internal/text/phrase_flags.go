package text

// flaggings are phrases about flags whose value is not to be gone on with. They come first:
// shorter ones of other lists fit some of them.
var flaggings = [...][2]string{
	{"--tools: there is no tool {name} here", "--tools: 여기에는 {name} 도구가 없습니다"},
	{"--tools: there is no tool {name}", "--tools: {name} 도구가 없습니다"},
	{"see them with: dure tools", "목록: dure tools"},
	{"did you mean {name}? See them with: dure tools", "{name|을/를} 뜻했나요? 목록: dure tools"},
	{"--allow: rule {rule}: {Why}", "--allow: 규칙 {rule}: {Why}"},
	{"--deny: rule {rule}: {Why}", "--deny: 규칙 {rule}: {Why}"},
	{"write it as in Bash(go test *), Read(~/notes/**) or WebFetch(domain:example.com)", "Bash(go test *), Read(~/notes/**), WebFetch(domain:example.com)처럼 쓰세요"},
	{`see the list with: dure models; name the provider of one that is missing, as in openrouter/NAME, or add it to "models" in the settings`, `목록은 dure models가 보여 줍니다. 목록에 없는 모델은 openrouter/이름처럼 제공자를 쓰거나 설정의 "models"에 추가하세요`},
	{"there is no such file", "그런 파일이 없습니다"},
	{"{place}: there is no such file", "{place}: 그런 파일이 없습니다"},
	{"--mcp-config: {Why}", "--mcp-config: {Why}"},
	{"--mcp-config {place}: {Why}", "--mcp-config {place}: {Why}"},
}
