package tests

import "strings"

// board is a dashboard of deploy/grafana, which is generated from the tables here. After a
// change:
//
//	cd deploy/tests && go test -run TestDashboardsAreGenerated -update
type board struct {
	file, title string
	graphs      []graph
}

// graph is a panel: lines in half of the width, unless its look differs. Each query comes with the
// legend of its lines.
type graph struct {
	title, unit string
	queries     [][2]string
	look        look
}

// look says how a panel differs from a plain one.
type look struct {
	kind  string  // stat: the last value in large figures; row: a headline
	width int     // in 24ths
	help  string  // shown behind the panel's title
	stack bool    // stack the lines, because their sum has a meaning
	limit string  // legend of the line that is not stacked
	red   float64 // values from here on are red; 0: none
}

func headline(title string) graph { return graph{title: title, look: look{kind: "row", width: 24}} }

func figure(width int, title, unit, query, help string) graph {
	return graph{title, unit, [][2]string{{query, ""}}, look{kind: "stat", width: width, help: help}}
}

func rate(metric string) string { return "rate(" + metric + "[$__rate_interval])" }

// total is one line for all members together.
func total(metric, legend string) [2]string { return [2]string{"sum(" + rate(metric) + ")", legend} }

// perMember is a line for each member; what distinguishes it from other lines in the legend.
func perMember(metric, what string) [2]string {
	return [2]string{"sum by (member) (" + rate(metric) + ")", strings.TrimSpace("{{member}} " + what)}
}

// level is a line for each member or, with a label, for each member and value of the label.
func level(metric, label string) [2]string {
	if label == "" {
		return [2]string{metric, "{{member}}"}
	}
	return [2]string{metric, "{{member}} {{" + label + "}}"}
}

// quantiles are lines for each family of commands. A Prometheus that scrapes native histograms
// has no classic buckets of them.
func quantiles(metric string) [][2]string {
	q := func(of string) string {
		return "histogram_quantile(" + of + ", sum by (le, family) (" + rate(metric+"_bucket") + "))" +
			" or histogram_quantile(" + of + ", sum by (family) (" + rate(metric) + "))"
	}
	return [][2]string{{q("0.5"), "p50 {{family}}"}, {q("0.99"), "p99 {{family}}"}}
}

func average(histogram string) [][2]string {
	return [][2]string{{"sum by (member) (" + rate(histogram+"_sum") + ") / sum by (member) (" + rate(histogram+"_count") + ")", "{{member}}"}}
}

// hitRatio is the ratio of hits to lookups; sum is the aggregation of both.
func hitRatio(sum string) string {
	hits, misses := sum+"("+rate("dunlin_node_hits_total")+")", sum+"("+rate("dunlin_node_misses_total")+")"
	return hits + " / (" + hits + " + " + misses + ")"
}

// Queries of more than one board.
var (
	namedCommands = [][2]string{{"topk(10, sum by (command) (" + rate("dunlin_proxy_commands_total") + "))", "{{command}}"}}
	memberHits    = [][2]string{{hitRatio("sum by (member) "), "{{member}}"}}
	memoryShare   = [][2]string{{"dunlin_node_memory_used_bytes / dunlin_node_memory_limit_bytes", "{{member}}"}}
	memoryClasses = [][2]string{{"sum by (class) (dunlin_node_memory_bytes)", "{{class}}"}, {"sum(dunlin_node_memory_limit_bytes)", "limit"}}
	keysGone      = [][2]string{perMember("dunlin_node_evicted_keys_total", "evicted"), perMember("dunlin_node_expired_keys_total", "expired")}
	owned         = [][2]string{{"dunlin_partitions_owned > 0", "{{member}}"}}
	waiting       = [][2]string{level("dunlin_proxy_blocked_clients", "")}
	subscriptions = [][2]string{level("dunlin_proxy_subscriptions", "")}
	lostMessages  = [][2]string{
		perMember("dunlin_node_lost_messages_total", "lost"), perMember("dunlin_node_lost_keyspace_events_total", "lost notifications"),
		perMember("dunlin_node_relay_lost_messages_total", "lost by its relay"), perMember("dunlin_node_pubsub_gaps_total", "channels with gaps"),
	}
	messages = [][2]string{
		total("dunlin_proxy_heard_messages_total", "from nodes"), total("dunlin_proxy_pushed_messages_total", "to subscribers"),
		total("dunlin_proxy_lost_messages_total", "lost"), total("dunlin_proxy_pubsub_gaps_total", "channels with gaps"),
		total("dunlin_proxy_slow_subscribers_total", "slow subscribers closed"),
	}
	invalidations = [][2]string{
		total("dunlin_proxy_invalidations_total", "to clients"), total("dunlin_proxy_tracking_overflows_total", "overflows at proxies"),
		total("dunlin_node_tracking_overflows_total", "overflows at nodes"),
	}
	trackers  = [][2]string{level("dunlin_proxy_tracking_clients", "")}
	tracked   = [][2]string{{"dunlin_node_tracked_keys", "{{member}} keys"}, {"dunlin_node_tracking_marks", "{{member}} marks"}}
	loopsBusy = [][2]string{{rate("dunlin_loop_busy_seconds_total"), "{{instance}} loop {{loop}}"}}
	batches   = average("dunlin_proxy_batch_requests")
)

