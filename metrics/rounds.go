package metrics

import (
	"context"
	"sync"
	"time"
)

const (
	// roundTime ends a round of questions. Who looks at the page waits for one no
	// longer than roundGrace, and is shown what the round before it found.
	roundTime  = 2 * time.Second
	roundGrace = 300 * time.Millisecond
	// A round begins roundPause after the one before, and peerPause more for each
	// member: a process that is looked at asks at most 50 others a second, and one of
	// n members is asked at most n/(1 + n/50) times a second, however many look.
	roundPause = time.Second
	peerPause  = 20 * time.Millisecond
	// roundAge is for how long a round is shown after the next one was due.
	roundAge = 10 * time.Second
)

// rounds ask other processes what their members do, because somebody looks at this
// one's page: never otherwise, and one round at a time. Those that are asked ask
// nobody.
type rounds struct {
	pause time.Duration // roundPause, but in tests

	mu   sync.Mutex
	last *Report       // what the last round found; nil: there was none lately
	done chan struct{} // closed at the end of the round under way; nil: there is none
	next time.Time     // none begins before
}

// others returns what the cluster's members said last, nil if that is not known. s is
// what this process knows without asking, and not changed afterwards.
func (a *Admin) others(s *Status) *Report {
	if done := a.beginRound(s); done != nil {
		grace := time.NewTimer(roundGrace)
		defer grace.Stop()
		select {
		case <-done:
		case <-grace.C:
		case <-a.ctx.Done():
		}
	}
	r := &a.rounds
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// beginRound begins a round if it is time for one. It returns what is closed at the
// end of the round under way, nil if there is none.
func (a *Admin) beginRound(s *Status) <-chan struct{} {
	r := &a.rounds
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.done != nil || now.Before(r.next) || a.ctx.Err() != nil {
		return r.done
	}
	if now.After(r.next.Add(roundAge)) {
		r.last = nil
	}
	done := make(chan struct{})
	r.done = done
	a.done.Go(func() {
		ctx, cancel := context.WithTimeout(a.ctx, roundTime)
		defer cancel()
		found := s.report(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.last, r.done = found, nil
		r.next = time.Now().Add(r.pause + time.Duration(len(s.Cluster.Peers))*peerPause)
		close(done)
	})
	return done
}
