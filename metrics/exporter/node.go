package exporter

import (
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/node"
)

// Node is the part of a *node.Node that the exporter reads.
type Node interface {
	Stats() (node.Stats, error)
}

// AddNode exports a node's metrics.
func (e *Exporter) AddNode(m Member, n Node) {
	read := func() (*node.Stats, error) {
		stats, err := n.Stats()
		return &stats, err
	}
	e.add(m, newCollector(m.label(), read, table[node.Stats]{
		metrics:    nodeMetrics,
		labelled:   slices.Concat(nodeLabelled, nodeRanked, nodePinned),
		histograms: nodeHistograms,
		latencies:  nodeLatencies,
	}))
}

var nodeMetrics = []metric[node.Stats]{
	counter("dunlin_node_requests_total", "Requests of all kinds, including refused ones and those between members.",
		func(s *node.Stats) float64 { return float64(s.Requests) }),
	counter("dunlin_node_errors_total", "Error replies, except redirections.",
		func(s *node.Stats) float64 { return float64(s.Errors) }),
	counter("dunlin_node_hits_total", "Keys that were looked up and found.",
		func(s *node.Stats) float64 { return float64(s.Hits) }),
	counter("dunlin_node_misses_total", "Keys that were looked up and not found.",
		func(s *node.Stats) float64 { return float64(s.Misses) }),
	counter("dunlin_node_moved_total", "Commands answered with MOVED, because another node owns the partition.",
		func(s *node.Stats) float64 { return float64(s.Moved) }),
	counter("dunlin_node_waits_total", "Commands refused until a take-over ends or the table is confirmed.",
		func(s *node.Stats) float64 { return float64(s.Waits) }),
	counter("dunlin_node_deferred_total", "Commands of proxies that took long, so that others were answered before them.",
		func(s *node.Stats) float64 { return float64(s.Deferred) }),
	counter("dunlin_node_cross_slot_retries_total",
		"Times that commands whose keys lie in several slots asked for a key again or began anew: "+
			"its owner did not serve it, or somebody had changed it.",
		func(s *node.Stats) float64 { return float64(s.Retries) }),
	gauge("dunlin_node_blocked_commands", "Blocking commands that wait here for a value, those of proxies included.",
		func(s *node.Stats) float64 { return float64(s.Blocked) }),
	gauge("dunlin_node_blocked_commands_limit", "Number of such commands beyond which more get an error.",
		func(s *node.Stats) float64 { return float64(s.MaxBlocked) }),

	gauge("dunlin_node_clients", "Client connections.",
		func(s *node.Stats) float64 { return float64(s.Clients) }),
	gauge("dunlin_node_clients_limit", "Number of client connections beyond which more are refused.",
		func(s *node.Stats) float64 { return float64(s.MaxClients) }),
	counter("dunlin_node_auth_failures_total", "Wrong passwords of clients.",
		func(s *node.Stats) float64 { return float64(s.AuthFailed) }),
	gauge("dunlin_node_pipes", "Connections of proxies.",
		func(s *node.Stats) float64 { return float64(s.Pipes) }),
	gauge("dunlin_node_peers", "Connections of other members.",
		func(s *node.Stats) float64 { return float64(s.Peers) }),
	counter("dunlin_node_accepted_connections_total", "Connections accepted.",
		func(s *node.Stats) float64 { return float64(s.Connections) }),
	counter("dunlin_node_rejected_connections_total", "Connections refused because there were too many.",
		func(s *node.Stats) float64 { return float64(s.Rejected) }),
	counter("dunlin_node_slow_connections_total", "Connections closed because the peer did not read its replies.",
		func(s *node.Stats) float64 { return float64(s.SlowReaders) }),
	gauge("dunlin_node_channels", "Channels that have subscribers.",
		func(s *node.Stats) float64 { return float64(s.Channels) }),
	gauge("dunlin_node_shard_channels", "Shard channels that have subscribers.",
		func(s *node.Stats) float64 { return float64(s.ShardChannels) }),
	gauge("dunlin_node_patterns", "Different patterns that have subscribers, at any node.",
		func(s *node.Stats) float64 { return float64(s.Patterns) }),
	counter("dunlin_node_published_messages_total", "Messages published, whether or not anybody listened.",
		func(s *node.Stats) float64 { return float64(s.Published) }),
	counter("dunlin_node_pushed_messages_total", "Messages sent to subscribers, and to proxies for theirs.",
		func(s *node.Stats) float64 { return float64(s.Pushed) }),
	gauge("dunlin_node_tracking_clients", "Clients of this node that track keys.",
		func(s *node.Stats) float64 { return float64(s.Tracking.Clients) }),
	gauge("dunlin_node_tracked_keys", "Keys that are tracked for clients of this node or of a proxy.",
		func(s *node.Stats) float64 { return float64(s.Tracking.Keys) }),
	gauge("dunlin_node_tracking_marks", "Marks on tracked keys, one for each loop or pipe that is told of the next change.",
		func(s *node.Stats) float64 { return float64(s.Tracking.Marks) }),
	gauge("dunlin_node_tracking_marks_limit",
		"Number of marks beyond which a new one takes the place of another, which counts as a change of its key.",
		func(s *node.Stats) float64 { return float64(s.Tracking.MaxMarks) }),
	gauge("dunlin_node_tracking_prefixes",
		"Different prefixes that clients follow in BCAST mode, at this node or through a proxy.",
		func(s *node.Stats) float64 { return float64(s.Tracking.Prefixes) }),
	gauge("dunlin_node_tracking_prefixes_limit", "Number of prefixes beyond which new ones are refused.",
		func(s *node.Stats) float64 { return float64(s.Tracking.MaxPrefixes) }),
	counter("dunlin_node_tracking_overflows_total",
		"Times that clients or a proxy were told to forget everything because keys changed faster than they could be told.",
		func(s *node.Stats) float64 { return float64(s.Tracking.Overflows) }),
	counter("dunlin_node_invalidations_total", "Invalidations sent to clients that track, and to proxies for theirs.",
		func(s *node.Stats) float64 { return float64(s.Invalidations) }),
	gauge("dunlin_node_scripts", "Scripts that the node knows by their SHA-1.",
		func(s *node.Stats) float64 { return float64(s.Scripts.Scripts) }),
	gauge("dunlin_node_scripts_bytes", "Memory that the scripts take that the node knows by their SHA-1.",
		func(s *node.Stats) float64 { return float64(s.Scripts.Bytes) }),
	counter("dunlin_node_evicted_scripts_total", "Scripts forgotten because there were too many.",
		func(s *node.Stats) float64 { return float64(s.Scripts.Evicted) }),
	gauge("dunlin_node_running_scripts_bytes", "Memory that running scripts and functions have taken.",
		func(s *node.Stats) float64 { return float64(s.ScriptMemory) }),
	gauge("dunlin_node_functions", "Functions that can be called.",
		func(s *node.Stats) float64 { return float64(s.Functions) }),
	gauge("dunlin_node_functions_bytes", "Memory that libraries of functions take.",
		func(s *node.Stats) float64 { return float64(s.FunctionBytes) }),
	counter("dunlin_node_lost_messages_total", "Messages that had no room on their way to a loop or a proxy.",
		func(s *node.Stats) float64 { return float64(s.LostMessages) }),
	counter("dunlin_node_pubsub_gaps_total",
		"Topics for which the node's own clients may miss messages, because a node or the connection to it was lost.",
		func(s *node.Stats) float64 { return float64(s.Gaps) }),
	counter("dunlin_node_relay_lost_messages_total", "Messages for the node's own clients that had no room on their way.",
		func(s *node.Stats) float64 { return float64(s.RelayLost) }),
	counter("dunlin_node_lost_keyspace_events_total", "Keyspace notifications that there was no memory for.",
		func(s *node.Stats) float64 { return float64(s.LostEvents) }),
	counter("dunlin_node_slow_subscribers_total", "Subscribers closed because they did not read their messages.",
		func(s *node.Stats) float64 { return float64(s.SlowSubscribers) }),
	counter("dunlin_node_starved_connections_total",
		"Connections closed because there was no memory for their buffers.",
		func(s *node.Stats) float64 { return float64(s.Starved) }),
	counter("dunlin_node_received_bytes_total", "Bytes of requests.",
		func(s *node.Stats) float64 { return float64(s.BytesIn) }),
	counter("dunlin_node_sent_bytes_total", "Bytes of replies.",
		func(s *node.Stats) float64 { return float64(s.BytesOut) }),
	gauge("dunlin_node_largest_input_buffer_bytes", "Largest amount of input waiting in one connection.",
		func(s *node.Stats) float64 { return float64(s.InBuffer) }),
	gauge("dunlin_node_largest_output_buffer_bytes", "Largest amount of output waiting in one connection.",
		func(s *node.Stats) float64 { return float64(s.OutBuffer) }),

	gauge("dunlin_node_partitions_serving", "Partitions that the node serves.",
		func(s *node.Stats) float64 { return float64(s.Serving) }),
	gauge("dunlin_node_partitions_waiting", "Partitions that the node owns and has not taken over yet.",
		func(s *node.Stats) float64 { return float64(s.Gained) }),
	gauge("dunlin_node_fenced", "1 while the node serves nothing, until another member has confirmed its table.",
		func(s *node.Stats) float64 { return oneIf(s.Fenced) }),

	gauge("dunlin_node_stream_receivers", "Other nodes to which this node streams its partitions.",
		func(s *node.Stats) float64 { return float64(s.Streams.Receivers) }),
	gauge("dunlin_node_stream_waiting_partitions",
		"Partitions, counted once for each receiver, that are not completely sent yet.",
		func(s *node.Stats) float64 { return float64(s.Streams.Waiting) }),
	gauge("dunlin_node_stream_lag_bytes", "Bytes of changes that receivers have not acknowledged.",
		func(s *node.Stats) float64 { return float64(s.Streams.LagBytes) }),
	gauge("dunlin_node_stream_lag_seconds", "Age of the oldest batch that a receiver has not acknowledged.",
		func(s *node.Stats) float64 { return s.Streams.Lag.Seconds() }),
	counter("dunlin_node_stream_moved_bytes_total", "Bytes of snapshots of partitions that were sent.",
		func(s *node.Stats) float64 { return float64(s.Streams.Moved) }),
	counter("dunlin_node_stream_resyncs_total",
		"Partitions that had to be sent again, because changes were lost or refused.",
		func(s *node.Stats) float64 { return float64(s.Streams.Resyncs) }),

	gauge("dunlin_node_keys", "Keys of the partitions that the node serves.",
		func(s *node.Stats) float64 { return float64(s.Keys) }),
	gauge("dunlin_node_copied_keys", "Keys of other nodes' partitions of which the node has copies.",
		func(s *node.Stats) float64 { return float64(max(0, s.Engine.Keys-s.Keys)) }),
	gauge("dunlin_node_expiring_keys", "Keys that have an expiry, copies included.",
		func(s *node.Stats) float64 { return float64(s.Engine.Volatile) }),
	gauge("dunlin_node_memory_used_bytes",
		"Memory in use by keys, values, index, bookkeeping, connections and the process itself.",
		func(s *node.Stats) float64 { return float64(s.Engine.Used) }),
	gauge("dunlin_node_memory_peak_bytes", "Most memory in use since the start.",
		func(s *node.Stats) float64 { return float64(s.PeakBytes) }),
	gauge("dunlin_node_memory_limit_bytes", "Limit of the memory in use.",
		func(s *node.Stats) float64 { return float64(s.Engine.Max) }),
	counter("dunlin_node_evicted_keys_total", "Keys evicted to stay within the limit.",
		func(s *node.Stats) float64 { return float64(s.Engine.Evicted) }),
	counter("dunlin_node_evicted_copies_total",
		"Keys of copies evicted to stay within the limit; copies are evicted first.",
		func(s *node.Stats) float64 { return float64(s.Engine.EvictedCopies) }),
	gauge("dunlin_node_eviction_age_seconds",
		"Average time that a key stays at the rate of evictions of the last minute: "+
			"keys divided by evictions per second. +Inf without evictions.",
		func(s *node.Stats) float64 { return s.EvictionAge }),
	counter("dunlin_node_expired_keys_total", "Keys removed because they expired.",
		func(s *node.Stats) float64 { return float64(s.Engine.Expired) }),
	counter("dunlin_node_holds_total",
		"Transactions that took longer than a lock, and so held their partition against other commands.",
		func(s *node.Stats) float64 { return float64(s.Engine.Holds) }),
}

