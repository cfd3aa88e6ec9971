package proxy

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/config"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

const (
	// infoPatience is how long INFO waits for all nodes: it must answer when some are not there, too.
	infoPatience = time.Second
	firstPause   = 10 * time.Millisecond // before nodes are asked again
	maxPause     = 100 * time.Millisecond
)

// infoQuestion is the request that a node answers with its counters, callsQuestion with what it knows of commands too.
var (
	infoQuestion  = [][]byte{[]byte("INFO")}
	callsQuestion = [][]byte{[]byte("INFO"), []byte("commandstats")}
)

// maxConcat bounds the reply to KEYS, which is put together in memory.
const maxConcat = 256 << 20

// census is a command over the whole cluster: DBSIZE, FLUSHALL, KEYS, SCAN, RANDOMKEY, INFO, WAIT, CONFIG on the nodes'
// parameters. Each round asks every node about those of its partitions that no answer has covered yet; nodes say which they
// covered, since partitions may move meanwhile. Rounds go on until nothing is left, or for as long as any command is held.
type census struct {
	s        *client
	cmd      *command.Command
	seq      uint64
	args     [][]byte // of the client's command, owned
	question [][]byte // what nodes are asked: args, as a rule
	want     ring.PartitionSet
	pending  int // answers of this round still to come
	deadline time.Duration
	pause    time.Duration // before the next round
	version  resp.Version  // of the reply: the client may switch while it waits
	failed   []byte

	sum      int64 // DBSIZE, and the keys among which RANDOMKEY chooses
	wait     waiting
	over     bool   // answered by somebody else
	chosen   []byte // RANDOMKEY: the key, as a bulk; nil: none yet
	elements []byte // KEYS, encoded
	count    int
	counters figures.Counters // INFO
	calls    *figures.Calls   // INFO commandstats
	nodes    int
	settings config.OfNodes     // CONFIG GET
	asked    []asked            // by the parts' ids
	slow     figures.SlowLogs   // SLOWLOG GET
	figures  figures.KeyFigures // HOTKEYS GET, HOTKEYS BIG
	scan     scanRound          // SCAN
}

// asked is a question to a node, about some of its partitions.
type asked struct {
	node  *order.Node
	share ring.PartitionSet
}

// everywhere starts a command over the whole cluster. False: it must wait. It travels on the large lane, since it may
// keep a node busy.
func (s *client) everywhere(cmd *command.Command, args [][]byte) bool {
	if cmd.ID == command.Info && !figures.InfoNeedsNodes(args[1:]) {
		return s.local(cmd, args)
	}
	if s.Outstanding() > 0 {
		return false // rounds are repeated: nothing may pass them, nor they anything
	}
	c := &census{s: s, cmd: cmd, deadline: s.w.loop.Now() + s.w.proxy.cfg.Hold, version: s.state.Version, pause: firstPause}
	if c.brief() {
		c.deadline = min(c.deadline, s.w.loop.Now()+infoPatience)
	}
	if refusal := c.prepare(args); refusal != nil {
		s.answer(refusal)
		return true
	}
	s.w.order.Begin(&s.Session, order.Lane{Kind: member.Large, Version: s.state.Version})
	c.seq = s.tail
	if cmd.ID == command.Wait {
		s.w.stats.Commands[cmd.ID]++ // its time is the client's choice, and no latency
		s.issue()
		s.wait(&session.Waiting{Reply: func() []byte { return c.appendReply(nil) }, Stop: c.stop})
	} else {
		s.issueCounted(cmd)
	}
	c.round()
	return true
}

// prepare chooses what the nodes are asked, and about which partitions. It returns an error to be answered instead, or nil.
func (c *census) prepare(args [][]byte) (refusal []byte) {
	first := 0
	if c.cmd.Merge == command.MergeScan {
		cursor, ok := member.ParseCursor(args[1])
		if !ok {
			return errCursor
		}
		c.scan.cursor = cursor
		first = cursor.Partition()
	}
	c.want.AddFrom(first)
	c.args = cloneAll(args)
	c.question = c.args
	switch c.cmd.ID {
	case command.Wait:
		return c.beginWait()
	case command.ConfigGet:
		c.question = config.NodesQuestion
	case command.MemoryStats:
		c.question = infoQuestion
	case command.LatencyHistogram:
		c.question = callsQuestion
	case command.Info:
		c.question = infoQuestion
		if figures.InfoNeedsCalls(args[1:]) {
			c.question = callsQuestion
		}
	}
	return nil
}

