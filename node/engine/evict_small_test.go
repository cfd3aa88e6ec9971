package engine

import (
	"fmt"
	"testing"
)

// fullShard is the only shard of an engine whose memory is full of values of 100 bytes.
func fullShard(t *testing.T) *shard {
	e := open(t, Config{MaxBytes: 3 << 20, Shards: 1})
	for i := 0; !e.pool.tight() || e.shards[0].small.pages < 3; i++ {
		mustSet(t, e, 0, fmt.Sprint(i), make([]byte, 100))
	}
	return &e.shards[0]
}

func TestEntrance(t *testing.T) {
	s := fullShard(t)
	for i, c := range []struct {
		what    string
		evicted bool
		length  int
		share   int32
		want    kind
	}{
		{"a new key", false, 100, startShare, smallLog},
		{"one that returns", true, 100, startShare, mainCells},
		{"one that returns with a long value", true, 100 * heavyTimes * 2, startShare, smallLog},
		{"one that returns while the set shifts", true, 100, doorShare + shareStep, smallLog},
	} {
		s.mu.Lock()
		s.e.balance.share.Store(c.share)
		tag := uint32(i * 1_000_003)
		if c.evicted {
			s.ghosts.add(ghostOf(0, tag), smallLog)
		}
		if got := s.entrance(0, tag, s.e.makeHeader(TypeString, 0, 4, c.length, false)); got != c.want {
			t.Errorf("%s goes to queue %d, want %d", c.what, got, c.want)
		}
		s.mu.Unlock()
	}
}

// TestClockForgets asks how many uses are left of three when the hand has passed.
func TestClockForgets(t *testing.T) {
	for _, c := range []struct {
		share int32
		want  int
	}{{startShare, 1}, {shiftShare + shareStep, 0}} {
		s := fullShard(t)
		with(s.e, 0, 0, func(x Txn) {
			en, _ := x.lookup([]byte("0")) // written first, and so in the main queue
			s.cells.setHeader(en.ref(), s.cells.header(en.ref())|usesMask)
			s.e.balance.share.Store(c.share)
			if s.clocks.judge(en.ref(), &hand{page: s.cells.pageOf(en.ref())}) {
				t.Fatal("a used record was evicted")
			}
			if got := s.cells.header(en.ref()).uses(); got != c.want {
				t.Errorf("with a share of %d, %d uses are left, want %d", c.share, got, c.want)
			}
		})
	}
}

// TestPassedOver: records that were passed in the small queue, and had to stay because another
// policy held then, can be evicted when they may go. They may be all that there is.
func TestPassedOver(t *testing.T) {
	s := fullShard(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.small.at = hand{page: s.small.head, cell: uint32(s.e.pool.pages[s.small.head].bump)}
	s.small.judge(s.e.pool.pageSize) // finds that there is nothing ahead
	if !s.small.judge(s.e.pool.pageSize) {
		t.Error("nothing in the small queue can be evicted")
	}
}
