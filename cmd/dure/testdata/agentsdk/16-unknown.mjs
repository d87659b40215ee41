// model: {"replies": [{"text": "HELLO"}]}
import { spawnSync } from 'node:child_process';
import { assert } from './lib.mjs';

// A request that nobody knows is answered with an error, and the session goes on; a flag
// that nobody knows ends the program with a reason.
const args = ['--output-format', 'stream-json', '--verbose', '--input-format', 'stream-json'];
const request = (id, subtype, more = {}) => JSON.stringify({ type: 'control_request', request_id: id, request: { subtype, ...more } });
const lines = [
  request('r1', 'initialize'), request('r2', 'levitate'), request('r3', 'mcp_authenticate', { serverName: 'x' }), request('r4', 'set_permission_mode', { mode: 'nonsense' }),
  JSON.stringify({ type: 'user', session_id: '', parent_tool_use_id: null, message: { role: 'user', content: 'hello' } }),
];
const run = spawnSync(process.env.DURE, args, { cwd: process.env.WORK, env: process.env, input: lines.join('\n') + '\n', encoding: 'utf8' });
const out = run.stdout.trim().split('\n').map((l) => JSON.parse(l));
const reply = (id) => out.find((m) => m.type === 'control_response' && m.response.request_id === id).response;
assert.equal(reply('r1').subtype, 'success');
assert.equal(reply('r2').subtype, 'error');
assert.equal(reply('r2').error_code, 'unsupported_request');
assert.equal(reply('r3').subtype, 'error');
assert.equal(reply('r4').subtype, 'error');
assert.equal(out.find((m) => m.type === 'result').result, 'HELLO');
assert.equal(run.status, 0);

const bad = spawnSync(process.env.DURE, [...args, '--levitate=1'], { cwd: process.env.WORK, env: process.env, input: '', encoding: 'utf8' });
assert.notEqual(bad.status, 0);
assert.match(bad.stderr, /levitate/);
assert.equal(bad.stdout, '');
