// model: {"replies": [{"when": "long", "calls": [{"tool": "Bash", "input": {"command": "sleep 1; echo over", "run_in_background": true}}]}, {"text": "STARTED"}, {"calls": [{"tool": "Write", "input": {"file_path": "late.txt", "content": "late"}}]}, {"text": "WRITTEN"}]}
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { assert, ask } from './lib.mjs';

// A command that ends after the first result wakes the session, which asks the host then.
const asked = [];
const seen = await ask('long', { canUseTool: async (name, input) => {
  asked.push(name);
  return { behavior: 'allow', updatedInput: input };
} });
assert.equal(seen.error, undefined);
const results = seen.messages.filter((m) => m.type === 'result').map((m) => m.result);
assert.deepEqual(results, ['STARTED', 'WRITTEN']);
assert.ok(asked.includes('Write'), asked.join());
assert.ok(existsSync(join(process.env.WORK, 'late.txt')));
