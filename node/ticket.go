package node

import (
	"bytes"
	"sync"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// A large reply on a common pipe would hold up the replies of all other sessions behind it. So the command is executed in
// its turn, but answered by a ticket: the reply stays here, its values pinned, and the proxy fetches it over another pipe,
// piece by piece, as fast as its client takes it, and lets the ticket go:
//
//	common pipe  GET k                  ─> -DUNLINLARGE ticket length
//	fetch pipe   FETCH ticket 0 131072  ─> the first 128 KiB of the reply    FETCH ticket 131072 131072 ─> ...
//	common pipe  FETCH ticket 0 0       ─> "", the pins end
//
// What comes later on the common pipe may change the key: the reply is that of the command's turn.

const (
	// ticketFrom is how many bytes of pinned values are worth a second way to the node.
	ticketFrom = 256 << 10
	// ticketText is how many bytes a ticket copies at most beside them.
	ticketText = 64 << 10
	// ticketMemory and pinnedMemory are what a ticket, and each value of it, take beside the text.
	ticketMemory, pinnedMemory = 256, 64
)

// ticketOffice has the tickets of all pipes. They are given and redeemed on different loops. Pins are released under its
// lock, and it is never taken with a shard's.
type ticketOffice struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]*ticket
}

// ticket is one reply.
type ticket struct {
	pipe   *pipe // ends it when it closes
	text   []byte
	values []exec.Pinned // what comes before text[at:], in order
	size   int           // of all
	charge int64         // what the ticket takes of the node's limit, beside its values
	// FETCH goes on where the last one ended, as a rule: behind some of the values.
	offset, texts, next int // bytes of the reply, bytes of text and values before them
}

func (o *ticketOffice) issue(t *ticket) (number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = make(map[uint64]*ticket)
	}
	o.last++
	o.open[o.last] = t
	return o.last
}

// appendPiece appends a part of a reply as a bulk, if p's proxy was given that ticket. dst has room for it.
func (o *ticketOffice) appendPiece(dst []byte, p *pipe, number uint64, from, count int) (_ []byte, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.open[number]
	if t == nil || t.pipe.key.boot != p.key.boot || from > t.size {
		return dst, false
	}
	count = min(count, t.size-from)
	dst = resp.AppendBulkHeader(dst, count)
	return append(t.appendPart(dst, from, count), "\r\n"...), true
}

// appendPart appends bytes from … from+count of the reply.
func (t *ticket) appendPart(dst []byte, from, count int) []byte {
	if from < t.offset {
		t.offset, t.texts, t.next = 0, 0, 0
	}
	for count > 0 {
		part, end := t.text[t.texts:], len(t.text)
		inText := t.next == len(t.values) || t.texts < t.values[t.next].At
		switch {
		case !inText:
			part = t.values[t.next].Bytes
		case t.next < len(t.values):
			end = t.values[t.next].At
			part = t.text[t.texts:end]
		}
		if skip := from - t.offset; skip < len(part) {
			n := min(len(part)-skip, count)
			dst = append(dst, part[skip:skip+n]...)
			from, count = from+n, count-n
			if skip+n < len(part) {
				break
			}
		}
		t.offset += len(part)
		if inText {
			t.texts = end
		} else {
			t.next++
		}
	}
	return dst
}

// drop ends a ticket.
func (o *ticketOffice) drop(p *pipe, number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.open[number]; t != nil && t.pipe == p {
		o.end(number, t)
	}
}

// close ends the tickets of a pipe.
func (o *ticketOffice) close(p *pipe) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for number, t := range o.open {
		if t.pipe == p {
			o.end(number, t)
		}
	}
}

func (o *ticketOffice) end(number uint64, t *ticket) {
	for i := range t.values {
		t.values[i].Pin.Release()
	}
	t.pipe.conn.node.refundHeap(t.charge)
	delete(o.open, number)
}

// ticketed puts a ticket in the place of the reply that begins at start, with the pins from the given one on, if that is
// large and goes over a common pipe.
func (r *request) ticketed(start, firstPin int) {
	p := r.conn.pipe
	if p == nil || p.key.kind != member.Common || len(r.Out)-start > ticketText {
		return
	}
	size := 0
	for i := firstPin; i < len(r.Pins); i++ {
		size += len(r.Pins[i].Bytes)
	}
	text, values := len(r.Out)-start, len(r.Pins)-firstPin
	charge := int64(ticketMemory + text + values*pinnedMemory)
	if size < ticketFrom || !r.node.chargeHeap(charge) {
		return
	}
	t := &ticket{pipe: p, text: bytes.Clone(r.Out[start:]), size: text + size, values: make([]exec.Pinned, values), charge: charge}
	copy(t.values, r.Pins[firstPin:])
	for i := range t.values {
		t.values[i].At -= start
	}
	clear(r.Pins[firstPin:])
	r.Pins, r.PinnedBytes = r.Pins[:firstPin], r.PinnedBytes-size
	p.tickets = true
	r.Out = member.AppendTicket(r.Out[:start], r.node.tickets.issue(t), t.size)
}

// redeem: DUNLIN FETCH ticket offset count. A count of 0 ends the ticket, on the pipe that it came on.
func redeem(r *request) {
	piece, ok := member.ParseFetch(r.Args[2:])
	p := r.conn.pipe
	if !ok || p == nil {
		r.Fail(errBadFetch)
		return
	}
	if piece.Count == 0 {
		r.node.tickets.drop(p, piece.Ticket)
		r.ReplyBulk(nil)
		return
	}
	if !r.Room(piece.Count + exec.LineRoom) {
		return
	}
	out, ok := r.node.tickets.appendPiece(r.Out, p, piece.Ticket, piece.Offset, piece.Count)
	if r.Out = out; !ok {
		r.Fail(errNoTicket)
	}
}
