package clients

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"

	redigo "github.com/gomodule/redigo/redis"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestExporterScrape sends the commands of a scrape by redis_exporter with all of its checks on
// keys, through the exporter's library, and reads each reply as the exporter does, which silently
// leaves out of its metrics whatever it cannot read.
func TestExporterScrape(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 1)
	s := dialExporter(t, c.Proxy(0).Addr)
	s.do("SET", "exported", "42.5")
	s.do("SET", "expiring", "x", "EX", 100)
	for range 600 { // nodes time one input in 251
		s.do("GET", "missing")
	}

	s.do("PING")
	s.do("CLIENT", "SETNAME", "redis_exporter")
	s.config()
	harness.Eventually(t, harness.ReadyTimeout, "the proxy has counted", func() bool {
		return s.info()["total_commands_processed"] > 600 // INFO shows a sample that is up to a second old
	})
	s.numbers(s.info())
	s.latency()
	s.slowlog()
	s.clients()
	s.keys()
}

type exporter struct {
	t    *testing.T
	conn redigo.Conn
}

func dialExporter(t *testing.T, addr string) exporter {
	t.Helper()
	conn, err := redigo.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return exporter{t, conn}
}

func (s exporter) do(command string, args ...any) any {
	s.t.Helper()
	reply, err := s.conn.Do(command, args...)
	if err != nil && !errors.Is(err, redigo.ErrNil) {
		s.t.Errorf("%s %v: %v", command, args, err)
	}
	return reply
}

// config checks the number of databases, because the exporter asks each of them for keys.
func (s exporter) config() {
	settings, err := redigo.StringMap(s.do("CONFIG", "GET", "*"), nil)
	if err != nil {
		s.t.Fatalf("CONFIG GET *: %v", err)
	}
	for _, name := range []string{"databases", "maxmemory", "maxclients"} {
		if n, err := strconv.ParseFloat(settings[name], 64); err != nil || n <= 0 {
			s.t.Errorf("CONFIG GET * has %q for %s", settings[name], name)
		}
	}
}

// info reads the numeric fields of INFO ALL. Those of db0 and of commands are named like "db0
// keys".
func (s exporter) info() map[string]float64 {
	s.t.Helper()
	text, err := redigo.String(s.do("INFO", "ALL"), nil)
	if err != nil {
		s.t.Fatalf("INFO ALL: %v", err)
	}
	fields := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		for part := range strings.SplitSeq(value, ",") {
			key, value, _ := strings.Cut(part, "=")
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				fields[name+" "+key] = n
			}
		}
		if n, err := strconv.ParseFloat(strings.TrimSuffix(value, "%"), 64); err == nil {
			fields[name] = n
		}
	}
	return fields
}

// numbers checks the fields that the exporter's dashboards and alerts read.
func (s exporter) numbers(fields map[string]float64) {
	for _, name := range strings.Fields(`uptime_in_seconds process_id connected_clients blocked_clients used_memory used_memory_rss
		used_memory_peak used_memory_overhead used_memory_dataset maxmemory mem_fragmentation_ratio allocator_active
		allocator_allocated allocator_resident lazyfree_pending_objects active_defrag_running loading rdb_last_save_time
		rdb_changes_since_last_save rdb_bgsave_in_progress aof_enabled total_connections_received total_commands_processed
		instantaneous_ops_per_sec rejected_connections total_net_input_bytes total_net_output_bytes expired_keys evicted_keys
		keyspace_hits keyspace_misses pubsub_channels pubsub_patterns latest_fork_usec connected_slaves master_repl_offset
		used_cpu_sys used_cpu_user cluster_enabled`) {
		if _, ok := fields[name]; !ok {
			s.t.Errorf("INFO ALL has no number for %s", name)
		}
	}
	for _, name := range strings.Fields(`used_memory used_memory_rss maxmemory connected_clients total_connections_received
		total_commands_processed total_net_input_bytes total_net_output_bytes keyspace_misses`) {
		if fields[name] <= 0 {
			s.t.Errorf("INFO ALL says %v for %s", fields[name], name)
		}
	}
	if fields["cmdstat_get calls"] != 600 || fields["cmdstat_get usec"] <= 0 || fields["cmdstat_get failed_calls"] != 0 {
		s.t.Errorf("INFO ALL says that GET was called %v times, failed %v times and took %v µs",
			fields["cmdstat_get calls"], fields["cmdstat_get failed_calls"], fields["cmdstat_get usec"])
	}
	if fields["latency_percentiles_usec_get p99"] <= 0 {
		s.t.Errorf("INFO ALL says that 99 of 100 GETs took up to %v µs", fields["latency_percentiles_usec_get p99"])
	}
	if fields["db0 keys"] != 2 || fields["db0 expires"] != 1 {
		s.t.Errorf("INFO ALL says that there are %v keys, %v of them with a TTL",
			fields["db0 keys"], fields["db0 expires"])
	}
}

