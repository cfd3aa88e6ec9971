package proxy

import (
	"slices"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// collector gathers the replies to the parts of one command.
type collector interface {
	// partDone is the final reply to part id. reply is valid during the call.
	partDone(id int32, reply []byte)
}

// fan is a command split by key (MGET, DEL) or by pair (MSET): each node that owns some of its keys gets one part.
//
//	MGET a b c d  ─>  part 0 to n1: MGET a c      partOf = [0 1 0 1]
//	                  part 1 to n2: MGET b d
//
// A part whose keys have moved apart meanwhile is split further when it is sent again.
type fan struct {
	s       *client
	cmd     *command.Command
	seq     uint64
	step    int      // arguments a key: 1, or 2 for pairs
	partOf  []int32  // which part holds the n-th key
	replies [][]byte // of the parts done, for MergeArray
	parts   int32    // made so far
	pending int32    // not done yet
	sum     int64    // for MergeSum
	failed  []byte   // the first error among the replies
	bytes   int      // that the session has gathered for it
}

// split sends a command whose keys may lie on several nodes. False: it must wait.
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
	f := &fan{s: s, cmd: cmd, seq: s.tail, step: step, partOf: make([]int32, (len(args)-1)/step)}
	for i := range f.partOf {
		f.partOf[i] = -1
	}
	s.w.stats.Splits++
	s.issueCounted(cmd)
	f.pending = 1 // until all parts are made: a part may end at once
	f.sendParts(args, func(i int) int { return i }, origin{})
	f.finish()
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
	first := s.w.owner[ring.PartitionOf(args[1])]
	for i := 1 + step; i < len(args); i += step {
		if s.w.owner[ring.PartitionOf(args[i])] != first {
			return false
		}
	}
	return first != nil
}

// fullOwner is a pipe among those of the keys' owners that cannot take the command, or nil.
func (s *client) fullOwner(args [][]byte, step, size int) *pipe {
	for i := 1; i < len(args); i += step {
		if owner := s.w.owner[ring.PartitionOf(args[i])]; owner != nil {
			if p := owner.pipe(s.lane); p.state == pipeOpen && p.full(size) {
				return p
			}
		}
	}
	return nil
}

// forwardWhole sends a command of several keys with one owner as it is. It is a fan of one part, since its keys may have
// different owners when it has to be sent again.
func (s *client) forwardWhole(cmd *command.Command, args [][]byte, raw []byte) bool {
	p := s.w.owner[ring.PartitionOf(args[1])].pipe(s.lane)
	if p.state == pipeOpen && p.full(len(raw)) {
		s.waitFor(p)
		return false
	}
	if s.parser.Inline() {
		raw = resp.AppendRequest(nil, args...)
	}
	f := &fan{s: s, cmd: cmd, seq: s.tail, step: stepOf(cmd), partOf: make([]int32, (len(args)-1)/stepOf(cmd)), parts: 1, pending: 1}
	f.replies = make([][]byte, 1)
	s.issueCounted(cmd)
	s.remote++
	f.dispatch(p, request{client: s, part: f, seq: f.seq}, raw, s.take(raw))
	return true
}

// part is what one owner gets of a split command while it is put together.
type part struct {
	owner *peer
	id    int32
	keys  int
	size  int // what raw takes at most
	raw   []byte
}

const (
	headerRoom = 64 // what stands before the arguments of a request: their number, and the command
	bulkRoom   = 16 // what an argument takes beside its bytes
)

