package session

import (
	"slices"
	"time"
)

// SlowRequest is an entry of the slow log as people read it.
type SlowRequest struct {
	At     time.Time
	Took   time.Duration
	Words  []string // the command and its first argument
	More   int      // arguments beyond those
	Client string   // name or address
}

// Latest returns that many entries at most, the latest first.
func (l *SlowLog) Latest(most int) (list []SlowRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range slices.Backward(l.entries) {
		if len(list) == most {
			break
		}
		r := SlowRequest{At: time.Unix(e.seconds, 0), Took: time.Duration(e.micros) * time.Microsecond, Client: e.name}
		if r.Client == "" {
			r.Client = e.addr
		}
		r.Words = slices.Clone(e.args[:min(len(e.args), 2)])
		r.More = len(e.args) - len(r.Words)
		list = append(list, r)
	}
	return list
}
