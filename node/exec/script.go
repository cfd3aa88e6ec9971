package exec

import (
	"slices"

	"github.com/dunlin-cache/dunlin/internal/command"
)

// A script executes commands, on a loop or in a goroutine, and gets their replies. They lie in the Go heap, and what is
// longer than freeScriptReply is charged.

const freeScriptReply = 64 << 10

// BeginScripted prepares the request for a command of a script. Scripted stays set.
func (r *Request) BeginScripted(cn *Conn, now int64) {
	r.conn, r.Now, r.Scripted = cn, now, true
	r.Undo(0)
	r.Out, r.begun, r.sent = r.Out[:0], 0, 0
	cn.Closing = false
}

// growApart is Room without a connection.
func (r *Request) growApart(n int) (ok bool) {
	size := max(len(r.Out)+n, 2*cap(r.Out))
	if extra := int64(size) - r.forced; size > freeScriptReply {
		if !r.Heap.Charge(extra) {
			return false
		}
		r.forced += extra
	}
	r.Out = slices.Grow(r.Out, size-len(r.Out))
	return true
}

// LacksRoom reports whether there was no memory for the reply to the command of a script. What Room has forced is
// whole.
func (r *Request) LacksRoom() bool { return r.conn.Closing && r.Cmd.Flags&command.Write == 0 }

// TakeScripted returns the reply to the command of a script, valid until EndScripted. ok is false if there was no
// memory for it.
func (r *Request) TakeScripted() (reply []byte, ok bool) {
	if r.LacksRoom() {
		return nil, false
	}
	if len(r.Pins) == 0 {
		return r.Out, true
	}
	size := r.Produced()
	if !r.Heap.Charge(int64(size)) {
		return nil, false
	}
	r.forced += int64(size)
	reply = make([]byte, 0, size)
	at := 0
	for i := range r.Pins {
		p := &r.Pins[i]
		reply = append(append(reply, r.Out[at:p.At]...), p.Bytes...)
		at = p.At
	}
	return append(reply, r.Out[at:]...), true
}

// EndScripted frees what the reply has taken.
func (r *Request) EndScripted() {
	r.Undo(0)
	r.Args, r.Upload = nil, nil
	if r.forced > 0 {
		r.unforce()
	}
	if cap(r.Out) > freeScriptReply {
		r.Out = nil
	}
}
