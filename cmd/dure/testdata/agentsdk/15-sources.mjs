// model: {"replies": [{"text": "DONE"}]}
// again: true
import { assert, ask } from './lib.mjs';
import { mkdirSync, readFileSync, writeFileSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const work = process.env.WORK;
mkdirSync(join(work, '.claude', 'skills', 'greet'), { recursive: true });
writeFileSync(join(work, 'CLAUDE.md'), 'OF-THE-PROJECT\n');
writeFileSync(join(work, '.claude', 'skills', 'greet', 'SKILL.md'), '---\nname: greet\ndescription: Greets people.\n---\nSay hello.\n');
const mark = join(work, 'hooked');
writeFileSync(join(work, '.claude', 'settings.json'), JSON.stringify({
  hooks: { UserPromptSubmit: [{ hooks: [{ type: 'command', command: `touch ${mark}` }] }] },
}));
mkdirSync(join(process.env.HOME, '.claude'), { recursive: true });
writeFileSync(join(process.env.HOME, '.claude', 'CLAUDE.md'), 'OF-THE-USER\n');

// requests returns what the model was asked since.
async function requests() {
  const r = await fetch(process.env.REQUESTS);
  return await r.text();
}
async function tried(more) {
  rmSync(mark, { force: true });
  const seen = await ask('Go.', more);
  assert.equal(seen.error, undefined, String(seen.error));
  return { init: seen.messages.find((m) => m.subtype === 'init'), hooked: existsSync(mark), asked: await requests() };
}

const none = await tried({ settingSources: [] });
assert.ok(!none.asked.includes('OF-THE-PROJECT') && !none.asked.includes('OF-THE-USER'), 'no instructions');
assert.equal(none.hooked, false);
assert.ok(!none.init.skills.includes('greet'));

const project = await tried({ settingSources: ['project'] });
assert.ok(project.asked.includes('OF-THE-PROJECT') && !project.asked.includes('OF-THE-USER'), 'those of the project');
assert.equal(project.hooked, true);
assert.ok(project.init.skills.includes('greet'));

const both = await tried({ settingSources: ['user', 'project', 'local'] });
assert.ok(both.asked.includes('OF-THE-PROJECT') && both.asked.includes('OF-THE-USER'), 'both');

// The forms of the system prompt: left out, it is empty.
const empty = await tried({ settingSources: [] });
assert.ok(!empty.asked.includes('You are dure'), 'nothing is said of itself');
const own = await tried({ settingSources: [], systemPrompt: 'BE-A-PIRATE' });
assert.ok(own.asked.includes('BE-A-PIRATE'));
const preset = await tried({ settingSources: [], systemPrompt: { type: 'preset', preset: 'claude_code', append: 'AND-BRIEF' } });
assert.ok(preset.asked.includes('AND-BRIEF') && preset.asked.length > empty.asked.length);

// Agents that the application brings.
const agents = await tried({ settingSources: [], agents: { helper: { description: 'Helps.', prompt: 'Help.', tools: ['Read'] } } });
assert.ok(agents.init.agents.includes('helper'));

// The tools that there are at all.
const few = await tried({ settingSources: [], tools: ['Read', 'Bash'] });
assert.deepEqual([...few.init.tools].sort(), ['Bash', 'Read']);
const no = await tried({ settingSources: [], tools: [] });
assert.deepEqual(no.init.tools, []);
