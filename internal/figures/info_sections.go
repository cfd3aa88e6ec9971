package figures

import (
	"os"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/command"
)

// The sections list their fields in Redis's order. A field that has no meaning here is left out,
// unless a client, an exporter or a common dashboard reads it: then it holds what an idle Redis
// shows.

func (p *Process) infoServer(t *text, _ *Info) {
	now := p.Now()
	uptime := max(0, int64(now.Sub(p.Start).Seconds()))
	t.line("redis_version", command.RedisVersion)
	t.line("redis_build_id", "0")
	t.line("dunlin_version", p.Version)
	t.line("dunlin_role", p.Role)
	t.line("redis_mode", "standalone") // as in the reply to HELLO
	t.line("os", p.osName)
	t.number("arch_bits", strconv.IntSize)
	t.line("monotonic_clock", "POSIX clock_gettime")
	t.line("multiplexing_api", multiplexing)
	t.number("process_id", int64(os.Getpid()))
	t.line("process_supervised", "no")
	t.line("run_id", p.RunID)
	t.number("tcp_port", int64(p.Port))
	t.number("server_time_usec", now.UnixMicro())
	t.number("uptime_in_seconds", uptime)
	t.number("uptime_in_days", uptime/86400)
	t.line("config_file", "")
	t.line("availability_zone", "") // Valkey's: clients prefer replicas in their own zone, and there are none
}

func (p *Process) infoClients(t *text, in *Info) {
	t.number("connected_clients", in.Clients)
	t.zeros("cluster_connections")
	t.number("maxclients", int64(p.MaxClients()))
	t.number("client_recent_max_input_buffer", in.MaxInput)
	t.number("client_recent_max_output_buffer", in.MaxOutput)
	t.number("blocked_clients", p.Blocked())
	t.number("tracking_clients", in.Trackers)
	t.zeros("clients_in_timeout_table")
}

func (p *Process) infoMemory(t *text, in *Info) {
	t.bytes("used_memory", in.UsedMemory)
	t.bytes("used_memory_rss", in.RSS)
	t.bytes("used_memory_peak", in.PeakMemory)
	t.ratio("used_memory_peak_perc", in.UsedMemory, in.PeakMemory, true)
	t.number("used_memory_overhead", in.Overhead)
	t.number("used_memory_startup", in.Startup)
	t.number("used_memory_dataset", in.Dataset)
	t.ratio("used_memory_dataset_perc", in.Dataset, in.UsedMemory-in.Startup, true)
	t.number("allocator_allocated", in.UsedMemory)
	t.number("allocator_active", in.UsedMemory)
	t.number("allocator_resident", in.RSS)
	t.bytes("total_system_memory", p.totalMemory)
	p.infoScripts(t, in)
	t.bytes("maxmemory", in.MaxMemory)
	t.line("maxmemory_policy", p.Policy(in.Policy, in.PolicySquare, int64(in.Nodes)))
	t.line("allocator_frag_ratio", "1.00") // UsedMemory is what is taken from the system already
	t.zeros("allocator_frag_bytes")
	t.ratio("mem_fragmentation_ratio", in.Fragmented(), in.UsedMemory, false)
	t.number("mem_fragmentation_bytes", in.Fragmented()-in.UsedMemory)
	t.zeros("mem_not_counted_for_evict", "mem_replication_backlog", "mem_clients_slaves")
	t.number("mem_clients_normal", in.ClientBytes)
	t.zeros("mem_aof_buffer")
	t.line("mem_allocator", "dunlin")
	t.zeros("active_defrag_running", "lazyfree_pending_objects")
}

// infoScripts: the machines of scripts execute functions, too.
func (p *Process) infoScripts(t *text, in *Info) {
	t.bytes("used_memory_lua", in.ScriptMemory)
	t.number("used_memory_vm_eval", in.ScriptMemory)
	t.number("used_memory_scripts_eval", in.ScriptBytes)
	t.number("number_of_cached_scripts", in.Scripts)
	t.number("number_of_functions", in.Functions)
	t.number("number_of_libraries", in.Libraries)
	t.zeros("used_memory_vm_functions")
	t.bytes("used_memory_vm_total", in.ScriptMemory)
	t.number("used_memory_functions", in.FunctionBytes)
	t.bytes("used_memory_scripts", in.ScriptBytes+in.FunctionBytes)
}

