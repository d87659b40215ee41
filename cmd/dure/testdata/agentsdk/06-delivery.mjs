// model: {"replies": [{"when": "please", "calls": [{"tool": "mcp__sh__echo", "input": {"text": "x"}}]}, {"text": "DONE"}]}
import { writeFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { assert, options, query } from './lib.mjs';

// Servers and plugins that come with the first request instead of the command line.
const program = join(process.env.WORK, 'server.mjs');
writeFileSync(program, `
import { createInterface } from 'node:readline';
for await (const line of createInterface({ input: process.stdin })) {
  const m = JSON.parse(line);
  const results = {
    initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'sh', version: '1' } },
    'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
    'tools/call': { content: [{ type: 'text', text: 'the server has heard it' }] },
  };
  if (m.id === undefined) continue;
  const result = results[m.method];
  console.log(JSON.stringify(result ? { jsonrpc: '2.0', id: m.id, result } : { jsonrpc: '2.0', id: m.id, error: { code: -32601, message: 'no' } }));
}
`);
const plugin = join(process.env.WORK, 'greets');
mkdirSync(join(plugin, '.claude-plugin'), { recursive: true });
mkdirSync(join(plugin, 'commands'), { recursive: true });
writeFileSync(join(plugin, '.claude-plugin', 'plugin.json'), JSON.stringify({ name: 'greets', version: '1.0.0', description: 'Greets' }));
writeFileSync(join(plugin, 'commands', 'hello.md'), '---\ndescription: Says hello\n---\nSay hello.\n');
const q = query({ prompt: 'please', options: options({
  mcpServers: { sh: { type: 'stdio', command: process.execPath, args: [program] } }, mcpServersDelivery: 'initialize',
  plugins: [{ type: 'local', path: plugin }], pluginDelivery: 'initialize',
  allowedTools: ['mcp__sh__echo'],
}) });
let result, heard = false;
for await (const m of q) {
  heard ||= JSON.stringify(m).includes('the server has heard it');
  if (m.type === 'result') result = m;
}
assert.equal(result.result, 'DONE');
assert.ok(heard);
