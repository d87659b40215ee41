// Generated from docs/protocol by: go test ./client/protocol -run Schemas -update

export const version = 1;
export const maxMessage = 10485760;

/** The types of requests, by the names of methods. */
export const methods = Object.freeze({
  canUseToolResponse: "CanUseToolResponse",
  getContextUsage: "GetContextUsage",
  hookCallback: "HookCallback",
  interrupt: "Interrupt",
  rewindFiles: "RewindFiles",
  setModel: "SetModel",
  setPermissionMode: "SetPermissionMode",
  terminate: "Terminate",
  userMessage: "UserMessage",
});

/** The requests that have the ID of what they answer. */
export const answering = Object.freeze(["CanUseToolResponse", "HookCallback"]);
