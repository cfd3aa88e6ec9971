package node

import (
	"fmt"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/node/data/keys"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/measure"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/node/script"
	"github.com/dunlin-cache/dunlin/node/stream"
)

// Stats is what a node has done and holds. Where a comment names no time, the number counts since
// the start: CONFIG RESETSTAT concerns only what INFO and LATENCY show.
type Stats struct {
	Commands   [command.NumIDs]uint64 // executed or redirected, by command or subcommand
	Requests   uint64                 // of all kinds, unknown commands included
	OfClients  uint64                 // those of them that members did not send for themselves
	Errors     uint64                 // error replies, redirections apart
	Hits       uint64                 // keys found by commands that read
	Misses     uint64
	Moved      uint64  // answered with MOVED
	Waits      uint64  // told to wait for a take-over or a fence
	Deferred   uint64  // answered later
	Retries    uint64  // times that commands over several slots asked for a key again, or began anew
	Blocked    int64   // commands that wait for keys, and claims, now
	MaxBlocked int64   // how many may
	OpsPerSec  float64 // of OfClients, over the last 1.6 s

	Clients     int    // now
	MaxClients  int    // more are refused
	Pipes       int    // open now
	Peers       int    // other members' connections, now
	Connections uint64 // accepted
	Rejected    uint64 // refused over MaxClients
	AuthFailed  int64  // wrong passwords
	SlowReaders uint64 // closed because they did not read
	Starved     uint64 // closed because there was no memory for their buffers

	Tracking                          TrackingStats
	Channels, ShardChannels, Patterns int    // of pub/sub that have subscribers, now
	Published                         uint64 // messages, whether or not anybody listened
	Pushed                            uint64 // messages to subscribers and proxies
	Invalidations                     uint64 // to clients that track, and to proxies for theirs
	SlowSubscribers                   uint64 // closed because they did not read them
	LostMessages                      uint64 // that had no room on their way to a loop or a proxy
	LostEvents                        uint64 // keyspace notifications that were not published
	Gaps                              uint64 // topics of this node's clients of which the relay may have missed messages
	RelayLost                         uint64 // messages that had no room on their way to the relay

	Scripts       script.LibraryStats // that EVALSHA finds
	ScriptMemory  int64               // bytes that running scripts and functions have taken
	Functions     int
	Libraries     int   // of functions
	FunctionBytes int64 // that they take

	Inputs     uint64 // times that a connection had something to read
	Outputs    uint64 // times that it had something to write
	BytesIn    uint64
	BytesOut   uint64
	BatchSizes [exec.BatchBuckets]uint64 // inputs by their requests: 0, 1, 2-3, 4-7, ... 2048 and more
	InBuffer   int                       // largest input buffer of a connection now, bytes
	OutBuffer  int

	// Latency has the times of the heavy commands, and a sample of the others' (timing.go).
	Latency [command.NumFamilies]figures.Durations

	HotKeys []figures.KeyFigure // with their uses a second, see measure.HotSketch
	BigKeys []figures.KeyFigure // with their bytes, see measure.BigWalk
	Pinned  []PinnedStats       // of the databases that it serves, by number

	Epoch   uint64 // of the table obeyed, 0: none
	Serving int    // partitions served
	Gained  int    // partitions that wait for their take-over
	Fenced  bool   // nothing is served

	Streams stream.Stats // to other nodes

	PeakBytes int64 // most memory in use since the start
	Overhead  int64 // part of Engine.Outside that is the process's
	Garbage   int64 // and that is kept for the Go heap, see Node.KeepHeap; the rest: connBytes
	Keys      int64 // of the partitions that it serves
	Engine    engine.Stats
	// EvictionAge is how many seconds a key stays on average at the last minute's rate of
	// evictions; infinite if there were none.
	EvictionAge float64
}

// TrackingStats are about CLIENT TRACKING, now but for Overflows.
type TrackingStats struct {
	Clients               int // of this node, that track
	Keys                  int // that are tracked, for these or for proxies
	Marks, MaxMarks       int // on these, one for each loop or pipe that is told; more take the place of others
	Prefixes, MaxPrefixes int
	Overflows             uint64 // times that more was to be told than is queued, so that clients forgot everything
}

// Stats gathers the numbers from the loops. It fails if a loop does not answer in time
// (netloop.Config.Answer).
func (n *Node) Stats() (Stats, error) {
	s, _, err := n.gatherStats()
	return s, err
}

