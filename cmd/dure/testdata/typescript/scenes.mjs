// The scenes of TestTypeScriptClient: node scenes.mjs SCENE, with the client at CLIENT, the
// program at DURE and, of a server, its address and token at SERVER and TOKEN.

import assert from "node:assert/strict";
import fs from "node:fs/promises";
import http from "node:http";

const { ControlError, Host, bounds, dial, start } = await import(process.env.CLIENT);
const { methods } = await import(new URL("methods.mjs", process.env.CLIENT));

const program = process.env.DURE;
const code = (code) => (err) => err instanceof ControlError && err.code === code && err.message !== "";
const allow = () => ({ behavior: "allow" });

/** Talks with what start or dial has connected to. */
async function talk(connect) {
  const asked = [];
  const host = await connect({
    initialize: { client: { name: "scenes", version: "1" } },
    canUseTool: async (question, { session, signal }) => {
      assert(session && !signal.aborted);
      asked.push(question.tool);
      if (question.input.file_path.endsWith("throws.txt")) {
        throw new Error("a secret of the host");
      }
      return question.input.file_path.endsWith("yes.txt") ? allow() : { behavior: "deny", reason: "not that" };
    },
  });
  assert.equal(host.hello.version, 1);
  for (const [name, type] of Object.entries(methods)) {
    assert.equal(typeof host[name], "function");
    assert(host.hello.requests.includes(type), type);
  }
  assert.deepEqual(Object.values(methods).concat("Initialize").sort(), [...host.hello.requests].sort());
  const reader = host.messages();
  const read = (async () => {
    const types = [];
    for await (const m of reader) {
      types.push(m.type);
    }
    return types;
  })();

  const first = await host.say("Write");
  assert.equal(first.result.status, "done");
  assert.equal(first.result.text, "Written.");
  const again = await host.say({ text: "Again" }, { session: first.session });
  assert.deepEqual(again.result.denials.map((d) => d.reason), ["not that"]);
  const thrown = await host.say("And again");
  assert.equal(thrown.result.denials.length, 1);
  assert(!JSON.stringify(thrown).includes("secret"));
  assert.equal(asked.length, 3);

  const usage = await host.getContextUsage({}, { session: first.session });
  assert(usage.payload.context.used_tokens > 0);
  await host.setPermissionMode({ mode: "plan" });
  await host.interrupt();
  await assert.rejects(host.setModel({ model: "m" }, { session: "nobody" }), code("no-session"));
  await assert.rejects(host.setModel({}), code("bad-payload"));
  await assert.rejects(host.request("Dance", {}), code("unknown-type")); // what dure does not know
  await assert.rejects(host.canUseToolResponse(allow(), { id: "never" }), code("unknown-ask"));
  await assert.rejects(host.canUseToolResponse(allow()), code("malformed"));
  await assert.rejects(host.userMessage({ text: "x".repeat(11 << 20) }), code("too-long"));
  await assert.rejects(host.interrupt({}, { signal: AbortSignal.abort(new Error("before")) }), /before/);

  const other = await host.open({ title: "another" });
  assert.notEqual(other, first.session);
  await host.closeSession(other);
  await assert.rejects(host.closeSession(""), code("no-session"));
  await Promise.all([host.close(), host.close()]);
  const types = await read; // it has ended without an error
  for (const type of ["AssistantMessage", "ToolUseStart", "ToolResult"]) {
    assert(types.includes(type), `${type}: ${types}`);
  }
  await assert.rejects(host.interrupt(), code("closed"));
  assert((await host.messages().next()).done);
}

