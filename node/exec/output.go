package exec

import (
	"bytes"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// A large value is not copied into the output. It is pinned, so that it cannot change, and
// inserted: the socket sends it from the engine's memory. The pin ends when all of it is sent, or
// when the connection closes.

// PinFrom is the length, in bytes, from which a value is pinned rather than copied into the reply.
const PinFrom = 64 << 10

// Pinned is a part of a reply that is not in Request.Out.
type Pinned struct {
	At    int        // the part comes before Out[At:]
	Bytes []byte     // valid until Release
	Pin   engine.Pin // not live: Bytes are on the Go heap and never change
	Alone bool       // the reply is this bulk string
}

// Release ends the pin, if there is one.
func (p *Pinned) Release() {
	if p.Pin.Live() {
		p.Pin.Release()
	}
}

// outputPin is a pin that a connection's output will release.
type outputPin struct {
	worker *Worker
	conn   *Conn // whose Pins count it; nil if nothing is pinned
	Pinned
}

// Release ends the pin. The connection calls it once, on its loop.
func (h *outputPin) Release() {
	if h.conn != nil {
		h.conn.Pins--
		h.conn = nil
	}
	h.Pinned.Release()
	h.Pinned = Pinned{}
	h.worker.freePins = append(h.worker.freePins, h)
}

// Begin prepares the request for an input of cn: replies are appended to the socket's output. now
// is the loop's time in unix milliseconds.
func (r *Request) Begin(cn *Conn, now int64) {
	if len(r.Pins) > 0 || r.Upload != nil { // left by a handler that panicked
		r.Undo(0)
		r.Upload, r.Rewrite = nil, nil
	}
	if r.forced > 0 {
		r.unforce()
	}
	r.conn, r.Now = cn, now
	r.Out = cn.Socket.Out()
	r.begun, r.sent = len(r.Out), 0
}

// ReplyValue answers bytes [from, to) of an item's value. A long part is pinned, not copied.
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
	r.Pins = append(r.Pins, Pinned{At: len(r.Out), Bytes: value, Pin: pin})
	r.pinnedBytes += len(value)
}

// LimitPins copies or replaces the reply that begins at Out[start], with the pins from Pins[firstPin] on, if these take
// memory that others need: short values are copied, and an error takes the place of long ones.
func (r *Request) LimitPins(start, firstPin int) {
	switch r.fateOf(r.Pins[firstPin:]) {
	case isCopied:
		text, pins := r.Cut(start, firstPin)
		at := 0
		for i := range pins {
			r.replyText(text[at:pins[i].At])
			r.replyText(pins[i].Bytes)
			at = pins[i].At
			pins[i].Release()
		}
		r.replyText(text[at:])
	case isLost:
		r.Undo(start)
		r.failPinned()
	}
}

// fate is what becomes of the pins of a reply.
type fate uint8

const (
	isPinned fate = iota
	isCopied
	isLost
)

// copiedPins is how many bytes of values are copied that must not stay pinned.
const copiedPins = 256 << 10

// fateOf judges the pins of a reply. What was staged for it has got its memory before.
func (r *Request) fateOf(pins []Pinned) fate {
	added, values, length := int64(0), false, 0
	for i := range pins {
		p := &pins[i]
		if length += len(p.Bytes); p.Pin.Live() {
			added += p.Pin.Adds()
			values = values || p.Pin.Adds() > 0 && !p.Pin.OfReply()
		}
	}
	switch {
	case !values || r.Engine.PinsLeaveRoom(added):
		return isPinned
	case length <= copiedPins && r.hasRoom(length):
		return isCopied
	}
	return isLost
}

// hasRoom is Room for a reply that can do without it: the connection stays open.
func (r *Request) hasRoom(n int) (ok bool) {
	if r.Woken || r.Scripted {
		return true
	}
	r.Out, ok = r.conn.Socket.TryGrow(r.Out, n)
	return ok
}

// failPinned answers that a reply would have pinned too much.
func (r *Request) failPinned() {
	if r.Cmd.Flags&command.ReadOnly != 0 {
		r.Fail(ErrPinned)
	} else {
		r.Fail(ErrReplyLost)
	}
}

// NoteAlone notes whether the reply that begins at Out[start], with the pins from Pins[firstPin]
// on, is a single pinned bulk string.
func (r *Request) NoteAlone(start, firstPin int) {
	if len(r.Pins) != firstPin+1 {
		return
	}
	p := &r.Pins[firstPin]
	header := resp.AppendBulkHeader(r.Worker.Number[:0], len(p.Bytes))
	p.Alone = p.At == start+len(header) && len(r.Out) == p.At+len("\r\n") && bytes.Equal(r.Out[start:p.At], header)
}

// Undo removes the reply that begins at Out[start], and releases its pins.
func (r *Request) Undo(start int) {
	for n := len(r.Pins); n > 0 && r.Pins[n-1].At >= start; n-- {
		p := &r.Pins[n-1]
		r.pinnedBytes -= len(p.Bytes)
		p.Release()
		*p = Pinned{}
		r.Pins = r.Pins[:n-1]
	}
	r.Out = r.Out[:start]
}

// Cut removes the reply that begins at Out[start] from the output and returns it. pins are those
// from Pins[firstPin] on; the caller releases them. Pinned.At is an index in text, which is a copy.
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

// Produced returns how many bytes of replies the socket does not have yet.
func (r *Request) Produced() int { return len(r.Out) - r.begun + r.pinnedBytes }

// passOn gives the replies so far to the socket.
func (r *Request) passOn() {
	socket := r.conn.Socket
	r.sent += r.Produced()
	socket.SetOut(r.Out)
	for i := range r.Pins {
		p := &r.Pins[i]
		h := r.Worker.newOutputPin()
		h.Pinned = *p
		if p.Pin.Live() {
			h.conn = r.conn
			h.conn.Pins++
		}
		socket.Insert(p.At, p.Bytes, h)
		if p.Alone {
			socket.IsReply(p.At-len(resp.AppendBulkHeader(r.Worker.Number[:0], len(p.Bytes))), p.At+len("\r\n"))
		}
		*p = Pinned{}
	}
	r.Pins, r.pinnedBytes = r.Pins[:0], 0
}

// Full gives the replies so far to the socket, and reports whether too many bytes wait there for
// the client to read them.
func (r *Request) Full() bool {
	r.Between(func() {})
	return r.conn.Socket.Full()
}

// Between gives the replies so far to the socket, calls f, which may add to the socket's output, and goes
// on behind that.
func (r *Request) Between(f func()) {
	r.passOn()
	f()
	r.Out = r.conn.Socket.Out()
	r.begun = len(r.Out)
}

// unforce gives back what force has charged.
func (r *Request) unforce() {
	r.Heap.Refund(r.forced)
	r.forced = 0
}

// Finish gives the replies to the socket and returns how many bytes the input was answered with.
func (r *Request) Finish() (sent int) {
	r.passOn()
	r.Out, r.Args = nil, nil
	if r.forced > 0 {
		r.unforce()
	}
	return r.sent
}

func (w *Worker) newOutputPin() *outputPin {
	n := len(w.freePins)
	if n == 0 {
		return &outputPin{worker: w}
	}
	h := w.freePins[n-1]
	w.freePins = w.freePins[:n-1]
	return h
}
