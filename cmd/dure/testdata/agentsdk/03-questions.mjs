// again: true
// model: {"replies": [{"when": "please", "calls": [{"tool": "AskUserQuestion", "input": {"questions": [{"question": "Which one?", "header": "Which", "options": [{"label": "First", "description": "The first"}, {"label": "Second", "description": "The second"}], "multiSelect": false}]}}]}, {"when": "plan", "calls": [{"tool": "ExitPlanMode", "input": {"plan": "1. Do it."}}]}, {"text": "DONE"}]}
import { assert, ask } from './lib.mjs';

// Questions for the user are put to the host, and the model reads what it answers.
{
  const asked = [];
  const seen = await ask('please', { canUseTool: async (name, input, more) => {
    asked.push({ name, input, more });
    return { behavior: 'allow', updatedInput: { ...input, answers: { 'Which one?': 'Second' } } };
  } });
  assert.equal(seen.result.subtype, 'success');
  assert.deepEqual(asked.map((a) => a.name), ['AskUserQuestion']);
  assert.equal(asked[0].input.questions[0].question, 'Which one?');
  const told = seen.messages.filter((m) => m.type === 'user').map((m) => JSON.stringify(m.message)).join();
  assert.ok(told.includes('Second'), told);
}

// So are plans; a yes goes on in the mode that the host names.
{
  const asked = [];
  const seen = await ask('plan', { permissionMode: 'plan', canUseTool: async (name, input) => {
    asked.push({ name, input });
    return { behavior: 'allow', updatedInput: input, updatedPermissions: [{ type: 'setMode', mode: 'acceptEdits', destination: 'session' }] };
  } });
  assert.equal(seen.result.subtype, 'success');
  assert.deepEqual(asked.map((a) => a.name), ['ExitPlanMode']);
  assert.match(asked[0].input.plan, /Do it/);
  const modes = seen.messages.filter((m) => m.subtype === 'status' && m.permissionMode).map((m) => m.permissionMode);
  assert.equal(modes.at(-1), 'acceptEdits', modes.join());
}

// A no to a plan stays in plan mode.
{
  const seen = await ask('plan', { permissionMode: 'plan', canUseTool: async () => ({ behavior: 'deny', message: 'Not like that.' }) });
  assert.ok(JSON.stringify(seen.messages).includes('Not like that.'));
  const modes = seen.messages.filter((m) => m.subtype === 'status' && m.permissionMode).map((m) => m.permissionMode);
  assert.ok(!modes.length || modes.at(-1) === 'plan', modes.join());
}
