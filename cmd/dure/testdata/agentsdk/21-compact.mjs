// model: {"replies": [{"when": "conversation", "text": "They talked about paint."}, {"when": "hand it on", "calls": [{"tool": "Agent", "input": {"prompt": "look", "description": "look around"}}]}, {"when": "look", "calls": [{"tool": "Bash", "input": {"command": "echo found"}}]}, {"when": "found", "text": "I saw it."}, {"when": "I saw it", "text": "SEEN"}, {"when": "one", "text": "ONE"}, {"when": "two", "text": "TWO"}, {"when": "three", "text": "THREE"}, {"when": "forbidden", "calls": [{"tool": "Bash", "input": {"command": "rm -r x"}}]}, {"text": "DONE"}]}
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assert, kind, options, query, talk } from './lib.mjs';
import { getSessionMessages } from '@anthropic-ai/claude-agent-sdk';

// A conversation is shortened when the user says so, as a turn without a model's answer, and the
// package reads what stands for its beginning, and what is said next.
process.env.CLAUDE_CONFIG_DIR = mkdtempSync(join(tmpdir(), 'projects-'));
const long = ' red blue green'.repeat(3000);
const t = talk();
const seen = [], results = [];
const said = [...Array(9).fill(`one${long}`), `two${long}`, '/compact the colours', 'three', 'forbidden'];
t.say(said.shift());
for await (const m of query({ prompt: t, options: options({ settings: { permissions: { deny: ['Bash(rm:*)'] } } }) })) {
  if (m.type === 'result') {
    results.push(m);
    if (said.length) t.say(said.shift());
    else t.end();
  }
  seen.push(m);
}
const of = (k) => seen.filter((m) => kind(m) === k);
assert.deepEqual(results.slice(9).map((r) => [r.subtype, r.is_error, r.result]), [
  ['success', false, 'TWO'], ['success', false, ''], ['success', false, 'THREE'], ['success', false, 'DONE'],
]);
assert.equal(results[10].num_turns, 0);
const [boundary] = of('system/compact_boundary');
assert.equal(boundary.compact_metadata.trigger, 'manual');
assert.ok(boundary.compact_metadata.post_tokens < boundary.compact_metadata.pre_tokens);
const statuses = of('system/status').map((m) => m.compact_result ?? m.status);
assert.deepEqual(statuses, ['compacting', 'success']);

// What was said since follows, in the file as in the conversation.
const texts = (await getSessionMessages(boundary.session_id, { dir: process.env.WORK })).map((m) => (typeof m.message.content === 'string' ? m.message.content : m.message.content.map((b) => b.text ?? b.type).join()));
assert.match(texts[0], /^.Previous conversation summary/);
assert.ok(texts.includes(`two${long}`), 'what stays is there');
assert.deepEqual(texts.slice(-6), ['three', 'THREE', 'forbidden', 'tool_use', 'tool_result', 'DONE']);

// A call that a rule denies is told of in front of its result.
const [denied] = of('system/permission_denied');
assert.equal(denied.tool_name, 'Bash');
assert.equal(denied.decision_reason_type, 'rule');
const result = seen.find((m) => m.type === 'user' && m.message.content[0].tool_use_id === denied.tool_use_id);
assert.equal(result.message.content[0].content, denied.message);
assert.ok(seen.indexOf(denied) < seen.indexOf(result));

// How far an agent is, its host reads after each of its calls.
const far = [];
for await (const m of query({ prompt: 'hand it on', options: options({ permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true }) })) {
  if (kind(m) === 'system/task_progress') far.push(m);
}
assert.equal(far.length, 1);
assert.equal(far[0].last_tool_name, 'Bash');
assert.equal(far[0].usage.tool_uses, 1);
assert.ok(far[0].usage.total_tokens > 0 && far[0].description === 'look around');