// sendParts makes one part of the keys in args for each owner. position maps the n-th key in args to its place in the
// whole command; from is what the parts inherit. Values are copied once: there may be half a gigabyte of them.
func (f *fan) sendParts(args [][]byte, position func(int) int, from origin) {
	var parts []part
	first := f.parts
	for i := 1; i < len(args); i += f.step {
		var to *part
		parts, to = f.partFor(parts, f.s.w.owner[ring.PartitionOf(args[i])])
		to.keys++
		f.partOf[position((i-1)/f.step)] = to.id
		for _, arg := range args[i : i+f.step] {
			to.size += bulkRoom + len(arg)
		}
	}
	for i := range parts {
		p := &parts[i]
		p.raw = resp.AppendArray(make([]byte, 0, headerRoom+p.size), 1+p.keys*f.step)
		p.raw = resp.AppendBulkString(p.raw, f.cmd.Name)
	}
	for i := 1; i < len(args); i += f.step {
		to := &parts[f.partOf[position((i-1)/f.step)]-first]
		for _, arg := range args[i : i+f.step] {
			to.raw = resp.AppendBulk(to.raw, arg)
		}
	}
	for _, p := range parts {
		f.s.remote++
		r := request{client: f.s, part: f, seq: f.seq, id: p.id, origin: from}
		f.dispatchTo(p.owner, r, p.raw)
	}
}

// partFor is the part for an owner, made if it is the first key of that owner. There are as many parts as nodes at most.
func (f *fan) partFor(parts []part, owner *peer) ([]part, *part) {
	for i := range parts {
		if parts[i].owner == owner {
			return parts, &parts[i]
		}
	}
	parts = append(parts, part{owner: owner, id: f.parts})
	f.parts++
	f.pending++
	f.replies = append(f.replies, nil)
	return parts, &parts[len(parts)-1]
}

// dispatchTo gives a part away, and with it raw.
func (f *fan) dispatchTo(owner *peer, r request, raw []byte) {
	var body *netloop.Buffer
	if len(raw) > hugeRequest {
		body = new(netloop.Buffer) // not to be copied; the memory is the garbage collector's
	}
	if owner == nil {
		f.s.hold(r, raw, body)
		return
	}
	f.dispatch(owner.pipe(f.s.lane), r, raw, body)
}

func (f *fan) dispatch(p *pipe, r request, raw []byte, body *netloop.Buffer) {
	if p.state != pipeOpen || p.latch.on {
		r.since = max(r.since, p.outOfReach())
		f.s.hold(r, raw, body)
		return
	}
	p.send(r, raw, body)
}

// resend sends a held part again, split further if its keys no longer have one owner.
func (f *fan) resend(h *held) bool {
	var p resp.Parser
	p.SetLimits(resp.Limits{}) // it passed the client's limits
	if p.Parse(h.raw) != resp.Done {
		panic("BUG: a request made by the proxy does not parse")
	}
	args := p.Args()
	s := f.s
	if !s.sameOwner(args, f.step) {
		return f.resendApart(h, args)
	}
	pipe := s.ready(s.w.owner[ring.PartitionOf(args[1])], len(h.raw))
	if pipe == nil {
		return false
	}
	pipe.send(h.request, h.raw, h.body)
	return true
}

// resendApart replaces a held part by several. All owners must be there, so that the session's order is kept.
func (f *fan) resendApart(h *held, args [][]byte) bool {
	for i := 1; i < len(args); i += f.step {
		if f.s.ready(f.s.w.owner[ring.PartitionOf(args[i])], len(h.raw)) == nil {
			return false
		}
	}
	var places []int
	for place, part := range f.partOf {
		if part == h.id {
			places = append(places, place)
		}
	}
	f.sendParts(args, func(i int) int { return places[i] }, h.origin)
	h.body.Release()
	f.s.remote--
	f.finish() // the part that was replaced
	return true
}

// partDone takes the reply to one part.
func (f *fan) partDone(id int32, reply []byte) {
	f.s.remote--
	if f.parts == 1 {
		f.s.reply(f.seq, reply) // the whole command went to one node
		return
	}
	if resp.IsError(reply) {
		if f.failed == nil {
			f.failed = append([]byte(nil), reply...)
		}
	} else if !f.merge(id, reply) && f.failed == nil {
		f.failed = errMerge
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

// finish ends one pending part; after the last one the whole reply is delivered.
func (f *fan) finish() {
	f.pending--
	if f.pending > 0 || f.s.closed {
		return
	}
	f.s.gather(-f.bytes)
	out := f.s.w.scratch[:0]
	switch {
	case f.failed != nil:
		out = append(out, f.failed...)
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

// appendArray puts the parts' elements into the order of the keys: within a part they are in that order already.
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
