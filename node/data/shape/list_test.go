package shape

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

const (
	listPartition = 5
	listReceiver  = engine.Receiver(1)
)

var listKey = []byte("list")

// listFeed is an owner of one list with a model of it, and a follower.
type listFeed struct {
	tb              testing.TB
	r               *rand.Rand
	owner, follower *engine.Engine
	want            []string
	w               Work
	lacks, marks    int
	most, long      int // elements, and one in how many of them is long
}

func (f *listFeed) Admits(uint16) bool           { return true }
func (f *listFeed) Marked(uint16, engine.Mark)   { f.marks++ }
func (f *listFeed) Lacks(_ uint16, key []byte)   { f.lacks++ }
func (f *listFeed) fail(format string, a ...any) { f.tb.Helper(); f.tb.Fatalf(format, a...) }

func newListFeed(tb testing.TB, seed uint64) *listFeed {
	open := func() *engine.Engine {
		e, err := engine.New(engine.Config{MaxBytes: 64 << 20, Shards: 1, Seed: 7,
			Forms: map[engine.Type]engine.Form{engine.TypeList: ListForm}})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { e.Close() })
		return e
	}
	f := &listFeed{tb: tb, r: rand.New(rand.NewPCG(seed, 1)), owner: open(), follower: open(), most: 2000, long: 40}
	if f.r.IntN(2) == 0 {
		f.most, f.long = 8, 2
	}
	f.owner.OpenFeed(listReceiver, func() {})
	f.with(f.owner, func(t engine.Txn) {
		if err := t.Reserve(engine.Room{Roots: []int{len(listKey) + ListOwn}}); err != nil {
			tb.Fatal(err)
		}
		if _, err := t.NewParts(listKey, engine.TypeList, ListOwn, 0); err != nil {
			tb.Fatal(err)
		}
	})
	return f
}

func (f *listFeed) with(e *engine.Engine, do func(t engine.Txn)) {
	t := e.Lock(listPartition, 1)
	defer t.Unlock()
	do(t)
}

func (f *listFeed) listOf(t engine.Txn) List {
	item, _ := t.Peek(listKey)
	v, ok := t.Parts(item)
	if !ok {
		f.fail("the list is no value with parts")
	}
	return ListOf(v, &f.w)
}

// element is a string of any kind; a long one comes in pieces.
func (f *listFeed) element() string {
	if f.r.IntN(f.long) == 0 {
		return string(modelBytes(f.r.Uint32(), maxPiece-2+f.r.IntN(maxPiece+4)))
	}
	return string(modelString(f.r.Uint32()))
}

func (f *listFeed) insert(l *List) {
	n := 1
	if f.r.IntN(4) == 0 {
		n = 2 + f.r.IntN(f.most/20+1)
	}
	position, back := []int{0, len(f.want), f.r.IntN(len(f.want) + 1)}[f.r.IntN(3)], f.r.IntN(2) == 0
	var elements [][]byte
	var texts []string
	for range n {
		s := f.element()
		elements, texts = append(elements, []byte(s)), append(texts, s)
	}
	if err := l.Insert(position, elements, back); errors.Is(err, engine.ErrMemory) {
		return
	} else if err != nil {
		f.fail("%v", err)
	}
	if back {
		slices.Reverse(texts)
	}
	f.want = slices.Insert(f.want, position, texts...)
}

func (f *listFeed) remove(l *List) {
	n := 1 + f.r.IntN(3)
	if f.r.IntN(10) == 0 {
		n = 1 + f.r.IntN(len(f.want))
	}
	n = min(n, len(f.want))
	position := []int{0, len(f.want) - n, f.r.IntN(len(f.want) - n + 1)}[f.r.IntN(3)]
	l.Remove(position, n)
	f.want = slices.Delete(f.want, position, position+n)
}

// change makes one change of the owner's list.
func (f *listFeed) change() {
	f.with(f.owner, func(t engine.Txn) {
		l := f.listOf(t)
		t.BeginUnit()
		switch n := f.r.IntN(100); {
		case n < 45 && len(f.want) < f.most || len(f.want) < 3:
			f.insert(&l)
		case n < 80:
			f.remove(&l)
		default:
			i, s := f.r.IntN(len(f.want)), f.element()
			if err := l.Set(i, []byte(s)); err == nil {
				f.want[i] = s
			}
		}
	})
}

func (f *listFeed) collect() {
	for more := true; more; {
		var out []byte
		out, more = f.owner.Collect(listReceiver, 0, nil, 1<<20)
		if err := engine.CheckEffects(out, nil); err != nil {
			f.fail("%v", err)
		}
		if err := f.follower.Apply(out, 0, 1, f); err != nil {
			f.fail("%v", err)
		}
	}
}

func (f *listFeed) compare(e *engine.Engine) {
	f.tb.Helper()
	f.with(e, func(t engine.Txn) {
		l := f.listOf(t)
		if err := l.Check(); err != nil {
			f.fail("%v", err)
		}
		at := 0
		l.Walk(0, func(x Entry) bool {
			if at >= len(f.want) || string(x.First.Append(nil)) != f.want[at] {
				f.fail("element %d of %d differs", at, len(f.want))
			}
			at++
			return true
		})
		if at != len(f.want) {
			f.fail("%d elements, want %d", at, len(f.want))
		}
	})
}

// A follower has what its owner has, wherever in the changes of a list its snapshot is taken, and
// however they are mixed.
func TestListFeed(t *testing.T) {
	histories := 40
	if testing.Short() {
		histories = 6
	}
	for range histories {
		seed := rand.Uint64()
		f := newListFeed(t, seed)
		for range f.r.IntN(400) {
			f.change()
		}
		f.compare(f.owner)
		f.owner.Feed(listPartition, listReceiver, engine.Mark{Kind: 1})
		between := f.r.IntN(8)
		for cursor, done := uint64(0), false; !done; {
			cursor, done = f.owner.Snapshot(listPartition, listReceiver, cursor, 1+f.r.IntN(6000), 1)
			for range f.r.IntN(between + 1) {
				f.change()
			}
			f.collect()
			between = max(0, between-f.r.IntN(2)*f.r.IntN(2))
		}
		f.compare(f.follower)
		f.lacks = 0 // until its snapshot begins, the follower has no value for deltas
		for range 100 {
			f.change()
			f.collect()
		}
		f.compare(f.owner)
		f.compare(f.follower)
		if f.lacks > 0 || f.marks != 1 || f.owner.LostLog(listReceiver) {
			t.Errorf("the follower lacked a key %d times, marks %d", f.lacks, f.marks)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Deltas of any content make an error and not a wrong list, and are applied by position.
func FuzzListForm(f *testing.F) {
	f.Add([]byte("\x01\x00\x02\x01a\x02bc\x02\x00\x01\x03\x00\x01x"), uint64(1))
	f.Add([]byte("\x04\x00\x80\x80\x04\x06\x00\x05\x03abc\x05\x00\x80\x80\x03"), uint64(7))
	f.Fuzz(func(t *testing.T, d []byte, place uint64) {
		feed := newListFeed(t, 1)
		feed.with(feed.owner, func(x engine.Txn) {
			l := feed.listOf(x)
			if err := l.Insert(0, [][]byte{[]byte("a"), []byte("b"), []byte("c")}, false); err != nil {
				t.Fatal(err)
			}
			err := applyList(l.V, d)
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
			if err == nil {
				within, _ := listWithin(l.V, d, placeOf(int(place%5), 0), nil)
				for len(within) > 0 {
					if _, within, err = nextChange(within); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	})
}