var boards = []board{
	{"dunlin.json", "Dunlin", overview},
	{"node.json", "Dunlin: nodes", []graph{
		{"Time to execute", "s", quantiles("dunlin_node_command_duration_seconds"), look{}},
		{"Commands", "ops", [][2]string{perMember("dunlin_node_commands_total", "")}, look{}},
		{"Requests in one input", "short", average("dunlin_node_batch_requests"), look{}},
		{"Hit ratio", "percentunit", memberHits, look{}},
		{"Eviction age", "s", [][2]string{level("dunlin_node_eviction_age_seconds", "")}, look{}},
		{"Evicted and expired keys", "ops", append(keysGone, perMember("dunlin_node_evicted_copies_total", "evicted copies")), look{}},
		{"Memory by class", "bytes", memoryClasses, look{stack: true, limit: "limit"}},
		{"Memory, share of the limit", "percentunit", memoryShare, look{}},
		{"Hottest keys, uses per second", "ops", [][2]string{{"topk(5, dunlin_node_hot_key_uses_per_second)", "{{member}} {{rank}}"}}, look{}},
		{"Largest keys", "bytes", [][2]string{{"topk(5, dunlin_node_big_key_bytes)", "{{member}} {{rank}}"}}, look{}},
		{"Pinned databases, share of the node's memory limit", "percentunit", [][2]string{{"dunlin_node_pinned_database_bytes" +
			" / on (namespace, job, instance, member) group_left () dunlin_node_memory_limit_bytes", "{{member}} {{database}}"}}, look{}},
		{"Pinned databases, share of the node's commands", "percentunit",
			[][2]string{level("dunlin_node_pinned_database_share", "database")}, look{}},
		{"Connections, share of the limit", "percentunit", [][2]string{{"dunlin_node_clients / dunlin_node_clients_limit", "{{member}}"}}, look{}},
		{"Error replies", "ops", [][2]string{perMember("dunlin_node_errors_total", "")}, look{}},
		{"Blocking commands that wait", "short", [][2]string{level("dunlin_node_blocked_commands", "")}, look{}},
		{"Messages", "ops", append(lostMessages, perMember("dunlin_node_published_messages_total", "published"),
			perMember("dunlin_node_pushed_messages_total", "sent")), look{}},
		{"Tracked keys, and marks on them", "short", tracked, look{}},
		{"Invalidations", "ops", [][2]string{perMember("dunlin_node_invalidations_total", ""),
			perMember("dunlin_node_tracking_overflows_total", "overflows")}, look{}},
	}},
	{"proxy.json", "Dunlin: proxies", []graph{
		{"Time from command to reply", "s", quantiles("dunlin_proxy_command_duration_seconds"), look{}},
		{"Commands", "ops", [][2]string{perMember("dunlin_proxy_commands_total", "")}, look{}},
		{"Commands by name", "ops", namedCommands, look{}},
		{"Requests in one batch", "short", batches, look{}},
		{"Clients, share of the limit", "percentunit", [][2]string{{"dunlin_proxy_clients / dunlin_proxy_clients_limit", "{{member}}"}}, look{}},
		{"Open pipes by node", "short", [][2]string{level("dunlin_proxy_node_open_pipes", "node")}, look{}},
		{"Pipes that cannot be opened, by node", "short", [][2]string{level("dunlin_proxy_node_failing_pipes", "node")}, look{}},
		{"In flight by node", "short", [][2]string{level("dunlin_proxy_node_inflight_requests", "node")}, look{}},
		{"Clients refused or closed", "ops", [][2]string{
			total("dunlin_proxy_rejected_clients_total", "too many"),
			total("dunlin_proxy_slow_clients_total", "slow"),
			total("dunlin_proxy_starved_clients_total", "no memory"),
			total("dunlin_proxy_auth_failures_total", "wrong passwords")}, look{}},
		{"Parked requests and lost replies", "ops", [][2]string{
			total("dunlin_proxy_parked_requests_total", "parked"),
			total("dunlin_proxy_expired_requests_total", "parked too long"),
			total("dunlin_proxy_lost_replies_total", "lost replies"),
			total("dunlin_proxy_node_refusals_total", "refused by nodes")}, look{}},
		{"Clients that wait", "short", waiting, look{stack: true}},
		{"Blocking commands over several nodes, and elements put back", "ops", [][2]string{
			total("dunlin_proxy_claiming_commands_total", "keys of several slots"),
			total("dunlin_proxy_returns_total", "put back"),
			total("dunlin_proxy_lost_returns_total", "lost")}, look{}},
		{"Subscriptions", "short", subscriptions, look{stack: true}},
		{"Messages", "ops", messages, look{}},
		{"Clients that track, and their copies", "short",
			[][2]string{{"dunlin_proxy_tracking_clients", "{{member}} clients"}, {"dunlin_proxy_tracked_copies", "{{member}} copies"}}, look{}},
		{"Invalidations", "ops", invalidations, look{}},
	}},
	{"topology.json", "Dunlin: topology", []graph{
		{"Epoch by member", "short", [][2]string{level("dunlin_table_epoch", "")}, look{}},
		{"Members by role, as each sees them", "short", [][2]string{level("dunlin_members", "role")}, look{}},
		{"Partitions owned", "short", owned, look{stack: true}},
		{"Partitions waiting for their take-over", "short", [][2]string{level("dunlin_node_partitions_waiting", "")}, look{}},
		{"Partitions being sent to a follower or a new owner", "short", [][2]string{
			level("dunlin_node_stream_waiting_partitions", ""), {"max(dunlin_partitions_moving)", "moving, by the table"}}, look{}},
		{"Copies behind their owner", "s", [][2]string{level("dunlin_node_stream_lag_seconds", "")}, look{}},
		{"Changes that copies have not acknowledged", "bytes", [][2]string{level("dunlin_node_stream_lag_bytes", "")}, look{}},
		{"Snapshots sent", "Bps", [][2]string{perMember("dunlin_node_stream_moved_bytes_total", "")}, look{}},
		{"Fenced nodes", "short", [][2]string{{"sum(dunlin_node_fenced)", "fenced"}}, look{}},
		{"Tables issued", "ops", [][2]string{perMember("dunlin_tables_issued_total", "")}, look{}},
		{"Redirections", "ops", [][2]string{perMember("dunlin_node_moved_total", "moved"), perMember("dunlin_node_waits_total", "waits")}, look{}},
		{"Gossip health, 0 is good", "short", [][2]string{level("dunlin_gossip_health_score", "")}, look{}},
		{"Loops busy", "percentunit", loopsBusy, look{}},
		{"Longest stall of a loop", "s", [][2]string{{"dunlin_loop_longest_stall_seconds", "{{instance}} loop {{loop}}"}}, look{}},
	}},
}

