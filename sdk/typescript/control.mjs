// Drives dure in its native control protocol: as a child of this process, or through a server
// that runs. control.d.ts has the types, docs/control.md the protocol.

import { spawn } from "node:child_process";
import { answering, maxMessage, methods, version } from "./methods.mjs";

/** The bounds of a connection. Beside them, a message is bounded as the protocol says. */
export const bounds = Object.freeze({
  openRequests: 1024, // that are not answered yet; also questions of dure's
  unsentBytes: 64 << 20, // of requests that dure has not taken yet
  queuedMessages: 1024, // that an iterator holds
  queuedBytes: 32 << 20, // of them
  closeTime: 10_000, // milliseconds for each step of an end
});

/** Of messages that may be missed: whole ones behind them have what counts. */
const live = new Set(["AssistantToken", "ToolProgress"]);

/** What goes wrong: said by dure, or here. */
export class ControlError extends Error {
  constructor(code, message, { fix, args, request, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "ControlError";
    this.code = code;
    this.fix = fix;
    this.args = args;
    this.request = request;
  }
}

/** Starts `dure control` as a child of this process. */
export async function start({ program = "dure", args = [], cwd, env, stderr = "inherit", ...config } = {}) {
  config.signal?.throwIfAborted();
  const initialize = { ...config.initialize, end_with_input: true };
  return begin((to) => new Child(to, program, args, { cwd, env, stderr }), { ...config, initialize });
}

/** Connects to a server that runs, such as http://127.0.0.1:8080, with its token. */
export async function dial(url, { token, WebSocket = globalThis.WebSocket, ...config } = {}) {
  config.signal?.throwIfAborted();
  if (typeof token !== "string" || token === "") {
    throw new ControlError("no-token", "the server wants a token");
  }
  if (typeof WebSocket !== "function") {
    throw new ControlError("no-websocket", "this platform has no WebSocket", {
      fix: "hand in a class whose second argument may be { headers }, as those of the packages ws and undici",
    });
  }
  return begin((to) => new Socket(to, WebSocket, url, token), config);
}

async function begin(connect, config) {
  const host = new Host(secret, connect, config);
  try {
    await host[hello](config.signal);
  } catch (err) {
    await host[shut]();
    throw err;
  }
  return host;
}

const secret = Symbol("start and dial alone make hosts");
const hello = Symbol("hello");
const shut = Symbol("shut");

/** A connection to dure. */
export class Host {
  #config;
  #transport;
  #open = new Map(); // requests that are not answered yet, by key
  #queues = new Set(); // of iterators
  #asked = new Set(); // what ends the answers that are being thought about
  #last = 0; // of the IDs of requests
  #over; // why nothing is read any more
  #left = false; // it was closed here
  #closing;

  constructor(key, connect, config) {
    if (key !== secret) {
      throw new TypeError("start and dial make hosts");
    }
    this.#config = config;
    this.#transport = connect({ message: (data) => this.#read(data), ended: (err) => this.#end(err) });
  }

  async [hello](signal) {
    const { initialize, canUseTool } = this.#config;
    const payload = { version, ...initialize };
    payload.can_use_tool = canUseTool !== undefined || initialize?.can_use_tool === true;
    this.hello = (await this.request("Initialize", payload, { signal })).payload;
  }

  /** The ID of the process, of a child. */
  get pid() {
    return this.#transport.pid;
  }

  /** Opens a session, and returns its ID. */
  async open(what = {}, options = {}) {
    const answer = await this.userMessage({ open: what }, { signal: options.signal });
    return answer.session;
  }

  /** Says something, and returns what the turn has come to. */
  async say(what, options = {}) {
    const payload = typeof what === "string" ? { text: what } : what;
    const answer = await this.userMessage(payload, options);
    const result = answer.type === "SessionResult" ? answer.payload : undefined;
    return { session: answer.session, result };
  }

  /** Closes one session. */
  async closeSession(session, options = {}) {
    if (typeof session !== "string" || session === "") {
      throw new ControlError("no-session", "no session is named");
    }
    await this.terminate({}, { ...options, session });
  }

