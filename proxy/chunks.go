package proxy

import (
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
)

// A split command of more than maxKeys keys, or of more than order.HugeRequest bytes, goes in
// chunks. Its loop sends one chunk in an iteration, for all such commands together, and serves
// others in between. Each chunk is a fan, whose parts are ordinary requests: so latches and parked
// requests are what they are for a client that sends the chunks one by one. The chunks of a command
// share its number and have one of their own, in whose order parked ones are sent again: the later
// of two values for a key stands.
//
//	input, taken over  MSET a 1 b 2 c 3 d 4 ...
//	chunks             [MSET a 1 b 2] [MSET c 3 d 4] ...   at most maxFlying on their way
//	reply              the sum, OK, or the array: what is over maxReplyBytes passes on as it comes
//
// A command whose keys all lie in one partition is not cut, because it is atomic: it goes to its owner
// as it is.
const (
	maxFlying  = 4         // chunks of a command that have no reply yet, while no other commands come
	chunkBytes = 256 << 10 // of the arguments of a chunk; a key and its value that take more are a chunk
	firstKeys  = 16        // of the first chunks of a command whose reply grows with its keys
	replyBytes = 256 << 10 // of the reply to a later chunk, as far as foreseen
	// hugePair is from how many bytes on a key and its value travel alone, where they lie.
	hugePair = order.HugeRequest - headerRoom
)

// chunked is a command that is sent in chunks.
type chunked struct {
	longRequest
	step  int    // arguments a key
	left  int    // number of keys that are not sent
	count int    // of all keys
	cuts  uint32 // chunks sent

	partition uint16 // of the keys that were looked at
	looked    int    // how many all lie in it
	lookedTo  int    // where in raw they end
	apart     bool   // there are others

	flying []*fan // the chunks on their way, in order
	huge   bool   // one of them is a key and its value, in raw
	rests  bool   // it is in pace.resting
	atOnce int    // keys of the next chunk

	sum      int64  // of MergeSum
	failed   []byte // the first error
	executed bool   // a part has succeeded

	texts  [][]byte // of MergeArray: what follows in the reply, in order
	held   int      // their bytes
	begun  bool     // the reply is in the output, up to them; a muted one never is
	unsent int      // bytes of it that the client has not got
}

// splitInChunks begins a command that goes in chunks. args may lack those behind the first maxKeys.
func (s *client) splitInChunks(cmd *command.Command, args [][]byte, raw []byte) {
	l, ok := s.newLongRequest(cmd, args, raw)
	if !ok {
		return
	}
	c := &chunked{longRequest: l, step: stepOf(cmd), atOnce: maxKeys, lookedTo: l.next}
	c.count = (s.parser.Count() - 1) / c.step
	c.left = c.count
	if cmd.Merge == command.MergeArray {
		c.atOnce = firstKeys
	}
	s.w.stats.Splits++
	s.issueCounted(cmd)
	s.long = c
	c.goOn()
}

func (c *chunked) goOn() {
	if c.rests || c.queued || c.s.long != c || c.s.waitsFor != nil || len(c.flying) >= c.mayFly() || c.huge {
		return
	}
	if c.cmd.Merge == command.MergeArray && (c.s.head != c.seq || c.unsent > maxReplyBytes) {
		return
	}
	if (c.apart || c.looked == c.count) && !c.mayEnter() {
		return // a turn would do nothing, and others wait for theirs
	}
	if c.mustRest() {
		c.rest()
		return
	}
	c.queued = true
	c.s.w.turns.take(c.s.w.loop, c)
}

// mayFly returns how many chunks may be on their way. Beside other commands it is one: nodes work on a
// chunk for as long as on hundreds of them.
func (c *chunked) mayFly() int {
	if c.s.w.hasOthers() {
		return 1
	}
	return maxFlying
}

