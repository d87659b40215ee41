// again: true
// model: {"replies": [{"when": "please", "calls": [{"tool": "Bash", "input": {"command": "touch made.txt"}}]}, {"when": "again", "calls": [{"tool": "Bash", "input": {"command": "touch one.txt"}}, {"tool": "Bash", "input": {"command": "touch two.txt"}}]}, {"text": "DONE"}]}
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { assert, ask } from './lib.mjs';

const made = (name) => join(process.env.WORK, name);

// What the host allows is done, and what it is asked says what is to be decided.
{
  const asked = [];
  const seen = await ask('please', { canUseTool: async (name, input, more) => {
    asked.push({ name, input, more });
    return { behavior: 'allow', updatedInput: input };
  } });
  assert.equal(seen.result.subtype, 'success');
  assert.equal(asked.length, 1);
  assert.equal(asked[0].name, 'Bash');
  assert.deepEqual(asked[0].input, { command: 'touch made.txt' });
  assert.ok(asked[0].more.toolUseID);
  assert.ok(asked[0].more.suggestions.length > 0);
  assert.equal(asked[0].more.suggestions[0].type, 'addRules');
  assert.ok(existsSync(made('made.txt')));
  rmSync(made('made.txt'));
}

// Another input is run in the place of the model's.
{
  let times = 0;
  await ask('please', { canUseTool: async () => {
    times++;
    return { behavior: 'allow', updatedInput: { command: 'touch other.txt' } };
  } });
  assert.equal(times, 1);
  assert.ok(existsSync(made('other.txt')) && !existsSync(made('made.txt')));
}

// What the host denies is not done, and the turn goes on, unless the host ends it.
{
  const seen = await ask('please', { canUseTool: async () => ({ behavior: 'deny', message: 'Not here.' }) });
  assert.equal(seen.result.subtype, 'success');
  assert.equal(seen.result.result, 'DONE');
  assert.equal(seen.result.permission_denials.length, 1);
  assert.equal(seen.result.permission_denials[0].tool_name, 'Bash');
  assert.ok(JSON.stringify(seen.messages).includes('Not here.'));
  assert.ok(!existsSync(made('made.txt')));
  const ended = await ask('please', { canUseTool: async () => ({ behavior: 'deny', message: 'Stop it.', interrupt: true }) });
  assert.notEqual(ended.result?.result, 'DONE');
  assert.ok(!existsSync(made('made.txt')));
}

// A callback that throws denies, and so does a host that has none.
{
  const seen = await ask('please', { canUseTool: async () => { throw new Error('it broke'); } });
  assert.equal(seen.result.permission_denials.length, 1);
  const none = await ask('please');
  assert.equal(none.result.permission_denials.length, 1);
  const stdio = await ask('please', { extraArgs: { 'permission-prompt-tool': 'stdio' } });
  assert.equal(stdio.result.permission_denials.length, 1);
  assert.ok(!existsSync(made('made.txt')));
}

// What is to hold beyond the call holds: the second call of the same kind is not asked about.
{
  let times = 0;
  const seen = await ask('again', { canUseTool: async (name, input, { suggestions }) => {
    times++;
    return { behavior: 'allow', updatedInput: input, updatedPermissions: [...suggestions.filter((s) => s.destination === 'session'), { type: 'setMode', mode: 'acceptEdits', destination: 'session' }] };
  } });
  assert.equal(times, 1);
  assert.ok(seen.messages.some((m) => m.subtype === 'status' && m.permissionMode === 'acceptEdits'));
}
