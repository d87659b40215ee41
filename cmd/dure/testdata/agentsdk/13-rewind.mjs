// model: {"replies": [{"when": "first", "calls": [{"tool": "Write", "input": {"file_path": "a.txt", "content": "one\n"}}]}, {"text": "FIRST"}, {"when": "second", "calls": [{"tool": "Edit", "input": {"file_path": "a.txt", "old_string": "one", "new_string": "two"}}]}, {"text": "SECOND"}]}
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { assert, options, query, said, talk } from './lib.mjs';

// Files go back to how they were before a message of the user.
const file = join(process.env.WORK, 'a.txt');
const prompt = talk();
const q = query({ prompt, options: options({ permissionMode: 'acceptEdits', enableFileCheckpointing: true }) });
const ids = [randomUUID(), randomUUID()];
prompt.say({ ...said('first'), uuid: ids[0] });
let n = 0;
for await (const m of q) {
  if (m.type !== 'result') continue;
  if (++n === 1) {
    assert.equal(readFileSync(file, 'utf8'), 'one\n');
    prompt.say({ ...said('second'), uuid: ids[1] });
    continue;
  }
  assert.equal(readFileSync(file, 'utf8'), 'two\n');
  const unknown = await q.rewindFiles(randomUUID(), { dryRun: true });
  assert.equal(unknown.canRewind, false);
  assert.ok(unknown.error);
  const dry = await q.rewindFiles(ids[1], { dryRun: true });
  assert.equal(dry.canRewind, true);
  assert.deepEqual(dry.filesChanged, [file]);
  assert.equal(dry.insertions, 1);
  assert.equal(dry.deletions, 1);
  assert.equal(readFileSync(file, 'utf8'), 'two\n');
  const real = await q.rewindFiles(ids[1]);
  assert.equal(real.canRewind, true);
  assert.equal(readFileSync(file, 'utf8'), 'one\n');
  assert.equal((await q.rewindFiles(ids[0])).canRewind, true);
  assert.ok(!existsSync(file));
  prompt.end();
}
assert.equal(n, 2);
