package node

import (
	"errors"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// When large values find no memory, clients have to give some back that hold it and make others
// wait for it:
//
//   - who sends a large value at less than exec.MinRate;
//   - if pinned values crowd the memory, who reads one at less than exec.MinRate, and, once a
//     second, who of each loop will take the longest to read one, and the slowest ticket.
//
// Such a client gets an error, if it was sent nothing of a large value yet. Otherwise it loses its
// connection. A proxy finds that its ticket has ended: its client gets an
// error, or loses its connection if it has a part of the reply.

const (
	// scarceFor is how long memory counts as scarce after a refusal.
	scarceFor = 10 * time.Second
	// patientLooks is how many more looks (idlePeriod) a client may take to read a value, even if
	// nobody is slower.
	patientLooks = 10
)

// scarcity looks at the clients of one loop.
type scarcity struct {
	refused int64 // as of the last look
	until   time.Duration
	scarce  bool
	slowest *conn
	longest int64 // looks that it will take
}

// begin begins a look at all clients. refused counts what found no memory so far.
func (s *scarcity) begin(refused int64, now time.Duration) {
	if refused != s.refused {
		s.refused, s.until = refused, now+scarceFor
	}
	s.scarce = now < s.until
	s.slowest, s.longest = nil, patientLooks
}

// look closes a client that crawls, if memory is scarce.
func (s *scarcity) look(cn *conn) {
	left, moved, err := cn.holds()
	if err == nil || cn.Upload != cn.paced {
		cn.pace, cn.paced = exec.Pace{}, cn.Upload
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
	cn.pace = exec.Pace{}
	if !cn.Socket.GiveUpReplies("-" + exec.ErrReplyLost + "\r\n") {
		cn.Socket.Close(netloop.ErrSlowReader)
	}
}

// holds returns how many bytes of a large value are still to come from the client, or to go there,
// how many have moved so far, and the error for a client that does not go on. It is nil if the
// client holds no memory in this way.
func (cn *conn) holds() (left, moved int64, err error) {
	u := cn.Upload
	switch {
	case cn.pipe != nil || cn.peer:
	case u != nil && !u.Paused && u.Left > 0:
		return int64(u.Left), int64(u.Came), errUploadStalled
	case cn.Pins > 0:
		unsent, sent := cn.Socket.Inserts()
		return int64(unsent), sent, netloop.ErrSlowReader
	}
	return 0, 0, nil
}
