package node

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/script"
)

// runner executes scripts: a machine, of which it is the Host, and a request of its own for their commands.
type runner struct {
	hand
	machine *script.Machine
	run     *scriptRun
	local   []byte        // a key of the run's partition
	quick   int           // commands since await has looked
	checked time.Duration // when check was asked before a command
	counted bool          // a command was executed
}

func (n *Node) newRunner() any {
	x := &runner{hand: hand{node: n}, machine: script.NewMachine()}
	x.equip(new(exec.Worker))
	return x
}

func (x *runner) equip(w *exec.Worker) {
	x.hand.equip(w)
	x.Request.Keyspace = scriptKeys{x}
}

func (x *runner) begin(w *scriptRun) {
	x.run, x.local, x.checked, x.quick = w, x.local[:0], 0, commandsAtOnce
	x.state.Executing = true
	x.Placement, x.Closed = x.node.placing.Load().Placement, x.node.closed()
	x.Partition, x.Database = w.partition, w.database
	if w.moves {
		x.Database = w.replay.database
	}
	x.Request.Hold = nil
	if w.keyed {
		x.Request.Hold = x.node.engine.Holder(w.partition)
	}
}

// end gives back what the run has taken, and the runner if it is whole: behind a panic it is not used again.
func (x *runner) end(whole bool) {
	defer x.node.ungrant(x.machine.Granted()) // another script may take it when this one's values are garbage
	if x.later != nil {
		x.later.End()
		x.later = nil
	}
	x.EndScripted()
	if x.counted {
		count := x.Worker.Count
		x.run.count, x.Worker.Count, x.counted = &count, exec.Counters{}, false
	}
	x.run, x.Request.Hold = nil, nil
	if whole {
		x.machine.End()
		x.node.scripts.runners.Put(x)
	}
}

// Look is script.Host's.
func (x *runner) Look() error {
	w := x.run
	if err := w.check(); err != nil {
		return err
	}
	if err := w.checkHold(x.Request.Hold); err != nil {
		return err
	}
	if time.Since(w.first) > restAfter {
		_ = exec.Step(w.steps) // whether the script ends is decided above
	}
	if time.Since(w.turn) <= placeTurn {
		return nil
	}
	if !w.places.hasWaiting() {
		w.turn = time.Now()
		return nil
	}
	w.leave()
	return w.enter(true)
}

// More is script.Host's.
func (x *runner) More(n int64) bool { return x.node.grant(n) }

// Log is script.Host's.
func (x *runner) Log(level int, line string) {
	at := [...]slog.Level{slog.LevelDebug, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn}[level]
	ctx := context.Background()
	if !x.node.log.Enabled(ctx, at) {
		return
	}
	may, skipped := x.node.scripts.lines.take(time.Now())
	if skipped > 0 {
		x.node.log.Warn("scripts have logged too many lines: some are left out", "lines", skipped)
	}
	if may {
		x.node.log.Log(ctx, at, "script: "+line)
	}
}

// lineLimit bounds how many lines scripts log.
type lineLimit struct {
	mu      sync.Mutex
	since   time.Time // the second that is counted
	lines   int       // in it
	skipped int
}

// linesEachSecond is how many lines all scripts log in a second.
const linesEachSecond = 100

// take reports whether another line may be logged, and how many were left out in the second before.
func (l *lineLimit) take(now time.Time) (may bool, skipped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.since) >= time.Second {
		skipped = l.skipped
		l.since, l.lines, l.skipped = now, 0, 0
	}
	if l.lines == linesEachSecond {
		l.skipped++
		return false, 0
	}
	l.lines++
	return true, skipped
}

// Knows is script.Host's.
func (x *runner) Knows(args [][]byte) bool {
	c, _ := command.Resolve(nil, args)
	return c != nil
}

// Call is script.Host's.
func (x *runner) Call(args [][]byte, v resp.Version) (reply []byte, end error) {
	x.EndScripted() // of the command before
	if reply, ok := x.run.replay.take(args); ok {
		return reply, nil
	}
	x.BeginScripted(&x.conn, x.run.now)
	x.state.Version = v
	if text := x.refuse(args); text != "" {
		x.Out = resp.AppendError(x.Out, text)
		return x.Out, nil
	}
	if end = x.await(); end != nil {
		return nil, end
	}
	x.counted = true
	if !x.run.replay.goOn(x) {
		if mayWrite(x.Cmd) && !x.run.write() {
			return nil, x.run.killedError()
		}
		x.Worker.Count.Commands[x.Cmd.ID]++
		x.execute()
	}
	if x.later != nil {
		x.goOn(x.run.workContext())
	}
	reply, ok := x.TakeScripted()
	if !ok {
		reply = lostReply(x.Cmd)
	}
	return x.run.pass(reply, mayWrite(x.Cmd)), nil
}

