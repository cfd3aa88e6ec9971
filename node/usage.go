package node

import (
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// memoryUsage: MEMORY USAGE key [SAMPLES count]. Values have no parts that could be sampled yet.
func memoryUsage(r *request) {
	for options := r.args[3:]; len(options) > 0; options = options[2:] {
		if len(options) < 2 || !is(options[0], "SAMPLES") {
			r.fail(errSyntax)
			return
		}
		n, ok := resp.ParseInt(options[1])
		if !ok {
			r.fail(errNotInteger)
			return
		}
		if n < 0 {
			r.fail(errSyntax)
			return
		}
	}
	t := r.lock()
	bytes, found := t.Footprint(r.args[2])
	t.Unlock()
	if !found {
		r.replyNull()
		return
	}
	r.replyInt(bytes)
}

// memoryStats: MEMORY STATS
func memoryStats(r *request) {
	n, version := r.node, r.version()
	r.answerLater(func() []byte {
		_, covered := n.coverage(&allPartitions)
		counters, _, err := n.gatherCounters(&covered)
		if err != nil {
			return resp.AppendError(nil, errBusy)
		}
		return figures.AppendMemoryStats(nil, version, &counters)
	})
}
