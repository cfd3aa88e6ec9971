package node

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// A large value is not copied into the output. It is pinned, so that it stays what it is, and inserted: the socket is fed
// from the engine's memory. The pin ends when all is sent, or the connection closes.

// pinFrom is from how many bytes on a reply is pinned.
const pinFrom = 64 << 10

// pinned is a part of a reply that is not in request.out.
type pinned struct {
	at    int // it comes before out[at:]
	bytes []byte
	pin   engine.Pin
}

// heldPin is a pin that the output of a connection has.
type heldPin struct {
	worker *worker
	pin    engine.Pin
}

// Release is the connection's, once.
func (h *heldPin) Release() {
	h.pin.Release()
	h.worker.heldPins = append(h.worker.heldPins, h)
}

// replyValue answers a part of an item's value.
func (r *request) replyValue(t engine.Txn, item engine.Item, from, to int) {
	if to-from >= pinFrom && r.room(lineRoom) {
		if pin, ok := t.Pin(item); ok {
			r.out = resp.AppendBulkHeader(r.out, to-from)
			r.pins = append(r.pins, pinned{len(r.out), pin.Value()[from:to], pin})
			r.pinnedBytes += to - from
			r.out = append(r.out, "\r\n"...)
			return
		}
	}
	r.replyBulk(item.Value()[from:to])
}

// takeBack undoes the reply that began at start.
func (r *request) takeBack(start int) {
	for n := len(r.pins); n > 0 && r.pins[n-1].at >= start; n-- {
		p := &r.pins[n-1]
		r.pinnedBytes -= len(p.bytes)
		p.pin.Release()
		*p = pinned{}
		r.pins = r.pins[:n-1]
	}
	r.out = r.out[:start]
}

// produced is how many bytes of replies were not handed over yet.
func (r *request) produced() int { return len(r.out) - r.begun + r.pinnedBytes }

// handOver gives the replies so far to the socket.
func (r *request) handOver() {
	socket := r.conn.socket
	r.sent += r.produced()
	socket.SetOut(r.out)
	for i := range r.pins {
		p := &r.pins[i]
		h := r.worker.newHeldPin()
		h.pin = p.pin
		socket.Insert(p.at, p.bytes, h)
		*p = pinned{}
	}
	r.pins, r.pinnedBytes = r.pins[:0], 0
}

func (w *worker) newHeldPin() *heldPin {
	n := len(w.heldPins)
	if n == 0 {
		return &heldPin{worker: w}
	}
	h := w.heldPins[n-1]
	w.heldPins = w.heldPins[:n-1]
	return h
}
