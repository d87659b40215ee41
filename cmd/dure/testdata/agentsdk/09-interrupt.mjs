// model: {"replies": [{"when": "sleep", "calls": [{"tool": "Bash", "input": {"command": "sleep 60"}}]}, {"when": "again", "text": "AGAIN"}, {"text": "DONE"}]}
import { assert, ask, options, query, talk } from './lib.mjs';

// An interrupt ends the turn in the middle of a call, and not the conversation.
{
  const prompt = talk();
  const q = query({ prompt, options: options({ allowedTools: ['Bash'] }) });
  const results = [];
  prompt.say('sleep');
  for await (const m of q) {
    if (m.type === 'assistant' && m.message.content[0].type === 'tool_use') {
      setTimeout(() => q.interrupt(), 300);
    }
    if (m.type !== 'result') continue;
    results.push(m);
    if (results.length === 1) {
      prompt.say('again');
      prompt.end();
    }
  }
  assert.equal(results[0].subtype, 'error_during_execution');
  assert.match(results[0].terminal_reason, /^aborted_(tools|streaming)$/);
  assert.equal(results[1].result, 'AGAIN');
}

// A controller that aborts ends the program.
{
  const abortController = new AbortController();
  const began = performance.now();
  let thrown;
  try {
    for await (const m of query({ prompt: 'sleep', options: options({ allowedTools: ['Bash'], abortController }) })) {
      if (m.type === 'assistant') setTimeout(() => abortController.abort(), 300);
    }
  } catch (e) { thrown = e; }
  assert.match(String(thrown), /abort/i);
  assert.ok(performance.now() - began < 10000 * Number(process.env.SLACK));
}

// So does closing it.
{
  const q = query({ prompt: 'sleep', options: options({ allowedTools: ['Bash'] }) });
  const began = performance.now();
  try {
    for await (const m of q) if (m.type === 'assistant') q.close();
  } catch { /* it may say that it was closed */ }
  assert.ok(performance.now() - began < 10000 * Number(process.env.SLACK));
}
const seen = await ask('Well?');
assert.equal(seen.result.result, 'DONE');
