package replica

import (
	"slices"
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

const (
	// PayloadMost is about how long a batch is: what its receiver applies at a time, and so has
	// others wait for. With twice as much, and values of 10 bytes, that took 0.5 ms.
	PayloadMost = 24 << 10
	// PayloadRoom has room for a batch and the longest effect besides.
	PayloadRoom = PayloadMost + 160<<10
	// WindowBytes is how much may be unacknowledged.
	WindowBytes = 4 << 20
	// keptWindow is up to what size the buffer of an empty window is kept.
	keptWindow = 256 << 10
)

// Batch is one that is being made, or on its way, as it stands in the window's buffer.
type Batch struct {
	seq   uint64
	size  int
	milli int           // where its sending time stands, from its beginning
	at    time.Duration // when it was made
}

// Window holds the bytes of the batches that are not acknowledged. Offsets count all bytes of the
// stream's batches; buf has those from base on. One goroutine appends to buf and reads from it;
// Acknowledge only moves the offset from, and so may run while that goroutine writes Unsent to a
// socket.
type Window struct {
	batches []Batch
	from    int64 // offset of the first batch
	to      int64 // behind the last one
	sent    int64 // up to here everything was written to the present connection

	buf  []byte
	base int64
}

// Room returns how many bytes more may be on their way.
func (w *Window) Room() int { return WindowBytes - w.Bytes() }

// Bytes returns how many bytes are unacknowledged.
func (w *Window) Bytes() int { return int(w.to - w.from) }

// Oldest returns when the oldest unacknowledged batch was made. It reports false if there is none.
func (w *Window) Oldest() (at time.Duration, ok bool) {
	if len(w.batches) == 0 {
		return 0, false
	}
	return w.batches[0].at, true
}

// Clear begins anew.
func (w *Window) Clear() { *w = Window{buf: w.buf[:0]} }

// Begin begins the batch numbered seq, whose verb has n arguments, up to its sending time by this
// node's wall clock.
func (w *Window) Begin(verb string, n int, seq uint64, nowMilli int64, now time.Duration) Batch {
	w.compact()
	start := len(w.buf)
	w.buf = member.AppendVerb(w.buf, verb, n)
	w.buf = appendBulkInt(w.buf, int64(seq))
	w.buf = resp.AppendBulkHeader(w.buf, milliDigits)
	b := Batch{seq: seq, milli: len(w.buf) - start, at: now, size: start}
	w.buf = append(appendMilli(w.buf, nowMilli), "\r\n"...)
	return b
}

// Number appends an argument to the batch.
func (w *Window) Number(n int64) { w.buf = appendBulkInt(w.buf, n) }

// Bulk appends an argument to the batch. b is copied.
func (w *Window) Bulk(b []byte) { w.buf = resp.AppendBulk(w.buf, b) }

// End ends the batch.
func (w *Window) End(b Batch) {
	b.size = len(w.buf) - b.size
	w.batches = append(w.batches, b)
	w.to += int64(b.size)
}

// compact makes room in buf where batches were acknowledged.
func (w *Window) compact() {
	gone := int(w.from - w.base)
	switch {
	case gone == len(w.buf):
		w.buf = w.buf[:0]
	case 2*gone < cap(w.buf) || cap(w.buf)-len(w.buf) > PayloadRoom:
		return
	default:
		w.buf = w.buf[:copy(w.buf, w.buf[gone:])]
	}
	w.base = w.from
}

// Shrink gives back the memory of an empty window.
func (w *Window) Shrink() {
	if len(w.batches) == 0 && cap(w.buf) > keptWindow {
		w.buf, w.base, w.sent = nil, w.from, w.from
	}
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

// Resend has everything that is unacknowledged sent again, with the present time: expiries are
// moved by what has passed since then.
func (w *Window) Resend(nowMilli int64) {
	w.sent = w.from
	at := w.from - w.base
	for _, b := range w.batches {
		appendMilli(w.buf[at+int64(b.milli):at+int64(b.milli)], nowMilli)
		at += int64(b.size)
	}
}

// Unsent returns what is to be written to the present connection. It is valid until the next batch
// begins.
func (w *Window) Unsent() []byte { return w.buf[w.sent-w.base:] }

// Sent notes that the first n bytes of Unsent are written.
func (w *Window) Sent(n int) { w.sent += int64(n) }

// milliDigits is how many digits the milliseconds since 1970 have, until the year 2286.
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
