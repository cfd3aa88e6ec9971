package proxy

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// A session's requests name the database that it has selected (order.Origin). SELECT is answered here, and what is sent
// behind it is about the other database at once, since each request keeps its own however often it is sent again.
//
// A SELECT within MULTI is executed by EXEC, and only if no watched key has changed. So behind an EXEC that selects
// another database nobody knows which database the next command is about: the session takes none before the reply has
// come.
//
//	client   MULTI, SELECT 3, SET k v   EXEC          GET k
//	                                    ─▶ node  ···  waits
//	                                    ◀─ array: 3   ─▶ node, of database 3

// selection is what an EXEC selects that is on its way.
type selection struct {
	seq      uint64
	database uint8
}

// maySelect reaches the level that SELECT needs.
func (s *client) maySelect(args [][]byte) reach {
	if database, refusal := s.w.proxy.server.ParseDatabase(args[1]); refusal != "" || database == 0 {
		return reached // package session says what is wrong
	}
	if r := s.reach(ring.DatabasesLevel, errDatabases); r != reached || s.w.knowsPlacement() {
		return r
	}
	if s.awaitTable() {
		return early
	}
	s.tableless = 0
	s.answer(errParkedLong)
	return below
}

// knowsPlacement reports whether the proxy has settings at least as new as those that its table names.
func (w *worker) knowsPlacement() bool { return w.settings >= w.order.Table().Settings.Version }

// place has keys lie by other settings. A session that has requests on their way sends no other before their replies:
// one of them may be on its way to another node than the next one on the same key. Claims are of partitions, so those
// of databases that lie elsewhere end.
func (w *worker) place(p ring.Placement, version uint64) {
	changed := w.order.Placement().Pinned() ^ p.Pinned()
	w.order.Place(p)
	w.settings = version
	if changed != 0 {
		for _, s := range w.clients {
			s.drains = s.drains || s.head < s.tail
		}
		w.endMisplaced(len(w.clients))
	}
	w.tableCame()
}

// misplacedSteps bounds how many sessions are looked at, and how many claims end, in a turn of endMisplaced.
const misplacedSteps = 512

// endMisplaced ends the claims of the first of the sessions that lie elsewhere by now, in turns, those of the last
// session first: whoever takes the place of one that leaves meanwhile was looked at.
func (w *worker) endMisplaced(first int) {
	first = min(first, len(w.clients))
	for left := misplacedSteps; first > 0 && left > 0; left-- {
		first--
		if s := w.clients[first]; s.claims != nil && s.claims.pinned != s.inPinned() {
			left -= endSteps + s.claims.Len()
			s.cancelBlocking(errUnblocked)
		}
	}
	if first > 0 {
		w.loop.Post(func() { w.endMisplaced(first) })
	}
}

// endSteps is for how many steps the end of a command counts beside its claims.
const endSteps = 4

// inPinned reports whether the session has selected a pinned database.
func (s *client) inPinned() bool { return s.w.order.Placement().Pins(s.state.Database) }

// selectBehind has the session wait for the reply to EXEC, which is about to be sent, if that selects another database.
func (s *client) selectBehind(seq uint64, database uint8) {
	if database != s.state.Database {
		s.selecting, s.mutes = true, true
		s.selection = selection{seq, database}
	}
}

// selected is the event that it is known whether EXEC was executed.
func (s *client) selected(executed bool) {
	if s.selecting = false; executed {
		s.state.Database = s.selection.database
	}
}

// isExecuted reports whether a reply says that EXEC was executed: it is an array, and not null, or
// an error that says so.
func isExecuted(reply []byte) bool {
	if resp.IsError(reply) {
		return bytes.Contains(reply, []byte("executed, but"))
	}
	n, _, ok := resp.DecodeArray(reply)
	return ok && n >= 0
}

// selects adds a SELECT to a transaction. One that changes the database is executed by all parts, since all may have
// commands behind it. Parts that are made later begin in its database.
func (t *transaction) selects(e *entry) {
	database, refusal := t.s.w.proxy.server.ParseDatabase(e.Args[1])
	if refusal != "" || database == t.database {
		return // it is answered here
	}
	if len(t.parts) == 0 {
		t.part(t.home())
	}
	for i := range t.parts {
		t.parts[i].add(e.Args)
		e.parts = append(e.parts, i)
	}
	t.database = database
}

// selectHere answers a SELECT of a transaction that changes nothing.
func (s *client) selectHere(args [][]byte) []byte {
	if _, refusal := s.w.proxy.server.ParseDatabase(args[1]); refusal != "" {
		return wire(refusal)
	}
	return resp.AppendOK(nil)
}
