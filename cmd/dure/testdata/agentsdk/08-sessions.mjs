// model: {"replies": [{"when": "find the paint", "text": "It is in the shed."}, {"when": "hand it on", "calls": [{"tool": "Agent", "input": {"prompt": "find the paint", "description": "find it"}}]}, {"when": "apart", "calls": [{"tool": "Agent", "input": {"prompt": "find the paint", "description": "find it apart", "isolation": "process"}}]}, {"when": "in the shed", "text": "They know."}, {"when": "red", "text": "Red it is."}, {"when": "blue", "text": "Blue it is."}, {"text": "You said red."}]}
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assert, ask } from './lib.mjs';
import { forkSession, getSessionMessages, getSubagentMessages, listSessions, listSubagents, renameSession, tagSession } from '@anthropic-ai/claude-agent-sdk';

// The package reads, names, tags and copies the sessions that it has had made, and a copy is
// gone on with.
process.env.CLAUDE_CONFIG_DIR = mkdtempSync(join(tmpdir(), 'projects-'));
const dir = process.env.WORK;
const asked = (more = {}) => ({ env: { ...process.env }, ...more });

const red = await ask('red', asked());
assert.equal(red.error, undefined);
const id = red.result.session_id;
assert.deepEqual((await listSessions({ dir })).map((s) => s.sessionId), [id]);
const texts = (list) => list.map((m) => `${m.type}: ${typeof m.message.content === 'string' ? m.message.content : m.message.content.map((b) => b.text).join('')}`);
assert.deepEqual(texts(await getSessionMessages(id, { dir })), ['user: red', 'assistant: Red it is.']);

// What goes on is added to what is there.
const more = await ask('blue', asked({ resume: id }));
assert.equal(more.result.session_id, id);
assert.deepEqual(texts(await getSessionMessages(id, { dir })), ['user: red', 'assistant: Red it is.', 'user: blue', 'assistant: Blue it is.']);

await renameSession(id, 'Colours', { dir });
await tagSession(id, 'paint', { dir });
const [named] = await listSessions({ dir });
assert.equal(named.customTitle, 'Colours');
assert.equal(named.tag, 'paint');

// A copy that the package makes is known to it alone, and goes on here all the same.
const fork = await forkSession(id, { dir });
const gone = await ask('what did I say first?', asked({ resume: fork.sessionId }));
assert.equal(gone.error, undefined);
assert.equal(gone.result.result, 'You said red.');
assert.equal((await getSessionMessages(fork.sessionId, { dir })).length, 6);
assert.equal((await getSessionMessages(id, { dir })).length, 4);

// A tag stays when the session is gone on with, and is gone when it is taken away.
const tagged = async () => (await listSessions({ dir })).find((s) => s.sessionId === id).tag;
await ask('blue', asked({ resume: id }));
assert.equal(await tagged(), 'paint');
await tagSession(id, null, { dir });
await ask('blue', asked({ resume: id }));
assert.equal(await tagged(), undefined);

// The package finds agents too, whether they work in the program or in a process of their own.
for (const words of ['hand it on', 'apart']) {
  const seen = await ask(words, asked({ permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true }));
  assert.equal(seen.result.result, 'They know.');
  const agents = await listSubagents(seen.result.session_id, { dir });
  assert.equal(agents.length, 1, words);
  assert.deepEqual(texts(await getSubagentMessages(seen.result.session_id, agents[0], { dir })), ['user: find the paint', 'assistant: It is in the shed.']);
}
