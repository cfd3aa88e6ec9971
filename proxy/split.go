package proxy

import (
	"bytes"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
)

// fan is a command that is split by key (MGET, DEL) or by pair (MSET), or a chunk of one (chunks.go):
// each node that owns some of its keys gets one part.
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
	database uint8    // of the keys
	partOf   []int32  // which part holds the n-th key
	replies  [][]byte // of the parts done, for MergeArray
	parts    int32    // made so far
	pending  int32    // not done yet
	sum      int64    // for MergeSum
	failed   []byte   // the first error among the replies
	dropped  bool     // a large reply was not fetched, because nobody wants the whole one
	executed bool     // a part has succeeded
	bytes    int      // of replies, charged to the session
	of       *chunked // not nil: it is a chunk of this command
	chunk    uint32   // which one
	done     bool     // of a chunk: all parts are
	text     []byte   // of a chunk: the elements of its reply
}

// maxKeys is how many keys are split at once, in about 0.1 ms. A command of more goes in chunks,
// unless all lie in one partition.
const maxKeys = 1024

// split sends a command whose keys may lie on several nodes. It reports false if the command must
// wait.
func (s *client) split(cmd *command.Command, args [][]byte, raw []byte) bool {
	step, count := stepOf(cmd), s.parser.Count()
	if (count-1)%step != 0 {
		s.answer(resp.AppendErrorBytes(s.w.scratch[:0], command.AppendWrongArity(nil, cmd)))
		return true
	}
	if count > 1+maxKeys*step || len(raw) > order.HugeRequest {
		s.splitInChunks(cmd, args, raw)
		return true
	}
	if partition, same := s.samePartition(args, step); same {
		return s.forwardTo(s.origin(partition), cmd, args, raw)
	}
	if !s.enterLane(s.laneFor(len(raw), false)) {
		return false
	}
	f := &fan{s: s, cmd: cmd, seq: s.tail, step: step, database: s.state.Database}
	if s.sameOwner(args, step) {
		return f.forwardWhole(args, raw)
	}
	parts, full := f.plan(args)
	if full != nil {
		s.waitFor(full)
		return false
	}
	s.w.stats.Splits++
	s.issueCounted(cmd)
	f.sendParts(parts, args)
	s.w.act()
	return true
}

// wordsOf is the Limits.Words of a session: of a command that is split, no more arguments are kept
// than are split at once, unless a transaction queues it.
func (s *client) wordsOf(name, second []byte) int {
	if cmd := command.Lookup(name); cmd != nil && !s.state.Multi {
		switch cmd.Route {
		case command.SplitKeys, command.SplitPairs:
			return 1 + maxKeys*2
		}
	}
	return command.Words(name, second)
}

func stepOf(cmd *command.Command) int {
	if cmd.Route == command.SplitPairs {
		return 2
	}
	return 1
}

