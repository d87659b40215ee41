// model: {"replies": [{"when": "fail", "faults": [{"kind": "status", "status": 400}, {"kind": "status", "status": 400}], "text": "x"}, {"calls": [{"tool": "Bash", "input": {"command": "echo out; echo err >&2"}}]}, {"text": "DONE"}]}
import { assert, ask } from './lib.mjs';

// What is wrong is told on the standard error, and disturbs nothing.
let noise = '';
const failed = await ask('fail', { debug: true, stderr: (s) => { noise += s; } });
assert.equal(failed.result.is_error, true);
assert.ok(noise.length > 0, 'what is wrong is on the standard error');

const seen = await ask('Go.', { debug: true, allowedTools: ['Bash'] });
assert.equal(seen.error, undefined, String(seen.error));
assert.equal(seen.result.result, 'DONE');
