package text

import "dure/agent"

// The messages about answers for scripts.
const (
	ProblemForm Key = iota + outputKeys
	FixForm
	FlagSchema
	SchemaInvalid
	SchemaFix
	ForExample

	serverKeys = iota + outputKeys // where those of the next file begin
)

// outputTexts are the messages of the keys above.
var outputTexts = [serverKeys - outputKeys]both{
	ProblemForm - outputKeys:   {"the model gave no valid answer in the form that was asked for: {error}", "모델이 요구한 형식의 올바른 답을 내지 않았습니다: {error}"},
	FixForm - outputKeys:       {"Say in the prompt what each field is, loosen the schema, or take a stronger model.", "프롬프트에 필드의 뜻을 적거나, 스키마를 느슨하게 하거나, 더 강한 모델을 쓰십시오."},
	FlagSchema - outputKeys:    {"the answer is JSON of this schema: a JSON Schema of an object, or @FILE", "답을 이 스키마의 JSON으로: 객체의 JSON Schema 또는 @파일"},
	SchemaInvalid - outputKeys: {"--json-schema is not a valid JSON Schema: {why}", "--json-schema의 값이 올바른 JSON Schema가 아닙니다: {why}"},
	SchemaFix - outputKeys:     {`Give a JSON Schema such as '{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}', or @FILE.`, `'{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}' 같은 JSON Schema 또는 @파일을 주십시오.`},
	ForExample - outputKeys:    {"For example: {line}", "예: {line}"},
}

// outputProblem returns the messages of a problem about answers for scripts.
func outputProblem(code agent.ProblemCode) (pair, bool) {
	return pair{ProblemForm, FixForm}, code == agent.ProblemForm
}
