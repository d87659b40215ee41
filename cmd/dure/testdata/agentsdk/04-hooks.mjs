// again: true
// model: {"replies": [{"when": "write", "calls": [{"tool": "Write", "input": {"file_path": "a.txt", "content": "a"}}]}, {"text": "DONE"}]}
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, ask } from './lib.mjs';

const file = join(process.env.WORK, 'a.txt');
const allowed = { allowedTools: ['Write'], permissionMode: 'acceptEdits' };
const answers = (hookEventName, more) => ({ hookSpecificOutput: { hookEventName, ...more } });

// Callbacks of every event that a turn passes are asked, in order.
{
  const seen = [];
  const note = (name, out = {}) => [{ hooks: [async (input, id) => {
    seen.push(name);
    assert.equal(input.hook_event_name, name);
    assert.ok(input.session_id && input.cwd && input.transcript_path !== undefined);
    if (name.endsWith('ToolUse')) assert.ok(id && input.tool_use_id === id);
    return out;
  }] }];
  const events = ['SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'PostToolBatch', 'Stop', 'SessionEnd'];
  const hooks = Object.fromEntries(events.map((e) => [e, note(e)]));
  hooks.UserPromptSubmit = note('UserPromptSubmit', answers('UserPromptSubmit', { additionalContext: 'THE-HOST-SAYS' }));
  const r = await ask('write', { ...allowed, hooks });
  assert.equal(r.result.result, 'DONE');
  assert.deepEqual(seen.filter((e) => e !== 'SessionEnd'), events.slice(0, -1));
  const asked = await (await fetch(process.env.REQUESTS)).text();
  assert.ok(asked.includes('THE-HOST-SAYS'));
  assert.ok(existsSync(file));
  rmSync(file);
}

// A denial of the host counts against an allow of the settings, and the other way round.
{
  const dir = join(process.env.HOME, '.claude');
  mkdirSync(dir, { recursive: true });
  const command = (decision) => ({ hooks: { PreToolUse: [{ hooks: [{ type: 'command', command: `printf %s '${JSON.stringify(answers('PreToolUse', { permissionDecision: decision, permissionDecisionReason: 'settings' }))}'` }] }] } });
  for (const [settings, host] of [['allow', 'deny'], ['deny', 'allow']]) {
    writeFileSync(join(dir, 'settings.json'), JSON.stringify(command(settings)));
    const r = await ask('write', { ...allowed, hooks: { PreToolUse: [{ matcher: 'Write', hooks: [async () => answers('PreToolUse', { permissionDecision: host, permissionDecisionReason: 'host' })] }] } });
    assert.equal(r.result.permission_denials.length, 1, `${settings} and ${host}`);
    assert.ok(!existsSync(file));
  }
  rmSync(join(dir, 'settings.json'));
}

// A matcher for something else is not asked; another input is taken over.
{
  const r = await ask('write', { ...allowed, hooks: { PreToolUse: [
    { matcher: 'Bash', hooks: [async () => answers('PreToolUse', { permissionDecision: 'deny' })] },
    { matcher: 'Write|Edit', hooks: [async (input) => answers('PreToolUse', { permissionDecision: 'allow', updatedInput: { ...input.tool_input, file_path: join(process.env.WORK, 'b.txt') } })] },
  ] } });
  assert.equal(r.result.permission_denials.length, 0);
  assert.ok(!existsSync(file) && existsSync(join(process.env.WORK, 'b.txt')));
}

// A callback that is late forbids the call; one that throws does so where it is to.
{
  const late = await ask('write', { ...allowed, hooks: { PreToolUse: [{ timeout: 0.2, hooks: [() => new Promise((r) => { setTimeout(() => r({}), 2000); })] }] } });
  assert.equal(late.result.permission_denials.length, 1);
  assert.ok(!existsSync(file));
  const throws = async () => { throw new Error('it broke'); };
  const blocked = await ask('write', { ...allowed, hooks: { PreToolUse: [{ onFailure: 'block', hooks: [throws] }] } });
  assert.equal(blocked.result.permission_denials.length, 1);
  assert.ok(!existsSync(file));
  const passes = await ask('write', { ...allowed, hooks: { PreToolUse: [{ hooks: [throws] }] } });
  assert.equal(passes.result.permission_denials.length, 0);
  assert.ok(existsSync(file));
}
