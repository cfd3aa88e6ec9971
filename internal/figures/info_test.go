package figures

import (
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// testProcess is a node without clients.
func testProcess() *Process {
	return NewProcess(Identity{
		Version: "test", Role: "node", Port: 6379, Start: time.Now(),
		MaxClients: func() int { return 10000 }, Blocked: func() int64 { return 0 },
		Policy: func(int64, int64, int64) string { return "noeviction" },
	})
}

// TestInfoForItsReaders checks the lines that clients, exporters and dashboards read, by reader.
func TestInfoForItsReaders(t *testing.T) {
	in := Info{Nodes: 3, Counters: Counters{
		Keys: 10, Expires: 4, UsedMemory: 1 << 20, RSS: 3 << 19, PeakMemory: 2 << 20, MaxMemory: 1 << 30,
		Hits: 5, Misses: 6, Evicted: 7, Expired: 8, Commands: 9, OpsPerSec: 11, Clients: 12, Connections: 13,
		Rejected: 14, NetIn: 15, NetOut: 16, CPUSysMicros: 1_500_001, CPUUserMicros: 2,
		Trackers: 17, TrackedKeys: 18, TrackedItems: 19, TrackedPrefixes: 20,
		Databases: [MaxDatabases]DatabaseKeys{1: {Keys: 2}, 15: {Keys: 3, Expires: 1}},
	}}
	start := time.UnixMilli(1_700_000_000_000)
	p := NewProcess(Identity{
		Start: start, Now: func() time.Time { return start.Add(25 * time.Hour) },
		Port: 6380, RunID: strings.Repeat("ab", 20), Version: "v1", Role: "node",
		MaxClients: func() int { return 7 }, Blocked: func() int64 { return 3 },
		Policy: func(int64, int64, int64) string { return "noeviction" },
	})
	text := string(p.AppendInfo(nil, resp.RESP2, nil, in))
	f := func(reader string, lines ...string) {
		t.Helper()
		for _, line := range lines {
			if !strings.Contains(text, "\r\n"+line+"\r\n") {
				t.Errorf("%s looks for %q", reader, line)
			}
		}
	}
	f("ioredis", "loading:0")
	f("BullMQ", "redis_version:7.4.0", "maxmemory_policy:noeviction")
	f("GLIDE", "availability_zone:")
	f("Spring", "redis_version:7.4.0", "redis_mode:standalone", "role:master")
	f("redis-cli", "redis_mode:standalone", "cluster_enabled:0", "tcp_port:6380",
		"db0:keys=5,expires=3,avg_ttl=0", "db1:keys=2,expires=0,avg_ttl=0", "db15:keys=3,expires=1,avg_ttl=0",
		"connected_clients:12", "used_memory_human:1.00M",
		"total_commands_processed:9", "instantaneous_ops_per_sec:11", "blocked_clients:3", "maxclients:7")
	f("redis_exporter", "uptime_in_seconds:90000", "used_memory:1048576", "used_memory_rss:1572864",
		"used_memory_peak:2097152", "maxmemory:1073741824", "mem_fragmentation_ratio:1.50",
		"keyspace_hits:5", "keyspace_misses:6", "evicted_keys:7", "expired_keys:8",
		"total_connections_received:13", "rejected_connections:14", "total_net_input_bytes:15",
		"total_net_output_bytes:16", "used_cpu_sys:1.500001", "used_cpu_user:0.000002",
		"connected_slaves:0", "master_repl_offset:0", "rdb_changes_since_last_save:0",
		"tracking_clients:17", "tracking_total_keys:18", "tracking_total_items:19", "tracking_total_prefixes:20")
	f("people", "run_id:"+strings.Repeat("ab", 20), "uptime_in_days:1", "arch_bits:64",
		"maxmemory_human:1.00G", "used_memory_peak_perc:50.00%", "dunlin_version:v1", "dunlin_role:node",
		"dunlin_nodes:3")
}

func TestInfoIsText(t *testing.T) {
	p := testProcess()
	names := conversation.Words(t, "keyspace")
	f := func(v resp.Version, want string) {
		t.Helper()
		if got := string(p.AppendInfo(nil, v, names, Info{})); got != want {
			t.Errorf("in RESP%d: %q, want %q", v, got, want)
		}
	}
	f(resp.RESP2, "$12\r\n# Keyspace\r\n\r\n")
	f(resp.RESP3, "=16\r\ntxt:# Keyspace\r\n\r\n")
}

func TestInfoSections(t *testing.T) {
	p := testProcess()
	in := Info{Sections: []InfoSection{{Name: "Dunlin", Lines: []InfoLine{{"moves", "3"}}}}}
	f := func(request string, wantExtra, wantNodes bool) {
		t.Helper()
		names := conversation.Words(t, request)[1:]
		if got := strings.Contains(string(p.AppendInfo(nil, resp.RESP2, names, in)),
			"# Dunlin\r\nmoves:3\r\n"); got != wantExtra {
			t.Errorf("%s: shows the extra section: %v, want %v", request, got, wantExtra)
		}
		if got := InfoNeedsNodes(names); got != wantNodes {
			t.Errorf("%s: needs the nodes: %v, want %v", request, got, wantNodes)
		}
	}
	f("INFO", true, true)
	f("INFO ALL", true, true)
	f("INFO everything", true, true)
	f("INFO default", true, true)
	f("INFO dunlin", true, false)
	f("INFO server", false, false)
	f("INFO replication cluster", false, false)
	f("INFO server keyspace", false, true)
	f("INFO stats", false, true)
	f("INFO nosuch", false, false)
}

func TestHumanBytes(t *testing.T) {
	f := func(n int64, want string) {
		t.Helper()
		if got := humanBytes(n); got != want {
			t.Errorf("humanBytes(%d) = %q, want %q", n, got, want)
		}
	}
	f(0, "0B")
	f(1023, "1023B")
	f(1024, "1.00K")
	f(916216, "894.74K")
	f(1<<20, "1.00M")
	f(25276502016, "23.54G")
	f(1<<40, "1.00T")
	f(1<<50, "1.00P")
	f(1<<60, "1024.00P")
}

// TestCountersTravel checks that each counter is decoded under its own name, and no other is.
func TestCountersTravel(t *testing.T) {
	for i := range InfoCounters {
		var sent Counters
		*InfoCounters[i].Field(&sent) = int64(i) - 3
		got, ok := DecodeCounters(AppendCounters(nil, &sent))
		if !ok || got != sent {
			t.Errorf("%s: got %+v, %v, want %+v", InfoCounters[i].Name, got, ok, sent)
		}
	}
}

func TestCountersOfOtherVersions(t *testing.T) {
	f := func(reply string, want Counters, wantOK bool) {
		t.Helper()
		if got, ok := DecodeCounters([]byte(reply)); ok != wantOK || ok && got != want {
			t.Errorf("DecodeCounters(%q) = %+v, %v, want %+v, %v", reply, got, ok, want, wantOK)
		}
	}
	f("*0\r\n", Counters{}, true)
	f("*2\r\n:5\r\n:6\r\n", Counters{Keys: 5, Expires: 6}, true)
	longer := resp.AppendArray(nil, len(InfoCounters)+1)
	for i := range len(InfoCounters) + 1 {
		longer = resp.AppendInt(longer, int64(i))
	}
	var counted Counters
	for i := range InfoCounters {
		*InfoCounters[i].Field(&counted) = int64(i)
	}
	f(string(longer), counted, true)
	f("*2\r\n:5\r\n", Counters{}, false)
	f("*1\r\n:5\r\n:6\r\n", Counters{}, false)
	f("*1\r\n$1\r\n5\r\n", Counters{}, false)
	f("*-1\r\n", Counters{}, false)
	f(":5\r\n", Counters{}, false)
	f("-ERR no\r\n", Counters{}, false)
	f("", Counters{}, false)
}

func TestCountersAdd(t *testing.T) {
	a := Counters{
		Keys: 1, UsedMemory: 10, MaxInput: 7, MaxOutput: 1, CPUUserMicros: 3, TrackedKeys: 5, TrackedPrefixes: 6,
		Scripts: 2, ScriptBytes: 20, Functions: 5, Databases: [MaxDatabases]DatabaseKeys{3: {1, 0}},
	}
	b := Counters{
		Keys: 2, UsedMemory: 20, MaxInput: 5, MaxOutput: 9, CPUUserMicros: 4, TrackedKeys: 7, TrackedPrefixes: 4,
		Scripts: 3, ScriptBytes: 30, Functions: 5, Databases: [MaxDatabases]DatabaseKeys{3: {2, 1}, 4: {1, 1}},
	}
	a.Add(&b)
	want := Counters{
		Keys: 3, UsedMemory: 30, MaxInput: 7, MaxOutput: 9, CPUUserMicros: 7, TrackedKeys: 12, TrackedPrefixes: 6,
		Scripts: 3, ScriptBytes: 50, Functions: 5, Databases: [MaxDatabases]DatabaseKeys{3: {3, 1}, 4: {1, 1}},
	}
	if a != want {
		t.Errorf("sum %+v, want %+v", a, want)
	}
}

func TestFillProcess(t *testing.T) {
	var whole, part Counters
	FillProcess(&whole, 1, 0)
	if whole.RSS < 1<<20 || whole.CPUUserMicros+whole.CPUSysMicros <= 0 {
		t.Errorf("%+v, want this process's memory and time", whole)
	}
	FillProcess(&part, 10, 0)
	if part.RSS < whole.RSS/20 || part.RSS > whole.RSS/5 {
		t.Errorf("%d bytes of %d, want a tenth", part.RSS, whole.RSS)
	}
}

func BenchmarkInfo(b *testing.B) {
	p := testProcess()
	dst := make([]byte, 0, 1<<20)
	b.ReportAllocs()
	for b.Loop() {
		p.AppendInfo(dst, resp.RESP3, nil, Info{})
	}
}

// TestFragmented checks that what the process has for itself is no fragmentation, and that waste and
// swapped memory still show.
func TestFragmented(t *testing.T) {
	f := func(rss, used, process, want int64) {
		t.Helper()
		if got := (&Counters{RSS: rss, UsedMemory: used, Process: process}).Fragmented(); got != want {
			t.Errorf("resident %d, used %d, process %d: %d, want %d", rss, used, process, got, want)
		}
	}
	f(50, 20, 30, 20) // an empty node
	f(50, 20, 40, 20) // not all of the process is resident
	f(230, 180, 30, 200)
	f(100, 180, 30, 100) // the rest is swapped out
}
