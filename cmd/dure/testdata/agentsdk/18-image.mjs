// model: {"replies": [{"text": "A picture."}], "models": []}
import { assert, ask, said } from './lib.mjs';
import { deflateSync } from 'node:zlib';
import { randomBytes } from 'node:crypto';

// png makes a picture of noise, of about 3 MB.
function png(w, h) {
  const table = Array.from({ length: 256 }, (_, n) => { for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1; return n >>> 0; });
  const crc = (b) => { let c = 0xffffffff; for (const x of b) c = table[(c ^ x) & 255] ^ (c >>> 8); return (c ^ 0xffffffff) >>> 0; };
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]), len = Buffer.alloc(4), sum = Buffer.alloc(4);
    len.writeUInt32BE(data.length); sum.writeUInt32BE(crc(body));
    return Buffer.concat([len, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(w, 0); head.writeUInt32BE(h, 4); head[8] = 8; head[9] = 2;
  const rows = Buffer.concat(Array.from({ length: h }, () => Buffer.concat([Buffer.from([0]), randomBytes(w * 3)])));
  return Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), chunk('IHDR', head), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))]);
}

const data = png(1000, 1000).toString('base64');
assert.ok(data.length > 3_000_000);
async function* prompt() {
  const m = said('What is this?');
  m.message.content.push({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } });
  yield m;
}
const seen = await ask(prompt(), { extraArgs: { 'replay-user-messages': null } });
assert.equal(seen.error, undefined, String(seen.error));
assert.equal(seen.result.result, 'A picture.');
for (const m of seen.messages) assert.ok(JSON.stringify(m).length < 1 << 20, `${m.type} has ${JSON.stringify(m).length} characters`);
assert.ok(seen.messages.some((m) => m.isReplay));
