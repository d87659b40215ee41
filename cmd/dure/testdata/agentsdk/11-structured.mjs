// model: {"replies": [{"when": "count", "calls": [{"tool": "StructuredOutput", "input": {"passed": "two"}}]}, {"calls": [{"tool": "StructuredOutput", "input": {"passed": 2}}]}, {"when": "never", "text": "No."}, {"text": "No."}, {"text": "No."}, {"text": "No."}, {"text": "No."}, {"text": "No."}]}
import { assert, ask } from './lib.mjs';

const schema = { type: 'object', properties: { passed: { type: 'integer' } }, required: ['passed'], additionalProperties: false };
const outputFormat = { type: 'json_schema', schema };

// An answer that does not fit is given again.
const done = await ask('count', { outputFormat });
assert.equal(done.error, undefined);
assert.equal(done.result.subtype, 'success');
assert.deepEqual(done.result.structured_output, { passed: 2 });
const tool = done.messages.flatMap((m) => (m.type === 'assistant' ? m.message.content : [])).filter((b) => b.type === 'tool_use');
assert.deepEqual(tool.map((b) => b.name), ['StructuredOutput', 'StructuredOutput']);

// A model that never answers so ends with an error of its own.
const never = await ask('never', { outputFormat });
assert.equal(never.result.subtype, 'error_max_structured_output_retries');
assert.equal(never.result.is_error, true);
assert.equal(never.result.structured_output, undefined);
assert.match(String(never.error), /valid input, after 5 repairs/);
