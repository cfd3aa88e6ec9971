package script

import (
	"container/list"
	"sync"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// A Library has the scripts that a node knows: those that were loaded, and those that EVAL has brought. It forgets
// those that were not used for longest when they take too much memory. Any goroutine may use it.
type Library struct {
	limit  int64 // of the cost of all
	charge func(n int64) bool
	refund func(n int64)

	mu     sync.Mutex
	bySHA  map[string]*list.Element
	byBody map[string]*list.Element
	order  list.List // of *Script; the first was used last
	stats  LibraryStats
}

// LibraryStats is what a Library has.
type LibraryStats struct {
	Scripts int
	Bytes   int64  // that they take
	Evicted uint64 // scripts that were forgotten because there were too many
}

// NewLibrary makes an empty Library whose scripts take up to limit bytes, which it charges.
func NewLibrary(limit int64, charge func(n int64) bool, refund func(n int64)) *Library {
	return &Library{
		limit: limit, charge: charge, refund: refund,
		bySHA: make(map[string]*list.Element), byBody: make(map[string]*list.Element),
	}
}

// Get returns the script with that name, in lower or upper case; nil if the Library does not know it. It keeps
// nothing of sha.
func (l *Library) Get(sha []byte) *Script {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.use(l.named(sha))
}

// AppendHas appends 1 or 0 for each name, as replies: whether the Library knows the script. That is no use of it.
func (l *Library) AppendHas(dst []byte, names [][]byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sha := range names {
		n := 0
		if l.named(sha) != nil {
			n = 1
		}
		dst = resp.AppendInt(dst, int64(n))
	}
	return dst
}

// named finds a script by its name, in lower or upper case.
func (l *Library) named(sha []byte) *list.Element {
	if len(sha) != 40 {
		return nil
	}
	var lower [40]byte
	for i, c := range sha {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return l.bySHA[string(lower[:])]
}

// Find returns the script with that body; nil if the Library does not know it. It keeps nothing of body.
func (l *Library) Find(body []byte) *Script {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.use(l.byBody[string(body)])
}

func (l *Library) use(e *list.Element) *Script {
	if e == nil {
		return nil
	}
	l.order.MoveToFront(e)
	return e.Value.(*Script)
}

// Add has the Library know a script. It reports false if there is no memory for it.
func (l *Library) Add(s *Script) bool {
	cost := CompileCost(len(s.Body))
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.bySHA[s.SHA]; e != nil {
		l.use(e)
		return true
	}
	for l.stats.Bytes+cost > l.limit && l.order.Len() > 0 {
		l.forget(l.order.Back())
		l.stats.Evicted++
	}
	if l.stats.Bytes+cost > l.limit || !l.charge(cost) {
		return false
	}
	e := l.order.PushFront(s)
	l.bySHA[s.SHA], l.byBody[s.Body] = e, e
	l.stats.Bytes += cost
	return true
}

// Flush forgets all scripts.
func (l *Library) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.bySHA)
	clear(l.byBody)
	l.order.Init()
	l.refund(l.stats.Bytes)
	l.stats.Bytes = 0
}

// Stats returns how many scripts there are, and what they take.
func (l *Library) Stats() LibraryStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Scripts = l.order.Len()
	return s
}

func (l *Library) forget(e *list.Element) {
	s := l.order.Remove(e).(*Script)
	delete(l.bySHA, s.SHA)
	delete(l.byBody, s.Body)
	cost := CompileCost(len(s.Body))
	l.stats.Bytes -= cost
	l.refund(cost)
}
