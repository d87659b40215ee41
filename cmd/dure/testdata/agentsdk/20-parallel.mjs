// model: {"replies": [{"text": "DONE"}]}
// again: true
import { assert, ask } from './lib.mjs';

const began = performance.now();
const all = await Promise.all(Array.from({ length: 20 }, (_, i) => ask(`Number ${i}.`)));
for (const seen of all) {
  assert.equal(seen.error, undefined, String(seen.error));
  assert.equal(seen.result.result, 'DONE');
}
assert.equal(new Set(all.map((s) => s.result.session_id)).size, 20);
console.log(`20 queries took ${Math.round(performance.now() - began)} ms`);
