package proxy

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// An XREAD or XREADGROUP that names streams of several slots is sent to the owner of each slot, without BLOCK, and the
// replies become one, in the order of the keys:
//
//	XREAD STREAMS a b c 0 0 0  ─▶  part 0: XREAD STREAMS a c 0 0      a: 1 entry
//	                           ─▶  part 1: XREAD STREAMS b 0          b: 2 entries
//	                           ◀─  a: 1 entry, b: 2 entries
//
// If a part fails, the client has its error, as it would if one server had looked at all keys first. But XREADGROUP has
// delivered what the other parts have: that stays pending for the consumer.
//
// With BLOCK it claims its streams (claims.go), and is sent when one of them is ready.

// scattered is such a command on its way.
type scattered struct {
	s       *client
	seq     uint64
	args    [][]byte
	reads   command.Reads
	partOf  []int // which part has the n-th key
	replies [][]byte
	pending int
	bytes   int // of replies, charged to the session
	charge  int // of the arguments
}

// isRead reports whether a command reads streams that may lie in several slots.
func isRead(cmd *command.Command) bool {
	return cmd.ID == command.XRead || cmd.ID == command.XReadGroup
}

// read sends an XREAD or XREADGROUP that names streams of several slots and does not wait. It reports false if the
// command must wait.
func (s *client) read(cmd *command.Command, args [][]byte) bool {
	reads := command.ReadsOf(args)
	ids := len(args) - reads.First - reads.Keys
	switch {
	case ids != reads.Keys: // its node says so
		args = nameOne(args)
		return s.forward(cmd, args, resp.AppendRequest(nil, args...))
	case reads.Keys > maxClaimed:
		s.answer(errManyReads)
		return true
	}
	size := sizeOf(args)
	if !s.enterLane(s.laneFor(size, false)) {
		return false
	}
	if !s.Keep(size) {
		s.answer(errNotParked)
		return true
	}
	s.issueCounted(cmd)
	s.w.stats.Splits++
	s.scatter(s.tail-1, cloneAll(args), size)
	return true
}

// nameOne returns an XREAD that its node refuses as it would refuse one that names several streams.
func nameOne(args [][]byte) [][]byte {
	at := command.ReadsOf(args)
	key, ids := args[at.First], at.IDs(args)
	one := slices.Clone(args[:at.First])
	if len(ids) != at.Keys {
		return append(one, key, key, key)
	}
	return append(one, key, ids[0])
}

// sizeOf is how much memory copies of arguments take, in bytes.
func sizeOf(args [][]byte) (size int) {
	for _, arg := range args {
		size += len(arg) + 24
	}
	return size
}

// scatter sends the parts of a command. charge, the memory of its arguments, is given back in the end.
func (s *client) scatter(seq uint64, args [][]byte, charge int) {
	c := &scattered{s: s, seq: seq, args: args, reads: command.ReadsOf(args), charge: charge}
	slots := c.divide()
	c.pending = len(slots)
	c.replies = make([][]byte, len(slots))
	w := s.w
	for i, slot := range slots {
		raw := c.part(i)
		r := order.Request{
			Session: &s.Session, Part: c, Seq: seq, ID: int32(i), Origin: s.origin(ring.Partition(slot)),
		}
		if p, ok := w.order.Submit(&s.Session, r, raw, w.loop.Now()); !ok {
			w.order.Park(r, raw, w.loop.Now())
		} else if p != nil {
			w.write(p)
		}
	}
	w.act()
}

// divide gives each slot a part, and returns the slots in the order of their first keys.
func (c *scattered) divide() (slots []uint16) {
	parts := make(map[uint16]int)
	for _, key := range c.keys() {
		slot := c.s.slotOf(key)
		part, known := parts[slot]
		if !known {
			part = len(slots)
			parts[slot], slots = part, append(slots, slot)
		}
		c.partOf = append(c.partOf, part)
	}
	return slots
}

func (c *scattered) keys() [][]byte { return c.args[c.reads.First : c.reads.First+c.reads.Keys] }

