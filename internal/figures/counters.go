package figures

import (
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Counters are the numbers of INFO that add up over the nodes of a cluster. A node sends them to a
// proxy in the order of InfoCounters. Those of a whole process (all except Keys, Expires and Databases) must
// be added only once for each node, even if the node is asked again for other partitions.
type Counters struct {
	Keys, Expires int64 // in the partitions that the question names

	UsedMemory int64 // bytes: Dataset + Overhead
	PeakMemory int64
	Dataset    int64 // keys and values
	Overhead   int64 // index, bookkeeping, connection buffers
	MaxMemory  int64
	RSS        int64 // the node's part of the process's

	Hits, Misses     int64
	Evicted, Expired int64

	Commands  int64 // executed
	OpsPerSec int64 // recent
	Errors    int64 // error replies

	Clients     int64 // connected now
	Connections int64 // accepted since the start
	Rejected    int64 // refused because of MaxClients
	SlowReaders int64 // closed because they did not read
	MaxInput    int64 // largest input buffer of a connection lately, bytes
	MaxOutput   int64

	NetIn, NetOut int64 // bytes
	Reads, Writes int64 // system calls

	CPUSysMicros, CPUUserMicros int64 // the node's part of the process's

	Startup     int64 // part of Overhead: memory in use without keys and clients
	ClientBytes int64 // part of Overhead: connection buffers, and what commands keep
	// The number of a node's policy and its square: their sums over the nodes show whether all
	// nodes have one policy, and which.
	Policy, PolicySquare int64

	Channels int64 // of pub/sub that have subscribers
	Patterns int64 // the same patterns are at all nodes

	Trackers        int64 // clients that track
	TrackedKeys     int64 // keys that they may have copies of
	TrackedItems    int64 // of these, one for each loop or pipe that is told
	TrackedPrefixes int64 // those of a proxy's clients are at all nodes

	Process int64 // part of RSS that UsedMemory does not count: the program and its Go heap

	Scripts      int64 // that EVALSHA finds: nodes have many of them alike
	ScriptBytes  int64 // part of Overhead: these
	ScriptMemory int64 // part of Overhead: what running scripts and functions have taken
	// The same at all nodes.
	Functions, Libraries int64
	FunctionBytes        int64 // part of Overhead: the libraries

	// Databases has the parts of Keys and Expires that are in each database but database 0, which has the rest.
	Databases [MaxDatabases]DatabaseKeys
}

// MaxDatabases is how many databases there are at most.
const MaxDatabases = 16

// DatabaseKeys are how many keys a database has, and how many of them expire.
type DatabaseKeys struct{ Keys, Expires int64 }

// OfDatabase returns the keys of a database.
func (c *Counters) OfDatabase(database int) DatabaseKeys {
	if database > 0 {
		return c.Databases[database]
	}
	rest := DatabaseKeys{c.Keys, c.Expires}
	for _, other := range c.Databases {
		rest.Keys -= other.Keys
		rest.Expires -= other.Expires
	}
	return rest
}

// Fragmented returns the resident bytes that data and bookkeeping take. In an empty node most of RSS
// is the process itself, which is no fragmentation; it counts as far as more is resident than used.
func (c *Counters) Fragmented() int64 {
	return c.RSS - min(c.Process, max(0, c.RSS-c.UsedMemory))
}

// CountPolicy counts a node's policy by its number.
func (c *Counters) CountPolicy(number int64) {
	c.Policy += number
	c.PolicySquare += number * number
}

// InfoCounter names one number of Counters and finds it.
type InfoCounter struct {
	Name  string
	Field func(c *Counters) *int64
}

// InfoCounters is the order on the wire. New counters are added at the end. Counters missing from a
// shorter list are 0, and further ones in a longer list are ignored, so members of neighbouring
// versions understand each other.
var InfoCounters = append(ofProcess, ofDatabases()...)

// ofDatabases are the counters of the databases but database 0.
func ofDatabases() (counters []InfoCounter) {
	for i := 1; i < MaxDatabases; i++ {
		name := "db" + strconv.Itoa(i)
		counters = append(counters,
			InfoCounter{name + "_keys", func(c *Counters) *int64 { return &c.Databases[i].Keys }},
			InfoCounter{name + "_expires", func(c *Counters) *int64 { return &c.Databases[i].Expires }})
	}
	return counters
}

// ofProcess are the counters that are not about single databases.
var ofProcess = []InfoCounter{
	{"keys", func(c *Counters) *int64 { return &c.Keys }},
	{"expires", func(c *Counters) *int64 { return &c.Expires }},
	{"used_memory", func(c *Counters) *int64 { return &c.UsedMemory }},
	{"used_memory_peak", func(c *Counters) *int64 { return &c.PeakMemory }},
	{"used_memory_dataset", func(c *Counters) *int64 { return &c.Dataset }},
	{"used_memory_overhead", func(c *Counters) *int64 { return &c.Overhead }},
	{"maxmemory", func(c *Counters) *int64 { return &c.MaxMemory }},
	{"used_memory_rss", func(c *Counters) *int64 { return &c.RSS }},
	{"keyspace_hits", func(c *Counters) *int64 { return &c.Hits }},
	{"keyspace_misses", func(c *Counters) *int64 { return &c.Misses }},
	{"evicted_keys", func(c *Counters) *int64 { return &c.Evicted }},
	{"expired_keys", func(c *Counters) *int64 { return &c.Expired }},
	{"total_commands_processed", func(c *Counters) *int64 { return &c.Commands }},
	{"instantaneous_ops_per_sec", func(c *Counters) *int64 { return &c.OpsPerSec }},
	{"total_error_replies", func(c *Counters) *int64 { return &c.Errors }},
	{"connected_clients", func(c *Counters) *int64 { return &c.Clients }},
	{"total_connections_received", func(c *Counters) *int64 { return &c.Connections }},
	{"rejected_connections", func(c *Counters) *int64 { return &c.Rejected }},
	{"slow_readers", func(c *Counters) *int64 { return &c.SlowReaders }},
	{"client_recent_max_input_buffer", func(c *Counters) *int64 { return &c.MaxInput }},
	{"client_recent_max_output_buffer", func(c *Counters) *int64 { return &c.MaxOutput }},
	{"total_net_input_bytes", func(c *Counters) *int64 { return &c.NetIn }},
	{"total_net_output_bytes", func(c *Counters) *int64 { return &c.NetOut }},
	{"total_reads_processed", func(c *Counters) *int64 { return &c.Reads }},
	{"total_writes_processed", func(c *Counters) *int64 { return &c.Writes }},
	{"used_cpu_sys_micros", func(c *Counters) *int64 { return &c.CPUSysMicros }},
	{"used_cpu_user_micros", func(c *Counters) *int64 { return &c.CPUUserMicros }},
	{"used_memory_startup", func(c *Counters) *int64 { return &c.Startup }},
	{"mem_clients_normal", func(c *Counters) *int64 { return &c.ClientBytes }},
	{"policy", func(c *Counters) *int64 { return &c.Policy }},
	{"policy_square", func(c *Counters) *int64 { return &c.PolicySquare }},
	{"process_memory", func(c *Counters) *int64 { return &c.Process }},
	{"pubsub_channels", func(c *Counters) *int64 { return &c.Channels }},
	{"pubsub_patterns", func(c *Counters) *int64 { return &c.Patterns }},
	{"tracking_clients", func(c *Counters) *int64 { return &c.Trackers }},
	{"tracking_total_keys", func(c *Counters) *int64 { return &c.TrackedKeys }},
	{"tracking_total_items", func(c *Counters) *int64 { return &c.TrackedItems }},
	{"tracking_total_prefixes", func(c *Counters) *int64 { return &c.TrackedPrefixes }},
	{"number_of_cached_scripts", func(c *Counters) *int64 { return &c.Scripts }},
	{"used_memory_scripts_eval", func(c *Counters) *int64 { return &c.ScriptBytes }},
	{"used_memory_vm_total", func(c *Counters) *int64 { return &c.ScriptMemory }},
	{"number_of_functions", func(c *Counters) *int64 { return &c.Functions }},
	{"number_of_libraries", func(c *Counters) *int64 { return &c.Libraries }},
	{"used_memory_functions", func(c *Counters) *int64 { return &c.FunctionBytes }},
}

// sameThings are the counters of what several nodes have alike: the largest counts.
var sameThings = []func(c *Counters) *int64{
	func(c *Counters) *int64 { return &c.MaxInput },
	func(c *Counters) *int64 { return &c.MaxOutput },
	func(c *Counters) *int64 { return &c.Patterns },
	func(c *Counters) *int64 { return &c.TrackedPrefixes },
	func(c *Counters) *int64 { return &c.Scripts },
	func(c *Counters) *int64 { return &c.Functions },
	func(c *Counters) *int64 { return &c.Libraries },
}

// Add adds o's numbers to c's. Of sameThings it keeps the larger.
func (c *Counters) Add(o *Counters) {
	before := *c
	for i := range InfoCounters {
		field := InfoCounters[i].Field
		*field(c) += *field(o)
	}
	for _, field := range sameThings {
		*field(c) = max(*field(&before), *field(o))
	}
}

// AppendCounters encodes c as the array of integers that answers EACH INFO.
func AppendCounters(dst []byte, c *Counters) []byte {
	dst = resp.AppendArray(dst, len(InfoCounters))
	for i := range InfoCounters {
		dst = resp.AppendInt(dst, *InfoCounters[i].Field(c))
	}
	return dst
}

// DecodeCounters decodes what AppendCounters of this or another version wrote. reply is one whole
// reply; it is not kept.
func DecodeCounters(reply []byte) (c Counters, ok bool) {
	n, at, ok := resp.DecodeArray(reply)
	if !ok || n < 0 {
		return Counters{}, false
	}
	var line resp.Scanner
	for i := range n {
		if line.Scan(reply[at:]) != resp.Done {
			return Counters{}, false
		}
		value, ok := resp.DecodeInt(reply[at : at+line.Len()])
		if !ok {
			return Counters{}, false
		}
		at += line.Len()
		if i < len(InfoCounters) {
			*InfoCounters[i].Field(&c) = value
		}
	}
	return c, at == len(reply)
}
