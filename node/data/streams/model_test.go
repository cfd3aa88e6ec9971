package streams

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

const (
	testPartition = 5
	testReceiver  = engine.Receiver(1)
)

var testKey = []byte("stream")

// modelStream is a stream in the simplest form.
type modelStream struct {
	entries []modelEntry
	meta    info
	groups  map[string]*modelGroup
}

type modelEntry struct {
	id     ID
	fields []string
}

type modelGroup struct {
	last      ID
	read      int64
	consumers map[string]modelConsumer
	pending   map[ID]modelPending
}

type modelConsumer struct{ seen, active int64 }

type modelPending struct {
	consumer  string
	delivered int64
	count     uint64
}

func (m *modelStream) at(id ID) (int, bool) {
	return slices.BinarySearchFunc(m.entries, id, func(e modelEntry, id ID) int { return e.id.compare(id) })
}

// rig is an owner of a stream with a model of it.
type rig struct {
	tb     testing.TB
	r      *rand.Rand
	owner  *engine.Engine
	want   *modelStream // nil: there is no key
	now    int64
	full   int   // changes without memory
	long   int   // one in so many strings is long
	most   int   // entries
	few    bool  // groups and consumers have few names
	scarce bool  // there may be no memory
	mayGo  bool  // the key may be evicted
	shift  int64 // of the clock of the engine that is compared
}

func openTestEngine(tb testing.TB, maxBytes int64, policy engine.Policy) *engine.Engine {
	tb.Helper()
	e, err := engine.New(engine.Config{
		MaxBytes: maxBytes, Shards: 1, Seed: 7, Policy: policy,
		Forms: map[engine.Type]engine.Form{engine.TypeStream: streamType.Form},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { e.Close() })
	return e
}

func newRig(tb testing.TB, seed uint64) *rig {
	m := &rig{tb: tb, r: rand.New(rand.NewPCG(seed, 1)), now: 1_000_000}
	m.long, m.most, m.few = []int{4, 30, 1000}[m.r.IntN(3)], []int{6, 150, 2500}[m.r.IntN(3)], m.r.IntN(2) == 0
	m.owner = openTestEngine(tb, 64<<20, engine.AllKeys)
	return m
}

// with has f use the stream under a lock.
func (m *rig) with(e *engine.Engine, f func(s *stream)) {
	t := e.Lock(testPartition, m.now)
	defer t.Unlock()
	item, found := t.Peek(testKey)
	s := streamOf(nil, t, testKey, item, found)
	f(&s)
	if s.spare != nil {
		m.tb.Fatal("a changed stream was not closed")
	}
}

// failed counts a change without memory, and fails for any other error.
func (m *rig) failed(err error) bool {
	if err != nil && !errors.Is(err, engine.ErrMemory) {
		m.tb.Fatal(err)
	}
	if err != nil {
		m.full++
	}
	return err != nil
}

// text is a string of any kind.
func (m *rig) text() string {
	switch n := m.r.IntN(m.long * 3); {
	case n == 0:
		return string(pattern(m.r.Uint32(), m.r.IntN(3000)))
	case n == 1 && m.r.IntN(4) == 0:
		return string(pattern(m.r.Uint32(), ownFrom-10+m.r.IntN(40_000)))
	case n == 2 && m.r.IntN(4) == 0:
		return string(pattern(m.r.Uint32(), m.r.IntN(maxPiece+2000)))
	case n%3 == 0:
		return fmt.Sprint(int64(m.r.Uint64()) >> m.r.IntN(64))
	}
	return string(pattern(m.r.Uint32(), m.r.IntN(30)))
}

func pattern(seed uint32, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(uint32(i)*seed>>8) ^ byte(i>>8)
	}
	return b
}

// fields are mostly of the same names.
func (m *rig) fields() (fields [][]byte, texts []string) {
	names := []string{"sensor", "temperature", "at"}
	switch m.r.IntN(12) {
	case 0:
		names = []string{m.text()}
	case 1:
		names = names[:1]
	case 2:
		names = nil
		for range 1 + m.r.IntN(200) {
			names = append(names, fmt.Sprint("field", m.r.IntN(300)))
		}
	}
	for _, name := range names {
		texts = append(texts, name, m.text())
	}
	for _, s := range texts {
		fields = append(fields, []byte(s))
	}
	return fields, texts
}

// nextID is above the last one.
func (m *rig) nextID() ID {
	last := ID{1_000_000, 0}
	if m.want != nil && !m.want.meta.last.isZero() {
		last = m.want.meta.last
	}
	switch m.r.IntN(20) {
	case 0:
		return ID{last.Ms + 1 + m.r.Uint64()>>(20+m.r.IntN(40)), m.r.Uint64() >> m.r.IntN(64)}
	case 1, 2, 3, 4, 5, 6:
		return ID{last.Ms + 1 + uint64(m.r.IntN(20)), 0}
	}
	next, ok := last.next()
	if !ok {
		m.tb.Fatal("the last ID was reached")
	}
	return next
}