// part returns the request of a part.
func (c *scattered) part(part int) []byte {
	at := &c.reads
	words := [][]byte{c.args[0]}
	if at.Group > 0 {
		words = append(words, []byte("GROUP"), c.args[at.Group], c.args[at.Group+1])
	}
	if at.Count > 0 {
		words = append(words, []byte("COUNT"), c.args[at.Count])
	}
	if at.MinIdle > 0 {
		words = append(words, []byte("CLAIM"), c.args[at.MinIdle])
	}
	if at.NoAck > 0 {
		words = append(words, []byte("NOACK"))
	}
	words = append(words, []byte("STREAMS"))
	for _, list := range [2][][]byte{c.keys(), at.IDs(c.args)} {
		for i, of := range c.partOf {
			if of == part {
				words = append(words, list[i])
			}
		}
	}
	return resp.AppendRequest(nil, words...)
}

// Done implements order.Part: the reply to a part has come. It is copied.
func (c *scattered) Done(id int32, reply []byte) {
	c.pending--
	c.replies[id] = bytes.Clone(reply)
	c.bytes += len(reply)
	if c.s.isClosed() || !c.s.gatherFor(c.seq, len(reply)) || c.pending > 0 {
		return
	}
	out := c.merge(c.s.w.scratch[:0])
	c.s.gather(-c.bytes)
	c.s.Keep(-c.charge)
	c.s.w.keepScratch(out)
	c.s.reply(c.seq, out)
}

// merge appends the reply to the command.
func (c *scattered) merge(out []byte) []byte {
	for _, reply := range c.replies {
		if resp.IsError(reply) {
			return append(out, reply...)
		}
	}
	count := 0
	for i, reply := range c.replies {
		n, elements, ok := streamsIn(reply)
		if !ok {
			return append(out, errMerge...)
		}
		count += n
		c.replies[i] = elements
	}
	version := c.s.state.Version
	begun := len(out)
	switch {
	case count == 0:
		return resp.AppendNullArray(out, version)
	case version == resp.RESP2:
		out = resp.AppendArray(out, count)
	default:
		out = resp.AppendMap(out, version, count)
	}
	for i, key := range c.keys() {
		part := c.partOf[i]
		if n := lengthOf(c.replies[part], key, version); n > 0 {
			out = append(out, c.replies[part][:n]...)
			c.replies[part] = c.replies[part][n:]
			count--
		}
	}
	if count != 0 {
		return append(out[:begun], errMerge...)
	}
	return out
}

// streamsIn takes the reply to an XREAD apart, which is null, an array, or a map: how many streams it has, and what
// stands behind its head.
func streamsIn(reply []byte) (n int, elements []byte, ok bool) {
	end := bytes.IndexByte(reply, '\n') + 1
	head := bytes.TrimSuffix(reply[:end], []byte("\r\n"))
	switch {
	case len(head) == 1 && head[0] == '_', string(head) == "*-1":
		return 0, nil, true
	case len(head) < 2 || head[0] != '*' && head[0] != '%':
		return 0, nil, false
	}
	n, err := strconv.Atoi(string(head[1:]))
	return n, reply[end:], err == nil && n > 0
}

// lengthOf returns how long the first of some streams is, if it is that of a key; otherwise 0.
func lengthOf(elements, key []byte, version resp.Version) (n int) {
	var scan resp.Scanner
	at := 0
	if version == resp.RESP2 {
		pair, header, ok := resp.DecodeArray(elements)
		if !ok || pair != 2 {
			return 0
		}
		at = header
	}
	if len(elements) == at || elements[at] != '$' || scan.Scan(elements[at:]) != resp.Done {
		return 0
	}
	end := at + scan.Len()
	if name, ok := resp.DecodeBulk(elements[at:end]); !ok || !bytes.Equal(name, key) {
		return 0
	}
	scan.Reset()
	if scan.Scan(elements[end:]) != resp.Done {
		return 0
	}
	return end + scan.Len()
}
