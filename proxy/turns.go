package proxy

import (
	"bytes"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
)

// long is a command that takes several turns of its loop. The session's later commands wait until
// all of it is sent.
type long interface {
	// goOn has the command take its next turn, unless it must wait. Whatever may end the wait calls
	// goOn again.
	goOn()
	// turn is the next step.
	turn()
	// take hands over the memory of raw, a request that the command submits. nil: it must be
	// copied.
	take(raw []byte) order.Body
	// end is the end of sending: all is sent, or the client has gone.
	end()
	// client is whose command it is.
	client() *client
}

// turns are the long commands that wait for their turn. In each iteration one of them takes it,
// however many there are.
type turns struct {
	waiting []long
	posted  bool // next runs in the next iteration
}

func (t *turns) take(l *netloop.Loop, c long) {
	t.waiting = append(t.waiting, c)
	if !t.posted {
		t.posted = true
		l.Post(func() { t.next(l) })
	}
}

func (t *turns) next(l *netloop.Loop) {
	c := t.waiting[0]
	t.waiting[0] = nil
	if t.waiting = t.waiting[1:]; len(t.waiting) > 0 {
		l.Post(func() { t.next(l) })
	} else {
		t.waiting, t.posted = nil, false
	}
	panics := true
	defer func() {
		if panics { // the loop survives, but nothing would go on with the command
			c.client().conn.Close(errPanicked)
		}
	}()
	c.turn()
	panics = false
}

// others is whether other commands of this loop's clients come beside long ones.
type others struct {
	come     bool
	commands uint64        // that had begun when they were looked at
	looked   time.Duration // when that was
}

// othersLook is the least time between two looks at the number of commands.
const othersLook = 2 * time.Millisecond

// hasOthers reports whether commands have begun between the last two looks. A long one that goes on is
// none of them.
func (w *worker) hasOthers() bool {
	if o, now := &w.others, w.loop.Now(); now-o.looked >= othersLook {
		commands := w.stats.CommandsTotal()
		*o = others{come: commands != o.commands, commands: commands, looked: now}
	}
	return w.others.come
}

// longRequest is the request of a long command. It stays where it was read, and the input continues
// elsewhere.
type longRequest struct {
	s      *client
	cmd    *command.Command
	seq    uint64
	raw    []byte
	memory *shared // of raw; nil: it was given away or is not needed any more
	next   int     // where in raw the arguments begin that were not looked at, or not sent
	queued bool    // the command waits for its turn
}

func (l *longRequest) client() *client { return l.s }

// newLongRequest takes the present request over. If there is no memory for a copy, it answers the
// command and reports false.
func (s *client) newLongRequest(cmd *command.Command, args [][]byte, raw []byte) (l longRequest, ok bool) {
	l = longRequest{s: s, cmd: cmd, seq: s.tail, memory: &shared{s: s, uses: 1}}
	if s.parser.Inline() {
		raw = resp.AppendRequest(nil, args...) // of a line, which is short
	}
	if len(raw) > chunkBytes { // else it is copied, and not the requests behind it
		if body := s.conn.TakeInput(raw); body != nil {
			l.memory.body = body
		}
	}
	if l.memory.body != nil {
		l.raw = raw
	} else if l.memory.copy = len(raw); s.Keep(len(raw)) {
		l.raw = bytes.Clone(raw)
	} else {
		s.answer(errNotParked)
		return l, false
	}
	_, l.next = resp.DecodeArgument(l.raw, bytes.IndexByte(l.raw, '\n')+1) // the command's name
	return l, true
}

// give hands the memory of the whole request over.
func (l *longRequest) give() order.Body {
	m := l.memory
	l.memory = nil
	return m
}

// drop frees the memory of the request, as far as nobody else uses it.
func (l *longRequest) drop() {
	if l.memory != nil {
		l.give().Release()
	}
}

// shared is the memory of a request, of which several parts may be on their way.
type shared struct {
	s    *client
	uses int
	body order.Body // nil: a copy, for which so many bytes are charged to the session
	copy int
}

// Release ends one use.
func (m *shared) Release() {
	if m.uses--; m.uses > 0 {
		return
	}
	if m.body != nil {
		m.body.Release()
	} else {
		m.s.Keep(-m.copy)
	}
}
