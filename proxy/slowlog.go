package proxy

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
)

// A proxy's slow log has the commands that it answers itself, with the time that its loop took, and
// the commands over the whole cluster, with the time from the first question to the reply. Nodes
// have logs of what they execute. SLOWLOG shows all of them in one.

// fineThreshold is the threshold below which quick commands are timed too, as in a node.
const fineThreshold = time.Millisecond

// times reports whether a command that the proxy answers itself is timed.
func (p *Proxy) times(cmd *command.Command) bool {
	if cmd.Quick() {
		threshold := p.slow.Threshold()
		return 0 <= threshold && threshold < fineThreshold
	}
	return true
}

// noteSlow enters a command into the slow log if it was slow. It does not keep args.
func (s *client) noteSlow(cmd *command.Command, args [][]byte, took time.Duration) {
	if l := &s.w.proxy.slow; l.Slow(took) && cmd.Flags&command.Secret == 0 {
		l.Add(figures.NewSlowEntry(s.state.Addr, s.state.Name, args), took, time.Now())
	}
}
