// Drives the program as an editor does, with the official SDK: every method that an agent
// has, and every one that a client is asked. Usage: node editor.mjs SDK WORK PROGRAM ARG...
// It prints what came of it as JSON.
import { spawn } from 'node:child_process'
import { Readable, Writable } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { join } from 'node:path'

const [sdk, work, program, ...args] = process.argv.slice(2)
const acp = await import(pathToFileURL(join(sdk, 'node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js')))
const { methods } = acp
const child = spawn(program, args, { cwd: work, stdio: ['pipe', 'pipe', 'inherit'] })
const ended = new Promise(done => child.on('exit', (code, signal) => done(code ?? signal)))

const seen = { updates: {}, asked: {}, words: '', answers: {}, errors: {} }
const buffers = new Map([[join(work, 'open.txt'), 'UNSAVED\n']])
let allow = true
const count = (of, name) => { of[name] = (of[name] ?? 0) + 1 }

const app = acp.client({ name: 'editor' })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    count(seen.asked, 'session/request_permission')
    if (!allow) return { outcome: { outcome: 'cancelled' } }
    const chosen = params.options.find(o => o.kind === 'allow_once')
    return { outcome: { outcome: 'selected', optionId: chosen.optionId } }
  })
  .onRequest(methods.client.fs.readTextFile, ({ params }) => {
    count(seen.asked, 'fs/read_text_file')
    if (!buffers.has(params.path)) throw acp.RequestError.resourceNotFound(params.path)
    return { content: buffers.get(params.path) }
  })
  .onRequest(methods.client.fs.writeTextFile, ({ params }) => {
    count(seen.asked, 'fs/write_text_file')
    buffers.set(params.path, params.content)
    return {}
  })
  .onRequest(methods.client.elicitation.create, () => {
    count(seen.asked, 'elicitation/create')
    return { action: 'accept', content: { q1: 'Blue' } }
  })
  .onNotification(methods.client.session.update, ({ params }) => {
    count(seen.updates, params.update.sessionUpdate)
    if (params.update.sessionUpdate === 'agent_message_chunk') seen.words += params.update.content.text
  })

const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout))
const refused = async (name, what) => {
  try { await what(); seen.errors[name] = 'none' } catch (e) { seen.errors[name] = e.code }
}

await app.connectWith(stream, async agent => {
  const ask = (method, params) => agent.request(method, params)
  const all = methods.agent
  seen.answers.initialize = await ask(all.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientInfo: { name: 'editor', version: '1' },
    clientCapabilities: {
      fs: { readTextFile: true, writeTextFile: true }, terminal: true, auth: { terminal: true },
      elicitation: { form: {} }, session: { notices: {} },
    },
  })
  seen.answers.authenticate = await ask(all.authenticate, { methodId: seen.answers.initialize.authMethods[0].id })
  const opened = await ask(all.session.new, { cwd: work, mcpServers: [], additionalDirectories: [] })
  seen.answers.new = opened
  const { sessionId } = opened
  const say = text => ask(all.session.prompt, { sessionId, prompt: [{ type: 'text', text }] })
  seen.answers.prompt = await say('change the file')
  seen.answers.setMode = await ask(all.session.setMode, { sessionId, modeId: 'acceptEdits' })
  seen.answers.setOption = await ask(all.session.setConfigOption, { sessionId, configId: 'effort', value: 'low' })
  seen.answers.question = await say('ask me')
  seen.answers.list = await ask(all.session.list, { cwd: work })
  const turn = say('take long')
  await new Promise(done => setTimeout(done, 300))
  await agent.notify(all.session.cancel, { sessionId })
  seen.answers.cancelled = await turn
  await refused('prompt', () => ask(all.session.prompt, { sessionId: 'none', prompt: [{ type: 'text', text: 'x' }] }))
  await refused('method', () => ask('no/such', {}))
  await refused('audio', () => ask(all.session.prompt, { sessionId, prompt: [{ type: 'audio', data: 'AAAA', mimeType: 'audio/wav' }] }))
  seen.answers.close = await ask(all.session.close, { sessionId })
  const before = seen.words
  seen.words = ''
  seen.answers.load = await ask(all.session.load, { sessionId, cwd: work, mcpServers: [] })
  for (let i = 0; i < 500 && !seen.words.includes('BLUE THEN.'); i++) await new Promise(done => setTimeout(done, 10))
  seen.loaded = seen.words
  seen.words = before
  await ask(all.session.close, { sessionId })
  seen.answers.resume = await ask(all.session.resume, { sessionId, cwd: work, mcpServers: [] })
  seen.answers.delete = await ask(all.session.delete, { sessionId })
  seen.left = (await ask(all.session.list, {})).sessions.length
})
child.stdin.end()
seen.exit = await ended
seen.file = buffers.get(join(work, 'open.txt'))
console.log(JSON.stringify(seen))
process.exit(0)