// gatherStats is Stats, and what was counted since CONFIG RESETSTAT.
func (n *Node) gatherStats() (s Stats, sinceReset exec.Counters, err error) {
	// A worker that answers too late writes to its own element of parts, which nobody reads by
	// then.
	parts := make([]workerStats, len(n.workers))
	err = n.cfg.Group.Each(func(l *netloop.Loop) { n.workers[l.Index()].report(&parts[l.Index()]) })
	if err != nil {
		return Stats{}, exec.Counters{}, fmt.Errorf("cannot gather statistics of node %q: %w", n.cfg.ID, err)
	}
	total := &workerStats{}
	for i := range parts {
		total.add(&parts[i])
	}
	v := n.view.Load()
	s = Stats{
		Commands: total.count.Commands, Requests: total.count.Executed, OfClients: total.count.OfClients(),
		Errors: total.count.Errors, Hits: total.count.Hits, Misses: total.count.Misses,
		Moved: total.count.Moved, Waits: total.count.Waits, Deferred: total.count.Deferred, OpsPerSec: total.rate,
		Blocked: n.waiters.Load(), MaxBlocked: maxBlocked,
		Clients: total.clients, Pipes: total.pipes, Peers: total.peers,
		Connections: total.count.Connections, Rejected: total.count.Rejected, SlowReaders: total.count.SlowReaders,
		Starved: total.count.Starved, Pushed: total.count.Pushed, Invalidations: total.count.Invalidations,
		SlowSubscribers: total.count.SlowSubscribers, Inputs: total.count.Inputs, Outputs: total.count.Outputs,
		BytesIn: total.count.BytesIn, BytesOut: total.count.BytesOut, BatchSizes: total.count.Batches,
		InBuffer: total.inBuffer, OutBuffer: total.outBuffer, Latency: total.latency,
		HotKeys: total.hot.Top(), BigKeys: n.BigKeys(), Pinned: n.pinnedStats(v, &total.uses, total.rate),
		MaxClients: n.settings.MaxClients(), AuthFailed: n.session.AuthFailures(),
		Epoch: v.Epoch(), Serving: v.Count(ownership.Serving), Gained: v.Count(ownership.Gained),
		Fenced:  n.isFenced(n.cfg.Group.Clock()),
		Streams: n.senders.Stats(), Overhead: n.overhead.Load(), Engine: n.engine.Stats(),
	}
	// The numbers are not of one moment: garbage that is used meanwhile is the connections'.
	s.Garbage = max(0, min(n.garbage.size.Load(), s.Engine.Outside-s.Overhead))
	_, covered := n.coverage(&allPartitions)
	s.Keys = keys.CountAll(n.engine, &covered)
	b := n.broker
	s.Retries = n.gathers.retries.Load()
	s.Tracking = TrackingStats{
		Clients: total.trackers, Prefixes: n.watchers.prefixes(), MaxMarks: engine.MaxMarks, MaxPrefixes: maxFollowed,
		Overflows: total.overflows + n.watchers.overflows.Load(),
	}
	s.Tracking.Marks, s.Tracking.Keys = n.engine.Marks()
	functions := n.functions.set.Load()
	s.Functions, s.Libraries, s.FunctionBytes = functions.Count(), len(functions.Libraries()), n.functions.bytes.Load()
	s.Scripts, s.ScriptMemory = n.scripts.library.Stats(), n.scripts.granted.Load()
	s.Channels, s.ShardChannels, s.Patterns = b.Topics(pubsub.Channel), b.Topics(pubsub.Shard), b.Patterns()
	s.Published, s.LostMessages, s.LostEvents = b.Published(), b.Lost(), n.events.lost.Load()
	s.Gaps, s.RelayLost = total.gaps, total.relayLost
	s.PeakBytes = n.notePeak(s.Engine.Used)
	s.EvictionAge = n.turnover.Age(time.Now(), s.Engine.Keys, s.Engine.Evicted)
	return s, total.sinceReset, nil
}

// workerStats is one worker's part of Stats.
type workerStats struct {
	count, sinceReset     exec.Counters
	rate                  float64
	clients, pipes, peers int
	trackers              int
	overflows             uint64 // of the loop's tracking.Table
	inBuffer, outBuffer   int
	latency               measure.Latencies
	hot                   figures.KeyFigures
	uses                  measure.Uses
	gaps, relayLost       uint64 // of the relay
}

