// model: {"replies": [{"when": "find the paint", "text": "It is in the shed."}, {"when": "hand it on", "calls": [{"tool": "Agent", "input": {"prompt": "find the paint", "description": "find it"}}]}, {"when": "in the shed", "text": "They know."}, {"when": "red", "text": "Red it is."}, {"when": "look", "text": "A large one."}, {"text": "You said red."}]}
import { mkdtempSync, readFileSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assert, ask, options, query } from './lib.mjs';
import { InMemorySessionStore, listSessions } from '@anthropic-ai/claude-agent-sdk';

// A store of the application's gets what is written of sessions, and they go on from it where
// nothing of them is.
const dir = process.env.WORK;
const place = () => ({ ...process.env, CLAUDE_CONFIG_DIR: mkdtempSync(join(tmpdir(), 'projects-')), DURE_HOME: mkdtempSync(join(tmpdir(), 'dure-')) });
const free = { permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true };
const sessionStore = new InMemorySessionStore();

// files are the entries of the conversations of a place, by the names that stores have for them.
function files(config) {
  const root = join(config, 'projects'), out = {};
  for (const name of readdirSync(root, { recursive: true })) {
    if (name.endsWith('.jsonl')) out[name.slice(0, -6)] = readFileSync(join(root, name), 'utf8').trim().split('\n').map((l) => JSON.parse(l));
  }
  return out;
}

// same wants in the store what the files have, for as many conversations.
function same(config, count) {
  const all = files(config);
  assert.equal(Object.keys(all).length, count);
  for (const [name, entries] of Object.entries(all)) {
    const [projectKey, sessionId, ...below] = name.split(/[\\/]/);
    const key = below.length ? { projectKey, sessionId, subpath: below.join('/') } : { projectKey, sessionId };
    assert.deepEqual(sessionStore.getEntries(key), entries, name);
  }
}

const first = place();
const red = await ask('red', { env: first, sessionStore });
assert.equal(red.error, undefined);
same(first.CLAUDE_CONFIG_DIR, 1);
const id = red.result.session_id;
assert.deepEqual((await listSessions({ dir, sessionStore })).map((s) => s.sessionId), [id]);

// It is there as soon as the turn is over, of an agent too.
const second = place();
for await (const m of query({ prompt: 'hand it on', options: options({ env: second, sessionStore, ...free }) })) {
  if (m.type === 'result') {
    assert.equal(m.result, 'They know.');
    same(second.CLAUDE_CONFIG_DIR, 2);
  }
}

// It goes on elsewhere, where neither files nor a log are.
const gone = await ask('what did I say first?', { env: place(), sessionStore, resume: id });
assert.equal(gone.error, undefined);
assert.equal(gone.result.result, 'You said red.');
assert.equal(gone.result.session_id, id);
const [projectKey] = Object.keys(files(first.CLAUDE_CONFIG_DIR))[0].split(/[\\/]/);
const said = sessionStore.getEntries({ projectKey, sessionId: id }).filter((e) => e.message).map(({ message: { content } }) => content[0].text ?? content);
assert.deepEqual(said, ['red', 'Red it is.', 'what did I say first?', 'You said red.']);

// An entry that is longer than other messages may be comes whole.
const image = Buffer.alloc(1_200_000, 'x').toString('base64');
async function* large() {
  yield { type: 'user', session_id: '', parent_tool_use_id: null, message: { role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: image } }, { type: 'text', text: 'look' }] } };
}
const third = place();
const looked = await ask(large(), { env: third, sessionStore });
assert.equal(looked.result.result, 'A large one.');
same(third.CLAUDE_CONFIG_DIR, 1);
const [[, entries]] = Object.entries(files(third.CLAUDE_CONFIG_DIR));
assert.ok(JSON.stringify(entries).includes(image));
