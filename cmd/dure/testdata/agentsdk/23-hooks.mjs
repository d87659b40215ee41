// again: true
// model: {"replies": [{"when": "go", "calls": [{"tool": "Bash", "input": {"command": "echo here"}}]}, {"text": "DONE"}]}
import { assert, ask } from './lib.mjs';

// What hooks do is told to a host that wants to know: each begins, and says what came of it.
const command = (line) => [{ hooks: [{ type: 'command', command: line }] }];
const more = { settings: { hooks: { SessionStart: command('echo welcome'), PreToolUse: command('echo not you >&2; exit 2') } }, permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true };
const hooks = (seen, subtype, event) => seen.messages.filter((m) => m.subtype === subtype && m.hook_event === event);
const all = await ask('go', { ...more, includeHookEvents: true });
for (const event of ['SessionStart', 'PreToolUse']) {
  const began = hooks(all, 'hook_started', event), ended = hooks(all, 'hook_response', event);
  assert.equal(began.length, 1, event);
  assert.deepEqual(ended.map((m) => m.hook_id), [began[0].hook_id]);
  assert.ok(all.messages.indexOf(began[0]) < all.messages.indexOf(ended[0]));
}
const [ended] = hooks(all, 'hook_response', 'PreToolUse');
assert.deepEqual([ended.outcome, ended.exit_code, ended.stderr, ended.output], ['error', 2, 'not you', 'not you']);
assert.match(hooks(all, 'hook_response', 'SessionStart')[0].stdout, /welcome/);

// Others are told of the beginning only.
const some = await ask('go', more);
assert.equal(hooks(some, 'hook_response', 'SessionStart').length, 1);
assert.equal(hooks(some, 'hook_started', 'PreToolUse').length + hooks(some, 'hook_response', 'PreToolUse').length, 0);