// mayEnter reports whether what comes next may be sent now.
func (c *chunked) mayEnter() bool {
	switch {
	case !c.apart:
		return c.s.enterLane(c.lane())
	case c.nextIsHuge():
		return len(c.flying) == 0 && c.s.enterLane(c.lane())
	}
	return c.s.enterLane(c.s.laneFor(min(len(c.raw), order.HugeRequest), false))
}

func (c *chunked) turn() {
	switch c.queued = false; {
	case c.s.long != c: // the client has gone
	case !c.apart && c.looked < c.count:
		c.look()
		c.goOn()
	case !c.apart:
		c.s.sendWhole(&c.longRequest, c.partition)
	default:
		c.sendChunk()
	}
}

// look finds out whether the next keys lie in the partition of those before.
func (c *chunked) look() {
	for range min(maxKeys, c.count-c.looked) {
		key, next := resp.DecodeArgument(c.raw, c.lookedTo)
		p := c.s.partitionOf(key)
		if c.looked > 0 && p != c.partition {
			c.apart = true
			return
		}
		if c.step == 2 {
			_, next = resp.DecodeArgument(c.raw, next)
		}
		c.partition, c.lookedTo = p, next
		c.looked++
	}
}

func (c *chunked) take([]byte) order.Body {
	if c.memory == nil {
		return nil
	}
	return c.give()
}

// sendChunk sends the next chunk, if it can be sent now.
func (c *chunked) sendChunk() {
	if !c.mayEnter() {
		return
	}
	if c.mustRest() { // another command's chunk went first
		c.rest()
		return
	}
	s := c.s
	args, next, huge := c.cut()
	defer clear(args)
	f := &fan{s: s, cmd: c.cmd, seq: c.seq, step: c.step, database: s.state.Database, of: c, chunk: c.cuts}
	if full := c.send(f, args, next, huge); full != nil {
		s.waitFor(full)
		return
	}
	if c.left == 0 {
		c.end()
	}
	s.w.act()
	c.goOn()
	s.progress()
}

// nextIsHuge reports whether the next key and its value are too long to be copied.
func (c *chunked) nextIsHuge() bool {
	end := c.next
	for range c.step {
		_, end = resp.DecodeArgument(c.raw, end)
	}
	return end-c.next > hugePair
}

// cut returns the arguments of the next chunk, valid until the next use of worker.words, and where
// they end. huge means that they are a single key, with a value that is too long to be copied.
func (c *chunked) cut() (args [][]byte, next int, huge bool) {
	args = append(c.s.w.words[:0], nil) // in the place of the command's name
	next = c.next
	for range min(c.atOnce, c.left) {
		key, end := resp.DecodeArgument(c.raw, next)
		var value []byte
		if c.step == 2 {
			value, end = resp.DecodeArgument(c.raw, end)
		}
		if len(args) > 1 && end-c.next > chunkBytes {
			break
		}
		if args = append(args, key); c.step == 2 {
			args = append(args, value)
		}
		next = end
	}
	c.s.w.words = args
	return args, next, next-c.next > hugePair
}

// send sends a chunk. It returns a pipe that has no room for it; then it has sent nothing.
func (c *chunked) send(f *fan, args [][]byte, next int, huge bool) (full *order.Pipe) {
	var parts []part
	var raw []byte
	owner := c.s.ownerOf(args[1])
	if huge {
		raw = c.inPlace(next)
		if owner != nil && owner.Pipe(c.s.Lane()).IsFull(len(raw)) {
			return owner.Pipe(c.s.Lane())
		}
		f.whole(1)
		c.huge = true
		c.memory.uses++
	} else if parts, full = f.plan(args); full != nil {
		return full
	}
	c.cuts++
	c.left -= len(f.partOf)
	c.next = next
	c.flying = append(c.flying, f)
	if f.chunk >= freeChunks {
		c.s.w.pace.begin(f)
	}
	if huge {
		f.send(owner, 0, raw, c.memory)
	} else {
		f.sendParts(parts, args)
	}
	return nil
}

