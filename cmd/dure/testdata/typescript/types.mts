// What a program in TypeScript does with the client, for the compiler alone: it never runs.
// Lines behind @ts-expect-error are wrong, and have to be refused.

import { ControlError, Host, bounds, dial, start } from "dure-control";
import type { Asked, Config, DialOptions, Methods, StartOptions, Told } from "dure-control";
import type { CanUseToolData, CanUseToolResponsePayload, Message, Notification, SessionResult, SessionResultData } from "dure-control/protocol";

const config: Config = {
  initialize: {
    client: { name: "types", version: "1" },
    hooks: [{ event: "PreToolUse", matcher: "Bash", timeout_ms: 1000 }],
    open: { title: "t", mode: "plan" },
  },
  canUseTool(question: CanUseToolData, { session, signal }: Asked): CanUseToolResponsePayload {
    const about: [string, string | undefined, boolean] = [question.tool, session, signal.aborted];
    return about[2] ? { behavior: "deny", reason: "late" } : { behavior: "allow", input: question.input, remember: "session" };
  },
  hook: async (event) => (event.event === "PreToolUse" ? { output: { continue: true } } : undefined),
  signal: AbortSignal.timeout(1000),
};
const started: StartOptions = { program: "dure", args: ["--profile", "p"], cwd: ".", env: { A: "b" }, stderr: "ignore", ...config };
const dialled: DialOptions = { token: "t", ...config };

async function all(host: Host): Promise<void> {
  const version: number = host.hello.version;
  const pid: number | undefined = host.pid;
  const session: string = await host.open({ title: "t" }, { signal: AbortSignal.timeout(version) });
  const said: { session: string; result?: SessionResultData } = await host.say("text", { session });
  const status: string | undefined = said.result?.status;
  await host.say({ text: "text", attachments: [] }, { session, signal: AbortSignal.timeout(pid ?? 1) });

  // Each request.
  const word: Notification = await host.canUseToolResponse({ behavior: "allow" }, { id: "1" });
  const usage: Notification = await host.getContextUsage({}, { session });
  const hook: Notification = await host.hookCallback({ output: {} }, { id: "1", signal: AbortSignal.timeout(1) });
  const stop: Notification = await host.interrupt();
  const back: Notification = await host.rewindFiles({}, { session });
  const model: Notification = await host.setModel({ model: "m" });
  const mode: Notification = await host.setPermissionMode({ mode: "plan" });
  const told: SessionResult | Notification = await host.userMessage({ text: "text" });
  const over: Notification = await host.terminate({}, { session });
  const any: Message = await host.request("SetModel", { model: "m" }, { id: "7", session });
  const names: (keyof Methods)[] = ["setModel", "userMessage"];
  console.log(status, word, usage, hook, stop, back, model, mode, told.type, over, any.type, names);

  for await (const m of host.messages()) {
    tell(m);
  }
  for await (const m of host) {
    tell(m);
  }
  await host.closeSession(session, { signal: AbortSignal.timeout(1) });
  await host.close();
}

function tell(m: Told): void {
  switch (m.type) {
    case "AssistantMessage":
    case "AssistantToken":
      console.log(m.payload?.text);
      break;
    case "Error":
      console.log(m.payload?.code, m.payload?.fix);
      break;
    case "CanUseTool":
    case "HookEvent":
    case "Notification":
    case "SessionResult":
    case "ToolProgress":
    case "ToolResult":
    case "ToolUseStart":
      console.log(m.session, m.payload);
      break;
    default: {
      const none: never = m;
      console.log(none);
    }
  }
}

try {
  await all(await start());
  await all(await start(started));
  await all(await dial(new URL("http://127.0.0.1:1"), dialled));
} catch (err) {
  if (err instanceof ControlError) {
    const code: string = err.code;
    console.log(code, err.fix, err.args, err.request, bounds.closeTime + bounds.openRequests + bounds.queuedBytes + bounds.queuedMessages + bounds.unsentBytes);
  }
}

async function wrong(host: Host): Promise<void> {
  // @ts-expect-error: start and dial make hosts
  new Host();
  // @ts-expect-error: a server wants a token
  await dial("http://127.0.0.1:1", {});
  // @ts-expect-error: there is no such mode
  await host.setPermissionMode({ mode: "never" });
  // @ts-expect-error: a model is named
  await host.setModel({});
  // @ts-expect-error: an answer has the ID of what it answers
  await host.canUseToolResponse({ behavior: "allow" });
  // @ts-expect-error: an answer says what
  await host.canUseToolResponse({}, { id: "1" });
  // @ts-expect-error: there is no such request
  await host.dance();
  // @ts-expect-error: the bounds stay
  bounds.closeTime = 1;
  // @ts-expect-error: what is asked is answered
  await start({ canUseTool: () => undefined });
}
void wrong;
