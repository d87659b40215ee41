// Generated from docs/protocol by: go test ./client/protocol -run Schemas -update

/** Attachment is an image or a document. */
export interface Attachment {
  /** base64 */
  data: string;
  name?: string;
  /** MIME type */
  type: string;
}

export interface CanUseToolResponse {
  id: string;
  payload: CanUseToolResponsePayload;
  session?: string;
  type: "CanUseToolResponse";
}

/** CanUseToolResponsePayload is the payload of CanUseToolResponse, the host's word on a CanUseTool, whose ID it has. A reply answers it when it has counted, and an Error with the code "late" when somebody else was first, or the time was over. */
export interface CanUseToolResponsePayload {
  behavior: "allow" | "deny";
  /** Input takes the place of the call's input. The call is then decided on again. */
  input?: Record<string, unknown>;
  /** the model reads that of a denial */
  reason?: string;
  /** Remember says how long the answer holds: once, unless it says otherwise. Rules are what is remembered in the place of what the question had offered. */
  remember?: "session" | "always";
  rules?: string[];
}

/** Client says who the host is. */
export interface Client {
  /** shown where it has decided something */
  name?: string;
  version?: string;
}

export interface GetContextUsage {
  id: string;
  payload?: GetContextUsagePayload;
  session?: string;
  type: "GetContextUsage";
}

/** GetContextUsagePayload is the payload of GetContextUsage. A reply with Context answers it. */
export interface GetContextUsagePayload {
}

export interface HookCallback {
  id: string;
  payload?: HookCallbackPayload;
  session?: string;
  type: "HookCallback";
}

/** HookCallbackPayload is the payload of HookCallback, the host's answer to a HookEvent, whose ID it has. A reply answers it when it has counted, and an Error with the code "late" when the time was over. */
export interface HookCallbackPayload {
  /** Error says that the host could not look at the event: the hook has failed then. */
  error?: string;
  /** Output is what a hook's program would have printed: a JSON object. Missing = nothing to say. */
  output?: Record<string, unknown>;
}

/** HookRegistration is an event of hooks that the host wants to answer. */
export interface HookRegistration {
  /** PreToolUse, Stop, ... */
  event: string;
  /** Matcher says what the event has to be about, as settings have it; missing = anything. */
  matcher?: string;
  /** Timeout is how long the host's answer is waited for, in milliseconds; missing = 30000, at most 600000. */
  timeout_ms?: number;
}

export interface Initialize {
  id: string;
  payload?: InitializePayload;
  session?: string;
  type: "Initialize";
}

/** InitializePayload is the payload of Initialize, the first request of a connection. InitializeResult answers it. */
export interface InitializePayload {
  /** Agents are types of agents by their names, as --agents takes them: description, prompt, tools, model. Only a program that the host has started takes them. */
  agents?: Record<string, unknown>;
  /** CanUseTool says that the host answers CanUseTool. Without it, a call that needs somebody's approval is denied at once. */
  can_use_tool?: boolean;
  /** CanUseToolTimeout is how long the host's answer is waited for, in milliseconds; missing = 30000, at most 600000. Then the call is denied. */
  can_use_tool_timeout_ms?: number;
  client?: Client;
  /** EndWithInput says that the host is gone when the input ends: what runs is interrupted. Without it, what was asked for is finished first. The end of a socket is always that of its host. */
  end_with_input?: boolean;
  /** Hooks are the events of hooks that the host wants to answer. */
  hooks?: HookRegistration[];
  /** NoTokens leaves AssistantToken and ToolProgress away: whole messages are enough. */
  no_tokens?: boolean;
  /** Open opens a session at once. Without it the first UserMessage does. */
  open?: OpenSession;
  /** Settings are settings for this connection, as a settings file has them; they are stronger than files. Only a program that the host has started takes them. */
  settings?: Record<string, unknown>;
  /** Version is the newest version of the protocol that the host speaks; missing = 1. */
  version?: number;
}

