package session

import "github.com/dunlin-cache/dunlin/internal/resp"

// The LATENCY commands on events answer as a Redis whose monitor is off, as it
// is by default there too: latency-monitor-threshold can only be 0.

func latencyDoctor(_ *Server, st *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return resp.AppendVerbatim(dst, st.Version, "txt", noLatencyMonitor), ActionNone
}

func latencyGraph(_ *Server, _ *State, args [][]byte, dst []byte) ([]byte, Action) {
	return resp.AppendError(dst, "ERR No samples available for event '"+cut(args[2])+"'"), ActionNone
}

// latencyReset answers LATENCY RESET [event...] with how many were forgotten.
func latencyReset(_ *Server, _ *State, _ [][]byte, dst []byte) ([]byte, Action) {
	return resp.AppendInt(dst, 0), ActionNone
}

const noLatencyMonitor = "Latency events are not recorded by this server.\n"
