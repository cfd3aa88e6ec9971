package node

import (
	"errors"
	"time"

	"github.com/dunlin-cache/dunlin/internal/hoard"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// When large values or connections' buffers find no memory, clients have to give some back that hold it and make
// others wait for it:
//
//   - who sends a large value, or a long request of many arguments, at less than hoard.MinRate;
//   - if pinned values crowd the memory, who reads one at less than hoard.MinRate, and, once a
//     second, who of each loop will take the longest to read one, and the slowest ticket.
//
// Such a client gets an error, if it was sent nothing of a large value yet. Otherwise it loses its
// connection. A proxy finds that its ticket has ended: its client gets an
// error, or loses its connection if it has a part of the reply.

// patientLooks is how many more looks (idlePeriod) a client may take to read a value, even if nobody is slower.
const patientLooks = 10

// scarcity looks at the clients of one loop.
type scarcity struct {
	memory  hoard.Scarcity
	scarce  bool
	slowest *conn
	longest int64 // looks that it will take
}

// begin begins a look at all clients. refused counts what found no memory so far.
func (s *scarcity) begin(refused int64, now time.Duration) {
	s.scarce = s.memory.Look(refused, now)
	s.slowest, s.longest = nil, patientLooks
}

// look closes a client that crawls, if memory is scarce.
func (s *scarcity) look(cn *conn) {
	left, moved, err := cn.holds()
	if err == nil || cn.Upload != cn.paced {
		cn.pace, cn.paced = hoard.Pace{}, cn.Upload
	}
	if err == nil {
		return
	}
	looks, crawls := cn.pace.Look(left, moved)
	reads := errors.Is(err, netloop.ErrSlowReader)
	switch {
	case !s.scarce || reads && !cn.node.engine.PinsCrowd():
	case crawls && reads:
		cn.giveWay()
	case crawls:
		cn.Socket.Close(err)
	case reads && looks > s.longest:
		s.slowest, s.longest = cn, looks
	}
}

// end ends the look. One loop of the node looks at the tickets too.
func (s *scarcity) end(w *worker) {
	if !s.scarce || !w.node.engine.PinsCrowd() {
		return
	}
	if s.slowest != nil {
		s.slowest.giveWay()
	}
	if w == w.node.workers[0] {
		w.Count.SlowReaders += uint64(w.node.tickets.BreakSlow(patientLooks))
	}
	s.slowest = nil
}

// giveWay releases the values that the client reads.
func (cn *conn) giveWay() {
	cn.pace = hoard.Pace{}
	if !cn.Socket.GiveUpReplies("-" + exec.ErrReplyLost + "\r\n") {
		cn.Socket.Close(netloop.ErrSlowReader)
	}
}

// holds returns how many bytes of a large value are still to come from the client, or to go there, or
// SomeLeft for a long request; how many have moved so far; and the error for a client that does not go on.
// It is nil if the client holds no memory in this way.
func (cn *conn) holds() (left, moved int64, err error) {
	u := cn.Upload
	switch {
	case cn.pipe != nil || cn.peer:
	case u != nil && !u.Paused && u.Left > 0:
		return int64(u.Left), int64(u.Came), errUploadStalled
	case cn.Pins > 0:
		unsent, sent := cn.Socket.Inserts()
		return int64(unsent), sent, netloop.ErrSlowReader
	case cn.Socket.Unfinished() >= hoard.MinRate:
		received, _ := cn.Socket.Traffic()
		return hoard.SomeLeft, int64(received), hoard.ErrStalled
	}
	return 0, 0, nil
}