export interface Interrupt {
  id: string;
  payload?: InterruptPayload;
  session?: string;
  type: "Interrupt";
}

/** InterruptPayload is the payload of Interrupt, which stops the running turn, if there is one. A reply answers it; what the turn came to is told by SessionResult. */
export interface InterruptPayload {
}

/** OpenSession says which session is opened. All fields may be missing: a new one, as the settings say. */
export interface OpenSession {
  /** type of agents that the session runs as */
  agent?: string;
  /** the last event of the copy; missing = all of it */
  at?: number;
  /** ID of a stored session to make a copy of */
  fork?: string;
  /** of a turn; missing = no limit */
  max_steps?: number;
  mode?: "default" | "acceptEdits" | "plan" | "dontAsk" | "bypassPermissions";
  model?: string;
  /** ID of the new session: 1 to 64 letters, digits, - or _; missing = any */
  new?: string;
  /** kind of work */
  profile?: string;
  /** ID of a stored session to go on with */
  resume?: string;
  title?: string;
  /** absolute; missing = where dure runs */
  workdir?: string;
}

export interface RewindFiles {
  id: string;
  payload?: RewindFilesPayload;
  session?: string;
  type: "RewindFiles";
}

/** RewindFilesPayload is the payload of RewindFiles, which puts files back. It needs a session in which no turn runs. A reply with Rewound answers it. */
export interface RewindFilesPayload {
  /** Conversation takes back what was said since, too. */
  conversation?: boolean;
  /** Force names files that are put back although somebody else has changed them since. Only, if there are any, names those that are put back at all. Paths are relative to the workspace. */
  force?: string[];
  /** Message is the ID of a UserMessage of this connection: files become what they were before it. To is the number of an event, in the place of it. */
  message?: string;
  only?: string[];
  to?: number;
}

export interface SetModel {
  id: string;
  payload: SetModelPayload;
  session?: string;
  type: "SetModel";
}

/** SetModelPayload is the payload of SetModel. A reply answers it; the model holds from the next step on. */
export interface SetModelPayload {
  model: string;
}

export interface SetPermissionMode {
  id: string;
  payload: SetPermissionModePayload;
  session?: string;
  type: "SetPermissionMode";
}

/** SetPermissionModePayload is the payload of SetPermissionMode. A reply answers it. */
export interface SetPermissionModePayload {
  mode: "default" | "acceptEdits" | "plan" | "dontAsk" | "bypassPermissions";
}

export interface Terminate {
  id: string;
  payload?: TerminatePayload;
  session?: string;
  type: "Terminate";
}

/** TerminatePayload is the payload of Terminate. With a session, that one is closed; without one, all are, and the connection ends behind the reply. */
export interface TerminatePayload {
}

export interface UserMessage {
  id: string;
  payload?: UserMessagePayload;
  session?: string;
  type: "UserMessage";
}

/** UserMessagePayload is the payload of UserMessage. It starts a turn, or steers the running one at its next step. SessionResult answers it when the turn in which the model has read it is over; a message without content opens a session only, and a reply answers it. */
export interface UserMessagePayload {
  attachments?: Attachment[];
  /** Later keeps the message until the running turn has ended, rather than steering it. */
  later?: boolean;
  /** Open opens another session, to which the message goes. The message names no session then; the answer does. */
  open?: OpenSession;
  text?: string;
}

export type Request =
  | CanUseToolResponse
  | GetContextUsage
  | HookCallback
  | Initialize
  | Interrupt
  | RewindFiles
  | SetModel
  | SetPermissionMode
  | Terminate
  | UserMessage;

export interface AssistantMessage {
  id?: string;
  payload: AssistantMessageData;
  session?: string;
  type: "AssistantMessage";
}

