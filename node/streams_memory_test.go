package node

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// endingHeap has memory for so many more parts of replies, and behind those only for small ones.
type endingHeap struct {
	exec.Heap
	left  atomic.Int64
	small atomic.Int64 // so many bytes
}

func (h *endingHeap) StageReply(n int) (engine.Staged, error) {
	if h.left.Add(-1) < 0 && int64(n) > h.small.Load() {
		return engine.Staged{}, engine.ErrMemory
	}
	return h.Heap.StageReply(n)
}

// newEndingHeap gives the node such a heap, which has memory for very much.
func newEndingHeap(t *testing.T, n *Node) *endingHeap {
	t.Helper()
	h := &endingHeap{Heap: heapBudget{n}}
	h.left.Store(math.MaxInt64)
	if err := n.cfg.Group.Each(func(l *netloop.Loop) { n.workers[l.Index()].request.Heap = h }); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestGroupReadsWithoutMemory: wherever the memory for a reply ends, the reply has whole entries or is an error, and
// nothing of it stays.
func TestGroupReadsWithoutMemory(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	h := newEndingHeap(t, n)
	var replies []string // the first entries
	for i := range 5 {
		fields := 1
		if i%2 == 1 {
			fields = 200 // more than one run answers
		}
		c.sendWords(strings.Fields(fmt.Sprintf("XADD {s}a %d", i+1) + strings.Repeat(" field "+strings.Repeat("v", 1500), fields)))
		c.wantNext(fmt.Sprintf(`"%d-0"`, i+1))
		replies = append(replies, "*1\r\n"+readOf("{s}a", c.bytesOf(fmt.Sprintf("XRANGE {s}a - %d", i+1))))
	}
	c.do("XADD {s}b 1 f v")
	other := readOf("{s}b", c.bytesOf("XRANGE {s}b - +"))
	for _, key := range []string{"{s}a", "{s}b"} {
		c.do("XGROUP CREATE " + key + " g 0")
	}
	cut := 0
	for _, line := range []string{
		"XREADGROUP GROUP g c STREAMS {s}a >", "XREADGROUP GROUP g c STREAMS {s}a 0", "XREADGROUP GROUP g c STREAMS {s}a {s}b > >",
	} {
		may := slices.Clone(replies)
		for i := range may {
			if strings.Contains(line, "{s}b") {
				may[i] = "*2" + may[i][2:] + other
			}
		}
		whole := may[len(may)-1]
		for parts, got := int64(0), ""; got != whole; parts++ {
			for _, small := range []int64{0, 4 << 10} {
				if c.do("XGROUP SETID {s}b g 0"); !strings.HasSuffix(line, "{s}a 0") {
					c.do("XGROUP SETID {s}a g 0")
				}
				h.small.Store(small)
				h.left.Store(parts)
				got = c.bytesOf(line)
				h.left.Store(math.MaxInt64)
				isError := got == "-"+exec.ErrOOM+"\r\n" || got == "-"+exec.ErrReplyLost+"\r\n"
				some := !isError && got != whole
				if some && !slices.Contains(may, got) {
					t.Errorf("with memory for %d parts, %s answers %d bytes: %.80q", parts, line, len(got), got)
				} else if some {
					cut++
				}
				c.want("PING", "PONG")
				eventually(t, "nothing of the reply is left", func() bool { return n.engine.Replies() == 0 })
			}
		}
	}
	if cut == 0 {
		t.Error("no reply had some of the entries")
	}
}
