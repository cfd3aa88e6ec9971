package proxy

import (
	"bytes"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// fan is a command that is split by key (MGET, DEL) or by pair (MSET): each node that owns some of
// its keys gets one part.
//
//	MGET a b c d  ─>  part 0 to n1: MGET a c      partOf = [0 1 0 1]
//	                  part 1 to n2: MGET b d
//
// When a part is sent again and its keys have different owners by then, it is split further.
type fan struct {
	s        *client
	cmd      *command.Command
	seq      uint64
	step     int      // arguments a key: 1, or 2 for pairs
	partOf   []int32  // which part holds the n-th key
	replies  [][]byte // of the parts done, for MergeArray
	parts    int32    // made so far
	pending  int32    // not done yet
	sum      int64    // for MergeSum
	failed   []byte   // the first error among the replies
	executed bool     // a part has succeeded
	bytes    int      // of replies, charged to the session
	copied   int      // bytes of long parts, charged to the session
}

// split sends a command whose keys may lie on several nodes. It reports false if the command must
// wait.
func (s *client) split(cmd *command.Command, args [][]byte, raw []byte) bool {
	step := stepOf(cmd)
	if (len(args)-1)%step != 0 {
		s.answer(resp.AppendErrorBytes(s.w.scratch[:0], command.AppendWrongArity(nil, cmd)))
		return true
	}
	if partition, same := samePartition(args, step); same {
		return s.forwardTo(partition, cmd, args, raw)
	}
	if !s.enterLane(s.laneFor(len(raw), false)) {
		return false
	}
	if s.sameOwner(args, step) {
		return s.forwardWhole(cmd, args, raw)
	}
	if full := s.fullOwner(args, step, len(raw)); full != nil {
		s.waitFor(full)
		return false
	}
	copied := 0
	if len(raw) > order.HugeRequest { // its parts may be too long to be copied into pipes' buffers
		if copied = len(raw); !s.Keep(copied) {
			s.answer(errNotParked)
			return true
		}
	}
	f := &fan{s: s, cmd: cmd, seq: s.tail, step: step, partOf: make([]int32, (len(args)-1)/step), copied: copied}
	for i := range f.partOf {
		f.partOf[i] = -1
	}
	s.w.stats.Splits++
	s.issueCounted(cmd)
	for _, piece := range f.divide(args, func(i int) int { return i }, s.w.order.Owner) {
		f.send(piece.Node, piece.ID, piece.Raw, longBody(piece.Raw))
	}
	s.w.act()
	return true
}

func stepOf(cmd *command.Command) int {
	if cmd.Route == command.SplitPairs {
		return 2
	}
	return 1
}

// samePartition reports whether all keys lie in one partition: the common `DEL key`.
func samePartition(args [][]byte, step int) (partition uint16, same bool) {
	partition = ring.PartitionOf(args[1])
	for i := 1 + step; i < len(args); i += step {
		if ring.PartitionOf(args[i]) != partition {
			return 0, false
		}
	}
	return partition, true
}

// sameOwner reports whether one node owns all keys.
func (s *client) sameOwner(args [][]byte, step int) bool {
	first := s.ownerOf(args[1])
	for i := 1 + step; i < len(args); i += step {
		if s.ownerOf(args[i]) != first {
			return false
		}
	}
	return first != nil
}

func (s *client) ownerOf(key []byte) *order.Node { return s.w.order.Owner(ring.PartitionOf(key)) }

// fullOwner returns a pipe, to an owner of the keys, that has no room for the command; nil if all
// have room.
func (s *client) fullOwner(args [][]byte, step, size int) *order.Pipe {
	for i := 1; i < len(args); i += step {
		if owner := s.ownerOf(args[i]); owner != nil {
			if p := owner.Pipe(s.Lane()); p.IsFull(size) {
				return p
			}
		}
	}
	return nil
}

// forwardWhole sends a command unchanged, because one node owns all its keys. The command is a fan
// of one part, since its keys may have different owners if it has to be sent again.
func (s *client) forwardWhole(cmd *command.Command, args [][]byte, raw []byte) bool {
	owner := s.ownerOf(args[1])
	if p := owner.Pipe(s.Lane()); p.IsFull(len(raw)) {
		s.waitFor(p)
		return false
	}
	if s.parser.Inline() {
		raw = resp.AppendRequest(nil, args...)
	}
	f := &fan{s: s, cmd: cmd, seq: s.tail, step: stepOf(cmd),
		partOf: make([]int32, (len(args)-1)/stepOf(cmd)), parts: 1, pending: 1}
	f.replies = make([][]byte, 1)
	s.issueCounted(cmd)
	var body order.Body
	if len(raw) > order.HugeRequest {
		body = s.Take(raw)
	}
	f.send(owner, 0, raw, body)
	s.w.act()
	return true
}

// send sends a part, or has it parked.
func (f *fan) send(owner *order.Node, id int32, raw []byte, body order.Body) {
	w := f.s.w
	r := order.Request{Session: &f.s.Session, Part: f, Seq: f.seq, ID: id}
	if p := w.order.SubmitTo(owner, r, raw, body, w.loop.Now()); p != nil {
		w.write(p)
	}
}

// longBody returns the Body of a part that is too long to be copied, nil for a shorter one. The
// garbage collector frees its memory.
func longBody(raw []byte) order.Body {
	if len(raw) > order.HugeRequest {
		return order.Collected{}
	}
	return nil
}

// part is one owner's share of a split command while it is built.
type part struct {
	order.Piece
	keys int
	size int // what Raw takes at most
}

const (
	headerRoom = 64 // what stands before the arguments of a request: their number, and the command
	bulkRoom   = 16 // what an argument takes beside its bytes
)

// divide makes one part for each owner of keys in args. position maps the n-th key in args to its
// place in the whole command. Values are copied only once, because they can take half a gigabyte.
func (f *fan) divide(args [][]byte, position func(int) int, owner func(partition uint16) *order.Node) (pieces []order.Piece) {
	var parts []part
	first := f.parts
	for i := 1; i < len(args); i += f.step {
		var to *part
		parts, to = f.partFor(parts, owner(ring.PartitionOf(args[i])))
		to.keys++
		f.partOf[position((i-1)/f.step)] = to.ID
		for _, arg := range args[i : i+f.step] {
			to.size += bulkRoom + len(arg)
		}
	}
	for i := range parts {
		p := &parts[i]
		p.Raw = resp.AppendArray(make([]byte, 0, headerRoom+p.size), 1+p.keys*f.step)
		p.Raw = resp.AppendBulkString(p.Raw, f.cmd.Name)
	}
	for i := 1; i < len(args); i += f.step {
		to := &parts[f.partOf[position((i-1)/f.step)]-first]
		for _, arg := range args[i : i+f.step] {
			to.Raw = resp.AppendBulk(to.Raw, arg)
		}
	}
	for i := range parts {
		pieces = append(pieces, parts[i].Piece)
	}
	return pieces
}

// partFor returns the part for an owner, which it makes at that owner's first key. There are at
// most as many parts as nodes.
func (f *fan) partFor(parts []part, owner *order.Node) ([]part, *part) {
	for i := range parts {
		if parts[i].Node == owner {
			return parts, &parts[i]
		}
	}
	parts = append(parts, part{Piece: order.Piece{Node: owner, ID: f.parts}})
	f.parts++
	f.pending++
	f.replies = append(f.replies, nil)
	return parts, &parts[len(parts)-1]
}

// argsOf parses a part.
func argsOf(raw []byte) [][]byte {
	var p resp.Parser
	p.SetLimits(resp.Limits{}) // it passed the client's limits
	if p.Parse(raw) != resp.Done {
		panic("BUG: a request made by the proxy does not parse")
	}
	return p.Args()
}

// Partitions lists the partitions of a part's keys.
func (f *fan) Partitions(raw []byte) (partitions []uint16) {
	args := argsOf(raw)
	for i := 1; i < len(args); i += f.step {
		partitions = append(partitions, ring.PartitionOf(args[i]))
	}
	return partitions
}

// Divide splits a part whose keys no longer have one owner.
func (f *fan) Divide(id int32, raw []byte, owner func(partition uint16) *order.Node) []order.Piece {
	var places []int
	for place, part := range f.partOf {
		if part == id {
			places = append(places, place)
		}
	}
	f.pending-- // the part that is replaced
	return f.divide(argsOf(raw), func(i int) int { return places[i] }, owner)
}

// Done receives the reply to one part, which is valid during the call.
func (f *fan) Done(id int32, reply []byte) {
	if f.parts == 1 {
		f.s.reply(f.seq, reply) // the whole command went to one node
		return
	}
	if resp.IsError(reply) {
		if f.failed == nil {
			f.failed = append([]byte(nil), reply...)
		}
	} else {
		f.executed = true
		if !f.merge(id, reply) && f.failed == nil {
			f.failed = errMerge
		}
	}
	n := len(f.replies[id])
	if f.bytes += n; !f.s.gatherFor(f.seq, n) {
		return
	}
	f.finish()
}

func (f *fan) merge(id int32, reply []byte) bool {
	switch f.cmd.Merge {
	case command.MergeSum:
		n, ok := resp.DecodeInt(reply)
		f.sum += n
		return ok
	case command.MergeArray:
		f.replies[id] = append([]byte(nil), reply...)
		_, _, ok := resp.DecodeArray(reply)
		return ok
	}
	return true
}

// finish counts a finished part. After the last one it delivers the whole reply.
func (f *fan) finish() {
	f.pending--
	if f.pending > 0 || f.s.isClosed() {
		return
	}
	if f.copied > 0 {
		f.s.Keep(-f.copied)
	}
	f.s.gather(-f.bytes)
	out := f.s.w.scratch[:0]
	switch {
	case f.failed != nil:
		out = f.appendFailure(out)
	case f.cmd.Merge == command.MergeSum:
		out = resp.AppendInt(out, f.sum)
	case f.cmd.Merge == command.MergeArray:
		out = f.appendArray(out)
	default:
		out = resp.AppendSimple(out, "OK")
	}
	f.s.w.keepScratch(out)
	f.s.reply(f.seq, out)
}

// appendFailure appends the error of the first part that failed. It may say that the command was not
// executed; so if another part has changed something, the client is told that first.
func (f *fan) appendFailure(out []byte) []byte {
	if !f.executed || f.cmd.Flags&command.Write == 0 {
		return append(out, f.failed...)
	}
	text := bytes.TrimSuffix(bytes.TrimPrefix(f.failed, []byte("-")), []byte("\r\n"))
	return resp.AppendErrorBytes(out, append([]byte("ERR executed for some keys only: "), text...))
}

// appendArray appends the parts' elements in the order of the keys. Within a part they already have
// that order.
func (f *fan) appendArray(out []byte) []byte {
	size := headerRoom
	for _, r := range f.replies {
		size += len(r)
	}
	out = resp.AppendArray(slices.Grow(out, size), len(f.partOf)) // once: it may be long
	for i, r := range f.replies {
		if len(r) > 0 {
			_, header, _ := resp.DecodeArray(r)
			f.replies[i] = r[header:]
		}
	}
	var scan resp.Scanner
	for _, part := range f.partOf {
		rest := f.replies[part]
		if scan.Scan(rest) != resp.Done {
			return append(out[:0], errMerge...)
		}
		out = append(out, rest[:scan.Len()]...)
		f.replies[part] = rest[scan.Len():]
	}
	for _, rest := range f.replies {
		if len(rest) > 0 {
			return append(out[:0], errMerge...) // more elements than keys
		}
	}
	return out
}