/** AssistantMessageData is the payload of AssistantMessage: one whole answer of the model. */
export interface AssistantMessageData {
  calls?: Call[];
  /** missing = unknown */
  cost_usd?: number;
  model?: string;
  /** number of its event */
  seq: number;
  stop_reason?: string;
  text: string;
  thinking?: string;
  truncated?: boolean;
  usage: Usage;
}

export interface AssistantToken {
  id?: string;
  payload: TokenData;
  session?: string;
  type: "AssistantToken";
}

/** Call is a call of a tool that the model wants to make. */
export interface Call {
  id: string;
  /** missing = longer than 1 MiB */
  input?: Record<string, unknown>;
  /** canonical name */
  tool: string;
}

export interface CanUseTool {
  id: string;
  payload: CanUseToolData;
  session?: string;
  type: "CanUseTool";
}

/** CanUseToolData is the payload of CanUseTool: a call waits for somebody's word. CanUseToolResponse with the same ID answers it. After the time, the call is denied with the code E_TOOL_APPROVAL_TIMEOUT. */
export interface CanUseToolData {
  /** ID of the call */
  call: string;
  /** ID of the session of an agent that asks */
  child?: string;
  choices?: Choice[];
  /** what an edit would change, in unified form */
  diff?: string;
  input: Record<string, unknown>;
  /** why somebody is asked */
  reason?: string;
  /** the rule that asks */
  rule?: string;
  seq: number;
  timeout_ms: number;
  tool: string;
}

/** Choice is an answer that holds beyond the call. */
export interface Choice {
  remember: "session" | "always";
  rules: string[];
}

/** ContextPart is one part of what fills the window. */
export interface ContextPart {
  name: string;
  tokens: number;
}

/** ContextUsage is what fills the window of a session's model. Tokens are estimates. */
export interface ContextUsage {
  model: string;
  parts: ContextPart[];
  /** safe, warning, critical or exceeded */
  status: string;
  used_tokens: number;
  /** 0 = not known */
  window_tokens: number;
}

/** Denial is a call that was not allowed. */
export interface Denial {
  by?: string;
  id: string;
  reason?: string;
  tool: string;
}

export interface Error {
  id?: string;
  payload: ErrorData;
  session?: string;
  type: "Error";
}

/** ErrorData is the payload of Error. */
export interface ErrorData {
  /** the names involved */
  args?: Record<string, unknown>;
  code: string;
  /** what to do next */
  fix?: string;
  message: string;
  request?: string;
}

export interface HookEvent {
  id: string;
  payload: HookEventData;
  session?: string;
  type: "HookEvent";
}

/** HookEventData is the payload of HookEvent: something has happened that the host has registered for. HookCallback with the same ID answers it. */
export interface HookEventData {
  /** ID of the call that it is about */
  call?: string;
  event: string;
  /** its place in the list of Initialize, from 0 */
  hook: number;
  /** what a hook's program would be given */
  input: Record<string, unknown>;
  /** 0 = no answer is waited for */
  timeout_ms: number;
}

export interface InitializeResult {
  id: string;
  payload: InitializeResultData;
  session?: string;
  type: "InitializeResult";
}

/** InitializeResultData is the payload of InitializeResult. */
export interface InitializeResultData {
  /** settings, agents, hooks, can_use_tool, rewind, sessions */
  capabilities: string[];
  limits: Limits;
  messages: string[];
  /** dure, and its version */
  program: Client;
  requests: string[];
  session?: string;
  /** of the protocol that is spoken from now on */
  version: number;
  workdir: string;
}

/** Limits are the bounds of a connection. */
export interface Limits {
  can_use_tool_timeout_ms: number;
  message_bytes: number;
  /** that are not answered yet */
  open_requests: number;
  /** that are open at once */
  sessions: number;
}

export interface Notification {
  id?: string;
  payload: NotificationData;
  session?: string;
  type: "Notification";
}

