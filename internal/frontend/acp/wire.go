package acp

import (
	"encoding/json"
	"fmt"
)

// The codes of errors.
const (
	codeParse     = -32700
	codeRequest   = -32600
	codeMethod    = -32601
	codeParams    = -32602
	codeInternal  = -32603
	codeAuth      = -32000 // somebody has to sign in first
	codeMissing   = -32002 // there is no such session
	codeCancelled = -32800 // the request was cancelled by whoever made it
)

// message is anything that goes over the line.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *wireError      `json:"error,omitempty"`
}

// wireError is what is answered to a request that came to nothing.
type wireError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *wireError) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

func badParams(format string, args ...any) error {
	return &wireError{Code: codeParams, Message: fmt.Sprintf(format, args...)}
}

// What is there, or is not.
type capability = *struct{}

var has capability = new(struct{})

type (
	initializeIn struct {
		Version *int       `json:"protocolVersion"`
		Client  clientCaps `json:"clientCapabilities"`
	}

	clientCaps struct {
		FS struct {
			Read  bool `json:"readTextFile"`
			Write bool `json:"writeTextFile"`
		} `json:"fs"`
		Terminal bool `json:"terminal"`
		Auth     struct {
			Terminal bool `json:"terminal"`
		} `json:"auth"`
		Elicitation struct {
			Form capability `json:"form"`
			URL  capability `json:"url"`
		} `json:"elicitation"`
		Session struct {
			Notices capability `json:"notices"`
		} `json:"session"`
	}

	initializeOut struct {
		Version int            `json:"protocolVersion"`
		Agent   agentCaps      `json:"agentCapabilities"`
		Auth    []authMethod   `json:"authMethods"`
		Info    implementation `json:"agentInfo"`
	}

	agentCaps struct {
		Load   bool `json:"loadSession"`
		Prompt struct {
			Image    bool `json:"image"`
			Audio    bool `json:"audio"`
			Embedded bool `json:"embeddedContext"`
		} `json:"promptCapabilities"`
		MCP struct {
			HTTP bool `json:"http"`
			SSE  bool `json:"sse"`
		} `json:"mcpCapabilities"`
		Session struct {
			List   capability `json:"list"`
			Delete capability `json:"delete"`
			More   capability `json:"additionalDirectories"`
			Resume capability `json:"resume"`
			Close  capability `json:"close"`
		} `json:"sessionCapabilities"`
		Auth struct {
			Logout capability `json:"logout,omitempty"`
		} `json:"auth"`
	}

	authMethod struct {
		Type        string   `json:"type,omitempty"`
		ID          string   `json:"id"`
		Name        string   `json:"name"`
		Description string   `json:"description,omitempty"`
		Args        []string `json:"args,omitempty"`
	}

	implementation struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	}
)

// Sessions.
type (
	// place is where a session is, and what its client brings along.
	place struct {
		Session string      `json:"sessionId"`
		Cwd     string      `json:"cwd"`
		More    []string    `json:"additionalDirectories"`
		Servers []mcpServer `json:"mcpServers"`
	}

	mcpServer struct {
		Type    string   `json:"type"`
		Name    string   `json:"name"`
		URL     string   `json:"url"`
		Headers []pair   `json:"headers"`
		Command string   `json:"command"`
		Args    []string `json:"args"`
		Env     []pair   `json:"env"`
	}

	pair struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}

	// ofSession is about a session, and has one more value where a method wants one.
	ofSession struct {
		Session string `json:"sessionId"`
		Mode    string `json:"modeId"`
		Option  string `json:"configId"`
		Value   any    `json:"value"`
	}

	loginIn struct {
		Method string `json:"methodId"`
	}

	listIn struct {
		Cwd    *string `json:"cwd"`
		Cursor *string `json:"cursor"`
	}

	listOut struct {
		Sessions []sessionRow `json:"sessions"`
		Next     string       `json:"nextCursor,omitempty"`
	}

	sessionRow struct {
		ID      string `json:"sessionId"`
		Cwd     string `json:"cwd"`
		Title   string `json:"title,omitempty"`
		Updated string `json:"updatedAt,omitempty"`
	}

	// opened is the answer to a session that is open.
	opened struct {
		ID      string         `json:"sessionId,omitempty"`
		Modes   modeState      `json:"modes"`
		Options []configOption `json:"configOptions"`
	}

	modeState struct {
		Current string `json:"currentModeId"`
		All     []mode `json:"availableModes"`
	}

	mode struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
	}

	configOption struct {
		Type     string        `json:"type"` // select
		ID       string        `json:"id"`
		Name     string        `json:"name"`
		About    string        `json:"description,omitempty"`
		Category string        `json:"category,omitempty"`
		Current  string        `json:"currentValue"`
		Values   []configValue `json:"options"`
	}

	configValue struct {
		Value string `json:"value"`
		Name  string `json:"name"`
		About string `json:"description,omitempty"`
	}

	configOut struct {
		Options []configOption `json:"configOptions"`
	}
)

