// again: true
// model: {"replies": [{"when": "secret", "text": "NOTED"}, {"when": "Greet Ada", "text": "HELLO ADA"}, {"text": "DONE"}]}
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, kind, options, query, talk } from './lib.mjs';

// Commands that are sent as messages: those of files and what a host may have of the built-in
// ones are carried out, and all others are refused, without a word to the model.
const dir = join(process.env.HOME, '.claude', 'commands');
mkdirSync(dir, { recursive: true });
writeFileSync(join(dir, 'greet.md'), '---\ndescription: Greets.\n---\nGreet $ARGUMENTS.\n');
const requests = async () => (await fetch(process.env.REQUESTS)).text();
const t = talk();
const results = [], resets = [], told = [];
let listed;
const said = ['my secret', '/greet Ada', '/cost', '/context', '/quit', '/nothing-of-the-kind here', '/clear', 'What did I say?'];
let asked = '';
t.say(said.shift());
const q = query({ prompt: t, options: options({ settingSources: ['user'] }) });
for await (const m of q) {
  if (kind(m) === 'conversation_reset') resets.push(m);
  if (kind(m) === 'system/local_command_output') told.push(m.content);
  if (m.type !== 'result') continue;
  results.push(m);
  listed ??= (await q.supportedCommands()).map((c) => c.name);
  if (results.length === 2 || results.length === 7) asked = await requests();
  if (results.length === 7) assert.equal(asked, '', 'the model was asked nothing');
  if (said.length) t.say(said.shift());
  else t.end();
}
assert.deepEqual(results.map((r) => r.is_error), [false, false, false, false, true, true, false, false]);
assert.deepEqual([results[0].result, results[1].result, results[7].result], ['NOTED', 'HELLO ADA', 'DONE']);
assert.match(results[2].result, /^cost: /);
assert.match(results[3].result, /tokens/);
assert.deepEqual(told, [results[2].result, results[3].result]);
assert.match(results[4].errors[0], /\/quit is for people at a terminal/);
assert.match(results[5].errors[0], /no command \/nothing-of-the-kind/);
assert.equal(resets.length, 1);
const last = await requests();
assert.ok(last.includes('What did I say?') && !last.includes('my secret') && !last.includes('Greet Ada'), 'what was said before is forgotten');
for (const name of ['clear', 'compact', 'context', 'cost', 'greet']) assert.ok(listed.includes(name), `${name} is listed`);
for (const name of ['quit', 'model', 'config']) assert.ok(!listed.includes(name), `${name} is listed`);

// What was not typed is no command, whatever it begins with.
const plain = [];
for await (const m of query({ prompt: '/greet Ada', options: options({ settingSources: ['user'], verbatimPrompts: true }) })) {
  if (m.type === 'result') plain.push(m.result);
}
assert.deepEqual(plain, ['DONE']);
assert.ok((await requests()).includes(' /greet Ada'));
