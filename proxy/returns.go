package proxy

import (
	"io"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// A client may have gone when the reply to its blocking command comes: the node served it before CANCEL
// reached the node. The proxy then returns what was popped to the end that it came from, as if the client had
// pushed it back:
//
//	client   BLPOP q 0 ─▶ waits ··· ✕ gone ─▶ CANCEL ─▶ node
//	                                    e ◀── node: served by a push just before
//	              DUNLIN RETURN token LPUSH q e ──▶ owner: whoever waits next has it
//
// So the command is parked and follows its partition like any other, waiters are served, and a key that has
// another type by now stays as it is. By the token, which came in front of the reply, the node that has popped knows
// whether the key was deleted since, and the expiry of a key that was emptied (member.AppendReturn). Another owner
// does not know the token, and takes the element. Without a token, or where the cluster's level is too low, the
// command is sent as it is, and so is one of too many words. It is not sent twice: the element is lost if its pipe
// breaks as well.
// What moves an element has stored it, and replies that come by tickets (256 KiB and more) are not returned.

// returning is the command by which elements are returned, and a session of its own. It is its Part.
type returning struct {
	order.Session
	w *worker
}

// hasLeft reports whether the client has left while command seq waited. Its connection says so at once, and
// the loop perhaps behind the event that brings the reply.
func (s *client) hasLeft(seq uint64) bool {
	if !s.blocking || s.waits != seq || s.state.Waiting == nil || !s.conn.HasLeft() {
		return false
	}
	s.conn.Close(io.EOF)
	return true
}

// giveBack returns what the reply to the command of a session that is closed has popped, if that is the
// session's blocking command.
func (s *client) giveBack(seq uint64, reply []byte) {
	if !s.blocking || s.waits != seq {
		return
	}
	s.decide(true)
	s.blocking, s.state.Waiting = false, nil // until the loop says that it is closed, nobody wakes it
	args := undoing(s.state.LastCmd, s.popsLast, reply)
	if args == nil {
		return
	}
	w := s.w
	r := &returning{w: w}
	r.Owner = r
	raw := resp.AppendRequest(nil, args...)
	if w.popped != 0 && len(args) <= member.MaxReturned && w.order.Level() >= ring.ReturnLevel {
		raw = member.AppendReturn(nil, w.popped, args)
	}
	w.stats.Returns++
	w.order.Enter(&r.Session, s.laneFor(len(raw), false))
	request := order.Request{
		Session: &r.Session, Part: r, Origin: s.origin(s.partitionOf(args[1])),
	}
	if p, ok := w.order.Submit(&r.Session, request, raw, w.loop.Now()); !ok {
		w.order.Park(request, raw, w.loop.Now())
	} else if p != nil {
		w.write(p)
	}
	w.act()
}

// undoing returns the command that undoes a pop, given its reply; nil if it has popped nothing, or has stored
// it. last says that a pop of a list was from its end.
func undoing(id command.ID, last bool, reply []byte) [][]byte {
	if !pops(id) {
		return nil
	}
	leaves := appendLeaves(nil, reply)
	if len(leaves) < 2 {
		return nil
	}
	name, key, popped := "LPUSH", leaves[0], leaves[1:]
	args := make([][]byte, 0, 2+len(leaves))
	switch id {
	case command.BLPop, command.BRPop, command.BLMPop:
		if last {
			name = "RPUSH"
		}
		slices.Reverse(popped)
		return append(append(args, []byte(name), key), popped...)
	case command.BZPopMin, command.BZPopMax, command.BZMPop:
		for i := 0; i+1 < len(popped); i += 2 {
			popped[i], popped[i+1] = popped[i+1], popped[i]
		}
		return append(append(args, []byte("ZADD"), key, []byte("NX")), popped...)
	}
	return nil
}

// appendLeaves appends what stands in the arrays of a whole reply: strings and numbers, no errors and nulls.
// They are views of the reply.
func appendLeaves(leaves [][]byte, reply []byte) [][]byte {
	for at := 0; at < len(reply); {
		end := at + slices.Index(reply[at:], '\n') + 1
		switch reply[at] {
		case '$':
			if reply[at+1] == '-' {
				return nil
			}
			var leaf []byte
			leaf, end = resp.DecodeArgument(reply, at)
			leaves = append(leaves, leaf)
		case ',':
			leaves = append(leaves, reply[at+1:end-2])
		case '*':
		default:
			return nil
		}
		at = end
	}
	return leaves
}

// Take implements order.Owner: a request beyond order.HugeRequest is memory of its own.
func (r *returning) Take([]byte) order.Body { return r }

// Release implements order.Body. The collector frees the memory.
func (r *returning) Release() {}

// Keep implements order.Owner: it charges the parked command.
func (r *returning) Keep(n int) bool {
	b := r.w.proxy.cfg.Buffers
	switch {
	case b == nil:
	case n < 0:
		b.Refund(int64(-n))
	default:
		return b.Charge(int64(n))
	}
	return true
}

// Done implements order.Part.
func (r *returning) Done(_ int32, reply []byte) {
	if resp.IsError(reply) {
		r.w.stats.ReturnsLost++
	}
}
