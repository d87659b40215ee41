// Generated from docs/protocol by: go test ./client/protocol -run Schemas -update

import type {
  CanUseToolResponsePayload,
  GetContextUsagePayload,
  HookCallbackPayload,
  InterruptPayload,
  Notification,
  RewindFilesPayload,
  SessionResult,
  SetModelPayload,
  SetPermissionModePayload,
  TerminatePayload,
  UserMessagePayload,
} from "./protocol.js";
import type { AnswerOptions, RequestOptions } from "./control.js";

/** A method for each request. Each promises the message that answers it, and rejects with a ControlError for an Error. */
export interface Methods {
  /** CanUseToolResponsePayload is the payload of CanUseToolResponse, the host's word on a CanUseTool, whose ID it has. A reply answers it when it has counted, and an Error with the code "late" when somebody else was first, or the time was over. */
  canUseToolResponse(payload: CanUseToolResponsePayload, options: AnswerOptions): Promise<Notification>;
  /** GetContextUsagePayload is the payload of GetContextUsage. A reply with Context answers it. */
  getContextUsage(payload?: GetContextUsagePayload, options?: RequestOptions): Promise<Notification>;
  /** HookCallbackPayload is the payload of HookCallback, the host's answer to a HookEvent, whose ID it has. A reply answers it when it has counted, and an Error with the code "late" when the time was over. */
  hookCallback(payload: HookCallbackPayload, options: AnswerOptions): Promise<Notification>;
  /** InterruptPayload is the payload of Interrupt, which stops the running turn, if there is one. A reply answers it; what the turn came to is told by SessionResult. */
  interrupt(payload?: InterruptPayload, options?: RequestOptions): Promise<Notification>;
  /** RewindFilesPayload is the payload of RewindFiles, which puts files back. It needs a session in which no turn runs. A reply with Rewound answers it. */
  rewindFiles(payload?: RewindFilesPayload, options?: RequestOptions): Promise<Notification>;
  /** SetModelPayload is the payload of SetModel. A reply answers it; the model holds from the next step on. */
  setModel(payload: SetModelPayload, options?: RequestOptions): Promise<Notification>;
  /** SetPermissionModePayload is the payload of SetPermissionMode. A reply answers it. */
  setPermissionMode(payload: SetPermissionModePayload, options?: RequestOptions): Promise<Notification>;
  /** TerminatePayload is the payload of Terminate. With a session, that one is closed; without one, all are, and the connection ends behind the reply. */
  terminate(payload?: TerminatePayload, options?: RequestOptions): Promise<Notification>;
  /** UserMessagePayload is the payload of UserMessage. It starts a turn, or steers the running one at its next step. SessionResult answers it when the turn in which the model has read it is over; a message without content opens a session only, and a reply answers it. */
  userMessage(payload?: UserMessagePayload, options?: RequestOptions): Promise<SessionResult | Notification>;
}
