// model: {"replies": [{"when": "loop", "calls": [{"tool": "Bash", "input": {"command": "echo loop"}}]}, {"when": "fail", "faults": [{"kind": "status", "status": 400, "message": "no"}, {"kind": "status", "status": 400, "message": "no"}], "text": "x"}, {"when": "try this", "calls": [{"tool": "Bash", "input": {"command": "echo no"}}]}, {"text": "DONE"}, {"text": "DONE"}]}
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

// Settings that only restrict hold, whichever way they come, and nothing begins with those that
// cannot be held.
for (const managedSettingsDelivery of ['argv', 'initialize']) {
  const how = { managedSettingsDelivery, allowedTools: ['Bash'], permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true };
  const held = await ask('try this', { ...how, managedSettings: { permissions: { deny: ['Bash(echo:*)'], allow: ['Write'] } } });
  assert.equal(held.error, undefined);
  assert.deepEqual(held.result.permission_denials.map((d) => d.tool_name), ['Bash'], managedSettingsDelivery);
  const refused = await ask('x', { ...how, managedSettings: { availableModels: ['none'] } });
  assert.match(String(refused.error), /availableModels cannot be held/, managedSettingsDelivery);
}