  /** Ends all sessions, and the connection. What runs is interrupted. */
  close() {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close() {
    this.#left = true;
    try {
      await this.terminate({}, { signal: AbortSignal.timeout(bounds.closeTime) });
    } catch {
      // it is gone already, or does not answer: it has to end all the same
    }
    await this[shut]();
  }

  async [shut]() {
    this.#left = true;
    await this.#transport.close();
    this.#end();
  }

  /** Makes a request of any type, and returns the message that answers it. */
  async request(type, payload, { id, session, signal } = {}) {
    signal?.throwIfAborted();
    if (this.#over) {
      throw this.#over;
    }
    if (this.#open.size >= bounds.openRequests) {
      throw new ControlError("busy", "too many requests are not answered yet", { request: type });
    }
    if (answering.includes(type) && id === undefined) {
      throw new ControlError("malformed", `${type} needs the id of what it answers`, { request: type });
    }
    id ??= String(++this.#last);
    const key = keyOf(type, id);
    if (this.#open.has(key)) {
      throw new ControlError("duplicate-id", "a request with this id is not answered yet", { request: type });
    }
    const line = encode(type, id, session, payload);
    return new Promise((resolve, reject) => {
      const done = () => {
        this.#open.delete(key);
        signal?.removeEventListener("abort", gone);
      };
      const gone = () => {
        done();
        reject(signal.reason);
      };
      this.#open.set(key, {
        resolve: (m) => (done(), resolve(m)),
        reject: (err) => (done(), reject(err)),
      });
      signal?.addEventListener("abort", gone, { once: true });
      try {
        this.#transport.send(line);
      } catch (err) {
        done();
        reject(err);
      }
    });
  }

  /** The messages that answer nothing, from now on. */
  messages() {
    const queue = new Queue((q) => this.#queues.delete(q));
    if (this.#over) {
      queue.end(this.#left ? undefined : this.#over);
    } else {
      this.#queues.add(queue);
    }
    return queue;
  }

  [Symbol.asyncIterator]() {
    return this.messages();
  }

  #read(data) {
    if (this.#over) {
      return;
    }
    let m;
    try {
      m = JSON.parse(data);
    } catch {
      // what it is then is no message
    }
    if (m === null || typeof m !== "object" || typeof m.type !== "string") {
      const err = new ControlError("malformed", "dure has sent what is no message");
      this.#end(err); // nothing behind it can be relied upon
      void this[shut]();
      return;
    }
    m.payload ??= {};
    if (m.type === "CanUseTool" || m.type === "HookEvent") {
      this.#ask(m, data.length);
      return;
    }
    if (m.id === undefined) {
      this.#tell(m, data.length);
      return;
    }
    const waiting = this.#open.get(keyOf(m.payload.request, m.id));
    if (m.type === "Error") {
      const { code, message, ...more } = m.payload;
      waiting?.reject(new ControlError(String(code), String(message), more));
    } else {
      waiting?.resolve(m);
    }
  }

  #tell(m, size) {
    for (const queue of this.#queues) {
      queue.put(m, size);
    }
  }

  /** Has the host answer, which fails closed. */
  async #ask(m, size) {
    const hook = m.type === "HookEvent";
    const answer = hook ? this.#config.hook : this.#config.canUseTool;
    if (answer === undefined && this.#queues.size > 0) {
      this.#tell(m, size); // whoever reads along answers
      return;
    }
    const failed = (why) => (hook ? { error: why } : { behavior: "deny", reason: why });
    let word;
    if (answer === undefined || this.#asked.size >= bounds.openRequests) {
      word = failed("the host cannot answer");
    } else {
      const late = new AbortController();
      this.#asked.add(late);
      const ms = m.payload.timeout_ms;
      const timer = ms > 0 ? setTimeout(() => late.abort(new ControlError("late", "nobody waits any more")), ms) : undefined;
      try {
        word = await answer(m.payload, { session: m.session, signal: late.signal });
        if (word === undefined && hook) {
          word = {};
        }
        if (word === null || typeof word !== "object" || (!hook && word.behavior !== "allow" && word.behavior !== "deny")) {
          word = failed("the host has given no answer");
        }
      } catch {
        word = failed("the host has failed to answer"); // why is its own affair
      }
      clearTimeout(timer);
      this.#asked.delete(late);
    }
    if (hook && m.payload.timeout_ms === 0) {
      return; // no answer is waited for
    }
    try {
      await this.request(hook ? "HookCallback" : "CanUseToolResponse", word, { id: m.id });
    } catch {
      // it came too late, or dure is gone: what was asked about is decided
    }
  }

