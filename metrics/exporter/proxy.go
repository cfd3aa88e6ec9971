package exporter

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/proxy"
)

// Proxy is the part of a *proxy.Proxy that the exporter reads.
type Proxy interface {
	Stats() (proxy.Stats, error)
}

// AddProxy exports a proxy's metrics.
func (e *Exporter) AddProxy(m Member, p Proxy) {
	read := func() (*proxy.Stats, error) {
		stats, err := p.Stats()
		return &stats, err
	}
	e.add(m, newCollector(m.label(), read, table[proxy.Stats]{
		metrics:    proxyMetrics,
		labelled:   proxyLabelled,
		histograms: proxyHistograms,
		latencies:  proxyLatencies,
	}))
}

// The names begin with dunlin_proxy_, because nodes have metrics of the same kind, and a sum over
// both would count every forwarded command twice.
var proxyMetrics = []metric[proxy.Stats]{
	counter("dunlin_proxy_refused_commands_total",
		"Commands refused before routing: unknown, wrong number of arguments, not authenticated.",
		func(s *proxy.Stats) float64 { return float64(s.Refused) }),
	counter("dunlin_proxy_protocol_errors_total", "Requests that were not RESP.",
		func(s *proxy.Stats) float64 { return float64(s.ProtocolErrors) }),
	counter("dunlin_proxy_split_commands_total", "Commands split over several nodes.",
		func(s *proxy.Stats) float64 { return float64(s.Splits) }),

	gauge("dunlin_proxy_clients", "Client connections.",
		func(s *proxy.Stats) float64 { return float64(s.Clients) }),
	gauge("dunlin_proxy_clients_limit", "Number of client connections beyond which more are refused.",
		func(s *proxy.Stats) float64 { return float64(s.MaxClients) }),
	counter("dunlin_proxy_auth_failures_total", "Wrong passwords of clients.",
		func(s *proxy.Stats) float64 { return float64(s.AuthFailed) }),
	counter("dunlin_proxy_accepted_clients_total", "Client connections accepted.",
		func(s *proxy.Stats) float64 { return float64(s.Accepted) }),
	counter("dunlin_proxy_rejected_clients_total", "Client connections refused because there were too many.",
		func(s *proxy.Stats) float64 { return float64(s.Rejected) }),
	counter("dunlin_proxy_slow_clients_total",
		"Client connections closed because the client did not read its replies.",
		func(s *proxy.Stats) float64 { return float64(s.SlowReaders) }),

	gauge("dunlin_proxy_subscriptions", "Subscriptions of clients to channels, patterns and shard channels.",
		func(s *proxy.Stats) float64 { return float64(s.Subscriptions) }),
	counter("dunlin_proxy_heard_messages_total", "Messages from nodes, for one or more subscribers.",
		func(s *proxy.Stats) float64 { return float64(s.Heard) }),
	counter("dunlin_proxy_pushed_messages_total", "Messages sent to subscribers.",
		func(s *proxy.Stats) float64 { return float64(s.Pushed) }),
	gauge("dunlin_proxy_tracking_clients", "Clients that track keys.",
		func(s *proxy.Stats) float64 { return float64(s.Trackers) }),
	gauge("dunlin_proxy_tracked_copies", "Copies of keys that tracking clients may have, one for each client and key.",
		func(s *proxy.Stats) float64 { return float64(s.Copies) }),
	counter("dunlin_proxy_tracking_overflows_total",
		"Times that the tracking clients of a loop were told to forget everything because keys changed faster than they could be told.",
		func(s *proxy.Stats) float64 { return float64(s.Overflows) }),
	counter("dunlin_proxy_invalidations_total", "Invalidations sent to clients that track.",
		func(s *proxy.Stats) float64 { return float64(s.Invalidations) }),
	counter("dunlin_proxy_lost_messages_total", "Messages that had no room on their way from a node.",
		func(s *proxy.Stats) float64 { return float64(s.LostMessages) }),
	counter("dunlin_proxy_pubsub_gaps_total",
		"Topics for which messages may be missing, because their node or the connection to it was lost.",
		func(s *proxy.Stats) float64 { return float64(s.Gaps) }),
	counter("dunlin_proxy_slow_subscribers_total", "Subscribers closed because they did not read their messages.",
		func(s *proxy.Stats) float64 { return float64(s.SlowSubscribers) }),
	counter("dunlin_proxy_starved_clients_total",
		"Client connections closed because there was no memory for their buffers.",
		func(s *proxy.Stats) float64 { return float64(s.Starved) }),
	counter("dunlin_proxy_early_clients_total",
		"Client connections closed because large replies piled up behind the reply of a slow node.",
		func(s *proxy.Stats) float64 { return float64(s.EarlyClosed) }),
	counter("dunlin_proxy_large_replies_total", "Replies too large for a common pipe, fetched from nodes in pieces.",
		func(s *proxy.Stats) float64 { return float64(s.LargeReplies) }),
	gauge("dunlin_proxy_client_buffer_bytes", "Memory of clients' buffers.",
		func(s *proxy.Stats) float64 { return float64(s.Buffers) }),
	gauge("dunlin_proxy_pipe_buffer_bytes", "Memory of the buffers of pipes to nodes.",
		func(s *proxy.Stats) float64 { return float64(s.PipeBuffers) }),

	gauge("dunlin_proxy_pipes", "Pipes to nodes, open or not.",
		func(s *proxy.Stats) float64 { return float64(s.Pipes) }),
	gauge("dunlin_proxy_open_pipes", "Pipes to nodes that are open.",
		func(s *proxy.Stats) float64 { return float64(s.PipesOpen) }),
	counter("dunlin_proxy_opened_pipes_total", "Pipes to nodes opened.",
		func(s *proxy.Stats) float64 { return float64(s.PipesOpened) }),
	counter("dunlin_proxy_broken_pipes_total", "Pipes to nodes closed by an error or a deadline.",
		func(s *proxy.Stats) float64 { return float64(s.PipesBroken) }),
	counter("dunlin_proxy_pipe_batches_total",
		"Batches written to nodes; requests divided by batches is the mean size of a batch.",
		func(s *proxy.Stats) float64 { return float64(s.PipeFlushes) }),
	counter("dunlin_proxy_pipe_requests_total", "Requests sent to nodes; a split command counts once for each part.",
		func(s *proxy.Stats) float64 { return float64(s.PipeRequests) }),
	counter("dunlin_proxy_pipe_sent_bytes_total", "Bytes sent to nodes.",
		func(s *proxy.Stats) float64 { return float64(s.PipeBytesOut) }),
	gauge("dunlin_proxy_inflight_requests", "Requests sent to nodes and not yet answered.",
		func(s *proxy.Stats) float64 { return float64(s.Inflight) }),

	counter("dunlin_proxy_node_refusals_total",
		"Replies in which a node said that it does not serve the partition, or not yet.",
		func(s *proxy.Stats) float64 { return float64(s.Refusals) }),
	counter("dunlin_proxy_parked_requests_total", "Requests parked until a node can execute them.",
		func(s *proxy.Stats) float64 { return float64(s.Parked) }),
	counter("dunlin_proxy_expired_requests_total",
		"Parked requests that no node executed in time; the client got -TRYAGAIN.",
		func(s *proxy.Stats) float64 { return float64(s.ParkedTooLong) }),
	counter("dunlin_proxy_unparked_requests_total",
		"Requests that could not be parked for lack of memory and were not executed; the client got -TRYAGAIN.",
		func(s *proxy.Stats) float64 { return float64(s.NotParked) }),
	counter("dunlin_proxy_lost_replies_total",
		"Requests that a node may have executed, whose reply was lost, and that must not be sent again; "+
			"the client got an error, usually that the outcome is unknown.",
		func(s *proxy.Stats) float64 { return float64(s.LostReplies) }),
	gauge("dunlin_proxy_blocked_clients", "Clients that wait in a blocking command, in WAIT or because of CLIENT PAUSE.",
		func(s *proxy.Stats) float64 { return float64(s.Blocked) }),
	counter("dunlin_proxy_claiming_commands_total",
		"Blocking commands that name keys of several slots.",
		func(s *proxy.Stats) float64 { return float64(s.Claimed) }),
	counter("dunlin_proxy_returns_total",
		"Commands that put back what was popped for clients that had gone.",
		func(s *proxy.Stats) float64 { return float64(s.Returns) }),
	counter("dunlin_proxy_lost_returns_total",
		"Pops for clients that had gone whose elements could not be put back.",
		func(s *proxy.Stats) float64 { return float64(s.ReturnsLost) }),
	gauge("dunlin_proxy_parked_clients", "Clients that wait for a parked request.",
		func(s *proxy.Stats) float64 { return float64(s.Parking) }),
}

