// What a worker runs. It speaks JSON-RPC in lines: docs/extensions.md has the messages.
'use strict';
const out = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);

const own = Object.prototype.hasOwnProperty;
const has = (o, k) => o != null && own.call(o, k);
const modules = new Map(); // by name: { handlers, extension }
const hooks = new Map(); // functions of extensions, by number
const running = new Map(); // AbortControllers, by the question
const asked = new Map(); // our own questions, by number
let last = 0;

const send = (m) => out(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\n');
const notify = (method, params) => send({ method, params });
// A connector that has returned ends with what it has begun: the input alone does not keep it.
let returned = false;
const stay = () => (returned && asked.size === 0 ? process.stdin.unref() : process.stdin.ref());
const ask = (method, params) =>
  new Promise((resolve, reject) => {
    const id = ++last;
    asked.set(id, { resolve, reject });
    stay();
    send({ id, method, params });
  });

function thrown(e) {
  const is = e !== null && typeof e === 'object';
  const text = (v) => (typeof v === 'string' || typeof v === 'number' ? String(v) : undefined);
  let message;
  try {
    message = String(is && 'message' in e ? e.message : e);
  } catch {
    message = 'an error that cannot be shown';
  }
  return {
    code: -32000,
    message,
    data: is ? { name: text(e.name), code: text(e.code), suggestion: text(e.suggestion), helpUrl: text(e.helpUrl) } : {},
  };
}

function show(args) {
  const { inspect } = require('node:util');
  return args.map((a) => (typeof a === 'string' ? a : inspect(a, { depth: 4, breakLength: Infinity, maxArrayLength: 50, maxStringLength: 4000 }))).join(' ').slice(0, 8000);
}

// What is logged beyond so many lines a second is counted, and left out.
const lines = { most: 500, second: 0, count: 0 };
function logged(params) {
  const second = Math.floor(Date.now() / 1000);
  if (second !== lines.second) {
    const lost = lines.count - lines.most;
    if (lost > 0) notify('log', { level: 'warn', text: lost + ' lines were left out: more than ' + lines.most + ' in a second' });
    lines.second = second;
    lines.count = 0;
  }
  if (++lines.count <= lines.most) notify('log', params());
}

function logger(about) {
  const at = (level) => (...args) => logged(() => ({ ...about, level, text: show(args) }));
  return { debug: at('debug'), trace: at('debug'), log: at('info'), info: at('info'), warn: at('warn'), error: at('error') };
}
Object.assign(console, logger({}));

class Pending {
  constructor(handle, message) {
    if (typeof handle !== 'string' || handle === '') throw new TypeError('pending: a handle is a text that is not empty');
    this.handle = handle;
    this.message = message === undefined ? '' : String(message);
    this.resolve = (value) => this.#settle({ value: value === undefined ? null : value });
    this.reject = (e) => this.#settle({ error: thrown(e) });
  }
  #settled = false;
  #question = null;
  #early = null;
  #settle(how) {
    if (this.#settled) return;
    this.#settled = true;
    if (this.#question === null) this.#early = how;
    else notify('settled', { question: this.#question, ...how });
  }
  answered(question) {
    this.#question = question;
    if (this.#early) notify('settled', { question, ...this.#early });
  }
}
globalThis[Symbol.for('dure.pending')] = (handle, message) => new Pending(handle, message);

const point = (p) => {
  if (typeof p !== 'string') throw new TypeError('pipelines: a point is a name');
  return p;
};
const call = (f, what) => {
  if (typeof f !== 'function') throw new TypeError(what + ': a function is needed');
  return f;
};

function api(name, about) {
  let state = about.state === undefined ? null : about.state;
  const add = (kind, fields, f) => {
    const hook = ++last;
    hooks.set(hook, f);
    notify('register', { extension: name, kind, hook, ...fields });
    return () => {
      if (hooks.delete(hook)) notify('unregister', { extension: name, hook });
    };
  };
  return Object.freeze({
    tools: Object.freeze({
      register: (t) => {
        const { name: tool, description, parameters, handler } = t;
        return add('tool', { tool, description, parameters }, call(handler, 'tools.register'));
      },
    }),
    pipelines: Object.freeze({
      mutate: (p, f, o) => add('mutate', { point: point(p), priority: o?.priority, optional: o?.optional === true }, call(f, 'pipelines.mutate')),
      wrap: (p, f, o) => add('wrap', { point: point(p), priority: o?.priority, optional: o?.optional === true }, call(f, 'pipelines.wrap')),
    }),
    events: Object.freeze({
      emit: (event, data) => notify('emit', { extension: name, event: String(event), data: data === undefined ? null : data }),
      on: (event, f) => add('on', { event: String(event) }, call(f, 'events.on')),
    }),
    state: Object.freeze({
      get: () => structuredClone(state),
      set: (v) => {
        state = structuredClone(v === undefined ? null : v);
        notify('state', { extension: name, value: state });
      },
    }),
    logger: Object.freeze(logger({ extension: name })),
    extension: Object.freeze({ metadata: Object.freeze({ name, ...about.metadata }) }),
  });
}

const methods = {
  ping: async () => null,

  async load({ module, code, extension }) {
    const m = await import('data:text/javascript;base64,' + code);
    if (extension) {
      const register = typeof m.register === 'function' ? m.register : m.default?.register ?? m.default;
      if (typeof register !== 'function') throw new TypeError('the module exports no function register(api)');
      await register(api(module, extension), extension.config ?? {});
      return {};
    }
    let handlers = m.handlers;
    let old = false;
    if (handlers === undefined && m.default !== undefined) {
      old = !has(m.default, 'handlers');
      handlers = has(m.default, 'handlers') ? m.default.handlers : m.default;
    }
    if (typeof handlers === 'function') handlers = { default: handlers };
    if (handlers === null || typeof handlers !== 'object') throw new TypeError('the module exports no object handlers');
    modules.set(module, handlers);
    return { old, exports: Object.keys(handlers).filter((k) => typeof handlers[k] === 'function') };
  },

  async connect({ code, config, secrets }) {
    const m = await import('data:text/javascript;base64,' + code);
    const f = typeof m.default === 'function' ? m.default : m.default?.default;
    if (typeof f !== 'function') throw new TypeError('the module exports no function as default');
    const emit = async (e) => {
      const { id, name, message, properties, instanceKey, answer } = e;
      return ask('message', { id, name, message, properties, instanceKey, answer });
    };
    await f(Object.freeze({ emit, config: Object.freeze(config), secrets: Object.freeze(secrets), logger: Object.freeze(logger({})) }));
    returned = true;
    stay();
    return null;
  },

  async call({ module, export: name, hook, context, input, credential }, signal) {
    const handlers = modules.get(module);
    let f = hooks.get(hook);
    if (hook === undefined) f = has(handlers, name) ? handlers[name] : name === undefined || Object.keys(handlers ?? {}).join() !== 'default' ? undefined : handlers.default;
    if (typeof f !== 'function') throw new TypeError('there is no function for ' + name);
    const about = { ...context, logger: logger({ call: context.toolCallId }), signal };
    const value = await f.call(handlers, about, input, Object.freeze(credential));
    if (value instanceof Pending) {
      const answer = { pending: { handle: value.handle, message: value.message } };
      return { answer, after: (id) => value.answered(id) };
    }
    return { value: value === undefined ? null : value };
  },

  async mutate({ hook, context }) {
    const f = hooks.get(hook);
    if (!f) return { value: null };
    const value = await f(context);
    return { value: value === undefined ? context : value };
  },

  async wrap({ hook, run, context }) {
    const f = hooks.get(hook);
    const next = async (c) => {
      const given = c === undefined ? context : c;
      const { result } = await ask('next', { run, context: given });
      if (given !== null && typeof given === 'object' && !Object.isFrozen(given) && 'toolCall' in given) given.toolResult = result;
      return result;
    };
    if (!f) return { value: await next(context) };
    const value = await f(context, next);
    return { value: value === undefined ? null : value };
  },
};

const notices = {
  cancel: ({ id }) => running.get(id)?.abort(),
  async event({ hook, event, data }) {
    const f = hooks.get(hook);
    try {
      await f?.(data, { name: event });
    } catch (e) {
      notify('log', { level: 'error', text: 'an event handler: ' + show([e]) });
    }
  },
};

async function serve(m) {
  if (m.method === undefined) {
    const q = asked.get(m.id);
    asked.delete(m.id);
    stay();
    if (m.error) {
      const { message, data } = m.error;
      q?.reject(Object.assign(new Error(message), data));
    } else q?.resolve(m.result);
    return;
  }
  if (m.id === undefined) {
    if (has(notices, m.method)) notices[m.method](m.params);
    return;
  }
  const stop = new AbortController();
  running.set(m.id, stop);
  try {
    if (!has(methods, m.method)) throw new Error('there is no method ' + m.method);
    const result = await methods[m.method](m.params, stop.signal);
    send({ id: m.id, result: result?.after ? result.answer : result });
    result?.after?.(m.id);
  } catch (e) {
    send({ id: m.id, error: thrown(e) });
  } finally {
    running.delete(m.id);
  }
}

let rest = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', (chunk) => {
  rest += chunk;
  let from = 0;
  for (let at; (at = rest.indexOf('\n', from)) >= 0; from = at + 1) serve(JSON.parse(rest.slice(from, at)));
  rest = rest.slice(from);
});
process.stdin.on('end', () => process.exit(0));
