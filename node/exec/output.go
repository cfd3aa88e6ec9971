package exec

import (
	"bytes"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// A large value is not copied into the output. It is pinned, so that it cannot change, and
// inserted: the socket sends it from the engine's memory. The pin ends when all is sent, or the
// connection closes.

// PinFrom is the number of bytes from which a reply is pinned.
const PinFrom = 64 << 10

// Pinned is a part of a reply that is not in Request.Out.
type Pinned struct {
	At    int // it comes before Out[At:]
	Bytes []byte
	Pin   engine.Pin // not live: Bytes are on the Go heap and never change
}

// Release ends the pin, if there is one.
func (p *Pinned) Release() {
	if p.Pin.Live() {
		p.Pin.Release()
	}
}

// heldPin is a pin that a connection's output holds.
type heldPin struct {
	worker *Worker
	Pinned
}

// Release is called by the connection, once.
func (h *heldPin) Release() {
	h.Pinned.Release()
	h.Pinned = Pinned{}
	h.worker.freePins = append(h.worker.freePins, h)
}

// Begin takes the output of a connection, for the replies to an input.
func (r *Request) Begin(cn *Conn, now int64) {
	if len(r.Pins) > 0 || r.Upload != nil { // left by a handler that panicked
		r.TakeBack(0)
		r.Upload, r.Rewrite = nil, nil
	}
	r.conn, r.Now = cn, now
	r.Out = cn.Socket.Out()
	r.begun, r.sent = len(r.Out), 0
}

// ReplyValue answers a part of an item's value.
func (r *Request) ReplyValue(t engine.Txn, item engine.Item, from, to int) {
	if to-from >= PinFrom && r.Room(LineRoom) {
		if pin, ok := t.Pin(item); ok {
			r.Out = resp.AppendBulkHeader(r.Out, to-from)
			r.Insert(pin.Value()[from:to], pin)
			r.Out = append(r.Out, "\r\n"...)
			return
		}
	}
	r.ReplyBulk(item.Value()[from:to])
}

// Insert puts bytes of a pinned value behind what is in Out. The output releases the pin, if it is
// live.
func (r *Request) Insert(value []byte, pin engine.Pin) {
	r.Pins = append(r.Pins, Pinned{len(r.Out), value, pin})
	r.pinnedBytes += len(value)
}

// TakeBack undoes the reply that begins at out[start].
func (r *Request) TakeBack(start int) {
	for n := len(r.Pins); n > 0 && r.Pins[n-1].At >= start; n-- {
		p := &r.Pins[n-1]
		r.pinnedBytes -= len(p.Bytes)
		p.Release()
		*p = Pinned{}
		r.Pins = r.Pins[:n-1]
	}
	r.Out = r.Out[:start]
}

// Cut takes the reply that begins at Out[start] out of the output, with its pins, which are the
// firstPin-th and later ones. Their places are then in text, which is a copy.
func (r *Request) Cut(start, firstPin int) (text []byte, pins []Pinned) {
	text, pins = bytes.Clone(r.Out[start:]), slices.Clone(r.Pins[firstPin:])
	for i := range pins {
		pins[i].At -= start
		r.pinnedBytes -= len(pins[i].Bytes)
	}
	clear(r.Pins[firstPin:])
	r.Out, r.Pins = r.Out[:start], r.Pins[:firstPin]
	return text, pins
}

// Produced returns how many bytes of replies were not handed over yet.
func (r *Request) Produced() int { return len(r.Out) - r.begun + r.pinnedBytes }

// handOver gives the replies so far to the socket.
func (r *Request) handOver() {
	socket := r.conn.Socket
	r.sent += r.Produced()
	socket.SetOut(r.Out)
	for i := range r.Pins {
		p := &r.Pins[i]
		h := r.Worker.newHeldPin()
		h.Pinned = *p
		socket.Insert(p.At, p.Bytes, h)
		*p = Pinned{}
	}
	r.Pins, r.pinnedBytes = r.Pins[:0], 0
}

// Full hands the replies so far to the socket, and reports whether they pile up there unread.
func (r *Request) Full() bool {
	r.handOver()
	socket := r.conn.Socket
	r.Out = socket.Out()
	r.begun = len(r.Out)
	return socket.Full()
}

// Finish hands the replies over and returns how many bytes the input was answered with.
func (r *Request) Finish() (sent int) {
	r.handOver()
	r.Out, r.Args = nil, nil
	return r.sent
}

func (w *Worker) newHeldPin() *heldPin {
	n := len(w.freePins)
	if n == 0 {
		return &heldPin{worker: w}
	}
	h := w.freePins[n-1]
	w.freePins = w.freePins[:n-1]
	return h
}
