// model: {"replies": [{"text": "DONE"}]}
// again: true
import { assert, ask } from './lib.mjs';

const empty = await ask('Go.', { settingSources: [], tools: [], extraArgs: { 'append-system-prompt': '-- begins with dashes' } });
assert.equal(empty.error, undefined, String(empty.error));
const bare = await ask('Go.', { extraArgs: { 'replay-user-messages': null } });
assert.equal(bare.error, undefined, String(bare.error));
assert.ok(bare.messages.some((m) => m.type === 'user' && m.isReplay));
const many = await ask('Go.', {
  maxTurns: 3, maxBudgetUsd: 5, model: 'script', fallbackModel: 'script-2', maxThinkingTokens: 1024, effort: 'high', betas: ['context-1m-2025-08-07'],
  additionalDirectories: [process.env.HOME], permissionMode: 'acceptEdits', allowDangerouslySkipPermissions: true, strictMcpConfig: true,
  includeHookEvents: true, settings: JSON.stringify({ permissions: { deny: ['WebFetch'] } }), sessionId: '3f2504e0-4f89-41d3-9a0c-0305e82c3301', enableFileCheckpointing: true,
  mcpServers: {}, disallowedTools: ['WebSearch'], title: 'A name',
});
assert.equal(many.error, undefined, String(many.error));
assert.equal(many.result.session_id, '3f2504e0-4f89-41d3-9a0c-0305e82c3301');
assert.equal(many.messages.find((m) => m.subtype === 'init').permissionMode, 'acceptEdits');
const unknown = await ask('Go.', { extraArgs: { 'no-such-flag': 'x' } });
assert.match(String(unknown.error), /exited with code 2[^]*no-such-flag/);
