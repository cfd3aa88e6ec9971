package about

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// The LATENCY commands about events answer like a Redis whose latency monitor is off, which is
// Redis's default too: latency-monitor-threshold can only be 0.

const noLatencyMonitor = "Latency events are not recorded by this server.\n"

func latencyDoctor(dst []byte, v resp.Version, _ [][]byte) []byte {
	return resp.AppendVerbatim(dst, v, "txt", noLatencyMonitor)
}

func latencyGraph(dst []byte, _ resp.Version, args [][]byte) []byte {
	return resp.AppendError(dst, "ERR No samples available for event '"+command.Cut(args[2])+"'")
}

// latencyReset answers LATENCY RESET [event...] with the number of events that it has removed: 0.
func latencyReset(dst []byte, _ resp.Version, _ [][]byte) []byte { return resp.AppendInt(dst, 0) }
