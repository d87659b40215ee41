// model: {"replies": [{"text": "Hello back."}]}
import { ask, assert } from './lib.mjs';

const seen = await ask('Hello.');
assert.equal(seen.error, undefined);
assert.deepEqual(seen.kinds, ['system/init', 'assistant', 'result/success']);
const [init, answer, result] = seen.messages.filter((m) => m.subtype !== 'session_state_changed');
assert.match(init.session_id, /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
assert.ok(init.tools.includes('Bash') && init.tools.includes('Read') && init.tools.includes('Edit'), init.tools.join());
assert.equal(init.cwd, process.env.WORK);
assert.equal(init.permissionMode, 'default');
assert.match(init.claude_code_version, /^2\.\d+\.\d+$/);
assert.equal(answer.session_id, init.session_id);
assert.deepEqual(answer.message.content, [{ type: 'text', text: 'Hello back.' }]);
assert.equal(answer.parent_tool_use_id, null);
assert.equal(result.result, 'Hello back.');
assert.equal(result.is_error, false);
assert.equal(result.num_turns, 1);
assert.equal(result.stop_reason, 'end_turn');
assert.equal(result.terminal_reason, 'completed');
assert.deepEqual(result.permission_denials, []);
assert.ok(result.usage.input_tokens + result.usage.cache_creation_input_tokens > 0 && result.usage.output_tokens > 0);
assert.deepEqual(Object.keys(result.modelUsage), ['script']);
const states = seen.messages.filter((m) => m.subtype === 'session_state_changed').map((m) => m.state);
assert.deepEqual(states, ['running', 'idle']);
console.log(`took ${Math.round(seen.took)} ms`);
assert.ok(seen.took < 2000 * Number(process.env.SLACK), `${seen.took} ms`);
