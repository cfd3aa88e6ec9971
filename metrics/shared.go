package metrics

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// collectPause is the least time between two collections of what members say: however many
	// ask, they are read twenty times a second at most.
	collectPause = 50 * time.Millisecond
	// mostReaders bounds the requests of one kind that wait or are sent at a time. Those of the
	// page and those of status are two kinds, so that open tabs take nothing from members that ask.
	mostReaders = 64
	// sendTime is how long a reader may take for what it asked for.
	sendTime = 10 * time.Second
)

// shared makes a thing once for all who ask for it at one time, and makes one at a time. Nobody
// is given what was begun before it asked: a test or a script that reads, acts and reads again
// sees what it did, as it would not from a cache.
type shared[T any] struct {
	pause time.Duration // from one's begin to the next one's, at least
	make  func() T      // the result is not changed afterwards

	mu   sync.Mutex
	next *sharing[T] // what has not begun; nil: nobody has asked since the last began
	last *sharing[T] // whom next waits for; nil: there was none
}

type sharing[T any] struct {
	began time.Time     // before done
	done  chan struct{} // closed when there is a thing
	thing T
}

// get waits for its thing until ctx ends. Who asks first makes it for the others.
func (s *shared[T]) get(ctx context.Context) (thing T, err error) {
	s.mu.Lock()
	mine, before := s.next, s.last
	first := mine == nil
	if first {
		mine = &sharing[T]{done: make(chan struct{})}
		s.next, s.last = mine, mine
	}
	s.mu.Unlock()
	if first {
		s.fill(mine, before)
	}
	select {
	case <-mine.done:
		return mine.thing, nil
	case <-ctx.Done():
		return thing, ctx.Err()
	}
}

func (s *shared[T]) fill(mine, before *sharing[T]) {
	defer close(mine.done)
	if before != nil {
		<-before.done
		time.Sleep(time.Until(before.began.Add(s.pause)))
	}
	mine.began = time.Now()
	s.mu.Lock()
	s.next = nil // who asks from here on is given the next
	s.mu.Unlock()
	mine.thing = s.make()
}

// readers are the requests of one kind under way.
type readers chan struct{}

// limit refuses requests beyond what readers has room for, and cuts off those who do not read.
func (r readers) limit(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		select {
		case r <- struct{}{}:
			defer func() { <-r }()
			// Not supported by a recorder of tests alone.
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendTime))
			serve(w, req)
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many readers at once, try again in a moment", http.StatusServiceUnavailable)
		}
	}
}
