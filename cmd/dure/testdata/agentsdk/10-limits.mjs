// model: {"replies": [{"when": "loop", "calls": [{"tool": "Bash", "input": {"command": "echo loop"}}]}, {"when": "fail", "faults": [{"kind": "status", "status": 400, "message": "no"}, {"kind": "status", "status": 400, "message": "no"}], "text": "x"}, {"text": "DONE"}]}
import { assert, ask } from './lib.mjs';

const turns = await ask('loop', { maxTurns: 2, allowedTools: ['Bash'] });
assert.equal(turns.result.subtype, 'error_max_turns');
assert.equal(turns.result.is_error, true);
assert.equal(turns.result.terminal_reason, 'max_turns');
assert.ok(turns.result.num_turns >= 2);
assert.match(String(turns.error), /returned an error result/);

const money = await ask('loop', { maxBudgetUsd: 0.000001, model: 'claude-sonnet-4-5', allowedTools: ['Bash'] });
assert.equal(money.result.subtype, 'error_max_budget_usd');
assert.equal(money.result.terminal_reason, 'budget_exhausted');
assert.match(String(money.error), /returned an error result/);

// A failure of the model's service is a result, and an answer with an error.
const fails = await ask('fail');
assert.equal(fails.result.subtype, 'success');
assert.equal(fails.result.is_error, true);
assert.equal(fails.result.terminal_reason, 'api_error');
assert.ok(fails.messages.some((m) => m.type === 'assistant' && m.error === 'invalid_request'));
assert.match(String(fails.error), /returned an error result/);

// What cannot begin says why.
const none = await ask('x', { resume: '00000000-0000-4000-8000-000000000000' });
assert.ok(none.error, 'a session that is not there is an error');
assert.match(String(none.error), /00000000-0000-4000-8000-000000000000/);
