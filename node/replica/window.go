package replica

import (
	"slices"
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

const (
	// PayloadMost is the length, in bytes, at which a batch is complete. The receiver's loop
	// applies a batch at once, and everybody else waits for it. Applying twice as much, with values
	// of 10 bytes, took 0.5 ms.
	PayloadMost = 24 << 10
	// PayloadRoom is room for a batch that the longest effect makes exceed PayloadMost.
	PayloadRoom = PayloadMost + 160<<10
	// WindowBytes limits the unacknowledged bytes of a wide window, and LeastWindow is the least limit
	// of one.
	WindowBytes = 4 << 20
	LeastWindow = 256 << 10
	// narrowBytes limits those of any other one.
	narrowBytes = 4 * PayloadMost
)

// WindowMemory returns how many bytes the buffer of a window may take that is as wide as most.
func WindowMemory(most int) int { return 2*most + 2*PayloadRoom }

// Batch describes a batch in the window's buffer, complete or being made.
type Batch struct {
	seq   uint64
	size  int
	milli int           // offset of its sending time, from its beginning
	at    time.Duration // when it was made
}

// Window has the bytes of the batches that are not acknowledged. Offsets count all bytes of the
// stream's batches; buf has those from base on. One goroutine appends to buf and reads from it.
// Acknowledge only changes batches and the offset from, so it may run while that goroutine writes
// Unsent to a socket.
//
// A window is narrow until it is widened: most streams carry little, and a node may have many.
type Window struct {
	most    int // unacknowledged bytes of a wide window; 0: it is narrow
	batches []Batch
	from    int64 // offset of the first batch
	to      int64 // offset behind the last batch
	sent    int64 // offset up to which the present connection has everything

	buf  []byte
	base int64
}

// Most returns how many bytes may be in flight.
func (w *Window) Most() int {
	if w.most == 0 {
		return narrowBytes
	}
	return w.most
}

// IsWide reports whether the window has been widened.
func (w *Window) IsWide() bool { return w.most > 0 }

// Widen has the window take WindowMemory(most) bytes, as it needs them, until Shrink.
func (w *Window) Widen(most int) { w.most = most }

// Room returns how many more bytes may be in flight.
func (w *Window) Room() int { return w.Most() - w.Bytes() }

// Bytes returns how many bytes are unacknowledged.
func (w *Window) Bytes() int { return int(w.to - w.from) }

// Oldest returns when the oldest unacknowledged batch was made. It reports false if there is none.
func (w *Window) Oldest() (at time.Duration, ok bool) {
	if len(w.batches) == 0 {
		return 0, false
	}
	return w.batches[0].at, true
}

// Clear empties the window and keeps its buffer.
func (w *Window) Clear() { *w = Window{most: w.most, buf: w.buf[:0]} }

// Begin begins the batch numbered seq: a request with the verb and n arguments, size bytes of which
// are of any length. It appends the verb, the number and the sending time, nowMilli, in unix
// milliseconds. The caller appends the other arguments and calls End with the result.
func (w *Window) Begin(verb string, n, size int, seq uint64, nowMilli int64, now time.Duration) Batch {
	w.reserve(size + batchHead)
	start := len(w.buf)
	w.buf = member.AppendVerb(w.buf, verb, n)
	w.buf = appendBulkInt(w.buf, int64(seq))
	w.buf = resp.AppendBulkHeader(w.buf, milliDigits)
	b := Batch{seq: seq, milli: len(w.buf) - start, at: now, size: start}
	w.buf = append(appendMilli(w.buf, nowMilli), "\r\n"...)
	return b
}

// Number appends a number to the batch, as an argument.
func (w *Window) Number(n int64) { w.buf = appendBulkInt(w.buf, n) }

// Bulk appends b, which is copied, to the batch, as an argument.
func (w *Window) Bulk(b []byte) { w.buf = resp.AppendBulk(w.buf, b) }

// End completes the batch that Begin returned.
func (w *Window) End(b Batch) {
	b.size = len(w.buf) - b.size
	w.batches = append(w.batches, b)
	w.to += int64(b.size)
}

// batchHead is more than the arguments of a batch take that are numbers, and the lengths of all.
const batchHead = 512

// reserve makes room for n bytes in buf, behind the unacknowledged ones. It moves these only if they
// are at most half of buf, and otherwise takes another buffer. So what was moved has been paid for by
// as much that was sent, and buf is never longer than WindowMemory, unless one batch is longer than
// PayloadRoom.
func (w *Window) reserve(n int) {
	gone := int(w.from - w.base)
	switch {
	case gone == len(w.buf):
		w.buf = w.buf[:0]
	case cap(w.buf)-len(w.buf) >= n:
		return
	case 2*gone >= cap(w.buf):
		w.buf = w.buf[:copy(w.buf, w.buf[gone:])]
	default:
		longer := min(2*cap(w.buf)+2*n, WindowMemory(w.Most()))
		w.buf = append(make([]byte, 0, max(longer, len(w.buf)+n)), w.buf...)
		return
	}
	w.base = w.from
}

// Shrink makes an empty window narrow, and gives back its buffer. It reports whether it did.
func (w *Window) Shrink() bool {
	if len(w.batches) > 0 || !w.IsWide() {
		return false
	}
	*w = Window{from: w.from, to: w.to, sent: w.from, base: w.from}
	return true
}

// Acknowledge forgets the batches up to seq.
func (w *Window) Acknowledge(seq uint64) {
	n := 0
	for n < len(w.batches) && w.batches[n].seq <= seq {
		w.from += int64(w.batches[n].size)
		n++
	}
	w.batches = slices.Delete(w.batches, 0, n)
}

// Resend marks everything unacknowledged as unsent, for a new connection, and sets its sending time
// to nowMilli. The receiver takes the sending time for the difference of the clocks: an old one
// would let keys live longer.
func (w *Window) Resend(nowMilli int64) {
	w.sent = w.from
	at := w.from - w.base
	for _, b := range w.batches {
		appendMilli(w.buf[at+int64(b.milli):at+int64(b.milli)], nowMilli)
		at += int64(b.size)
	}
}

// Unsent returns the bytes that the present connection has not been sent. They are valid until the
// next Begin.
func (w *Window) Unsent() []byte { return w.buf[w.sent-w.base:] }

// Sent notes that the first n bytes of Unsent are written.
func (w *Window) Sent(n int) { w.sent += int64(n) }

// milliDigits is the number of digits of a time in unix milliseconds, until the year 2286.
const milliDigits = 13

func appendMilli(dst []byte, milli int64) []byte {
	n := len(dst)
	dst = append(dst, "0000000000000"...)
	for i := len(dst) - 1; i >= n; i-- {
		dst[i] = byte('0' + milli%10)
		milli /= 10
	}
	return dst
}

// appendBulkInt appends a number as a bulk string.
func appendBulkInt(dst []byte, n int64) []byte {
	var digits [20]byte
	return resp.AppendBulk(dst, strconv.AppendInt(digits[:0], n, 10))
}