// round asks every node that owns wanted partitions.
func (c *census) round() {
	if c.s.isClosed() || c.over {
		return
	}
	if c.s.w.loop.Now() > c.deadline {
		if c.brief() {
			c.finish(c.appendReply(nil)) // of the nodes that there are
			return
		}
		c.finish(errHeldLong)
		return
	}
	c.begin()
	w := c.s.w
	c.pending = 1 // this loop
	for _, owner := range w.order.Nodes() {
		share := c.want.Intersect(owner.Owns())
		if share.Empty() {
			continue
		}
		r := order.Request{Session: &c.s.Session, Part: c, Seq: c.seq, ID: int32(len(c.asked))}
		if w.order.Ask(owner.Pipe(c.s.Lane()), r, member.AppendEach(nil, &share, c.question...), w.loop.Now()) {
			c.pending++
			c.asked = append(c.asked, asked{owner, share})
		}
	}
	w.act()
	c.answered()
}

// brief reports whether it is a question about the nodes rather than about partitions: answered soon, by the nodes that
// there are.
func (c *census) brief() bool {
	switch c.cmd.ID {
	case command.ConfigGet, command.SlowLogLen, command.SlowLogGet, command.HotKeysGet, command.HotKeysBig:
		return true
	}
	return c.cmd.Merge == command.MergeInfo || c.cmd.Merge == command.MergeLeast
}

// begin forgets what must not be added to in a further round: SCAN's answers, and those that are not about partitions. Nothing
// of the round before is on its way any more.
func (c *census) begin() {
	c.asked = c.asked[:0]
	c.scan.begin()
	if c.brief() {
		c.counters, c.nodes = figures.Counters{}, 0
		if c.asksCalls() {
			c.calls = &figures.Calls{}
		}
		c.settings, c.slow, c.sum = config.OfNodes{}, figures.SlowLogs{}, 0
		c.wait.least = math.MaxInt64
		c.figures = figures.KeyFigures{}
		c.want.AddFrom(0)
	}
}

// Done takes a node's answer: the partitions that it covers, and the reply.
func (c *census) Done(id int32, reply []byte) {
	if resp.IsError(reply) {
		c.failed = append([]byte(nil), reply...)
		c.answered()
		return
	}
	covered, inner, ok := member.ParseAnswer(reply)
	if ok {
		missing := c.asked[id].share
		missing.RemoveAll(covered)
		c.s.w.order.Distrust(c.asked[id].node, &missing)
		ok = c.merge(covered, inner, c.asked[id].node.Member.ID)
	}
	if !ok && c.failed == nil {
		c.failed = errMerge
	}
	c.answered()
}

func (c *census) merge(covered *ring.PartitionSet, inner []byte, node string) bool {
	if c.cmd.Merge == command.MergeScan {
		return c.scan.add(covered, inner)
	}
	c.want.RemoveAll(covered)
	if c.cmd.ID == command.ConfigGet {
		return c.settings.Add(inner)
	}
	switch c.cmd.Merge {
	case command.MergeSlowLog:
		return c.slow.Add(inner, node)
	case command.MergeKeyFigures:
		return c.figures.Decode(inner)
	case command.MergeSum:
		n, ok := resp.DecodeInt(inner)
		c.sum += n
		return ok
	case command.MergeLeast:
		n, ok := resp.DecodeInt(inner)
		c.wait.least = min(c.wait.least, n)
		return ok
	case command.MergeConcat:
		n, header, ok := resp.DecodeArray(inner)
		if len(c.elements)+len(inner) > maxConcat {
			c.failed = errKeysMany
			return true
		}
		before := cap(c.elements)
		c.elements = append(c.elements, inner[header:]...)
		c.count += max(n, 0)
		c.s.gather(cap(c.elements) - before)
		return ok
	case command.MergeRandom:
		return c.choose(inner)
	case command.MergeInfo:
		c.nodes++
		return c.addInfo(inner)
	}
	return true
}

// Undone is called for a question that was not answered: its partitions stay wanted.
func (c *census) Undone() { c.answered() }