// Prompts, and what comes of them.
type (
	promptIn struct {
		Session string  `json:"sessionId"`
		Prompt  []block `json:"prompt"`
	}

	promptOut struct {
		Stop string `json:"stopReason"`
	}

	// block is a piece of content.
	block struct {
		Type     string    `json:"type"`
		Text     *string   `json:"text,omitempty"`
		Data     string    `json:"data,omitempty"`
		MIME     string    `json:"mimeType,omitempty"`
		URI      string    `json:"uri,omitempty"`
		Name     string    `json:"name,omitempty"`
		Resource *resource `json:"resource,omitempty"`
	}

	resource struct {
		URI  string  `json:"uri"`
		MIME string  `json:"mimeType,omitempty"`
		Text *string `json:"text,omitempty"`
		Blob string  `json:"blob,omitempty"`
	}

	notification struct {
		Session string `json:"sessionId"`
		Update  any    `json:"update"`
	}

	chunk struct {
		Kind    string `json:"sessionUpdate"`
		Content block  `json:"content"`
		Message string `json:"messageId,omitempty"`
	}

	// toolCall is a call, or with Kind tool_call_update what is new of it.
	toolCall struct {
		Update    string          `json:"sessionUpdate,omitempty"`
		ID        string          `json:"toolCallId"`
		Title     string          `json:"title,omitempty"`
		Name      string          `json:"name,omitempty"`
		Kind      string          `json:"kind,omitempty"`
		Status    string          `json:"status,omitempty"`
		Content   []callContent   `json:"content,omitempty"`
		Locations []location      `json:"locations,omitempty"`
		Input     json.RawMessage `json:"rawInput,omitempty"`
		Output    json.RawMessage `json:"rawOutput,omitempty"`
	}

	// callContent is content, a diff or a terminal.
	callContent struct {
		Type     string  `json:"type"`
		Content  *block  `json:"content,omitempty"`
		Path     string  `json:"path,omitempty"`
		Old      *string `json:"oldText,omitempty"`
		New      *string `json:"newText,omitempty"`
		Terminal string  `json:"terminalId,omitempty"`
	}

	location struct {
		Path string `json:"path"`
		Line int    `json:"line,omitempty"`
	}

	planUpdate struct {
		Kind    string      `json:"sessionUpdate"` // plan
		Entries []planEntry `json:"entries"`
	}

	planEntry struct {
		Content  string `json:"content"`
		Priority string `json:"priority"`
		Status   string `json:"status"`
	}

	commandsUpdate struct {
		Kind     string             `json:"sessionUpdate"` // available_commands_update
		Commands []availableCommand `json:"availableCommands"`
	}

	availableCommand struct {
		Name  string        `json:"name"`
		About string        `json:"description"`
		Input *commandInput `json:"input,omitempty"`
	}

	commandInput struct {
		Hint string `json:"hint"`
	}

	modeUpdate struct {
		Kind string `json:"sessionUpdate"` // current_mode_update
		Mode string `json:"currentModeId"`
	}

	optionsUpdate struct {
		Kind    string         `json:"sessionUpdate"` // config_option_update
		Options []configOption `json:"configOptions"`
	}

	infoUpdate struct {
		Kind    string `json:"sessionUpdate"` // session_info_update
		Title   string `json:"title,omitempty"`
		Updated string `json:"updatedAt,omitempty"`
	}

	usageUpdate struct {
		Kind string `json:"sessionUpdate"` // usage_update
		Used int    `json:"used"`
		Size int    `json:"size"`
		Cost *cost  `json:"cost,omitempty"`
	}

	cost struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	}

	noticeUpdate struct {
		Kind     string `json:"sessionUpdate"` // notice
		Severity string `json:"severity"`
		Title    string `json:"title"`
		About    string `json:"description,omitempty"`
	}
)

// What is asked of a client.
type (
	permissionIn struct {
		Session string             `json:"sessionId"`
		Call    toolCall           `json:"toolCall"`
		Options []permissionOption `json:"options"`
	}

	permissionOption struct {
		ID   string `json:"optionId"`
		Name string `json:"name"`
		Kind string `json:"kind"`
	}

	permissionOut struct {
		Outcome struct {
			Outcome string `json:"outcome"`
			Option  string `json:"optionId"`
		} `json:"outcome"`
	}

	elicitIn struct {
		Mode    string `json:"mode"` // form
		Session string `json:"sessionId"`
		Call    string `json:"toolCallId,omitempty"`
		Message string `json:"message"`
		Schema  any    `json:"requestedSchema"`
	}

	elicitOut struct {
		Action  string                     `json:"action"`
		Content map[string]json.RawMessage `json:"content"`
	}
)

// Terminals of a client.
type (
	terminalIn struct {
		Session string   `json:"sessionId"`
		Command string   `json:"command"`
		Args    []string `json:"args"`
		Env     []pair   `json:"env,omitempty"`
		Cwd     string   `json:"cwd"`
		Limit   int      `json:"outputByteLimit"`
	}

	ofTerminal struct {
		Session string `json:"sessionId,omitempty"`
		ID      string `json:"terminalId"`
	}

	terminalExit struct {
		Code   *int   `json:"exitCode"`
		Signal string `json:"signal"`
	}

	terminalOut struct {
		Output string       `json:"output"`
		Cut    bool         `json:"truncated"`
		Exit   terminalExit `json:"exitStatus"`
	}
)

func textBlock(s string) block { return block{Type: "text", Text: &s} }