  #end(err) {
    if (this.#over) {
      return;
    }
    this.#over = err instanceof ControlError ? err : new ControlError("closed", "the connection to dure has ended", { cause: err });
    for (const waiting of [...this.#open.values()]) {
      waiting.reject(this.#over);
    }
    for (const late of this.#asked) {
      late.abort(this.#over);
    }
    for (const queue of [...this.#queues]) {
      queue.end(this.#left ? undefined : this.#over);
    }
  }
}

for (const [name, type] of Object.entries(methods)) {
  Object.defineProperty(Host.prototype, name, {
    value(payload = {}, options = {}) {
      return this.request(type, payload, options);
    },
  });
}
if (Symbol.asyncDispose) {
  Host.prototype[Symbol.asyncDispose] = Host.prototype.close;
}

/** Answers of the host have the IDs of what they answer, and so a space of their own. */
function keyOf(type, id) {
  return answering.includes(type) ? `answer ${id}` : `request ${id}`;
}

function encode(type, id, session, payload) {
  const line = JSON.stringify({ type, id, session, payload });
  if (Buffer.byteLength(line) > maxMessage) {
    throw new ControlError("too-long", `the message is longer than ${maxMessage} bytes`, { request: type });
  }
  return line;
}

/** Messages that wait for whoever reads along. */
class Queue {
  #waiting = []; // who waits for a message
  #held = []; // messages that wait
  #size = 0; // of them, in bytes
  #over = false;
  #err;
  #drop;

  constructor(drop) {
    this.#drop = drop;
  }

  put(m, size) {
    if (this.#over) {
      return;
    }
    const next = this.#waiting.shift();
    if (next) {
      next.resolve({ value: m, done: false });
    } else if (this.#held.length < bounds.queuedMessages && this.#size + size <= bounds.queuedBytes) {
      this.#held.push({ m, size });
      this.#size += size;
    } else if (!live.has(m.type)) {
      this.end(new ControlError("behind", `more than ${bounds.queuedMessages} messages, or ${bounds.queuedBytes} bytes of them, were not read`));
    }
  }

  end(err) {
    if (this.#over) {
      return;
    }
    this.#over = true;
    this.#err = err;
    this.#drop(this);
    for (const next of this.#waiting.splice(0)) {
      this.#last(next);
    }
  }

  /** The error comes once, and the end from then on. */
  #last({ resolve, reject }) {
    const err = this.#err;
    this.#err = undefined;
    if (err) {
      reject(err);
    } else {
      resolve({ value: undefined, done: true });
    }
  }

  next() {
    const first = this.#held.shift();
    if (first) {
      this.#size -= first.size;
      return Promise.resolve({ value: first.m, done: false });
    }
    return new Promise((resolve, reject) => {
      if (this.#over) {
        this.#last({ resolve, reject });
      } else if (this.#waiting.length >= bounds.queuedMessages) {
        reject(new ControlError("busy", "too many wait for the next message"));
      } else {
        this.#waiting.push({ resolve, reject });
      }
    });
  }

  return(value) {
    this.#held.length = 0;
    this.#size = 0;
    this.end();
    return Promise.resolve({ value, done: true });
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}

const children = new Set(); // those that end with this process

function killAll() {
  for (const child of children) {
    child.kill();
  }
}

/** dure as a child. */
class Child {
  #child;
  #to;
  #gone; // settles when the child is
  #parts = []; // of the line that is being read
  #size = 0; // of them
  #chunks = 0; // that have come

  constructor(to, program, args, { cwd, env, stderr }) {
    this.#to = to;
    const child = spawn(program, ["control", ...args], { cwd, env, shell: false, windowsHide: true, stdio: ["pipe", "pipe", stderr] });
    this.#child = child;
    if (children.size === 0) {
      process.on("exit", killAll);
    }
    children.add(child);
    this.#gone = new Promise((resolve) => {
      const over = (err) => {
        if (children.delete(child) && children.size === 0) {
          process.off("exit", killAll);
        }
        resolve();
        to.ended(err);
      };
      child.on("error", (err) => {
        if (child.pid === undefined) {
          over(new ControlError("not-started", `${program} cannot be started: ${err.code ?? err.message}`, {
            cause: err,
            fix: "is dure installed? set program to where it is, and look whether cwd is there",
          }));
        }
      });
      let late;
      let looks = 64; // more than what it had written takes
      const look = () => { // others may hold its output open, and say nothing more
        const before = this.#chunks;
        late = setTimeout(() => {
          setImmediate(() => { // behind what has come while this program did something else
            if (this.#chunks === before || --looks === 0) {
              child.stdout.destroy();
            } else if (!child.stdout.destroyed) {
              look();
            }
          });
        }, 1000);
      };
      child.on("exit", look);
      child.on("close", (code, signal) => {
        clearTimeout(late);
        over(new ControlError("closed", `dure has ended: ${signal ?? `exit code ${code}`}`));
      });
    });
    child.stdin.on("error", () => {}); // the child is gone then, which is told
    child.stdout.on("error", () => {});
    child.stdout.on("data", (chunk) => this.#read(chunk));
    child.stdout.on("end", () => this.#read(Buffer.from("\n"))); // a last line needs no end
  }

  get pid() {
    return this.#child.pid;
  }

  #read(chunk) {
    this.#chunks++;
    for (let from = 0; from < chunk.length; ) {
      const at = chunk.indexOf(10, from);
      const part = chunk.subarray(from, at < 0 ? chunk.length : at);
      this.#size += part.length;
      if (this.#size > maxMessage + 1) { // with the \r of a line end
        this.#parts = [];
        this.#child.stdout.destroy();
        this.#to.ended(new ControlError("too-long", `dure has sent a message of more than ${maxMessage} bytes`));
        this.#child.kill(); // this is no dure, and nothing is to be finished
        void this.close();
        return;
      }
      this.#parts.push(part);
      if (at < 0) {
        return;
      }
      const line = Buffer.concat(this.#parts).toString("utf8").trim();
      this.#parts = [];
      this.#size = 0;
      from = at + 1;
      if (line !== "") {
        this.#to.message(line);
      }
    }
  }

  send(line) {
    const { stdin } = this.#child;
    if (!stdin.writable) {
      throw new ControlError("closed", "the connection to dure has ended");
    }
    if (stdin.writableLength > bounds.unsentBytes) {
      throw new ControlError("busy", "dure does not read");
    }
    stdin.write(line + "\n");
  }

  /** Has the child end, and waits for it. */
  async close() {
    const child = this.#child;
    child.stdin?.end();
    child.stdout?.resume();
    for (const signal of ["SIGTERM", "SIGKILL"]) {
      if (await within(this.#gone, bounds.closeTime)) {
        return;
      }
      child.kill(signal);
    }
    await this.#gone;
  }
}

/** Reports whether something came to its end in time. */
function within(what, ms) {
  return new Promise((resolve) => {
    const late = setTimeout(() => resolve(false), ms);
    what.then(() => {
      clearTimeout(late);
      resolve(true);
    });
  });
}

/** dure behind a server. */
class Socket {
  #ws;
  #to;
  #unsent = []; // before it is open
  #gone;

  constructor(to, WebSocket, url, token) {
    this.#to = to;
    const where = new URL(`${String(url).replace(/\/+$/, "")}/v1/control`);
    where.protocol = where.protocol.replace(/^http/, "ws");
    if (where.protocol !== "ws:" && where.protocol !== "wss:") {
      throw new ControlError("bad-url", "the address of a server begins with http:// or https://");
    }
    let ws;
    try {
      ws = new WebSocket(where.href, { headers: { Authorization: `Bearer ${token}` }, maxPayload: maxMessage });
    } catch (cause) {
      throw new ControlError("no-header", "the WebSocket of this platform cannot send headers", {
        cause,
        fix: "hand in a class whose second argument may be { headers }, as those of the packages ws and undici",
      });
    }
    this.#ws = ws;
    let opened = false;
    ws.addEventListener("open", () => {
      opened = true;
      for (const line of this.#unsent.splice(0)) {
        ws.send(line);
      }
    });
    ws.addEventListener("message", ({ data }) => this.#read(data));
    this.#gone = new Promise((resolve) => {
      const over = () => {
        to.ended(opened ? undefined : new ControlError("unreachable", "the server cannot be reached, or has refused the token"));
        resolve();
      };
      ws.addEventListener("error", over);
      ws.addEventListener("close", over);
    });
  }

  #read(data) {
    if (typeof data === "string" && Buffer.byteLength(data) <= maxMessage) {
      this.#to.message(data);
      return;
    }
    this.#to.ended(
      typeof data === "string"
        ? new ControlError("too-long", `the server has sent a message of more than ${maxMessage} bytes`)
        : new ControlError("malformed", "the server has sent what is no text"),
    );
    this.#ws.close();
  }

  send(line) {
    switch (this.#ws.readyState) {
      case 0:
        if (this.#unsent.length >= bounds.openRequests) {
          throw new ControlError("busy", "the server does not answer");
        }
        this.#unsent.push(line);
        return;
      case 1:
        if (this.#ws.bufferedAmount > bounds.unsentBytes) {
          throw new ControlError("busy", "the server does not read");
        }
        this.#ws.send(line);
        return;
    }
    throw new ControlError("closed", "the connection to dure has ended");
  }

  async close() {
    this.#ws.close();
    if (!(await within(this.#gone, bounds.closeTime))) {
      this.#ws.terminate?.(); // where it can
    }
  }
}
