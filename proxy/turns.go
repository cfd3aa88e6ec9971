package proxy

import "github.com/dunlin-cache/dunlin/internal/netloop"

// turns are the commands in chunks that wait for their turn. In each iteration one of them takes it,
// however many there are.
type turns struct {
	waiting []*chunked
	posted  bool // next runs in the next iteration
}

func (t *turns) take(l *netloop.Loop, c *chunked) {
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
	c.turn()
}