/** NotificationData is the payload of Notification: the reply to a request, or something that has happened for which there is no message of its own. */
export interface NotificationData {
  context?: ContextUsage;
  data?: Record<string, unknown>;
  /** Of an event: its kind, number (0 = it is not stored) and body (docs/events.md); a body of more than 32 KiB is missing. */
  event?: string;
  kind: "reply" | "event" | "closed";
  /** Of a session that is closed: why, if it was not asked for. */
  reason?: string;
  /** Of a reply: the request, and what it asked for. */
  request?: string;
  rewound?: Rewound;
  seq?: number;
}

/** Rewound is what became of files. */
export interface Rewound {
  /** that were changed */
  files: number;
  /** that were left alone, because others have changed them */
  left: number;
  /** number of the event */
  to: number;
}

export interface SessionResult {
  id?: string;
  payload: SessionResultData;
  session?: string;
  type: "SessionResult";
}

/** SessionResultData is the payload of SessionResult: what a turn came to. It has the ID of each UserMessage that the model has read in the turn: as many messages as there are of those, or one without an ID when there are none. */
export interface SessionResultData {
  /** of the error: what failed at the model's provider, or a problem */
  code?: string;
  cost_usd?: number;
  denials?: Denial[];
  /** of the turn */
  duration_ms: number;
  error?: string;
  seq: number;
  status: "done" | "interrupted" | "failed" | "limit" | "refused" | "stopped" | "dropped" | "deferred";
  /** requests to the model in the turn */
  steps: number;
  /** of the last answer */
  text: string;
  /** text is only the beginning */
  truncated?: boolean;
  turn?: string;
  /** of the session that this connection has seen end */
  turns: number;
  /** of the turn */
  usage: Usage;
}

/** TokenData is the payload of AssistantToken: a piece of the answer that is on its way. Who reads slowly may miss some; AssistantMessage has the whole. */
export interface TokenData {
  /** ID, for the kinds call and input */
  call?: string;
  /** of the block that it is a piece of */
  index: number;
  kind: "text" | "thinking" | "call" | "input";
  step: number;
  text: string;
  /** canonical name */
  tool?: string;
}

export interface ToolProgress {
  id?: string;
  payload: ToolProgressData;
  session?: string;
  type: "ToolProgress";
}

/** ToolProgressData is the payload of ToolProgress: output of a call that runs. Who reads slowly may miss some; ToolResult has what counts. */
export interface ToolProgressData {
  /** of the call */
  id: string;
  text: string;
}

export interface ToolResult {
  id?: string;
  payload: ToolResultData;
  session?: string;
  type: "ToolResult";
}

/** ToolResultData is the payload of ToolResult: how a call came out. A call that is pending has another ToolResult when it is over. */
export interface ToolResultData {
  /** of an error: E_TOOL_... */
  code?: string;
  duration_ms?: number;
  /** of a call that is pending, or was */
  handle?: string;
  /** of the call */
  id: string;
  output?: unknown;
  seq: number;
  status: "ok" | "error" | "pending";
  /** as the model reads it */
  text: string;
  tool?: string;
  /** text is only the beginning */
  truncated?: boolean;
}

export interface ToolUseStart {
  id?: string;
  payload: ToolUseStartData;
  session?: string;
  type: "ToolUseStart";
}

/** ToolUseStartData is the payload of ToolUseStart: a call that was allowed, and begins. */
export interface ToolUseStartData {
  /** who has allowed it */
  by?: string;
  id: string;
  /** missing = longer than 1 MiB, or begun before the connection */
  input?: Record<string, unknown>;
  seq: number;
  tool: string;
}

/** Usage is a number of tokens. */
export interface Usage {
  cache_read_tokens: number;
  cache_write_tokens: number;
  /** neither read from the cache nor written to it */
  input_tokens: number;
  output_tokens: number;
}

export type Message =
  | AssistantMessage
  | AssistantToken
  | CanUseTool
  | Error
  | HookEvent
  | InitializeResult
  | Notification
  | SessionResult
  | ToolProgress
  | ToolResult
  | ToolUseStart;
