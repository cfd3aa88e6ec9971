package session

// Counters are the numbers of INFO that add up over the nodes of a cluster.
// A node sends them to a proxy in the order of InfoCounters.
type Counters struct {
	Keys, Expires                      int64 // in the partitions asked for
	UsedMemory, PeakMemory, RSS        int64 // bytes
	Overhead, Dataset, MaxMemory       int64 // bytes; Overhead: index and bookkeeping, Dataset: keys and values
	Hits, Misses, Evicted, Expired     int64
	Commands, OpsPerSec, Errors        int64
	Clients, MaxInput, MaxOutput       int64 // Max…: largest buffers of one connection, bytes
	Connections, Rejected, SlowReaders int64 // since the start: accepted, refused over MaxClients, closed for not reading
	NetIn, NetOut, Reads, Writes       int64 // bytes and system calls on client connections
	CPUSysMicros, CPUUserMicros        int64 // of the process
}

// InfoCounters names the counters in the order of the wire. New ones are added
// at the end: a shorter list is read as zeros, a longer one is cut.
var InfoCounters []InfoCounter

// InfoCounter is one number of Counters.
type InfoCounter struct {
	Name  string
	Field func(c *Counters) *int64
}

// Add adds o's numbers to c's.
func (c *Counters) Add(o *Counters) {}

// AppendCounters encodes c as the array of integers that answers EACH INFO.
func AppendCounters(dst []byte, c *Counters) []byte { return dst }

// DecodeCounters reads what AppendCounters wrote. reply is not kept.
func DecodeCounters(reply []byte) (c Counters, ok bool) { return c, false }