var proxyLabelled = []labelled[proxy.Stats]{
	{"dunlin_proxy_commands_total", "Commands of clients, executed here or forwarded.",
		prometheus.CounterValue, "command",
		func(s *proxy.Stats, emit func(string, float64)) { perCommand(s.Commands[:], emit) }},
	perNode("dunlin_proxy_node_open_pipes", "Open pipes to a node.", func(n *proxy.NodeStats) int { return n.Open }),
	perNode("dunlin_proxy_node_opening_pipes", "Pipes to a node that are being opened.",
		func(n *proxy.NodeStats) int { return n.Opening }),
	perNode("dunlin_proxy_node_failing_pipes", "Pipes to a node that could not be opened and are tried again.",
		func(n *proxy.NodeStats) int { return n.Failing }),
	perNode("dunlin_proxy_node_inflight_requests", "Requests sent to a node and not yet answered.",
		func(n *proxy.NodeStats) int { return n.Inflight }),
}

// perNode returns a gauge for each node of the table.
func perNode(name, help string, get func(*proxy.NodeStats) int) labelled[proxy.Stats] {
	return labelled[proxy.Stats]{name, help, prometheus.GaugeValue, "node",
		func(s *proxy.Stats, emit func(string, float64)) {
			for id, n := range s.Nodes {
				emit(id, float64(get(n)))
			}
		}}
}

var proxyHistograms = []histogram[proxy.Stats]{
	{"dunlin_proxy_batch_requests", "Requests written to a node at once, because of pipelining and many clients.",
		func(s *proxy.Stats) (uint64, float64, map[float64]uint64) {
			return powersOfTwo(s.BatchSizes[:], float64(s.BatchRequests))
		}},
}

var proxyLatencies = []latency[proxy.Stats]{
	{"dunlin_proxy_command_duration_seconds", "Time from sending a command to the nodes to receiving its reply, " +
		"of one command in 61: quantiles and shares are right, the count is the sample's.",
		func(s *proxy.Stats) *[command.NumFamilies]figures.Durations { return &s.Latency }},
}

// perCommand emits the commands that were ever called. The command table bounds the label: commands
// that are not in it were refused and are not counted here.
func perCommand(counts []uint64, emit func(string, float64)) {
	for id, n := range counts {
		if n > 0 {
			emit(command.ByID(command.ID(id)).Name, float64(n))
		}
	}
}
