// model: {"replies": [{"text": "A text that comes in pieces, one after the other.", "chunk": 8, "delay_ms": 20, "calls": [{"tool": "Bash", "input": {"command": "echo hello"}}]}, {"text": "Done."}]}
import { assert, ask } from './lib.mjs';

const seen = await ask('Say something.', { includePartialMessages: true, allowedTools: ['Bash'] });
assert.equal(seen.error, undefined);
const events = seen.messages.filter((m) => m.type === 'stream_event').map((m) => m.event);
const starts = events.filter((e) => e.type === 'message_start');
assert.equal(starts.length, 2);

// Each answer is a stream as the Messages API writes it.
let open = null, text = '', json = '', answers = [];
for (const m of seen.messages) {
  if (m.type === 'assistant') answers.push(m.message.id);
  if (m.type !== 'stream_event') continue;
  const e = m.event;
  switch (e.type) {
    case 'message_start': assert.equal(open, null); open = { id: e.message.id, block: null, next: 0 }; break;
    case 'content_block_start': assert.equal(open.block, null); assert.equal(e.index, open.next++); open.block = e.index; break;
    case 'content_block_delta':
      assert.equal(e.index, open.block);
      if (e.delta.type === 'text_delta') text += e.delta.text;
      if (e.delta.type === 'input_json_delta') json += e.delta.partial_json;
      break;
    case 'content_block_stop': assert.equal(e.index, open.block); open.block = null; break;
    case 'message_delta': assert.equal(open.block, null); assert.ok(e.delta.stop_reason); break;
    case 'message_stop': assert.ok(answers.includes(open.id), 'the answer comes before its stream ends'); open = null; break;
    default: assert.fail(e.type);
  }
}
assert.equal(open, null);
assert.equal(text, 'A text that comes in pieces, one after the other.Done.');
assert.deepEqual(JSON.parse(json), { command: 'echo hello' });
assert.ok(events.filter((e) => e.delta?.type === 'text_delta').length > 2, 'the text comes in pieces');
const [first, second] = seen.messages.filter((m) => m.type === 'assistant');
assert.equal(first.message.id, second.message.id, 'the blocks of an answer have one ID');
assert.equal(first.message.stop_reason, null);
assert.equal(second.message.stop_reason, 'tool_use');
const result = seen.messages.find((m) => m.type === 'user');
assert.match(result.message.content[0].content, /hello/);
assert.match(result.tool_use_result.stdout, /hello/);

// Without it there are none.
const plain = await ask('Say something.', { allowedTools: ['Bash'] });
assert.ok(!plain.kinds.some((k) => k.startsWith('stream_event')));
