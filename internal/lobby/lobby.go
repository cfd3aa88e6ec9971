package lobby

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// Lobby holds guests. Any goroutine may call its methods.
type Lobby struct {
	most, share int

	mu      sync.Mutex
	all     list.List // of *Guest, the oldest first
	sources map[netip.Addr]*list.List
}

// Guest is one of a Lobby's. A nil Guest has left.
type Guest struct {
	lobby   *Lobby
	source  netip.Addr
	since   time.Time
	turnOut func()
	// The guest's places in Lobby.all and in the list of its source; nil once it has left.
	all, own *list.Element
}

// New returns a Lobby for so many guests, share of them from one source.
func New(most, share int) *Lobby {
	return &Lobby{most: max(1, most), share: max(1, share), sources: make(map[netip.Addr]*list.List)}
}

// Source returns what stands for an address: itself, or its network of 64 bits.
func Source(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if p, err := a.Prefix(64); err == nil && a.Is6() {
		return p.Addr()
	}
	return a
}

// Enter lets a guest in, and may turn out another one to make room. turnOut is called at most once,
// from any goroutine, and not after Leave has returned; it must not block or call the Lobby.
func (l *Lobby) Enter(address netip.Addr, turnOut func()) *Guest {
	g := &Guest{lobby: l, source: Source(address), since: time.Now(), turnOut: turnOut}
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.sources[g.source]
	switch {
	case own != nil && own.Len() >= l.share:
		l.expel(own.Front().Value.(*Guest))
	case l.all.Len() >= l.most:
		l.expel(l.all.Front().Value.(*Guest))
	}
	if own = l.sources[g.source]; own == nil {
		own = list.New()
		l.sources[g.source] = own
	}
	g.all, g.own = l.all.PushBack(g), own.PushBack(g)
	return g
}

// Leave ends the guest's stay: it has proved itself, or is gone.
func (g *Guest) Leave() {
	if g == nil {
		return
	}
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	g.lobby.remove(g)
}

// TurnOut turns out the guest. It reports whether the guest was still here: it had not proved
// itself.
func (g *Guest) TurnOut() bool {
	if g == nil {
		return false
	}
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	here := g.all != nil
	if here {
		g.lobby.expel(g)
	}
	return here
}

// TurnOut turns out the oldest guest. It reports whether there was one.
func (l *Lobby) TurnOut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := l.all.Front()
	if oldest != nil {
		l.expel(oldest.Value.(*Guest))
	}
	return oldest != nil
}

// Expire turns out whoever has been here for longer than patience.
func (l *Lobby) Expire(patience time.Duration) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.all.Front(); e != nil && now.Sub(e.Value.(*Guest).since) > patience; e = l.all.Front() {
		l.expel(e.Value.(*Guest))
	}
}

// Len returns the number of guests.
func (l *Lobby) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Len()
}

// expel is called with the lock held, so that Leave waits for turnOut.
func (l *Lobby) expel(g *Guest) {
	l.remove(g)
	g.turnOut()
}

func (l *Lobby) remove(g *Guest) {
	if g.all == nil {
		return
	}
	l.all.Remove(g.all)
	own := l.sources[g.source]
	if own.Remove(g.own); own.Len() == 0 {
		delete(l.sources, g.source)
	}
	g.all, g.own = nil, nil
}
