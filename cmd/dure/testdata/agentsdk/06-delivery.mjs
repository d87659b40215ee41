// model: {"replies": [{"when": "please", "calls": [{"tool": "mcp__sh__echo", "input": {"text": "x"}}]}, {"text": "DONE"}, {"when": "begin", "text": "BEGUN"}]}
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
const quiet = join(process.env.WORK, 'quiet');
mkdirSync(join(quiet, '.claude-plugin'), { recursive: true });
mkdirSync(join(quiet, 'commands'), { recursive: true });
writeFileSync(join(quiet, '.claude-plugin', 'plugin.json'), JSON.stringify({ name: 'quiet', version: '2.0.0', description: 'Has a server' }));
writeFileSync(join(quiet, 'commands', 'hush.md'), '---\ndescription: Says nothing\n---\nSay nothing.\n');
writeFileSync(join(quiet, '.mcp.json'), JSON.stringify({ mcpServers: { loud: { command: process.execPath, args: [program] } } }));
const q = query({ prompt: 'please', options: options({
  mcpServers: { sh: { type: 'stdio', command: process.execPath, args: [program] } }, mcpServersDelivery: 'initialize',
  plugins: [{ type: 'local', path: plugin }, { type: 'local', path: quiet, skipMcpDiscovery: true }], pluginDelivery: 'initialize',
  allowedTools: ['mcp__sh__echo'],
}) });
let result, begun, heard = false;
for await (const m of q) {
  if (m.type === 'system' && m.subtype === 'init') begun = m;
  heard ||= JSON.stringify(m).includes('the server has heard it');
  if (m.type === 'result') result = m;
}
assert.equal(result.result, 'DONE');
assert.ok(heard);
assert.deepEqual(begun.plugins.map((p) => [p.name, p.path, p.version]), [['greets', plugin, '1.0.0'], ['quiet', quiet, '2.0.0']]);
assert.ok(begun.slash_commands.includes('quiet:hush'), begun.slash_commands.join());
assert.ok(!JSON.stringify(begun.mcp_servers).includes('loud'));

// The same on the command line, where the server of the other one is used.
for await (const m of query({ prompt: 'begin', options: options({
  plugins: [{ type: 'local', path: plugin, skipMcpDiscovery: true }, { type: 'local', path: quiet }],
}) })) if (m.type === 'system' && m.subtype === 'init') begun = m;
assert.deepEqual(begun.plugins.map((p) => p.name).sort(), ['greets', 'quiet']);
assert.ok(JSON.stringify(begun.mcp_servers).includes('loud'), JSON.stringify(begun.mcp_servers));