var overview = []graph{
	headline("Cluster"),
	figure(3, "Nodes", "short", `min(dunlin_members{role="node"})`, "Alive nodes, as seen by the member that sees the fewest."),
	figure(3, "Proxies", "short", `min(dunlin_members{role="proxy"})`, "Alive proxies, as seen by the member that sees the fewest."),
	figure(3, "Epoch", "short", "max(dunlin_table_epoch)", "Epoch of the newest table."),
	{"Epoch differs", "short",
		[][2]string{{"max(max by (namespace, job) (dunlin_table_epoch) - min by (namespace, job) (dunlin_table_epoch))", ""}},
		look{kind: "stat", width: 3, red: 1, help: "Epochs between the newest and the oldest table in use. " +
			"More than 0 for longer than a few seconds: a member is cut off."}},
	figure(4, "Commands", "ops", "sum("+rate("dunlin_proxy_commands_total")+")", "Commands that clients send to the proxies."),
	figure(4, "Hit ratio", "percentunit", hitRatio("sum"), "Share of key lookups that find the key, over all nodes."),
	figure(4, "Keys", "short", "sum(dunlin_node_keys)", "On all nodes, without copies."),

	headline("Proxies"),
	{"Commands by proxy", "ops", [][2]string{perMember("dunlin_proxy_commands_total", "")}, look{width: 8, stack: true}},
	{"Commands by name", "ops", namedCommands, look{width: 8, stack: true}},
	{"Clients", "short", [][2]string{level("dunlin_proxy_clients", "")}, look{width: 8, stack: true}},
	{"Requests in one batch", "short", batches, look{width: 8, help: "Commands for each write to a node. The more commands share a write, the cheaper forwarding is."}},
	{"In flight", "short", [][2]string{level("dunlin_proxy_inflight_requests", "")}, look{width: 8, help: "Requests that were sent to nodes and are not yet answered."}},
	{"Trouble", "ops", [][2]string{
		total("dunlin_proxy_parked_requests_total", "parked"),
		total("dunlin_proxy_expired_requests_total", "parked too long"),
		total("dunlin_proxy_lost_replies_total", "lost replies"),
		total("dunlin_proxy_broken_pipes_total", "broken pipes"),
		total("dunlin_proxy_protocol_errors_total", "protocol errors"),
		total("dunlin_proxy_slow_clients_total", "slow clients closed"),
		total("dunlin_proxy_early_clients_total", "clients closed for early replies"),
		total("dunlin_proxy_rejected_clients_total", "clients over the limit"),
		total("dunlin_proxy_starved_clients_total", "no memory"),
	}, look{width: 8, help: "Parked requests, lost replies and broken pipes are normal for a short time when nodes change. Investigate everything else, and whatever lasts."}},

	headline("Nodes"),
	{"Commands by node", "ops", [][2]string{perMember("dunlin_node_commands_total", "")}, look{width: 8, stack: true}},
	{"Hit ratio by node", "percentunit", memberHits, look{width: 8}},
	{"Keys by node", "short", [][2]string{level("dunlin_node_keys", "")}, look{width: 8, stack: true}},
	{"Memory, share of the limit", "percentunit", memoryShare, look{width: 8,
		help: "A full cache is normal. If it evicts keys that clients still read, the hit ratio falls."}},
	{"Evicted and expired keys", "ops", keysGone, look{width: 8}},
	{"Partitions owned", "short", owned, look{width: 8, stack: true, help: "Of 4096. Changes when nodes join or leave."}},
	{"Memory by class", "bytes", memoryClasses, look{width: 16, stack: true, limit: "limit",
		help: "What the memory limit is used for, over all nodes. Investigate growing buffers, and slack that stays large while keys are evicted."}},
	{"Connections closed", "ops", [][2]string{
		perMember("dunlin_node_starved_connections_total", "memory"), perMember("dunlin_node_slow_connections_total", "slow"),
	}, look{width: 8, help: "Connections closed because there was no memory for their buffers, or because the client did not read its replies."}},

	headline("Waiting and pub/sub"),
	{"Clients that wait", "short", waiting, look{width: 8, stack: true, help: "In a blocking command, in WAIT, or because of CLIENT PAUSE."}},
	{"Subscriptions", "short", subscriptions, look{width: 8, stack: true}},
	{"Messages", "ops", messages, look{width: 8,
		help: "Gaps are normal when a node dies. Lost messages mean that a proxy or a client reads too slowly."}},

	headline("Client-side caching"),
	{"Clients that track", "short", trackers, look{width: 8, stack: true}},
	{"Tracked keys, and marks on them", "short", tracked, look{width: 8,
		help: "A key has a mark for each loop or pipe that is told of its next change."}},
	{"Invalidations", "ops", invalidations, look{width: 8,
		help: "At an overflow clients forget everything, because keys change faster than they can be told."}},

	headline("Processes"),
	{"Loops busy", "percentunit", loopsBusy, look{width: 8, help: "Share of the time in which an event loop had work. Near 1, add a node or a proxy."}},
	{"CPU", "short", [][2]string{{rate("process_cpu_seconds_total"), "{{instance}}"}}, look{width: 8}},
	{"Resident memory and Go heap", "bytes", [][2]string{
		{"process_resident_memory_bytes", "{{instance}} resident"}, {"go_memstats_heap_inuse_bytes", "{{instance}} Go heap"}}, look{width: 8}},
}
