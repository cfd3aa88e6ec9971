package proxy

import "time"

// reach is what a command finds that needs a level of the cluster.
type reach uint8

const (
	reached reach = iota
	below         // the command is answered with an error
	early         // the command must wait: the proxy has no table yet, so nobody knows
)

// reach reports whether the cluster has the level that the command at hand needs. If it has not, reach answers refusal.
// Before the proxy's first table the command waits, as long as one on keys would be parked.
func (s *client) reach(level uint8, refusal []byte) reach {
	w := s.w
	switch {
	case w.order.Level() >= level:
		return reached
	case w.order.Table() != nil:
		s.answer(refusal)
	case s.awaitTable():
		return early
	default:
		s.tableless = 0
		s.answer(errParkedLong)
	}
	return below
}

// awaitTable reports whether the command at hand may wait for the proxy's first table. Then the session continues with
// it when the table has come, or the time is up.
func (s *client) awaitTable() bool {
	now, patience := s.w.loop.Now(), s.w.proxy.cfg.Patience
	if s.tableless == 0 {
		s.tableless = max(now, 1)
		s.w.loop.After(patience+time.Millisecond, s.progress)
	}
	return now-s.tableless <= patience
}

// tableCame is the event that the first table is installed.
func (w *worker) tableCame() {
	for _, s := range w.clients {
		if s.tableless > 0 {
			s.tableless = 0
			s.progress()
		}
	}
}