// someID is that of an entry, or near one.
func (m *rig) someID() ID {
	if n := len(m.want.entries); n > 0 && m.r.IntN(8) > 0 {
		id := m.want.entries[m.r.IntN(n)].id
		if m.r.IntN(4) == 0 {
			id.Seq++
		}
		return id
	}
	return ID{m.r.Uint64() >> m.r.IntN(64), m.r.Uint64() >> m.r.IntN(64)}
}

func (m *rig) name(what string) string {
	if m.few {
		return fmt.Sprint(what, m.r.IntN(3))
	}
	return string(pattern(uint32(m.r.IntN(40)), []int{0, 1, 8, 60, maxName}[m.r.IntN(5)])) + ""
}

// change makes some changes of the stream under one lock.
func (m *rig) change() {
	m.now += int64(m.r.IntN(1000))
	m.with(m.owner, func(s *stream) {
		if m.mayGo && m.r.IntN(400) == 0 { // it is evicted
			s.txn.Delete(testKey)
			m.want = nil
			return
		}
		s.txn.BeginUnit()
		old := m.want
		if m.scarce && !s.isBig {
			old = m.want.clone()
		}
		for range 1 + m.r.IntN(3) {
			m.step(s)
		}
		if m.failed(s.close()) { // a small stream was not stored
			if m.want = old; !m.scarce {
				m.tb.Fatal("there was no memory for a small stream")
			}
		}
		s.txn.EndUnit()
	})
}

func (m *rig) step(s *stream) {
	if m.want == nil {
		if s.found {
			m.tb.Fatal("there is a stream")
		}
		if m.r.IntN(4) > 0 {
			m.add(s)
		} else if name := m.name("group"); !m.failed(s.makeGroup([]byte(name), minID, readUnknown)) {
			m.want = &modelStream{groups: map[string]*modelGroup{name: newModelGroup(minID)}}
		} else if s.found {
			m.tb.Fatal("there is a stream without its group")
		}
		return
	}
	switch n := m.r.IntN(100); {
	case n < 40 && len(m.want.entries) < m.most:
		m.add(s)
	case n < 52:
		m.delete(s)
	case n < 56:
		m.trim(s)
	case n < 58:
		m.setInfo(s)
	case n < 62:
		m.createGroup(s)
	default:
		m.stepGroup(s)
	}
}

func (m *rig) add(s *stream) {
	id := m.nextID()
	fields, texts := m.fields()
	if isStaged(fields, maxOwn) {
		return // as XADD does elsewhere
	}
	if m.failed(s.add(id, fields)) {
		return
	}
	if m.want == nil {
		m.want = &modelStream{groups: map[string]*modelGroup{}}
	}
	m.want.entries = append(m.want.entries, modelEntry{id, texts})
	m.want.meta.last = id
	m.want.meta.added++
}

func (m *rig) delete(s *stream) {
	id := m.someID()
	at, there := m.want.at(id)
	if s.has(id) != there || s.delete(id) != there {
		m.tb.Fatalf("entry %v was there: %t", id, there)
	}
	if there {
		m.want.entries = slices.Delete(m.want.entries, at, at+1)
		if m.want.meta.maxDeleted.less(id) {
			m.want.meta.maxDeleted = id
		}
	}
}

func (m *rig) trim(s *stream) {
	t := trimming{maxLen: m.r.IntN(len(m.want.entries) + 2), approx: m.r.IntN(4) == 0}
	if m.r.IntN(2) == 0 {
		t = trimming{byID: true, minID: m.someID(), approx: t.approx}
	}
	if t.approx {
		t.limit = m.r.IntN(200)
	}
	keep := len(m.want.entries) - min(len(m.want.entries), t.maxLen)
	if t.byID {
		keep, _ = m.want.at(t.minID)
	}
	all, done := 0, false
	for left := t.limit; !done; {
		var removed int
		t.limit = left
		removed, done = s.trim(t, 1+m.r.IntN(300))
		all += removed
		if left > 0 {
			if left -= removed; left <= 0 {
				break
			}
		}
	}
	if all > keep || !t.approx && all != keep {
		m.tb.Fatalf("%d entries were trimmed, want %d: %+v", all, keep, t)
	}
	m.want.entries = slices.Delete(m.want.entries, 0, all)
}

func (m *rig) setInfo(s *stream) {
	i := s.info()
	if m.r.IntN(2) == 0 && len(m.want.entries) > 0 {
		i.last = m.want.entries[len(m.want.entries)-1].id // it may become less
	}
	i.added += uint64(m.r.IntN(3))
	if m.failed(s.setInfo(i)) {
		return
	}
	m.want.meta.last, m.want.meta.added = i.last, i.added
}

// A stream is what the model says, after any changes.
func TestModel(t *testing.T) {
	histories, big := 60, 0
	if testing.Short() {
		histories = 12
	}
	for range histories {
		seed := rand.Uint64()
		m := newRig(t, seed)
		steps := 200 + m.r.IntN(1500)
		t.Logf("seed %d: up to %d entries", seed, m.most)
		for i := range steps {
			m.change()
			if i%100 == 0 || i == steps-1 {
				m.compare(m.owner)
			}
		}
		m.with(m.owner, func(s *stream) {
			if s.isBig {
				big++
			}
		})
	}
	if big == 0 {
		t.Error("no stream was big")
	}
}
