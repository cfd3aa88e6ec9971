package node

import (
	"sync"
	"time"
)

// places are those of the goroutines that compute for scripts. Who waits for the first one goes ahead of those that
// have had a turn, so a script waits for the end of one turn, however many others run for long. Out of every few turns
// one goes to those others all the same.
type places struct {
	mu    sync.Mutex
	free  int
	fresh []*placeWait // those that have had none
	again []*placeWait
	row   int // so many turns in a row went to fresh ones
}

// placeWait is who waits for a place.
type placeWait struct{ ready chan struct{} }

const (
	// freshRow is how many turns in a row go to those that have had none.
	freshRow = 8
	// placePause is how long a script waits for a place until it looks whether it must end.
	placePause = 10 * time.Millisecond
)

// take takes a place, or waits for one. It reports whether it has one.
func (p *places) take(again bool) (w *placeWait, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free > 0 {
		p.free--
		return nil, true
	}
	w = &placeWait{ready: make(chan struct{})}
	if again {
		p.again = append(p.again, w)
	} else {
		p.fresh = append(p.fresh, w)
	}
	return w, false
}

// give gives a place back: to the next who waits.
func (p *places) give() {
	p.mu.Lock()
	defer p.mu.Unlock()
	queue := &p.fresh
	if p.row++; len(p.fresh) == 0 || p.row > freshRow && len(p.again) > 0 {
		queue, p.row = &p.again, 0
	}
	if len(*queue) == 0 {
		p.free++
		return
	}
	close((*queue)[0].ready)
	(*queue)[0] = nil
	*queue = (*queue)[1:]
}

// leave ends a wait. It reports false if there is a place by now.
func (p *places) leave(w *placeWait) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, queue := range [...]*[]*placeWait{&p.fresh, &p.again} {
		for i, other := range *queue {
			if other == w {
				*queue = append((*queue)[:i:i], (*queue)[i+1:]...)
				return true
			}
		}
	}
	return false
}

// hasWaiting reports whether somebody waits.
func (p *places) hasWaiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.fresh)+len(p.again) > 0
}

// enter waits for a place. Without one, it returns why the script must end.
func (w *scriptRun) enter(again bool) error {
	wait, ok := w.places.take(again)
	if ok {
		w.placed, w.turn = true, time.Now()
		return nil
	}
	pause := time.NewTicker(placePause)
	defer pause.Stop()
	done := w.ctx.Done()
	for {
		select {
		case <-wait.ready:
			w.placed, w.turn = true, time.Now()
			return nil
		case <-done:
			done = nil // a script that has written goes on
		case <-pause.C:
		}
		if err := w.check(); err != nil {
			if !w.places.leave(wait) {
				w.places.give()
			}
			return err
		}
	}
}

// leave gives the place back.
func (w *scriptRun) leave() {
	if w.placed {
		w.placed = false
		w.places.give()
	}
}