// inPlace makes a request of the next key and its value, up to end, where they lie. The header takes
// the place of what lies before them, which is sent and answered, or is the command's own header.
func (c *chunked) inPlace(end int) []byte {
	header := resp.AppendBulkString(resp.AppendArray(nil, 1+c.step), c.cmd.Name)
	at := c.next - len(header)
	copy(c.raw[at:], header)
	return c.raw[at:end:end]
}

func (c *chunked) end() {
	c.s.long = nil
	c.left = 0
	c.drop()
}

// chunkDone is the event that all parts of a chunk have their replies.
func (c *chunked) chunkDone(f *fan) {
	s := c.s
	c.sum += f.sum
	c.executed = c.executed || f.executed
	f.done = true
	s.w.pace.came(f)
	if c.cmd.Merge == command.MergeArray && !c.gather(f) {
		return
	}
	if f.failed != nil && c.failed == nil {
		if c.failed = f.failed; s.long == c {
			c.end()
		}
	}
	for len(c.flying) > 0 && c.flying[0].done {
		if text := c.flying[0].text; text != nil {
			c.texts, c.held = append(c.texts, text), c.held+len(text)
		}
		c.flying[0] = nil
		c.flying = c.flying[1:]
	}
	c.huge = c.huge && len(c.flying) > 0
	if c.begun || c.held > maxReplyBytes {
		c.pass()
	}
	if c.left == 0 && len(c.flying) == 0 {
		c.finish()
		return
	}
	c.goOn()
	s.progress()
}

// gather puts the replies to the parts of a chunk together. It reports false if the session is closed.
func (c *chunked) gather(f *fan) bool {
	if !c.s.gather(f.bytes) {
		return false
	}
	text, ok := f.appendElements(make([]byte, 0, f.bytes))
	if !ok && f.failed == nil {
		f.failed = errMerge
	}
	if f.failed != nil {
		text = nil
	}
	c.s.gather(len(text) - 2*f.bytes)
	f.text, f.replies, f.bytes = text, nil, 0
	c.atOnce = min(max(replyBytes*len(f.partOf)/max(len(text), 1), 1), maxKeys)
	return true
}

// pass moves what is there of the reply to the output.
func (c *chunked) pass() {
	s := c.s
	if c.failed != nil {
		return
	}
	muted := s.mutes && s.isMuted(c.seq)
	if !c.begun && !muted {
		s.conn.SetOut(resp.AppendArray(s.conn.Out(), c.count))
	}
	c.begun, s.passing = !muted, !muted
	for _, text := range c.texts {
		if c.unsent += len(text); muted {
			(&chunkText{c, len(text)}).Release()
			continue
		}
		out := s.conn.Out()
		s.conn.SetOut(out)
		s.conn.Insert(len(out), text, &chunkText{c, len(text)})
	}
	c.texts, c.held = nil, 0
}

// chunkText is a part of a reply in the client's output.
type chunkText struct {
	c    *chunked
	size int
}

// Release is called once the text has been sent or dropped.
func (t *chunkText) Release() {
	t.c.unsent -= t.size
	t.c.s.gather(-t.size)
	t.c.goOn()
}

// finish answers the command.
func (c *chunked) finish() {
	s, out := c.s, c.s.w.scratch[:0]
	switch {
	case c.failed != nil && c.begun:
		s.w.stats.LostReplies++
		s.conn.Close(errCutOff)
		return
	case c.failed != nil:
		s.gather(-c.held)
		out = appendFailure(out, c.cmd, c.failed, c.executed)
	case c.cmd.Merge == command.MergeSum:
		out = resp.AppendInt(out, c.sum)
	case c.cmd.Merge == command.MergeArray:
		c.pass()
		s.passing = false
		s.replied(c.seq)
		s.passed()
		return
	default:
		out = resp.AppendSimple(out, "OK")
	}
	s.w.keepScratch(out)
	s.reply(c.seq, out)
}