// latency reads events with four values, and histograms as command, [calls, n, histogram_usec, [µs,
// n, ...]].
func (s exporter) latency() {
	events, err := redigo.Values(s.do("LATENCY", "LATEST"), nil)
	if err != nil {
		s.t.Errorf("LATENCY LATEST: %v", err)
	}
	for _, e := range events {
		var name string
		var at, last, most int64
		if row, err := redigo.Values(e, nil); err != nil {
			s.t.Errorf("LATENCY LATEST: %v", err)
		} else if _, err := redigo.Scan(row, &name, &at, &last, &most); err != nil {
			s.t.Errorf("LATENCY LATEST has %v: %v", row, err)
		}
	}
	histograms, err := redigo.Values(s.do("LATENCY", "HISTOGRAM"), nil)
	if err != nil || len(histograms)%2 != 0 {
		s.t.Errorf("LATENCY HISTOGRAM has %d elements, %v", len(histograms), err)
	}
	if len(histograms) == 0 {
		s.t.Error("LATENCY HISTOGRAM is empty")
	}
	for i := 0; i+1 < len(histograms); i += 2 {
		var calls uint64
		var buckets []uint64
		row, _ := redigo.Values(histograms[i+1], nil)
		if _, err := redigo.Scan(row, nil, &calls, nil, &buckets); err != nil || calls == 0 || len(buckets)%2 != 0 {
			s.t.Errorf("LATENCY HISTOGRAM has %s %v: %v", histograms[i], row, err)
		}
	}
}

// slowlog reads each entry's id, time, microseconds and words.
func (s exporter) slowlog() {
	if _, err := redigo.Int64(s.do("SLOWLOG", "LEN"), nil); err != nil {
		s.t.Errorf("SLOWLOG LEN: %v", err)
	}
	entries, err := redigo.Values(s.do("SLOWLOG", "GET", "10"), nil)
	if err != nil {
		s.t.Errorf("SLOWLOG GET 10: %v", err)
	}
	for _, e := range entries {
		var id, at, micros int64
		var words []string
		if row, err := redigo.Values(e, nil); err != nil {
			s.t.Errorf("SLOWLOG GET: %v", err)
		} else if _, err := redigo.Scan(row, &id, &at, &micros, &words); err != nil || len(words) == 0 {
			s.t.Errorf("SLOWLOG GET has %v: %v", row, err)
		}
	}
}

// clients checks that each line begins with id and addr, and that all of its words are NAME=VALUE.
func (s exporter) clients() {
	list, err := redigo.String(s.do("CLIENT", "LIST"), nil)
	if err != nil || !strings.Contains(list, " name=redis_exporter ") {
		s.t.Errorf("CLIENT LIST is %q, %v", list, err)
	}
	start := regexp.MustCompile(`^id=\d+ addr=\S+:\d+ .* age=\d+ idle=\d+ `)
	for line := range strings.Lines(list) {
		if !start.MatchString(line) {
			s.t.Errorf("CLIENT LIST has %q", line)
		}
		for word := range strings.FieldsSeq(line) {
			if strings.Count(word, "=") != 1 {
				s.t.Errorf("CLIENT LIST has %q in %q", word, line)
			}
		}
	}
}

// keys walks a pattern with a cursor that must be an int, and asks for each key's type, its size as
// a HyperLogLog or otherwise a string, its value and its memory.
func (s exporter) keys() {
	s.do("SELECT", "0")
	found := map[string]bool{}
	for cursor, rounds := 0, 0; cursor != 0 || rounds == 0; rounds++ {
		reply, err := redigo.Values(s.do("SCAN", cursor, "MATCH", "exp*", "COUNT", 1000), nil)
		if err != nil || len(reply) != 2 {
			s.t.Fatalf("SCAN answers %v, %v", reply, err)
		}
		if cursor, err = redigo.Int(reply[0], nil); err != nil {
			s.t.Fatalf("SCAN's cursor: %v", err)
		}
		names, _ := redigo.Strings(reply[1], nil)
		for _, name := range names {
			found[name] = true
		}
	}
	if len(found) != 2 {
		s.t.Errorf("SCAN finds %v", found)
	}
	if kind, err := redigo.String(s.do("TYPE", "exported"), nil); err != nil || kind != "string" {
		s.t.Errorf("TYPE says %q, %v", kind, err)
	}
	_, err := s.conn.Do("PFCOUNT", "exported")
	if want := "WRONGTYPE Key is not a valid HyperLogLog string value."; err == nil || err.Error() != want {
		s.t.Errorf("PFCOUNT of a string fails with %v, want %s", err, want)
	}
	if n, err := redigo.Int64(s.do("STRLEN", "exported"), nil); err != nil || n != 4 {
		s.t.Errorf("STRLEN says %d, %v", n, err)
	}
	if v, err := redigo.Float64(s.do("GET", "exported"), nil); err != nil || v != 42.5 {
		s.t.Errorf("GET is %v, %v", v, err)
	}
	if n, err := redigo.Int64(s.do("MEMORY", "USAGE", "exported"), nil); err != nil || n < 4 {
		s.t.Errorf("MEMORY USAGE says %d, %v", n, err)
	}
}
