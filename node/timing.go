package node

import (
	"math"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/session"
)

// To read the clock takes about as long as a fifth of a GET. So at the usual
// threshold of the slow log only those commands are timed whose work grows with
// their arguments or values; what finds one key and copies a little never takes
// milliseconds.

const (
	// manyArgs is how many arguments make any command one to be timed.
	manyArgs = 64
	// fineThreshold is below which all commands are timed: who sets it wants to
	// see what he does.
	fineThreshold = time.Millisecond
)

// light are commands that Redis does not flag as fast, but that are so here, or
// with few arguments.
var light = map[command.ID]bool{
	command.Set: true, command.SetEx: true, command.PSetEx: true, command.MSet: true, command.Del: true,
	command.GetRange: true, command.Substr: true, command.SetRange: true,
}

// isHeavy tells whether the time of a command is worth to be taken.
func isHeavy(c *command.Command) bool { return c.Flags&command.Fast == 0 && !light[c.ID] }

// hasSecret tells whether a request may show a password.
func hasSecret(c *command.Command) bool { return c.ID == command.Auth || c.ID == command.Hello }

// timedFrom is from how many arguments on any command is timed.
func timedFrom(l *session.SlowLog) int {
	switch threshold := l.Threshold(); {
	case threshold < 0:
		return math.MaxInt
	case threshold < fineThreshold:
		return 0
	}
	return manyArgs
}

// timed executes a command and puts it into the slow log if it took long.
func (r *request) timed(run func(r *request)) {
	clock, args := r.worker.loop.Clock, r.args
	begun := clock()
	run(r)
	took := clock() - begun
	if l := r.node.session.SlowLog(); l.Slow(took) && !r.conn.answering {
		l.Add(session.NewSlowEntry(r.conn.state, args), took, time.Now())
	}
}

// timedLater is timed for what a goroutine answers. Commands between members are
// left out, but those in EACH.
func (r *request) timedLater(answer func() []byte) func() []byte {
	l := r.node.session.SlowLog()
	if r.cmd == nil || r.cmd.Flags&command.Internal != 0 || l.Threshold() < 0 {
		return answer
	}
	e := session.NewSlowEntry(r.conn.state, r.args)
	return func() []byte {
		begun := time.Now()
		reply := answer()
		if took := time.Since(begun); l.Slow(took) {
			l.Add(e, took, time.Now())
		}
		return reply
	}
}

// slowLog: SLOWLOG GET | LEN | RESET
func slowLog(r *request) { r.out = r.node.session.AppendSlowLog(r.out, r.args) }
