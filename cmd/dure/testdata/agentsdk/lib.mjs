// What scenes share. Each of them drives the program as an application does, with the
// package as it is on npm, and fails with the first thing that is not as it should be.
import { query } from '@anthropic-ai/claude-agent-sdk';
import assert from 'node:assert/strict';

export { query, assert };

// options are those of every query, with more.
export function options(more = {}) {
  return { pathToClaudeCodeExecutable: process.env.DURE, cwd: process.env.WORK, env: { ...process.env }, ...more };
}

// kind names what a message is.
export function kind(m) {
  if (m.type === 'stream_event') return `stream_event/${m.event.type}`;
  return m.subtype ? `${m.type}/${m.subtype}` : m.type;
}

// ask asks one thing, and returns all messages, with what was thrown at the end.
export async function ask(prompt, more = {}) {
  const seen = { messages: [], kinds: [], error: undefined, result: undefined };
  const began = performance.now();
  try {
    for await (const m of query({ prompt, options: options(more) })) {
      seen.messages.push(m);
      if (kind(m) !== 'system/session_state_changed') seen.kinds.push(kind(m));
      if (m.type === 'result') seen.result = m;
    }
  } catch (e) {
    seen.error = e;
  }
  seen.took = performance.now() - began;
  return seen;
}

// said is a message of the user.
export function said(text) {
  return { type: 'user', session_id: '', parent_tool_use_id: null, message: { role: 'user', content: [{ type: 'text', text }] } };
}

// talk is a prompt that is written to as it goes.
export function talk() {
  const waiting = [];
  let wake, over = false;
  return {
    say(m) { waiting.push(typeof m === 'string' ? said(m) : m); wake?.(); },
    end() { over = true; wake?.(); },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (waiting.length) yield waiting.shift();
        if (over) return;
        await new Promise((r) => { wake = r; });
      }
    },
  };
}
