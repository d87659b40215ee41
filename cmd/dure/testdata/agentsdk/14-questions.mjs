// model: {"replies": [{"text": "HELLO"}, {"when": "again", "calls": [{"tool": "mcp__late__ping", "input": {}}]}, {"text": "DONE"}]}
import { createSdkMcpServer, tool } from '@anthropic-ai/claude-agent-sdk';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, options, query, talk } from './lib.mjs';

// What a host asks about the session, and changes in it, while it runs.
const make = (name, answer) => createSdkMcpServer({ name, version: '1.0.0', tools: [tool('ping', 'Answers', {}, async () => ({ content: [{ type: 'text', text: answer }] }))] });
writeFileSync(join(process.env.WORK, 'notes.txt'), 'what the notes say\n');
const prompt = talk();
const q = query({ prompt, options: options({ mcpServers: { early: make('early', 'early pong') }, allowedTools: ['mcp__late__ping'] }) });
prompt.say('hello');
let n = 0, heard = false;
for await (const m of q) {
  heard ||= JSON.stringify(m).includes('late pong');
  if (m.type !== 'result') continue;
  if (++n === 2) {
    prompt.end();
    continue;
  }
  const state = async (name) => (await q.mcpServerStatus()).find((s) => s.name === name);
  assert.equal((await state('early')).status, 'connected');
  assert.deepEqual((await state('early')).tools.map((t) => t.name), ['ping']);
  await q.toggleMcpServer('early', false);
  assert.equal((await state('early')).status, 'disabled');
  await q.toggleMcpServer('early', true);
  await q.reconnectMcpServer('early');
  assert.equal((await state('early')).status, 'connected');
  await assert.rejects(q.reconnectMcpServer('nobody'));
  const set = await q.setMcpServers({ late: make('late', 'late pong') });
  assert.deepEqual(set.added, ['late']);
  assert.equal((await state('late')).status, 'connected');

  const usage = await q.getContextUsage();
  assert.ok(usage.totalTokens > 0 && usage.maxTokens > usage.totalTokens);
  assert.ok(usage.categories.some((c) => c.id === 'system_prompt' && c.tokens > 0));
  assert.ok(usage.categories.some((c) => c.id === 'messages' && c.kind === 'used'));
  assert.ok(Array.isArray(await q.supportedCommands()));
  assert.ok((await q.supportedModels()).length > 0);
  assert.ok((await q.supportedAgents()).every((a) => a.name && a.description));
  assert.ok(await q.accountInfo());

  assert.equal((await q.readFile('notes.txt')).contents, 'what the notes say\n');
  assert.equal((await q.readFile('notes.txt', { maxBytes: 4, encoding: 'base64' })).contents, Buffer.from('what').toString('base64'));
  assert.ok(!await q.readFile('/etc/passwd').catch(() => null));
  await q.setMaxThinkingTokens(2048);
  await q.setMaxThinkingTokens(null);
  await q.applyFlagSettings({ permissions: { deny: ['Read(secret.txt)'] } });
  assert.ok(!await q.readFile('secret.txt').catch(() => null));
  await assert.rejects(q.applyFlagSettings({ cleanupPeriodDays: 3 }));
  assert.ok(Array.isArray((await q.reloadSkills()).skills));
  assert.ok(Array.isArray((await q.reloadPlugins()).plugins));
  prompt.say('again');
}
assert.equal(n, 2);
assert.ok(heard, 'the tool of a server that was set was not called');
