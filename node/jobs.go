package node

import (
	"context"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// A command that needs a goroutine, or several turns of its loop, holds up its own connection only if
// that is a client's, or a pipe of a proxy that does not know better. Otherwise it is answered by a
// token, the pipe goes on, and a push completes the command when the work is done (see
// internal/member):
//
//	loop        BITOP: token 7    GET    GET    ·········   push 7: execute again, reply
//	goroutine        └── crew: in turn ── Run ──┘ Post
//
// A command that only reads has pinned what it reads, so that later commands may pass it. One that
// writes is executed when it is completed, and one with keys in several partitions visits the rest
// of them then; until then the pipe's gate refuses others on these partitions. A transaction that holds
// its partition is one such write, whatever work its commands leave to goroutines. Nothing of a closed
// connection is executed any more, but for a transaction that has begun: its context has ended, and
// what is posted finds it closed.

// pushPause is how long completions wait when the proxy is slow to read what was sent before.
const pushPause = 2 * time.Millisecond

// maxCovering is how many commands over all keys a pipe may have at a time. They may wait for long, and must leave
// places to others: a pipe has at most member.MaxLater jobs of any kind.
const maxCovering = member.MaxLater / 4

// jobMemory is what a job takes in the Go heap beside the command's arguments, in bytes.
const jobMemory = 1 << 10

// noPartition is what a job is about that concerns no keys, or all.
const noPartition = ring.Partitions

// job is a command that a goroutine works on. It belongs to the connection's loop.
type job struct {
	cmd    *command.Command
	token  uint64       // 0: the connection waits for it
	charge int          // bytes charged to the connection
	keeps  []uint16     // partitions on which nothing may overtake the command
	about  uint16       // the partition of its keys, or the first; noPartition: it has none
	of     *transaction // not nil: it is work for that, which is executed to its end

	covers   bool               // it is counted in jobs.covering
	whole    bool               // it has changed something, or may have, and is executed to its end
	anew     bool               // what was computed for it was in vain, RewriteTries times at most
	took     time.Duration      // by its turns on the loop so far, if it is timed
	worked   time.Duration      // by goroutines that compute
	canceled bool               // nobody waits for it
	cancel   context.CancelFunc // ends the context of its goroutine, if nobody waits for it; nil: that goes on
}

// jobs are those of a connection.
type jobs struct {
	ctx    context.Context // ends with the connection; nil: nothing needed it yet
	cancel context.CancelFunc

	token    uint64          // of the newest job
	pending  map[uint64]*job // by token: those that are not completed
	covering int             // how many of them concern all keys
	charge   int             // their bytes
	finished []completion    // of which the goroutine has finished, in order
	armed    bool            // a timer calls deliver
	settling int             // jobs that change something whether or not the connection lives, and hold no partition
}

// completion is the end of a job.
type completion struct {
	job   *job
	reply func(r *request) // answers the command, or has a goroutine work on it again
	end   func()           // frees what reply has not used
}

// progress says how far a command has come when a goroutine goes on with it.
type progress uint8

const (
	unkeyed progress = iota // it concerns no keys
	covers                  // it concerns all keys, and ends when its client has gone, also halfway
	pinned                  // it has what it reads of r.Partition
	again                   // it will be executed again, on r.Partition
	halfway                 // it has visited some keys, and will visit the others in r.Partitions
)

// beginJob has the present command answered by a goroutine. A nil job means that the pipe has too
// many, and that the command is refused, which one that has come halfway cannot be.
func (r *request) beginJob(how progress) *job {
	if x := r.transaction; x != nil {
		r.job = x.beginWork(r)
		return r.job
	}
	if j := r.resumed; j != nil {
		r.goesOn(j)
		return j
	}
	if how != halfway && r.conn.later() && r.conn.jobs.isFull(how) {
		r.replyWait()
		if how != unkeyed && how != covers {
			r.latch(r.Partition)
		}
		return nil
	}
	if !r.deferrable() { // each run of a long command comes here: nothing is done for each of its keys
		return r.newJob(nil)
	}
	var keeps []uint16
	about := uint16(noPartition)
	switch how {
	case pinned:
		about = r.Partition
	case again:
		keeps, about = []uint16{r.Partition}, r.Partition
	case halfway:
		if r.listed != nil {
			keeps = r.listed.once
		} else {
			keeps = onceEach(r.Partitions)
		}
		about = keeps[0]
	case unkeyed, covers:
	}
	j := r.newJob(keeps)
	j.about = about
	if j.covers = how == covers; j.covers {
		r.conn.jobs.covering++
	}
	j.whole = how == halfway || how == unkeyed && r.Cmd.Flags&command.Write != 0
	if r.listed != nil {
		return j // its arguments are charged elsewhere
	}
	for _, arg := range r.Args {
		r.conn.charge(j, len(arg))
	}
	return j
}

// later reports whether the connection is a pipe whose commands may be answered later.
func (cn *conn) later() bool { return cn.pipe != nil && cn.pipe.later }

// onceEach returns each of some partitions once.
func onceEach(partitions []uint16) (once []uint16) {
	var seen ring.PartitionSet
	for _, p := range partitions {
		if !seen.Has(p) {
			seen.Add(p)
			once = append(once, p)
		}
	}
	return once
}

// deferrable reports whether the present command can be answered by a token.
func (r *request) deferrable() bool {
	return r.conn.later() && r.conn.jobs.working() < member.MaxLater
}

// working is how many jobs a goroutine or the loop works on.
func (js *jobs) working() int { return len(js.pending) }

// owesNothing reports whether no command of the connection is answered later.
func (cn *conn) owesNothing() bool { return cn.jobs.working() == 0 && !cn.hasWaits() }

// hasWaits reports whether the connection is a pipe of which commands wait for keys.
func (cn *conn) hasWaits() bool { return cn.pipe != nil && cn.pipe.waits.Len() > 0 }

// isFull reports whether no other job can begin.
func (js *jobs) isFull(how progress) bool {
	return js.working() >= member.MaxLater || how == covers && js.covering >= maxCovering
}

// newJob answers the present command by a token, or has its connection wait.
func (r *request) newJob(keeps []uint16) *job {
	cn := r.conn
	j := &job{cmd: r.Cmd}
	r.job = j
	if !r.deferrable() {
		cn.pause()
		return j
	}
	return r.tokenFor(j, keeps)
}

// tokenFor answers the present command by a token.
func (r *request) tokenFor(j *job, keeps []uint16) *job {
	r.job = j
	j.token, j.keeps = r.token(nil), keeps
	r.conn.pends(j)
	r.goesOn(j)
	return j
}

// token answers the present command by a token, and by IDs that it means from now on.
func (r *request) token(ids []byte) uint64 {
	js := &r.conn.jobs
	js.token++
	r.worker.Count.Deferred++
	r.Out = member.AppendLater(r.Out, js.token, ids)
	return js.token
}

// pends notes a job that has a token.
func (cn *conn) pends(j *job) {
	if cn.jobs.pending == nil {
		cn.jobs.pending = make(map[uint64]*job)
	}
	cn.jobs.pending[j.token] = j
	cn.charge(j, jobMemory)
}

// goesOn notes that the present command, which has a token, is not answered yet.
func (r *request) goesOn(j *job) {
	r.deferred, r.resumed, r.job = true, nil, j
	if len(j.keeps) > 0 {
		r.gate().Begun(j.keeps...)
		r.careful = r.gate().Careful(r.view, r.fenced)
	}
}

// charge counts bytes that a job keeps until it is completed. chargeParser charges them.
func (cn *conn) charge(j *job, bytes int) {
	if j.token != 0 {
		j.charge += bytes
		cn.jobs.charge += bytes
	}
}

// context returns what ends with the connection.
func (cn *conn) context() context.Context {
	js := &cn.jobs
	if js.ctx == nil {
		js.ctx, js.cancel = context.WithCancel(cn.node.ctx)
		if cn.closed {
			js.cancel()
		}
	}
	return js.ctx
}

// contextOf returns what ends the work for a job early: with the connection, or when the job is
// canceled.
func (cn *conn) contextOf(j *job) context.Context {
	ctx := cn.context()
	if j.token == 0 || j.whole {
		return ctx
	}
	if ctx, j.cancel = context.WithCancel(ctx); j.canceled {
		j.cancel()
	}
	return ctx
}

// cancelJob: DUNLIN CANCEL token. The reply does not say whether there is such a command.
func cancelJob(r *request) {
	token, ok := member.ParseCancel(r.Args[2])
	if !ok {
		r.Fail(exec.ErrNotInteger)
		return
	}
	if j := r.conn.jobs.pending[token]; j != nil {
		j.canceled = true
		if j.cancel != nil {
			j.cancel()
		}
	}
	if p := r.conn.pipe; p != nil {
		if w, ok := p.waits.Get(token); ok {
			w.cancel()
		}
	}
	r.ReplyOK()
}

// failCanceled answers a command for which nobody waits.
func failCanceled(r *request) { r.Fail(errCanceled) }

// finish ends the goroutine's part of a job, on the loop.
func (cn *conn) finish(j *job, reply func(r *request), end func()) {
	if j.cancel != nil {
		j.cancel() // the context's memory
	}
	answer := func(r *request) {
		r.Cmd = j.cmd
		j.took, j.worked = j.took+j.worked, 0
		r.took = j.took
		reply(r)
		r.took = 0
	}
	switch {
	case j.of != nil:
		defer end()
		cn.goOn(j.of, answer)
	case cn.closed || cn.context().Err() != nil: // the node closes
		end()
	case j.token == 0:
		defer end()
		cn.resume(answer)
	default:
		cn.jobs.finished = append(cn.jobs.finished, completion{j, answer, end})
		cn.deliver()
	}
}

// deliver completes the jobs that are finished, unless the proxy does not read.
func (cn *conn) deliver() {
	js := &cn.jobs
	for len(js.finished) > 0 && !cn.Closing && !cn.closed {
		if cn.Socket.Full() {
			cn.chargeParser()
			if !js.armed && !cn.closed {
				js.armed = true
				cn.worker.loop.After(pushPause, func() {
					js.armed = false
					cn.deliver()
				})
			}
			return
		}
		c := js.finished[0]
		js.finished[0] = completion{}
		if js.finished = js.finished[1:]; len(js.finished) == 0 {
			js.finished = nil
		}
		cn.complete(&c)
	}
}

// complete answers a command by a push, or has a goroutine work on it again.
func (cn *conn) complete(c *completion) {
	panics := true
	defer func() { cn.closeIf(panics) }()
	defer c.end()
	r, j := cn.worker.begin(cn), c.job
	if j.canceled && !j.whole {
		c.reply = failCanceled
	}
	if r.Room(exec.LineRoom) {
		start := len(r.Out)
		r.Out = member.AppendCompletion(r.Out, j.token)
		reply, pins := len(r.Out), len(r.Pins)
		var refused []uint16
		if len(j.keeps) > 0 {
			refused = r.gate().Resumed(j.keeps...)
			r.careful = r.gate().Careful(r.view, r.fenced)
		}
		r.Cmd, r.resumed, r.popped = j.cmd, j, 0
		c.reply(r)
		if again := r.resumed == nil; again {
			r.Undo(start)
		} else {
			r.resumed = nil
			delete(cn.jobs.pending, j.token)
			cn.jobs.charge -= j.charge
			if j.covers {
				cn.jobs.covering--
			}
			if len(r.Pins) > pins {
				r.ticketed(reply, pins)
			}
			if r.popped != 0 {
				r.InsertAhead(start, member.AppendPopped(nil, r.popped))
			}
		}
		r.gate().Refused(refused...)
	}
	cn.worker.Count.Output(r.Finish())
	panics = false
	cn.chargeParser()
	if cn.Closing {
		cn.Socket.CloseAfterFlush()
	}
}

// dropJobs ends the work for a connection that is closed.
func (cn *conn) dropJobs() {
	js := &cn.jobs
	if js.ctx == nil {
		return
	}
	js.cancel()
	for _, work := range cn.node.crew.Withdraw(&cn.queue) {
		work() // it finds that ctx has ended
	}
	for i := range js.finished {
		js.finished[i].end()
	}
	js.finished = nil
}