// choose takes a node's answer to RANDOMKEY: among how many keys it has chosen, and which; or nothing, if it has none. The more
// keys a node has, the more probably its key is the answer.
func (c *census) choose(answer []byte) bool {
	n, header, ok := resp.DecodeArray(answer)
	if !ok || n != 0 && n != 2 {
		return false
	}
	if n == 0 {
		return true
	}
	var scan resp.Scanner
	if scan.Scan(answer[header:]) != resp.Done {
		return false
	}
	count, ok := resp.DecodeInt(answer[header : header+scan.Len()])
	if !ok || count <= 0 || count > math.MaxInt64-c.sum {
		return false
	}
	if c.sum += count; rand.Int64N(c.sum) < count {
		c.chosen = append(c.chosen[:0], answer[header+scan.Len():]...)
	}
	return true
}

// asksCalls reports whether the nodes are asked what they know of commands.
func (c *census) asksCalls() bool { return &c.question[0] == &callsQuestion[0] }

// addInfo takes a node's counters, or counters and calls.
func (c *census) addInfo(inner []byte) bool {
	if c.asksCalls() {
		n, header, ok := resp.DecodeArray(inner)
		var scan resp.Scanner
		if !ok || n != 2 || scan.Scan(inner[header:]) != resp.Done || !c.calls.Decode(inner[header+scan.Len():]) {
			return false
		}
		inner = inner[header : header+scan.Len()]
	}
	counters, ok := figures.DecodeCounters(inner)
	c.counters.Add(&counters)
	return ok
}

// answered counts an answer of the round; after the last one the command is finished, or asked again.
func (c *census) answered() {
	c.pending--
	if c.pending > 0 || c.s.isClosed() || c.over {
		return
	}
	switch {
	case c.failed != nil:
		c.finish(c.failed)
	case c.complete():
		c.finish(c.appendReply(c.s.w.scratch[:0]))
	default:
		left := max(c.deadline-c.s.w.loop.Now(), 0) + time.Millisecond
		c.s.w.loop.After(min(c.pause, left), c.round)
		c.pause = min(2*c.pause, maxPause)
	}
}

func (c *census) complete() bool {
	if c.cmd.Merge == command.MergeScan {
		return c.scan.conclude(&c.want)
	}
	if c.cmd.Merge == command.MergeLeast {
		return c.waited()
	}
	return c.want.Empty()
}

func (c *census) appendReply(out []byte) []byte {
	switch c.cmd.ID {
	case command.ConfigGet:
		return c.s.w.proxy.settings.AppendGetOfNodes(out, c.version, c.args, &c.settings)
	case command.MemoryStats:
		return figures.AppendMemoryStats(out, c.version, &c.counters)
	case command.LatencyHistogram:
		return figures.AppendLatencyHistogram(out, c.version, c.args, c.calls)
	}
	switch c.cmd.Merge {
	case command.MergeSlowLog:
		count, _ := figures.SlowLogCount(c.args) // the nodes have checked it
		return c.slow.Append(out, count)
	case command.MergeKeyFigures:
		figure := figures.UsesASecond
		if c.cmd.ID == command.HotKeysBig {
			figure = figures.BytesOfKey
		}
		return figures.AppendKeyFigures(out, c.version, figure, c.figures.Top())
	case command.MergeSum:
		return resp.AppendInt(out, c.sum)
	case command.MergeLeast:
		return resp.AppendInt(out, c.wait.best)
	case command.MergeConcat:
		return append(resp.AppendArray(out, c.count), c.elements...)
	case command.MergeRandom:
		if c.chosen == nil {
			return resp.AppendNull(out, c.version)
		}
		return append(out, c.chosen...)
	case command.MergeInfo:
		return c.s.w.proxy.appendInfo(out, c.version, c.args[1:], figures.Info{Counters: c.counters, Calls: c.calls, Nodes: c.nodes})
	case command.MergeScan:
		out = resp.AppendArray(out, 2)
		out = resp.AppendBulk(out, c.scan.next.Append(nil))
		return append(resp.AppendArray(out, c.scan.count), c.scan.keys...)
	}
	return resp.AppendSimple(out, "OK")
}

func (c *census) finish(reply []byte) {
	s := c.s
	if s.isClosed() {
		return
	}
	s.gather(-cap(c.elements))
	if s.state.Waiting != nil && s.waits == c.seq {
		s.state.Waiting = nil
		s.unblock()
	}
	s.End()
	s.reply(c.seq, reply)
}

// stop ends a command that somebody else answers.
func (c *census) stop() {
	c.over = true
	c.s.End()
}
