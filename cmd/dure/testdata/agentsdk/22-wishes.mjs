// again: true
// model: {"replies": [{"when": "make", "calls": [{"tool": "Bash", "input": {"command": "touch made.txt"}}]}, {"when": "hand it on", "calls": [{"tool": "Agent", "input": {"prompt": "wipe it", "description": "wipe it"}}]}, {"when": "wipe it", "calls": [{"tool": "Bash", "input": {"command": "rm made.txt"}}]}, {"text": "DONE"}]}
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, options, query, talk } from './lib.mjs';

// What a host wants to hold beyond a call: what forbids holds at once and for agents too, and
// also where nothing else would be asked about.
const other = join(process.env.HOME, 'other');
mkdirSync(other, { recursive: true });
writeFileSync(join(other, 'a.txt'), 'from elsewhere');
const made = join(process.env.WORK, 'made.txt');
const rules = (behavior, content, more = {}) => ({ type: 'addRules', behavior, destination: 'session', rules: [{ toolName: 'Bash', ruleContent: content }], ...more });
const wishes = [
  [rules('deny', 'rm *'), rules('allow', 'touch *'), { type: 'addDirectories', destination: 'session', directories: [other] }],
];
const t = talk();
const asked = [], results = [], below = [];
const said = ['make', 'make', 'wipe it', 'hand it on', 'end'];
t.say(said.shift());
const q = query({ prompt: t, options: options({ canUseTool: async (name, input) => {
  asked.push(input.command);
  return { behavior: 'allow', updatedInput: input, updatedPermissions: wishes.shift() ?? [] };
} }) });
let state;
for await (const m of q) {
  if (m.type === 'user' && m.parent_tool_use_id) below.push(...m.message.content.filter((b) => b.type === 'tool_result'));
  if (m.type !== 'result') continue;
  results.push(m);
  if (results.length === 4) state = (await q.listPermissionRules()).state;
  if (said.length) t.say(said.shift());
  else t.end();
}
assert.deepEqual(asked, ['touch made.txt'], 'only the first call is asked about');
assert.ok(existsSync(made), 'nothing was wiped');
assert.deepEqual(results.slice(0, 3).map((r) => r.permission_denials.length), [0, 0, 1]);
assert.deepEqual(below.map((b) => b.is_error), [true], 'the agent has tried');
const held = state.rules.filter((r) => r.source === 'session').map((r) => `${r.behavior} ${r.rule}`).sort();
assert.deepEqual(held, ['allow Bash(touch *)', 'allow Read(~/other/**)', 'deny Bash(rm *)']);

// A wish that cannot hold is a no: it may have forbidden something.
for (const bad of [rules('deny', '', { destination: 'moon' }), rules('deny', 'x', { rules: [{ toolName: '(' }] }), { type: 'forget', destination: 'session' }]) {
  let denied;
  for await (const m of query({ prompt: 'make', options: options({ canUseTool: async (name, input) => ({ behavior: 'allow', updatedInput: input, updatedPermissions: [bad] }) }) })) {
    if (m.type === 'result') denied = m.permission_denials.length;
  }
  assert.equal(denied, 1, JSON.stringify(bad));
}
