package telemetry

import "dure/internal/base/meter"

// figures are what the program counts of sessions. Names that begin with gen_ai are those of
// the conventions for generative AI; the others are ours.
type figures struct {
	tokens, operation, first meter.Histogram
	turn, tool               meter.Histogram

	used, cost, calls, sessions, turns, failures, decisions, dropped meter.Counter

	waiting meter.Gauge
}

// Upper bounds of the buckets; those of models are what the conventions advise.
var (
	tokenBounds = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	modelBounds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	firstBounds = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	turnBounds  = []float64{0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200}
	toolBounds  = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600}
)

// Names of attributes that spans, events and figures share.
const (
	keyOperation = "gen_ai.operation.name"
	keyProvider  = "gen_ai.provider.name"
	keyModel     = "gen_ai.request.model"
	keyAnswered  = "gen_ai.response.model"
	keyTool      = "gen_ai.tool.name"
	keyAgent     = "gen_ai.agent.name"
	keyError     = "error.type"
)

// The operations.
const (
	operationChat  = "chat"
	operationAgent = "invoke_agent"
	operationTool  = "execute_tool"
)

func newFigures(r *meter.Registry) figures {
	f := figures{
		tokens: r.Histogram("gen_ai.client.token.usage", "{token}", "Tokens of one request to a model.", tokenBounds,
			keyOperation, keyProvider, keyModel, keyAnswered, "gen_ai.token.type"),
		operation: r.Histogram("gen_ai.client.operation.duration", "s", "How long a request to a model took.", modelBounds,
			keyOperation, keyProvider, keyModel, keyAnswered, keyError),
		first: r.Histogram("gen_ai.client.operation.time_to_first_chunk", "s", "How long the first piece of an answer took.", firstBounds,
			keyOperation, keyProvider, keyModel, keyAnswered),
		turn: r.Histogram("gen_ai.invoke_agent.duration", "s", "How long a turn took.", turnBounds,
			keyOperation, keyAgent, keyError),
		tool: r.Histogram("gen_ai.execute_tool.duration", "s", "How long a call of a tool took.", toolBounds,
			keyOperation, keyTool, keyError),
		used: r.Counter("dure.tokens", "{token}", "Tokens by how they are paid for: input, output, cache_read, cache_write.",
			keyProvider, keyModel, "dure.token.kind"),
		cost:     r.Counter("dure.cost", "USD", "What models cost, as far as their prices are known.", keyProvider, keyModel),
		calls:    r.Counter("dure.tool.calls", "{call}", "Calls of tools: ok, error, pending, denied.", keyTool, "dure.tool.outcome"),
		sessions: r.Counter("dure.sessions", "{session}", "Sessions that were opened.", "dure.session.lane", "dure.session.start"),
		turns:    r.Counter("dure.turns", "{turn}", "Turns, by how they ended.", keyAgent, "dure.turn.reason"),
		failures: r.Counter("dure.model.failures", "{request}", "Requests to models that failed, by class.", keyProvider, keyModel, keyError),
		decisions: r.Counter("dure.tool.decisions", "{call}", "Verdicts on calls of tools, by who gave them.",
			keyTool, "dure.decision.verdict", "dure.decision.by"),
		dropped: r.Counter("dure.telemetry.dropped", "{record}", "Records of telemetry that were not delivered, by why.", "dure.signal", "dure.reason"),
		waiting: r.Gauge("dure.approvals.waiting", "{approval}", "Questions of sessions that nobody has answered yet."),
	}
	f.waiting.Add(0) // it is there before anything waits
	return f
}
