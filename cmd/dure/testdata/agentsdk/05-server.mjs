// again: true
// model: {"replies": [{"when": "please", "calls": [{"tool": "mcp__sums__add", "input": {"a": 2, "b": 3}}]}, {"text": "DONE"}]}
import { createSdkMcpServer, tool } from '@anthropic-ai/claude-agent-sdk';
import { z } from 'zod';
import { assert, ask } from './lib.mjs';

// A tool of a server inside the host is offered at the first request, and called.
const calls = [];
const sums = () => createSdkMcpServer({ name: 'sums', version: '1.0.0', tools: [
  tool('add', 'Adds two numbers', { a: z.number(), b: z.number() }, async ({ a, b }) => {
    calls.push([a, b]);
    return { content: [{ type: 'text', text: `The sum is ${a + b}.` }] };
  }),
] });
const seen = await ask('please', { mcpServers: { sums: sums() }, allowedTools: ['mcp__sums__add'] });
assert.equal(seen.result.result, 'DONE');
assert.deepEqual(calls, [[2, 3]]);
const init = seen.messages.find((m) => m.subtype === 'init');
assert.ok(init.mcp_servers.some((s) => s.name === 'sums'), JSON.stringify(init.mcp_servers));
const asked = await (await fetch(process.env.REQUESTS)).text();
assert.ok(asked.split('\n')[0].includes('mcp__sums__add'));
assert.ok(asked.includes('The sum is 5.'));

// It passes the gate: without a rule the host is asked, and what it denies is not called.
const denied = await ask('please', { mcpServers: { sums: sums() }, canUseTool: async (name) => ({ behavior: 'deny', message: `no ${name}` }) });
assert.equal(denied.result.permission_denials[0].tool_name, 'mcp__sums__add');
assert.equal(calls.length, 1);
