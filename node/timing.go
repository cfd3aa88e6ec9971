package node

import (
	"math"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/config"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Reading the clock takes about a fifth of the time of a GET. So at the usual threshold of the slow
// log, the node times only commands whose work grows with their arguments or values: a command that
// finds one key and copies a little never takes milliseconds. INFO and LATENCY know the times of
// the other commands from a sample: all commands of one input out of many.

const (
	// manyArgs is the number of arguments from which every command is timed.
	manyArgs = 64
	// fineThreshold is the threshold of the slow log below which all commands are timed: whoever
	// sets it wants to see them.
	fineThreshold = time.Millisecond
)

// timedFrom returns the number of arguments from which every command is timed.
func timedFrom(l *figures.SlowLog) int {
	switch threshold := l.Threshold(); {
	case threshold < 0:
		return math.MaxInt
	case threshold < fineThreshold:
		return 0
	}
	return manyArgs
}

// timed executes a command. It notes the time if that counts, and enters the command into the slow
// log if it was slow.
func (r *request) timed(run exec.Handler) {
	clock, cmd, args, upload := r.worker.loop.Clock, r.Cmd, r.Args, r.Upload
	before := r.took
	r.deferred, r.job = false, nil
	begun := clock()
	run(&r.Request)
	spent := clock() - begun
	r.spend(spent)
	took := before + spent
	if r.conn.Answering || r.deferred {
		if r.job != nil {
			r.job.took = took // what is to come counts as well
		}
		return
	}
	// Commands that are timed only because of many arguments would distort the sample.
	if r.timedFrom == 0 || plans[cmd.ID].timed {
		r.worker.noteTime(cmd.ID, took)
	}
	if l := &r.node.slow; l.Slow(took) {
		upload.HideElements(args)
		l.Add(figures.NewSlowEntry(r.conn.State.Addr, r.conn.State.Name, args), took, time.Now())
	}
}

// isFirst reports whether the present request is executed for the first time.
func (r *request) isFirst() bool {
	return r.Waited == 0 && r.Rest == nil && r.Rewrite == nil
}

// show has MONITOR show a request, if anybody watches. Then all commands are timed.
func (r *request) show() {
	if feed := r.worker.feed; feed.On() && session.Monitored(r.conn.State, r.Args) {
		feed.Show(func(dst []byte) []byte {
			return session.AppendMonitorLine(dst, r.conn.State, r.Database, r.Args, 0, time.Now().UnixMicro())
		})
	}
}

func (w *worker) noteTime(id command.ID, took time.Duration) {
	if w.times[id] == nil {
		w.times[id] = &figures.Durations{}
	}
	w.times[id].Note(took)
}

// spend notes what a command of this input that is not quick has taken of the loop's time.
func (r *request) spend(time time.Duration) {
	r.spent += time
	r.longEnough = r.longEnough || r.spent > r.node.turnTime
}

// timingLater is timed for a command that a goroutine answers.
type timingLater struct {
	worker *worker
	id     command.ID // 0: what members ask each other, not timed
	entry  figures.SlowEntry
}

func (r *request) timingLater() timingLater {
	if r.Cmd == nil || r.Cmd.Flags&command.Internal != 0 {
		return timingLater{}
	}
	if _, checks := config.Checked(r.Args); checks && r.Cmd.ID == command.ConfigSet {
		return timingLater{} // the client's CONFIG SET comes next
	}
	return timingLater{r.worker, r.Cmd.ID, figures.NewSlowEntry(r.conn.State.Addr, r.conn.State.Name, r.Args)}
}

// end is called on the loop, when the goroutine has answered.
func (t *timingLater) end(took time.Duration) {
	if t.id == 0 {
		return
	}
	t.worker.noteTime(t.id, took)
	if l := &t.worker.node.slow; l.Slow(took) {
		l.Add(t.entry, took, time.Now())
	}
}

// noteKeys counts the keys of a command that was executed in a sampled input, and the command for their database.
func (r *request) noteKeys(s *step) {
	switch s.plan.keys {
	case oneKey:
		if s.cmd.Flags&command.PubSub != 0 {
			return // a channel is no key
		}
		r.worker.hot.Note(r.Database, s.args[s.firstKey])
	case oneSlot, anySlots:
		r.worker.hot.NoteSome(r.Database, s.args, r.Keys)
	case noKeys, allKeys:
		return
	}
	r.worker.hot.NoteCommand(r.Database)
}