// report fills s in, on the worker's loop.
func (w *worker) report(s *workerStats) {
	s.count, s.sinceReset = w.Count, w.sinceReset()
	s.rate = w.rate.PerSecond()
	s.trackers, s.overflows = w.tracking.table.Clients(), w.tracking.table.Overflows
	s.latency.AddTimes(&w.times, func(id command.ID) bool { return plans[id].timed })
	w.hot.Report(w.loop.Now(), &s.hot)
	w.hot.AddUses(&s.uses)
	if relay := w.node.relay(); relay != nil {
		s.gaps, s.relayLost = relay.Counts(w.loop.Index())
	}
	for cn := range w.conns {
		switch {
		case cn.pipe != nil:
			s.pipes++
		case cn.peer:
			s.peers++
		default:
			s.clients++
		}
		s.inBuffer = max(s.inBuffer, cn.unread)
		s.outBuffer = max(s.outBuffer, cn.Socket.Queued())
	}
}

func (s *workerStats) add(o *workerStats) {
	s.count.Add(&o.count)
	s.sinceReset.Add(&o.sinceReset)
	s.rate += o.rate
	s.clients += o.clients
	s.pipes += o.pipes
	s.peers += o.peers
	s.trackers += o.trackers
	s.overflows += o.overflows
	s.inBuffer = max(s.inBuffer, o.inBuffer)
	s.outBuffer = max(s.outBuffer, o.outBuffer)
	s.latency.Add(&o.latency)
	s.hot.Add(&o.hot)
	s.uses.Add(&o.uses)
	s.gaps += o.gaps
	s.relayLost += o.relayLost
}

// notePeak raises the peak to the present use, and returns it.
func (n *Node) notePeak(used int64) int64 {
	for {
		peak := n.peak.Load()
		if used <= peak || n.peak.CompareAndSwap(peak, used) {
			return max(used, peak)
		}
	}
}

// statsBase is what a worker had counted at the last CONFIG RESETSTAT. INFO subtracts it; what is
// exported never goes back.
type statsBase struct {
	count exec.Counters
	times [command.NumIDs]*figures.Durations
}

// sinceReset returns what was counted since the last CONFIG RESETSTAT.
func (w *worker) sinceReset() exec.Counters {
	if w.base == nil {
		return w.Count
	}
	return w.Count.Since(&w.base.count)
}

// timesSinceReset returns the times of a command since the last CONFIG RESETSTAT; nil: none.
func (w *worker) timesSinceReset(id int) *figures.Durations {
	if w.times[id] == nil {
		return nil
	}
	times := *w.times[id]
	if w.base != nil && w.base.times[id] != nil {
		times = times.Since(w.base.times[id])
	}
	if times.Count == 0 {
		return nil
	}
	return &times
}

func (w *worker) resetStats() {
	w.base = &statsBase{count: w.Count}
	for id, d := range w.times {
		if d != nil {
			times := *d
			w.base.times[id] = &times
		}
	}
}

// resetStats is CONFIG RESETSTAT. It runs on a loop, so it only posts.
func (n *Node) resetStats() {
	st := n.engine.Stats()
	n.removedBase.Store(&removals{evicted: st.Evicted, expired: st.Expired})
	for _, w := range n.workers {
		w.loop.Post(func() { w.resetStats() })
	}
}

// removals counts keys that the engine removed.
type removals struct{ evicted, expired int64 }

// connBytes is what connections and their commands have, and what they may always have.
func (s *Stats) connBytes() int64 { return s.Engine.Outside - s.Overhead - s.Garbage }

// MemoryClasses calls emit with each class of the memory in use. The classes add up to Engine.Used.
func (s *Stats) MemoryClasses(emit func(class string, bytes int64)) {
	emit("values", s.Engine.Values) // with their keys
	emit("parts", s.Engine.Parts)   // of big collections
	emit("index", s.Engine.Index)
	emit("ghosts", s.Engine.Ghosts)   // of evicted keys
	emit("staged", s.Engine.Staged)   // large values on their way in
	emit("leaving", s.Engine.Leaving) // large values on their way out
	emit("feeds", s.Engine.Feeds)     // logs for copies
	emit("bookkeeping", s.Engine.Fixed)
	emit("buffers", s.connBytes())
	emit("garbage", s.Garbage)
	emit("process", s.Overhead)
	emit("slack", s.Engine.Slack)
}
