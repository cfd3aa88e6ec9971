package node

import (
	"slices"
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

const (
	// payloadMost is how long a batch is, about: what its receiver applies at a time, and so keeps others waiting for. With
	// twice as much, and values of 10 bytes, that took 0.5 ms.
	payloadMost = 24 << 10
	// payloadRoom has room for it and the longest effect besides.
	payloadRoom = payloadMost + 160<<10
	// windowBytes is how much may be unacknowledged.
	windowBytes = 4 << 20
	// keptWindow is how large an empty window's buffer is kept.
	keptWindow = 256 << 10
)

// frame is a batch on its way, as it stands in the window's buffer.
type frame struct {
	seq   uint64
	size  int
	milli int       // where its sending time stands, from its beginning
	at    time.Time // when it was made
}

// window has the batches that are not acknowledged. Offsets count all bytes of the stream's batches; buf has those from base on.
// Only the goroutine of the sender appends and reads buf, without the lock; who acknowledges moves acked.
type window struct {
	seq    uint64 // of the last batch
	acked  uint64 // the last one acknowledged
	heard  uint64 // the last one of which, and of all before, the refusals were heard
	frames []frame
	from   int64 // offset of the first frame
	to     int64 // behind the last one
	sent   int64 // up to here it was written to the present connection

	buf  []byte
	base int64
}

// room is how many bytes more may be on their way.
func (w *window) room() int { return windowBytes - int(w.to-w.from) }

// clear begins anew.
func (w *window) clear() { *w = window{buf: w.buf[:0]} }

// begin begins the next batch: the arguments up to the sending time. n is how many the verb has in all.
func (w *window) begin(verb string, n int, nowMilli int64) (f frame) {
	w.compact()
	w.seq++
	start := len(w.buf)
	w.buf = member.AppendVerb(w.buf, verb, n)
	w.buf = appendBulkInt(w.buf, int64(w.seq))
	w.buf = resp.AppendBulkHeader(w.buf, milliDigits)
	f = frame{seq: w.seq, milli: len(w.buf) - start, at: time.Now(), size: start}
	w.buf = append(appendMilli(w.buf, nowMilli), "\r\n"...)
	return f
}

// end ends the batch.
func (w *window) end(f frame) {
	f.size = len(w.buf) - f.size
	w.frames = append(w.frames, f)
	w.to += int64(f.size)
}

// compact makes room in buf where batches were acknowledged.
func (w *window) compact() {
	gone := int(w.from - w.base)
	switch {
	case gone == len(w.buf):
		w.buf = w.buf[:0]
	case 2*gone < cap(w.buf) || cap(w.buf)-len(w.buf) > payloadRoom:
		return
	default:
		w.buf = w.buf[:copy(w.buf, w.buf[gone:])]
	}
	w.base = w.from
}

// shrink gives memory back that the window was not used for.
func (w *window) shrink() {
	if len(w.frames) == 0 && cap(w.buf) > keptWindow {
		w.buf, w.base, w.sent = nil, w.from, w.from
	}
}

// acknowledge notes that the receiver has all up to seq.
func (w *window) acknowledge(seq uint64) {
	n := 0
	for n < len(w.frames) && w.frames[n].seq <= seq {
		w.from += int64(w.frames[n].size)
		n++
	}
	w.frames = slices.Delete(w.frames, 0, n)
	w.acked = max(w.acked, min(seq, w.seq))
}

// again has all that is unacknowledged sent anew, with the present time: expiries are moved by what passes since then.
func (w *window) again(nowMilli int64) {
	w.sent = w.from
	at := w.from - w.base
	for _, f := range w.frames {
		appendMilli(w.buf[at+int64(f.milli):at+int64(f.milli)], nowMilli)
		at += int64(f.size)
	}
}

// unsent is what is to be written.
func (w *window) unsent() []byte { return w.buf[w.sent-w.base:] }

// milliDigits is how many digits a time of day has, until the year 2286.
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

func (w *window) number(n int64) { w.buf = appendBulkInt(w.buf, n) }
func (w *window) bulk(b []byte)  { w.buf = resp.AppendBulk(w.buf, b) }

// appendBulkInt appends a number as a bulk string.
func appendBulkInt(dst []byte, n int64) []byte {
	var digits [20]byte
	return resp.AppendBulk(dst, strconv.AppendInt(digits[:0], n, 10))
}