// lostReply stands for the reply to a command when there is no memory for that.
func lostReply(c *command.Command) []byte {
	if mayWrite(c) {
		return resp.AppendError(nil, exec.ErrReplyLost)
	}
	return resp.AppendError(nil, exec.ErrOOM)
}

// refuse returns why a script may not execute a command; otherwise it prepares the request.
func (x *runner) refuse(args [][]byte) (text string) {
	c := command.Lookup(args[0])
	if c != nil && c.Subs != nil && len(args) > 1 {
		c = c.Sub(args[1])
	}
	switch {
	case c == nil, !c.Built, c.Flags&command.Internal != 0:
		return errUnknown
	case !c.ArityOK(len(args)):
		return errWrongArgs
	case c.Flags&command.NoScript != 0 || c.Subs != nil:
		return errNoScripts
	case x.machine.ReadOnly() && mayWrite(c):
		return errReadOnly
	}
	switch x.Cmd, x.Args = c, args; plans[c.ID].keys {
	case oneKey, oneSlot, anySlots:
	default:
		if !isLocal(c.ID) && (c.ID != command.Keys || !x.isLocalPattern(args[1])) {
			return errNoScripts
		}
	}
	x.Keys, _ = c.AppendKeys(x.Keys[:0], args)
	x.Partitions = x.Partitions[:0]
	for _, at := range x.Keys {
		if !x.isLocalKey(args[at]) {
			return errNotLocal
		}
		x.Partitions = append(x.Partitions, x.run.partition)
	}
	return ""
}

// isLocalKey reports whether the script may use a key. Many use one key several times: the last one is known.
func (x *runner) isLocalKey(key []byte) bool {
	switch {
	case !x.run.keyed:
		return false
	case len(key) > 0 && bytes.Equal(key, x.local):
		return true
	case x.Placement.PartitionOf(x.Database, key) != x.run.partition:
		return false
	}
	if len(key) <= maxLocalKey {
		x.local = append(x.local[:0], key...)
	}
	return true
}

// maxLocalKey is the longest key that isLocalKey keeps, in bytes.
const maxLocalKey = 128

// mayWrite reports whether a command may change something that others see.
func mayWrite(c *command.Command) bool { return c.Flags&command.Write != 0 || isPublish(c) }

func isPublish(c *command.Command) bool { return c.ID == command.Publish || c.ID == command.SPublish }

// isLocal reports whether scripts may execute a command that needs no key.
func isLocal(id command.ID) bool {
	return id == command.Time || id == command.Ping || id == command.Echo || id == command.Select
}

// await waits until the node knows that it may serve the partition. It returns why the script must end. It looks once
// for a few quick commands, as a transaction does.
func (x *runner) await() error {
	if x.quick++; x.quick < commandsAtOnce && x.Cmd.Quick() {
		return nil
	}
	x.quick = 0
	for {
		now := x.node.cfg.Group.Clock()
		if x.checked == 0 || now-x.checked > checkPause {
			if err := x.run.check(); err != nil {
				return err
			}
			x.checked = now
		}
		if !x.run.keyed || !x.node.isFenced(now) {
			return nil
		}
		time.Sleep(fencedPause)
	}
}

// execute executes the present command. It may leave something to do.
func (x *runner) execute() {
	switch c := x.Cmd; {
	case c.ID == command.Time:
		x.Out = resp.AppendArray(x.Out, 2)
		for _, part := range [...]int64{x.Now / 1000, x.Now % 1000 * 1000} {
			x.ReplyBulk(strconv.AppendInt(nil, part, 10))
		}
	case c.ID == command.Select:
		if database, ok := x.DatabaseArg(1); !ok {
		} else if x.node.closed().Has(database) {
			x.Fail(exec.ErrClosed)
		} else {
			x.Select(database)
			x.ReplyOK()
		}
	case isPublish(c):
		view := x.node.view.Load()
		if x.node.isBroker(view, x.Args[1], x.run.keyed, x.run.partition) {
			x.node.publish(&x.Request, view, x.node.cfg.Group.Clock())
		} else if p, ok := x.node.newPublication(&x.Request); ok {
			x.later = p
		}
	case plans[c.ID].handler == nil:
		if size := len(x.Args[len(x.Args)-1]) + exec.LineRoom; !x.Room(size) { // ECHO's and PING's text
			return
		}
		if out, _, ok := x.node.session.Do(&x.state, c, x.Args, x.Out); ok {
			x.Out = out
		}
	default:
		plans[c.ID].handler(&x.Request)
	}
}
