package protocol

// Requests are the types of requests, each with an empty payload of its type.
func Requests() map[Type]any {
	return map[Type]any{
		TypeInitialize:         InitializePayload{},
		TypeUserMessage:        UserMessagePayload{},
		TypeSetPermissionMode:  SetPermissionModePayload{},
		TypeSetModel:           SetModelPayload{},
		TypeInterrupt:          InterruptPayload{},
		TypeGetContextUsage:    GetContextUsagePayload{},
		TypeRewindFiles:        RewindFilesPayload{},
		TypeCanUseToolResponse: CanUseToolResponsePayload{},
		TypeHookCallback:       HookCallbackPayload{},
		TypeTerminate:          TerminatePayload{},
	}
}

// Messages are the types of messages, each with an empty payload of its type.
func Messages() map[Type]any {
	return map[Type]any{
		TypeInitializeResult: InitializeResultData{},
		TypeAssistantToken:   TokenData{},
		TypeAssistantMessage: AssistantMessageData{},
		TypeToolUseStart:     ToolUseStartData{},
		TypeToolProgress:     ToolProgressData{},
		TypeToolResult:       ToolResultData{},
		TypeSessionResult:    SessionResultData{},
		TypeHookEvent:        HookEventData{},
		TypeCanUseTool:       CanUseToolData{},
		TypeNotification:     NotificationData{},
		TypeError:            ErrorData{},
	}
}