// samePartition reports whether all keys lie in one partition: the common `DEL key`.
func (s *client) samePartition(args [][]byte, step int) (partition uint16, same bool) {
	partition = s.partitionOf(args[1])
	for i := 1 + step; i < len(args); i += step {
		if s.partitionOf(args[i]) != partition {
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

func (s *client) ownerOf(key []byte) *order.Node { return s.w.order.Owner(s.partitionOf(key)) }

// forwardWhole sends a command unchanged, because one node owns all its keys. The command is a fan
// of one part, since its keys may have different owners if it has to be sent again.
func (f *fan) forwardWhole(args [][]byte, raw []byte) bool {
	s, owner := f.s, f.s.ownerOf(args[1])
	if p := owner.Pipe(s.Lane()); p.IsFull(len(raw)) {
		s.waitFor(p)
		return false
	}
	if s.parser.Inline() {
		raw = resp.AppendRequest(nil, args...)
	}
	f.whole((len(args) - 1) / f.step)
	s.issueCounted(f.cmd)
	f.send(owner, 0, raw, nil)
	s.w.act()
	return true
}

// whole makes the fan one part of so many keys.
func (f *fan) whole(keys int) {
	f.partOf, f.replies, f.parts, f.pending = make([]int32, keys), make([][]byte, 1), 1, 1
}

// plan divides the keys among parts. It returns a pipe that has no room for its part, nil if all
// have.
func (f *fan) plan(args [][]byte) (parts []part, full *order.Pipe) {
	s := f.s
	f.partOf = make([]int32, (len(args)-1)/f.step)
	parts = f.assign(args, func(i int) int { return i }, s.w.order.Owner)
	for i := range parts {
		if to := parts[i].Node; to != nil {
			if p := to.Pipe(s.Lane()); p.IsFull(headerRoom + parts[i].size) {
				return nil, p
			}
		}
	}
	return parts, nil
}

// sendParts sends what plan has planned.
func (f *fan) sendParts(parts []part, args [][]byte) {
	w, size := f.s.w, 0
	for i := range parts {
		size += headerRoom + parts[i].size
	}
	if cap(w.parts) < size {
		w.parts = make([]byte, 0, size)
	}
	f.fill(parts, args, func(i int) int { return i }, w.parts[:0])
	for i := range parts {
		f.send(parts[i].Node, parts[i].ID, parts[i].Raw, nil)
	}
	if cap(w.parts) > keepParts {
		w.parts = nil
	}
}

// keepParts is the largest buffer for parts that a worker keeps.
const keepParts = 512 << 10

// send sends a part, or has it parked. It copies raw unless there is a body.
func (f *fan) send(owner *order.Node, id int32, raw []byte, body order.Body) {
	w := f.s.w
	r := order.Request{Session: &f.s.Session, Part: f, Seq: f.seq, ID: id, Origin: f.s.origin(0)}
	r.Chunk = f.chunk
	if p := w.order.SubmitTo(owner, r, raw, body, w.loop.Now()); p != nil {
		w.write(p)
	}
}

// part is one owner's share of a split command while it is built.
type part struct {
	order.Piece
	keys int
	size int // what Raw takes at most beyond headerRoom
}

const (
	headerRoom = 64 // what stands before the arguments of a request: their number, and the command
	bulkRoom   = 16 // what an argument takes beside its bytes
)

// assign makes one part for each owner of keys in args. position maps the n-th key in args to its
// place in the whole command.
func (f *fan) assign(args [][]byte, position func(int) int, owner func(partition uint16) *order.Node) (parts []part) {
	for i := 1; i < len(args); i += f.step {
		var to *part
		parts, to = f.partFor(parts, owner(f.partitionOf(args[i])))
		to.keys++
		f.partOf[position((i-1)/f.step)] = to.ID
		for _, arg := range args[i : i+f.step] {
			to.size += bulkRoom + len(arg)
		}
	}
	return parts
}

// fill writes the requests of the parts to dst, which must have room for all of them.
func (f *fan) fill(parts []part, args [][]byte, position func(int) int, dst []byte) {
	for i := range parts {
		p := &parts[i]
		p.Raw, dst = dst[:0:headerRoom+p.size], dst[headerRoom+p.size:headerRoom+p.size]
		p.Raw = resp.AppendArray(p.Raw, 1+p.keys*f.step)
		p.Raw = resp.AppendBulkString(p.Raw, f.cmd.Name)
	}
	first := parts[0].ID
	for i := 1; i < len(args); i += f.step {
		to := &parts[f.partOf[position((i-1)/f.step)]-first]
		for _, arg := range args[i : i+f.step] {
			to.Raw = resp.AppendBulk(to.Raw, arg)
		}
	}
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

func (f *fan) partitionOf(key []byte) uint16 {
	return f.s.w.order.Placement().PartitionOf(f.database, key)
}

// Partitions lists the partitions of a part's keys, unless these are long.
func (f *fan) Partitions(raw []byte, atMost int) (partitions []uint16) {
	args := argsOf(raw)
	for i := 1; i < len(args); i += f.step {
		if atMost -= len(args[i]); atMost < 0 {
			return nil
		}
		partitions = append(partitions, f.partitionOf(args[i]))
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
	position := func(i int) int { return places[i] }
	args := argsOf(raw)
	parts := f.assign(args, position, owner)
	f.fill(parts, args, position, make([]byte, 0, len(raw)+len(parts)*headerRoom+len(args)*bulkRoom))
	pieces := make([]order.Piece, len(parts))
	for i := range parts {
		pieces[i] = parts[i].Piece
	}
	return pieces
}

// Done receives the reply to one part, which is valid during the call.
func (f *fan) Done(id int32, reply []byte) {
	if f.isWhole() {
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

// drop notes that a part was answered, and that nobody wants to know what.
func (f *fan) drop() {
	f.dropped = true
	f.finish()
}

// isWhole reports whether one node has the whole command: there is nothing to merge.
func (f *fan) isWhole() bool { return f.parts == 1 && f.of == nil }

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
	if f.of != nil {
		f.of.chunkDone(f)
		return
	}
	f.s.gather(-f.bytes)
	out := f.s.w.scratch[:0]
	switch {
	case f.dropped:
	case f.failed != nil:
		out = appendFailure(out, f.cmd, f.failed, f.executed)
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
func appendFailure(out []byte, cmd *command.Command, failed []byte, executed bool) []byte {
	if !executed || cmd.Flags&command.Write == 0 {
		return append(out, failed...)
	}
	text := bytes.TrimSuffix(bytes.TrimPrefix(failed, []byte("-")), []byte("\r\n"))
	return resp.AppendErrorBytes(out, append([]byte("ERR executed for some keys only: "), text...))
}

// appendArray appends the array of the parts' elements, in the order of the keys.
func (f *fan) appendArray(out []byte) []byte {
	out = slices.Grow(out, headerRoom+f.bytes) // once: it may be long
	out, ok := f.appendElements(resp.AppendArray(out, len(f.partOf)))
	if !ok {
		return append(out[:0], errMerge...)
	}
	return out
}

// appendElements appends the parts' elements in the order of the keys. Within a part they already have
// that order. It reports false if a part has more elements or fewer than keys.
func (f *fan) appendElements(out []byte) (_ []byte, ok bool) {
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
			return out, false
		}
		out = append(out, rest[:scan.Len()]...)
		f.replies[part] = rest[scan.Len():]
	}
	for _, rest := range f.replies {
		if len(rest) > 0 {
			return out, false
		}
	}
	return out, true
}