const scenes = {
  async child() {
    const listeners = process.listenerCount("exit");
    await talk((config) => start({ program, ...config }));
    assert.throws(() => new Host(), TypeError);
    await assert.rejects(start({ program: `${program}-that-is-none` }), code("not-started"));
    await assert.rejects(start({ program, args: ["--no-such-flag"], stderr: "ignore" }), code("closed"));
    assert.equal(process.listenerCount("exit"), listeners);
  },

  async server() {
    const { SERVER: url, TOKEN: token } = process.env;
    await talk((config) => dial(url, { token, ...config }));
    await assert.rejects(dial(url, { token: "another" }), (err) => code("unreachable")(err) && !err.message.includes("another"));
    await assert.rejects(dial(url, {}), code("no-token"));
    await assert.rejects(dial("ftp://127.0.0.1", { token }), code("bad-url"));
    await assert.rejects(dial(url, { token, WebSocket: null }), code("no-websocket"));
    class Pages { // as those of pages, which take the names of protocols alone
      constructor(_, protocols) {
        throw new SyntaxError(`${protocols} is no protocol`);
      }
    }
    await assert.rejects(dial(url, { token, WebSocket: Pages }), code("no-header"));
  },

  /** A host that reads along answers what is asked; its hook is asked before. */
  async asks() {
    const hooked = [];
    const host = await start({
      program,
      initialize: { can_use_tool: true, hooks: [{ event: "PreToolUse" }] },
      hook: (event, { session, signal }) => {
        hooked.push([event.event, event.input.tool_name, typeof session, signal.aborted]);
      },
    });
    const said = host.say("Write");
    for await (const m of host) {
      if (m.type === "CanUseTool") {
        await host.canUseToolResponse({ behavior: "deny", reason: "read, and refused" }, { id: m.id });
        await assert.rejects(host.canUseToolResponse(allow(), { id: m.id }), code("late"));
        break;
      }
    }
    const { result } = await said;
    assert.deepEqual(result.denials.map((d) => d.reason), ["read, and refused"]);
    assert.deepEqual(hooked, [["PreToolUse", "Write", "string", false]]);
    const unread = await host.say("Write"); // and nobody reads along
    assert.equal(unread.result.denials.length, 1);
    await host.close();
  },

  /** Whoever waits no longer has that at once; a reader that does not read holds a bounded number of messages. */
  async slow() {
    const host = await start({ program });
    const idle = host.messages(); // never read while the turn runs
    const stop = new AbortController();
    const reading = host.messages();
    const said = host.say("Talk", { signal: stop.signal });
    let seen = 0;
    for await (const m of reading) {
      if (m.type === "AssistantToken" && ++seen > bounds.queuedMessages) {
        break;
      }
    }
    stop.abort(new Error("enough"));
    await assert.rejects(said, /enough/);
    await host.interrupt();
    await host.close();
    let held = 0;
    try {
      for await (const _ of idle) {
        held++;
      }
    } catch (err) {
      assert(code("behind")(err), err);
    }
    assert.equal(held, bounds.queuedMessages);
  },

  /** A child that is killed leaves nobody waiting. */
  async killed() {
    const host = await start({ program });
    const told = host.messages();
    const said = host.say("Talk");
    while ((await told.next()).value.type !== "AssistantToken") {
      // it has not begun to talk
    }
    process.kill(host.pid, "SIGKILL");
    await assert.rejects(said, (err) => code("closed")(err) && err.message.includes("SIGKILL"));
    await assert.rejects(async () => {
      for await (const _ of told) {
        // what had come before
      }
    }, code("closed"));
    await assert.rejects(host.interrupt(), code("closed"));
    await host.close();
  },

  /** What is no dure is found out, and not held in memory. */
  async others() {
    const other = async (script) => {
      await fs.writeFile("control", script); // which node is started with
      return start({ program: process.execPath });
    };
    await assert.rejects(
      other(`process.stdout.write("garbage\\n"); process.stdin.resume().on("end", () => process.exit(0));`),
      code("malformed"),
    );
    await assert.rejects(
      other(`const more = (err) => (err ? process.exit(0) : process.stdout.write("x".repeat(1 << 20), more)); more();`),
      code("too-long"),
    );
    await assert.rejects(other("process.exit(3)"), (err) => code("closed")(err) && err.message.includes("3"));
    const silent = http.createServer((_, res) => res.end("no socket")).listen(0, "127.0.0.1");
    await new Promise((resolve) => silent.once("listening", resolve));
    if (globalThis.WebSocket) {
      await assert.rejects(dial(`http://127.0.0.1:${silent.address().port}`, { token: "t" }), code("unreachable"));
    }
    silent.close();
  },

  /** What is said when the child has gone comes, however long the reader takes; an output that stays open and silent is none. */
  async last() {
    const said = { type: "Notification", session: "s", payload: { kind: "event", event: "note", seq: 1, data: { text: "x".repeat(30_000) } } };
    // Says a message each time that it is told to, without an end.
    const other = `const fs = require("node:fs"); let n = 0;
      setTimeout(() => process.exit(1), 120_000);
      setInterval(() => {
        if (fs.existsSync("go-" + (n + 1))) {
          fs.writeSync(1, ${JSON.stringify(JSON.stringify(said) + "\n")}); fs.writeFileSync("said-" + ++n, "");
        } else if (fs.existsSync("over")) {
          process.exit(0);
        }
      }, 5);`;
    await fs.writeFile("control", `require("node:readline").createInterface({ input: process.stdin }).once("line", (line) => {
      const { id } = JSON.parse(line);
      require("node:fs").writeSync(1, JSON.stringify({ type: "InitializeResult", id, payload: { request: "Initialize", version: 1, requests: [] } }) + "\\n");
      require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(other)}], { stdio: ["ignore", "inherit", "inherit"] });
      process.exit(0);
    });`);
    const host = await start({ program: process.execPath });
    const { existsSync, writeFileSync } = await import("node:fs");
    const asleep = new Int32Array(new SharedArrayBuffer(4));
    /** Has the next message said, while this program does nothing else for longer than a silence may last. */
    const busy = (n) => {
      writeFileSync(`go-${n}`, "");
      for (const begun = Date.now(); !existsSync(`said-${n}`) || Date.now() - begun < 1500; ) {
        assert(Date.now() - begun < 60_000, "it says nothing");
        Atomics.wait(asleep, 0, 0, 10);
      }
    };
    const told = host.messages();
    for (let alive = true; alive; ) {
      await new Promise(setImmediate);
      try {
        process.kill(host.pid, 0);
      } catch {
        alive = false;
      }
    }
    for (let n = 1; n <= 3; n++) {
      busy(n);
      assert.equal((await told.next()).value.payload.data.text.length, 30_000);
    }
    await assert.rejects(told.next(), code("closed")); // although the output is open still
    await fs.writeFile("over", "");
  },

  /** Goes in the middle of a turn: at the end of its input, if it is not killed before. */
  async lost() {
    const host = await start({ program, canUseTool: allow });
    process.stdin.resume().once("end", () => process.exit(0));
    await host.say("Run it");
  },
};

await scenes[process.argv[2]]();
