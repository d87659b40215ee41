import type { Methods } from "./methods.js";
import type {
  AssistantMessage,
  AssistantToken,
  CanUseTool,
  CanUseToolData,
  CanUseToolResponsePayload,
  Error as ErrorMessage,
  HookCallbackPayload,
  HookEvent,
  HookEventData,
  InitializePayload,
  InitializeResultData,
  Message,
  Notification,
  OpenSession,
  SessionResult,
  SessionResultData,
  ToolProgress,
  ToolResult,
  ToolUseStart,
  UserMessagePayload,
} from "./protocol.js";

export type * from "./protocol.js";
export type { Methods } from "./methods.js";

/** The bounds of a connection. Beside them, a message is bounded as the protocol says. */
export const bounds: Readonly<{
  /** Requests that are not answered yet, and questions of dure's: code "busy". */
  openRequests: number;
  /** Bytes of requests that dure has not taken yet: code "busy". */
  unsentBytes: number;
  /** Messages that an iterator holds. */
  queuedMessages: number;
  /** Bytes of them. */
  queuedBytes: number;
  /** Milliseconds for each step of an end. */
  closeTime: number;
}>;

/**
 * What goes wrong. Beside the codes of docs/control.md, there are those of the client: "closed" (the connection has
 * ended), "not-started", "unreachable", "no-token", "no-websocket", "no-header", "bad-url", and "behind" (of an
 * iterator).
 */
export class ControlError extends globalThis.Error {
  constructor(
    code: string,
    message: string,
    more?: { fix?: string; args?: Record<string, unknown>; request?: string; cause?: unknown },
  );
  readonly name: "ControlError";
  readonly code: string;
  /** What to do next. */
  readonly fix?: string;
  /** The names involved. */
  readonly args?: Record<string, unknown>;
  readonly request?: string;
}

export interface RequestOptions {
  /** Missing = the first session of the connection. */
  session?: string;
  /** Ends the wait for the answer. What was asked for goes on: interrupt() stops a turn. */
  signal?: AbortSignal;
}

export interface AnswerOptions {
  /** The ID of what is answered. */
  id: string;
  signal?: AbortSignal;
}

export interface Asked {
  session?: string;
  /** Aborted when nobody waits any more. */
  signal: AbortSignal;
}

export interface Config {
  /** What the host says of itself. */
  initialize?: InitializePayload;
  /** Answers whether a call may be made. What it throws denies the call. Without it, a call that needs somebody's word is denied, unless initialize has can_use_tool and an iterator is there: that is told then. */
  canUseTool?(question: CanUseToolData, asked: Asked): CanUseToolResponsePayload | Promise<CanUseToolResponsePayload>;
  /** Answers the events of initialize.hooks, as canUseTool does; undefined = nothing to say. */
  hook?(event: HookEventData, asked: Asked): HookCallbackPayload | undefined | Promise<HookCallbackPayload | undefined>;
  /** Ends the beginning of the connection. */
  signal?: AbortSignal;
}

export interface StartOptions extends Config {
  /** "dure", as PATH has it, unless it says otherwise. It is started without a shell. */
  program?: string;
  /** Flags of dure control. */
  args?: readonly string[];
  cwd?: string;
  /** Missing = that of this process. */
  env?: Record<string, string | undefined>;
  /** Where goes what is said to people; "inherit" unless it says otherwise. */
  stderr?: "inherit" | "ignore";
}

export interface DialOptions extends Config {
  token: string;
  /** A class whose second argument may be { headers }. Missing = that of the platform: Node has one since 22. */
  WebSocket?: new (url: string, options: any) => any;
}

/** Starts `dure control` as a child of this process, with which it ends. */
export function start(options?: StartOptions): Promise<Host>;

/** Connects to a server that runs, such as http://127.0.0.1:8080. */
export function dial(url: string | URL, options: DialOptions): Promise<Host>;

/** The messages that answer nothing, and those questions that no function answers. */
export type Told =
  | AssistantMessage
  | AssistantToken
  | CanUseTool
  | ErrorMessage
  | HookEvent
  | Notification
  | SessionResult
  | ToolProgress
  | ToolResult
  | ToolUseStart;

export interface Host extends Methods {}

/** A connection to dure. */
export class Host {
  private constructor();
  /** What dure has said of itself. */
  readonly hello: InitializeResultData;
  /** The ID of the process, of a child. */
  readonly pid: number | undefined;
  /** Opens a session, and promises its ID. */
  open(what?: OpenSession, options?: { signal?: AbortSignal }): Promise<string>;
  /** Says something, and promises what the turn has come to. */
  say(what: string | UserMessagePayload, options?: RequestOptions): Promise<{ session: string; result?: SessionResultData }>;
  /** Closes one session. */
  closeSession(session: string, options?: { signal?: AbortSignal }): Promise<void>;
  /** Ends all sessions, and the connection. What runs is interrupted. */
  close(): Promise<void>;
  /** Makes a request of any type. */
  request(type: string, payload?: object, options?: RequestOptions & { id?: string }): Promise<Message>;
  /**
   * The messages from now on. An iterator holds as many as bounds says. Of more than that, AssistantToken and
   * ToolProgress are left out; for any other it ends, behind what it holds, with a ControlError of the code "behind".
   */
  messages(): AsyncIterableIterator<Told>;
  [Symbol.asyncIterator](): AsyncIterableIterator<Told>;
}
