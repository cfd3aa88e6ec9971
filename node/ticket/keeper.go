// Package ticket keeps large replies until their proxies have fetched them.
//
// A large reply on a common pipe would delay the replies of all other sessions behind it. So the
// node executes the command in its turn, but answers it by a ticket. The reply stays here, with its
// values pinned. The proxy fetches it over another pipe, piece by piece, as fast as its client
// reads, and then returns the ticket:
//
//	common pipe  GET k                  ─> -DUNLINLARGE ticket length
//	fetch pipe   FETCH ticket 0 131072  ─> the first 128 KiB of the reply    FETCH ticket 131072 131072 ─> ...
//	common pipe  FETCH ticket 0 0       ─> "", the pins end
//
// Later commands on the common pipe may change the key; the reply stays what it was in the
// command's turn.
package ticket

import (
	"sync"

	"github.com/dunlin-cache/dunlin/internal/hoard"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

const (
	// from is how many bytes of pinned values are worth another round trip to the node.
	from = 256 << 10
	// maxText is how many bytes a ticket copies at most beside the pinned values.
	maxText = 64 << 10
	// ticketMemory and valueMemory are the bytes that a ticket, and each of its values, takes in
	// the Go heap beside the text.
	ticketMemory, valueMemory = 256, 64
)

// Pipe is the connection over which a ticket is issued.
type Pipe interface {
	comparable
	// Boot identifies the proxy's process. The proxy may fetch the reply over any of its pipes.
	Boot() int64
}

// Keeper has the tickets of all pipes. A ticket may be issued on one loop and fetched on another.
// The Keeper releases pins under its lock, so no caller holds a shard's lock. The zero Keeper is
// ready to use.
type Keeper[P Pipe] struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]*ticket[P]
}

// ticket is one reply.
type ticket[P Pipe] struct {
	pipe   P // the ticket ends when this pipe closes
	text   []byte
	values []exec.Pinned // each comes before text[At:], in order
	size   int           // length of the reply
	heap   exec.Heap     // charged for charge
	charge int64         // bytes charged to the node's limit, beside the values

	pace    hoard.Pace
	fetched int // the proxy has fetched the reply up to here
	seen    int // fetched, as of the last look
	waited  int // looks before the first FETCH
	spared  int // looks that do not count in waited

	// A FETCH mostly continues where the last one ended. offset bytes of the reply, texts bytes of
	// text and next values come before the part in which that place lies.
	offset, texts, next int
}

// Fits reports whether a reply with the given bytes of text and of pinned values gets a ticket.
func Fits(text, values int) bool { return text <= maxText && values >= from }

// Issue removes the reply that begins at r.Out[start], with the pins from r.Pins[firstPin] on, from
// the output. It returns the ticket's number and the reply's length. If there is no memory, ok is
// false and the output is unchanged.
func (k *Keeper[P]) Issue(p P, r *exec.Request, start, firstPin int) (number uint64, size int, ok bool) {
	charge := int64(ticketMemory + len(r.Out) - start + (len(r.Pins)-firstPin)*valueMemory)
	if !r.Heap.Charge(charge) {
		return 0, 0, false
	}
	t := &ticket[P]{pipe: p, heap: r.Heap, charge: charge}
	t.text, t.values = r.Cut(start, firstPin)
	t.size = len(t.text)
	for i := range t.values {
		t.size += len(t.values[i].Bytes)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open == nil {
		k.open = make(map[uint64]*ticket[P])
	}
	k.last++
	k.open[k.last] = t
	return k.last, t.size, true
}

// AppendPiece appends count bytes of a reply from an offset on, fewer at its end, as a bulk string.
// ok is false if p's proxy has no such ticket, or from lies behind the reply. The caller has made
// room in dst.
func (k *Keeper[P]) AppendPiece(dst []byte, p P, number uint64, from, count int) (_ []byte, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.open[number]
	if t == nil || t.pipe.Boot() != p.Boot() || from > t.size {
		return dst, false
	}
	count = min(count, t.size-from)
	t.fetched = max(t.fetched, from+count)
	dst = resp.AppendBulkHeader(dst, count)
	return append(t.appendPart(dst, from, count), "\r\n"...), true
}

// appendPart appends bytes [from, from+count) of the reply.
func (t *ticket[P]) appendPart(dst []byte, from, count int) []byte {
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

// sparedLooks is how many times its patience a ticket may wait behind others.
const sparedLooks = 6

// BreakSlow ends tickets for lack of memory: those whose proxies fetch less than hoard.MinRate from
// one call to the next, those that nobody has begun to fetch for patience calls, and of the others
// the one that would take the longest, if that is more than patience calls. A FETCH then finds no
// ticket. A proxy fetches the tickets of one session one after the other, so no call counts against
// a ticket behind an older one of its pipe that moves; but six times patience such calls at most.
// BreakSlow returns how many have ended.
func (k *Keeper[P]) BreakSlow(patience int) (broken int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	moving := k.moving()
	slowest, longest := uint64(0), int64(patience)
	for number, t := range k.open {
		if t.fetched == 0 {
			if front := moving[t.pipe]; front != 0 && front < number && t.spared < sparedLooks*patience {
				t.spared++
				continue
			}
			t.waited++
			if t.waited > patience {
				k.end(number, t)
				broken++
			}
			continue
		}
		looks, crawls := t.pace.Look(int64(t.size-t.fetched), int64(t.fetched))
		if crawls {
			k.end(number, t)
			broken++
		} else if looks > longest {
			slowest, longest = number, looks
		}
	}
	if t := k.open[slowest]; t != nil {
		k.end(slowest, t)
		broken++
	}
	return broken
}

// moving returns for each pipe the oldest ticket of which some was fetched since the last look.
func (k *Keeper[P]) moving() map[P]uint64 {
	oldest := make(map[P]uint64)
	for number, t := range k.open {
		if at, ok := oldest[t.pipe]; t.fetched > t.seen && (!ok || number < at) {
			oldest[t.pipe] = number
		}
		t.seen = t.fetched
	}
	return oldest
}

// Drop ends a ticket that was issued over p, if it still exists.
func (k *Keeper[P]) Drop(p P, number uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.open[number]; t != nil && t.pipe == p {
		k.end(number, t)
	}
}

// Close ends all tickets that were issued over p.
func (k *Keeper[P]) Close(p P) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for number, t := range k.open {
		if t.pipe == p {
			k.end(number, t)
		}
	}
}

func (k *Keeper[P]) end(number uint64, t *ticket[P]) {
	for i := range t.values {
		t.values[i].Release()
	}
	t.heap.Refund(t.charge)
	delete(k.open, number)
}
