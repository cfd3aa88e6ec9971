package node

import (
	"math"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// To read the clock takes about as long as a fifth of a GET. So at the usual
// threshold of the slow log only those commands are timed whose work grows with
// their arguments or values; what finds one key and copies a little never takes
// milliseconds. How long the others take INFO and LATENCY tell from a sample: all
// commands of one input in so many.

const (
	// manyArgs is how many arguments make any command one to be timed.
	manyArgs = 64
	// fineThreshold is below which all commands are timed: who sets it wants to
	// see what he does.
	fineThreshold = time.Millisecond
)

// timedFrom is from how many arguments on any command is timed.
func timedFrom(l *figures.SlowLog) int {
	switch threshold := l.Threshold(); {
	case threshold < 0:
		return math.MaxInt
	case threshold < fineThreshold:
		return 0
	}
	return manyArgs
}

// timed executes a command, notes its time if it counts, and puts it into the
// slow log if it took long.
func (r *request) timed(run exec.Handler) {
	clock, cmd, args := r.worker.loop.Clock, r.Cmd, r.Args
	begun := clock()
	run(&r.Request)
	took := clock() - begun
	if r.conn.Answering {
		return // the goroutine's time counts
	}
	// Of commands that are timed only with many arguments the sample alone is fair.
	if r.timedFrom == 0 || plans[cmd.ID].timed {
		r.worker.noteTime(cmd.ID, took)
	}
	if l := &r.node.slow; l.Slow(took) {
		l.Add(figures.NewSlowEntry(r.conn.State.Addr, r.conn.State.Name, args), took, time.Now())
	}
}

// show has MONITOR show a request, if anybody watches: then all are timed.
func (r *request) show() {
	if feed := r.worker.feed; feed.On() && session.Monitored(r.conn.State, r.Args) {
		feed.Show(func(dst []byte) []byte {
			return session.AppendMonitorLine(dst, r.conn.State, r.Args, time.Now().UnixMicro())
		})
	}
}

func (w *worker) noteTime(id command.ID, took time.Duration) {
	if w.times[id] == nil {
		w.times[id] = &figures.Durations{}
	}
	w.times[id].Note(took)
}

// timingLater is timed for what a goroutine answers.
type timingLater struct {
	worker *worker
	id     command.ID // 0: a command between members, not timed
	entry  figures.SlowEntry
}

func (r *request) timingLater() timingLater {
	if r.Cmd == nil || r.Cmd.Flags&command.Internal != 0 {
		return timingLater{}
	}
	return timingLater{r.worker, r.Cmd.ID, figures.NewSlowEntry(r.conn.State.Addr, r.conn.State.Name, r.Args)}
}

// end is called on the loop.
func (t *timingLater) end(took time.Duration) {
	if t.id == 0 {
		return
	}
	t.worker.noteTime(t.id, took)
	if l := &t.worker.node.slow; l.Slow(took) {
		l.Add(t.entry, took, time.Now())
	}
}

// noteKeys counts the keys of a command that was executed in a sampled input.
func (r *request) noteKeys(s *step) {
	switch s.plan.keys {
	case oneKey:
		r.worker.hot.Note(s.args[s.firstKey])
	case oneSlot, anySlots:
		r.worker.hot.NoteSome(s.args, r.Keys)
	case noKeys, allKeys:
	}
}
