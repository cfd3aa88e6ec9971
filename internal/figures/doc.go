// Package figures has what a server counts and measures, and the replies that show it: INFO,
// SLOWLOG, LATENCY, MEMORY STATS and HOTKEYS.
//
// # Terms
//
//   - Counters: the numbers of INFO that add up over the nodes of a cluster.
//   - Calls: how often each command was called, how it ended, and how long a sample of calls took.
//   - Durations: a histogram of times, four buckets to a doubling.
//   - SlowLog: the latest requests that took longer than a threshold.
//   - KeyFigures: the keys with the largest figures, by use or by size.
//   - Process: what INFO shows about the process itself.
//
// # From an event to a reply
//
//	loop or shard: plain integers, Durations, KeyFigures
//	      │ added up when somebody asks
//	      ▼
//	node: Counters, Calls, KeyFigures, SlowLog ──▶ Append...: the reply to a client of the node
//	      │ AppendCounters, AppendCalls, EncodeKeyFigures, SlowLog.AppendReply
//	      ▼
//	proxy: DecodeCounters, Calls.Decode, KeyFigures.Decode, SlowLogs.Add of all nodes, summed or merged
//	      │
//	      └──▶ the same Append... functions: the reply to a client of the proxy
//
// # Invariants and ownership
//
//   - Only SlowLog is shared between goroutines; it has a lock.
//   - The figures of nodes, added up in any order, give the same reply.
//   - What travels between members can be longer or shorter than this version's: unknown counters
//     and commands are left out, missing counters are 0. What is malformed is refused as a whole.
//   - dst is appended to and handed back; args and replies are only read, and no view of them is
//     kept.
//   - Texts and fields are those of Redis 7. Where Dunlin has nothing like a field that clients,
//     exporters or dashboards read, the field holds what an idle Redis shows.
package figures
