package oracle_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // to read what is packed
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"dure/agent"
	"dure/internal/base/keys/secret"
	"dure/internal/base/meter"
	"dure/internal/frontend/telemetry"
)

// callee answers calls of a collector's services, and gives what it is called with on.
type callee struct {
	traces, logs, metrics chan proto.Message
	busy                  chan struct{} // the next call with spans is to be made again
	key                   chan string
}

func (c *callee) answer(_ any, call grpc.ServerStream) error {
	name, _ := grpc.MethodFromServerStream(call)
	md, _ := metadata.FromIncomingContext(call.Context())
	c.key <- strings.Join(md.Get("authorization"), " ")
	var m proto.Message
	to := c.traces
	switch name {
	case "/opentelemetry.proto.collector.trace.v1.TraceService/Export":
		select {
		case <-c.busy:
			st, err := status.New(codes.ResourceExhausted, "later").WithDetails(&errdetails.Help{}, &errdetails.RetryInfo{RetryDelay: durationpb.New(10 * time.Millisecond)})
			if err != nil {
				return err
			}
			return st.Err()
		default:
		}
		m = &tracepb.TracesData{} // what it is called with has the same fields
	case "/opentelemetry.proto.collector.logs.v1.LogsService/Export":
		m, to = &logspb.LogsData{}, c.logs
	case "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export":
		m, to = &metricspb.MetricsData{}, c.metrics
	default:
		return status.Error(codes.Unimplemented, name)
	}
	if err := call.RecvMsg(m); err != nil {
		return err
	}
	to <- m
	rejectsTwo := wrapperspb.Bytes([]byte{1 << 3, 2}) // as an answer with a partial success
	return call.SendMsg(rejectsTwo)
}

// What is sent by calls is what the official server of gRPC takes: the same as over HTTP. It
// is sent again when that asks for it, and what it has not taken is counted.
func TestTelemetryByCalls(t *testing.T) {
	for _, packed := range []bool{false, true} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		c := &callee{
			traces: make(chan proto.Message, 9), logs: make(chan proto.Message, 9), metrics: make(chan proto.Message, 9),
			busy: make(chan struct{}, 1), key: make(chan string, 30),
		}
		srv := grpc.NewServer(grpc.UnknownServiceHandler(c.answer))
		over := make(chan error, 1)
		go func() { over <- srv.Serve(listener) }()

		target := func(service string) *telemetry.Target {
			return &telemetry.Target{
				URL:  "http://" + listener.Addr().String() + "/opentelemetry.proto.collector." + service + "/Export",
				GRPC: true, Gzip: packed, Headers: map[string]secret.Text{"Authorization": "Bearer a"}, Delay: time.Second,
			}
		}
		parent, _ := telemetry.ParseContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "v=1")
		figures := meter.New(told)
		figures.Gauge("g", "By", "a gauge", "l").Set(-1.5, "v")
		ends := target("metrics.v1.MetricsService")
		ends.Delay = time.Hour // once, at the end
		o := telemetry.New(telemetry.Config{
			Meter: figures, Traces: target("trace.v1.TraceService"), Events: target("logs.v1.LogsService"), Metrics: ends, Version: "1", Instance: "i",
			Content: telemetry.ContentBoth, Sampler: telemetry.Sampler{Ratio: 1}, Parent: &parent, Now: func() time.Time { return told },
		})
		c.busy <- struct{}{}
		if _, err := o.Watch(session()).Open(t.Context(), agent.Open{}); err != nil {
			t.Fatal(err)
		}
		var spans []proto.Message
		select {
		case m := <-c.traces:
			spans = append(spans, m)
		case <-time.After(time.Minute):
			t.Fatal("it is not sent again")
		}
		if err := o.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		o.CloseIdleConnections()
		srv.Stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
		if key := <-c.key; key != "Bearer a" {
			t.Errorf("the key is %q", key)
		}
		for len(c.traces) > 0 {
			spans = append(spans, <-c.traces)
		}
		want := &tracepb.TracesData{}
		if err := proto.Unmarshal(sendTelemetry(t, false, false)["/traces"], want); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, m := range spans {
			for _, r := range m.(*tracepb.TracesData).ResourceSpans {
				for _, s := range r.ScopeSpans {
					n += len(s.Spans)
				}
			}
			unknown(t, m.ProtoReflect())
		}
		if len(spans) == 1 {
			if d := cmp.Diff(want, spans[0].(*tracepb.TracesData), protocmp.Transform()); d != "" {
				t.Errorf("packed: %v: calls and requests differ:\n%s", packed, d)
			}
		}
		if all := len(want.ResourceSpans[0].ScopeSpans[0].Spans); n != all {
			t.Errorf("packed: %v: %d spans of %d", packed, n, all)
		}
		if len(c.logs) == 0 || len(c.metrics) != 1 {
			t.Errorf("packed: %v: %d calls with records, %d with figures", packed, len(c.logs), len(c.metrics))
		}
		dropped := 0.0
		for _, m := range figures.Read() {
			for _, s := range m.Series {
				if m.Name == "dure.telemetry.dropped" && s.Labels[1].Value == "rejected" {
					dropped += s.Value
				}
			}
		}
		if dropped < 2 {
			t.Errorf("packed: %v: %v spans are counted as lost", packed, dropped)
		}
	}
}
