package streams

import (
	"math/rand/v2"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// link feeds one engine from another one, whose clock differs.
type link struct {
	m        *rig
	from, to *engine.Engine
	shift    int64
	cursor   uint64
	begun    bool
	done     bool
	lacks    int
	asked    int // keys that were sent anew
}

func (l *link) Admits(uint16) bool         { return true }
func (l *link) Marked(uint16, engine.Mark) {}
func (l *link) Lacks(uint16, []byte)       { l.lacks++ }

func newLink(m *rig, from *engine.Engine, shift int64) *link {
	l := &link{m: m, from: from, to: openTestEngine(m.tb, 64<<20, engine.AllKeys), shift: shift}
	l.to.SetCopy(testPartition, engine.PlainCopy)
	from.OpenFeed(testReceiver, func() {})
	return l
}

// begin begins a snapshot, or begins it again.
func (l *link) begin() {
	l.from.Feed(testPartition, testReceiver, engine.Mark{Kind: 1})
	l.cursor, l.begun, l.done = 0, true, false
}

// step sends some more.
func (l *link) step() {
	if l.begun && (!l.done || l.lacks > 0) {
		if l.done {
			if l.from.SendAnew(testPartition, testReceiver, testKey, l.m.now) {
				l.asked++
			}
			l.lacks, l.done = 0, false
		}
		l.cursor, l.done = l.from.Snapshot(testPartition, testReceiver, l.cursor, 1+l.m.r.IntN(6000), l.m.now)
	}
	for more := l.m.r.IntN(3) > 0; more; {
		var out []byte
		out, more = l.from.Collect(testReceiver, 0, nil, 1+l.m.r.IntN(1<<16))
		if err := engine.CheckEffects(out, nil); err != nil {
			l.m.tb.Fatal(err)
		}
		if err := l.to.Apply(out, l.shift, l.m.now+l.shift, l); err != nil {
			l.m.tb.Fatal(err)
		}
	}
	if len(l.from.Overflowed(testReceiver, nil)) > 0 {
		l.begin()
	}
}

// settle goes on until the receiver has everything.
func (l *link) settle() {
	for rest := 0; rest < 20; rest++ {
		if l.step(); !l.done || l.lacks > 0 {
			rest = 0
		}
	}
}

func (l *link) compare() {
	l.m.tb.Helper()
	l.m.shift = l.shift
	l.m.compare(l.to)
	l.m.shift = 0
}

// A follower has what its owner has, wherever in the changes of a stream its snapshot is taken, however they
// are mixed, and whatever is evicted; and so has a follower of the follower.
func TestFeed(t *testing.T) {
	histories := 60
	if testing.Short() {
		histories = 10
	}
	asked := 0
	for range histories {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		m := newRig(t, seed)
		m.mayGo = m.r.IntN(2) == 0
		for range m.r.IntN(600) {
			m.change()
		}
		first := newLink(m, m.owner, 77_000)
		second := newLink(m, first.to, -5)
		second.shift -= first.shift
		first.begin()
		beginSecond, between, evicted := m.r.IntN(60), m.r.IntN(8), false
		for i := range 150 {
			for range m.r.IntN(between + 1) {
				m.change()
			}
			first.step()
			if i == beginSecond {
				second.begin()
			}
			second.step()
			switch m.r.IntN(200) {
			case 0:
				first.begin()
			case 1: // the follower evicts it
				drop(first.to)
				evicted = true
			case 2:
				m.owner.Sweep(m.now, 100)
			}
			between = max(1, between-m.r.IntN(2)*m.r.IntN(2))
		}
		if first.settle(); evicted && m.want != nil { // perhaps no change came since, and so the follower missed none
			m.with(m.owner, func(s *stream) { m.failed(s.setInfo(s.info())); m.failed(s.close()) })
			first.settle()
		}
		second.settle()
		m.compare(m.owner)
		first.compare()
		second.shift += first.shift
		second.compare()
		asked += first.asked + second.asked
		takeOver(m, first)
	}
	if asked == 0 {
		t.Error("no key was sent anew")
	}
}

// A snapshot goes on behind an entry with the least ID, which RESTORE may bring, however little it sends at a time.
func TestFeedFromTheLeastID(t *testing.T) {
	m := newRig(t, 1)
	m.want = &modelStream{groups: map[string]*modelGroup{}}
	long := string(pattern(1, maxPiece+maxPiece/2)) // the rest of which fills a slice
	for i, id := range []ID{minID, {0, 1}, {0, 2}} {
		texts := []string{"f", long[i:]}
		m.with(m.owner, func(s *stream) {
			m.failed(s.add(id, [][]byte{[]byte(texts[0]), []byte(texts[1])}))
			m.failed(s.close())
		})
		m.want.entries = append(m.want.entries, modelEntry{id, texts})
		m.want.meta.last = id
		m.want.meta.added++
	}
	l := newLink(m, m.owner, 0)
	l.begin()
	for slices := 0; !l.done; slices++ {
		if l.step(); slices > 100 {
			t.Fatal("the snapshot does not end")
		}
	}
	l.settle()
	l.compare()
}

// A follower follows when XSETID has taken the last ID back below an entry that was deleted, and when entries come
// anew under such IDs.
func TestFeedOfALastIDBelowDeletedEntries(t *testing.T) {
	m := newRig(t, 1)
	m.long, m.most = 1000, 150
	l := newLink(m, m.owner, 0)
	const entries = 120
	for round := range 3 {
		for m.want == nil || len(m.want.entries) < entries {
			m.with(m.owner, func(s *stream) { m.add(s); m.failed(s.close()) })
		}
		if round == 0 {
			l.begin()
		}
		l.settle()
		for range 2 {
			last := m.want.entries[len(m.want.entries)-1].id
			m.with(m.owner, func(s *stream) { s.delete(last); m.failed(s.close()) })
			m.want.entries = m.want.entries[:len(m.want.entries)-1]
		}
		m.want.meta.last, m.want.meta.maxDeleted = m.want.entries[len(m.want.entries)-1].id, minID
		m.with(m.owner, func(s *stream) {
			i := s.info()
			i.last, i.maxDeleted = m.want.meta.last, m.want.meta.maxDeleted
			m.failed(s.setInfo(i))
			m.failed(s.close())
		})
		l.settle()
		l.compare()
	}
	if l.asked > 0 {
		t.Errorf("the stream was sent anew %d times", l.asked)
	}
}

func drop(e *engine.Engine) {
	t := e.Lock(testPartition, 1)
	defer t.Unlock()
	t.Delete(testKey)
}

// takeOver makes the follower the owner: it goes on with changes, and frees what groups have left.
func takeOver(m *rig, l *link) {
	l.to.SetCopy(testPartition, engine.NoCopy)
	m.owner, m.now = l.to, m.now+l.shift
	if m.want != nil {
		for _, g := range m.want.groups {
			for name, c := range g.consumers {
				if c.seen += l.shift; c.active != never {
					c.active += l.shift
				}
				g.consumers[name] = c
			}
			for id, p := range g.pending {
				p.delivered += l.shift
				g.pending[id] = p
			}
		}
	}
	for range 50 {
		m.change()
	}
	for range 100 {
		m.owner.Sweep(m.now, 100)
	}
	m.compare(m.owner)
	m.with(m.owner, func(s *stream) {
		if s.isBig && s.gone() != 0 {
			m.tb.Fatal("keys of groups that are gone are left")
		}
	})
}
