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
	{"{name}: there is no such user", "{name}: 그런 사용자가 없습니다"},
	{"there is such a user already", "그런 사용자가 이미 있습니다"},
	{"there are {n} users already", "사용자가 이미 {n}명 있습니다"},
	{"a name is 1 to {n} of a-z, 0-9, - and _, and begins with a letter", "이름은 a-z, 0-9, -, _ 1~{n}자이며 글자로 시작해야 합니다"},
	{"a scope is metrics, read, write or admin", "범위는 metrics, read, write, admin 중 하나입니다"},
	{"others could reach {address}", "다른 컴퓨터에서 {address}에 닿을 수 있습니다"},
	{"a line of the input does not count: {Why}", "입력 한 줄을 버립니다: {Why}"},
	{"the message has neither text nor an image", "메시지에 글도 그림도 없습니다"},
	{"the input has ended before anything was asked", "아무것도 묻지 않고 입력이 끝났습니다"},
	{"give each task as a line, or one without --input-format: dure -p --output-format stream-json TASK", "할 일을 한 줄씩 주거나 --input-format 없이 주세요: dure -p --output-format stream-json 할일"},
	{"it is no JSON object: {why}", "JSON 객체가 아닙니다: {why}"},
	{"{name} names the variable {variable}, which is empty", "{name|이/가} 가리키는 변수 {variable} 값이 비어 있습니다"},
	{"--mcp-config: {Why}", "--mcp-config: {Why}"},
	{"--mcp-config {place}: {Why}", "--mcp-config {place}: {Why}"},
}