// infoPersistence: a client such as ioredis waits until loading is 0.
func (p *Process) infoPersistence(t *text, _ *Info) {
	t.zeros("loading", "async_loading", "rdb_changes_since_last_save", "rdb_bgsave_in_progress")
	t.number("rdb_last_save_time", p.Start.Unix())
	t.line("rdb_last_bgsave_status", "ok")
	t.number("rdb_last_bgsave_time_sec", -1)
	t.number("rdb_current_bgsave_time_sec", -1)
	t.zeros("rdb_saves", "aof_enabled", "aof_rewrite_in_progress", "aof_rewrite_scheduled")
	t.number("aof_last_rewrite_time_sec", -1)
	t.number("aof_current_rewrite_time_sec", -1)
	t.line("aof_last_bgrewrite_status", "ok")
	t.line("aof_last_write_status", "ok")
}

func (p *Process) infoStats(t *text, in *Info) {
	t.number("total_connections_received", in.Connections)
	t.number("total_commands_processed", in.Commands)
	t.number("instantaneous_ops_per_sec", in.OpsPerSec)
	t.number("total_net_input_bytes", in.NetIn)
	t.number("total_net_output_bytes", in.NetOut)
	t.line("instantaneous_input_kbps", "0.00")
	t.line("instantaneous_output_kbps", "0.00")
	t.number("rejected_connections", in.Rejected)
	t.zeros("sync_full", "sync_partial_ok", "sync_partial_err")
	t.number("expired_keys", in.Expired)
	t.line("expired_stale_perc", "0.00")
	t.zeros("expired_time_cap_reached_count")
	t.number("evicted_keys", in.Evicted)
	t.number("evicted_clients", in.SlowReaders)
	t.number("keyspace_hits", in.Hits)
	t.number("keyspace_misses", in.Misses)
	t.number("pubsub_channels", in.Channels)
	t.number("pubsub_patterns", in.Patterns)
	t.zeros("latest_fork_usec", "total_forks",
		"migrate_cached_sockets", "slave_expires_tracked_keys", "active_defrag_hits",
		"active_defrag_misses", "active_defrag_key_hits", "active_defrag_key_misses")
	t.number("tracking_total_keys", in.TrackedKeys)
	t.number("tracking_total_items", in.TrackedItems)
	t.number("tracking_total_prefixes", in.TrackedPrefixes)
	t.number("total_error_replies", in.Errors)
	t.number("total_reads_processed", in.Reads)
	t.number("total_writes_processed", in.Writes)
}

// infoReplication: every member answers for itself, so it is a master without replicas. Dunlin's
// followers are not replicas that a client could use.
func (p *Process) infoReplication(t *text, _ *Info) {
	t.line("role", "master")
	t.zeros("connected_slaves")
	t.line("master_failover_state", "no-failover")
	t.line("master_replid", p.RunID)
	t.line("master_replid2", "0000000000000000000000000000000000000000")
	t.zeros("master_repl_offset")
	t.number("second_repl_offset", -1)
	t.zeros("repl_backlog_active", "repl_backlog_size", "repl_backlog_first_byte_offset", "repl_backlog_histlen")
}

func (p *Process) infoCPU(t *text, in *Info) {
	t.micros("used_cpu_sys", in.CPUSysMicros)
	t.micros("used_cpu_user", in.CPUUserMicros)
	t.micros("used_cpu_sys_children", 0)
	t.micros("used_cpu_user_children", 0)
}

// infoCluster says that there is no cluster, so that a client does not treat a proxy as one node of
// many. Clients that send CLUSTER commands anyway get answers.
func (p *Process) infoCluster(t *text, in *Info) {
	t.zeros("cluster_enabled")
	t.number("dunlin_nodes", int64(in.Nodes))
}

// infoKeyspace leaves empty databases out, as Redis does.
func (p *Process) infoKeyspace(t *text, in *Info) {
	for i := range MaxDatabases {
		if of := in.OfDatabase(i); of.Keys > 0 {
			t.line("db"+strconv.Itoa(i),
				"keys="+strconv.FormatInt(of.Keys, 10)+",expires="+strconv.FormatInt(of.Expires, 10)+",avg_ttl=0")
		}
	}
}

// infoNothing is a section that has a heading and no lines.
func infoNothing(*Process, *text, *Info) {}