var nodeLabelled = []labelled[node.Stats]{
	{"dunlin_node_commands_total", "Commands executed or redirected.", prometheus.CounterValue, "command",
		func(s *node.Stats, emit func(string, float64)) { perCommand(s.Commands[:], emit) }},
	{"dunlin_node_memory_bytes", "Memory in use by purpose; the classes add up to dunlin_node_memory_used_bytes.",
		prometheus.GaugeValue, "class",
		func(s *node.Stats, emit func(string, float64)) {
			s.MemoryClasses(func(class string, bytes int64) { emit(class, float64(bytes)) })
		}},
}

// Hot and big keys are labelled by rank only: names are unbounded and do not belong in a metrics
// store. HOTKEYS names the keys.
var nodeRanked = []labelled[node.Stats]{
	ranked("dunlin_node_hot_key_uses_per_second", "Estimated uses per second of the most used keys, "+
		"from a sample of the last minute; HOTKEYS GET names them.",
		func(s *node.Stats) []figures.KeyFigure { return s.HotKeys }),
	ranked("dunlin_node_big_key_bytes", "Bytes of the largest keys with their values; HOTKEYS BIG names them.",
		func(s *node.Stats) []figures.KeyFigure { return s.BigKeys }),
}

// nodePinned are about the pinned databases that the node serves.
var nodePinned = []labelled[node.Stats]{
	ofPinned("dunlin_node_pinned_database_keys", "Keys of a pinned database that this node serves.",
		func(p *node.PinnedStats) float64 { return float64(p.Keys) }),
	ofPinned("dunlin_node_pinned_database_bytes", "Memory that the keys of a pinned database take with their values, by the last walk over all keys.",
		func(p *node.PinnedStats) float64 { return float64(p.Bytes) }),
	ofPinned("dunlin_node_pinned_database_share", "Share of this node's commands that are on keys of a pinned database, 0 to 1, from a sample of the last minute.",
		func(p *node.PinnedStats) float64 { return p.Share }),
}

