// model: {"replies": [{"when": "one", "text": "ONE"}, {"when": "two", "text": "TWO"}, {"when": "three", "text": "THREE"}]}
import { assert, kind, options, query, talk } from './lib.mjs';

const prompt = talk();
const q = query({ prompt, options: options() });
const kinds = [], results = [], inits = [], modes = [];
prompt.say('one');
for await (const m of q) {
  if (kind(m) === 'system/status' && m.permissionMode) modes.push(m.permissionMode);
  if (m.type !== 'system' || m.subtype === 'init') kinds.push(kind(m));
  if (m.subtype === 'init') inits.push(m);
  if (m.type !== 'result') continue;
  results.push(m);
  if (results.length === 1) {
    await q.setPermissionMode('acceptEdits');
    prompt.say('two');
  } else if (results.length === 2) {
    await q.setModel('sonnet');
    await q.setModel('script');
    prompt.say('three');
    prompt.end();
  }
}
assert.deepEqual(results.map((r) => r.result), ['ONE', 'TWO', 'THREE']);
assert.deepEqual(kinds, Array(3).fill(['system/init', 'assistant', 'result/success']).flat());
assert.deepEqual(inits.map((m) => m.permissionMode), ['default', 'acceptEdits', 'acceptEdits']);
assert.deepEqual(modes, ['acceptEdits']);
assert.equal(new Set([...results, ...inits].map((m) => m.session_id)).size, 1);
assert.ok(results[2].modelUsage.script.outputTokens > results[0].modelUsage.script.outputTokens, 'what models are used for adds up');