func ofPinned(name, help string, get func(*node.PinnedStats) float64) labelled[node.Stats] {
	return labelled[node.Stats]{name, help, prometheus.GaugeValue, "database",
		func(s *node.Stats, emit func(string, float64)) {
			for i := range s.Pinned {
				emit(strconv.Itoa(int(s.Pinned[i].Database)), get(&s.Pinned[i]))
			}
		}}
}

func ranked(name, help string, get func(*node.Stats) []figures.KeyFigure) labelled[node.Stats] {
	return labelled[node.Stats]{name, help, prometheus.GaugeValue, "rank",
		func(s *node.Stats, emit func(string, float64)) {
			for i, k := range get(s) {
				emit(strconv.Itoa(i+1), float64(k.N))
			}
		}}
}

var nodeHistograms = []histogram[node.Stats]{
	{"dunlin_node_batch_requests", "Requests that arrived together on one connection, because of pipelining and proxies.",
		func(s *node.Stats) (uint64, float64, map[float64]uint64) {
			return powersOfTwo(s.BatchSizes[:], float64(s.Requests))
		}},
}

var nodeLatencies = []latency[node.Stats]{
	{"dunlin_node_command_duration_seconds", "Time to execute a command, without the wait before it. " +
		"The family heavy has all commands, the others a sample, the commands of one input in 251: " +
		"quantiles and shares are right, the count is the sample's.",
		func(s *node.Stats) *[command.NumFamilies]figures.Durations { return &s.Latency }},
}

// powersOfTwo returns the histogram of counts of 0, 1, 2-3, 4-7 and so on; the last count has no
// upper bound.
func powersOfTwo(counts []uint64, sum float64) (uint64, float64, map[float64]uint64) {
	upTo := make(map[float64]uint64, len(counts)-1)
	total := uint64(0)
	for i, n := range counts {
		total += n
		if i < len(counts)-1 {
			upTo[float64(uint64(1)<<i-1)] = total
		}
	}
	return total, sum, upTo
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
