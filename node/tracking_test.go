package node

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// trackingReader is a client that keeps what it reads until it is told to forget it.
type trackingReader struct {
	*client
	copies map[string]string
}

// answer returns the next reply, behind the invalidations before it.
func (r *trackingReader) answer() string {
	for {
		frame := string(r.read())
		if !strings.HasPrefix(frame, ">2\r\n$10\r\ninvalidate\r\n") {
			return frame
		}
		if lines := strings.Split(frame, "\r\n"); lines[3] == "_" {
			clear(r.copies)
		} else {
			delete(r.copies, lines[5])
		}
	}
}

// turn reads keys of which there is no copy, some in one go.
func (r *trackingReader) turn(dice *rand.Rand, keys int) {
	var asked []string
	for range 8 {
		key := fmt.Sprint("k", dice.IntN(keys))
		if _, has := r.copies[key]; !has {
			asked = append(asked, key)
			r.send("GET " + key)
		}
	}
	for _, key := range asked {
		r.copies[key] = r.answer()
	}
	r.send("PING")
	r.answer()
}

// TestTrackedCopiesOfLoops: clients of several loops read and write the same keys; in the end no copy is stale.
func TestTrackedCopiesOfLoops(t *testing.T) {
	n := startLeveled(t)
	const keys, rounds = 30, 10
	var readers []*trackingReader
	for i := range 6 {
		r := &trackingReader{dial(t, n.Addr()), make(map[string]string)}
		r.do("HELLO 3")
		r.want("CLIENT TRACKING ON"+[]string{"", " NOLOOP", " BCAST PREFIX k"}[i%3], "OK")
		readers = append(readers, r)
	}
	writers := []*client{dial(t, n.Addr()), dial(t, n.Addr()), dial(t, n.Addr())}
	for round := range rounds {
		var done sync.WaitGroup
		for i, w := range writers {
			dice := rand.New(rand.NewPCG(uint64(round), uint64(i)))
			done.Go(func() {
				for range 300 {
					w.do(fmt.Sprintf([]string{"INCR k%d", "DEL k%d", "SET k%d 5 PX 1", "APPEND k%d 1"}[dice.IntN(4)], dice.IntN(keys)))
				}
			})
		}
		for i, r := range readers {
			dice := rand.New(rand.NewPCG(uint64(round), uint64(10+i)))
			done.Go(func() {
				for range 100 {
					r.turn(dice, keys)
				}
			})
		}
		done.Wait()
		truth := make(map[string]string)
		for k := range keys {
			key := fmt.Sprint("k", k)
			eventually(t, "what expires at once has expired", func() bool {
				return !strings.HasPrefix(writers[0].do("PTTL "+key), "(integer) 1")
			})
			writers[0].send("GET " + key)
			if truth[key] = string(writers[0].read()); truth[key] == "$-1\r\n" {
				truth[key] = string(resp.AppendNull(nil, resp.RESP3))
			}
		}
		for i, r := range readers {
			stale := func() string {
				for key, value := range r.copies {
					if value != truth[key] {
						return fmt.Sprintf("%s is %q, and reader %d has %q", key, truth[key], i, value)
					}
				}
				return ""
			}
			for deadline := time.Now().Add(20 * time.Second); stale() != ""; {
				if time.Now().After(deadline) {
					t.Fatalf("round %d: a copy stays: %s", round, stale())
				}
				r.send("PING")
				r.answer()
			}
		}
	}
	for _, r := range readers {
		r.want("RESET", "RESET")
	}
	if marks, _ := n.engine.Marks(); marks != 0 {
		t.Errorf("nobody tracks any more, and %d marks are left", marks)
	}
}

// TestWatcherOverflow: of more keys than wait for a loop, all are gone.
func TestWatcherOverflow(t *testing.T) {
	w := &watcher{posted: true, of: new(watchers)}
	for i := range goneAtOnce {
		w.add(gone{hash: uint64(i)})
	}
	if list, all, _ := w.take(nil); len(list) != goneAtOnce || all {
		t.Errorf("%d keys are gone, all: %v", len(list), all)
	}
	w.posted = true
	for i := range goneAtOnce + 10 {
		w.add(gone{hash: uint64(i)})
	}
	if list, all, _ := w.take(nil); len(list) != 0 || !all {
		t.Errorf("%d keys are gone, all: %v", len(list), all)
	}
	w.posted = true
	w.add(gone{key: strings.Repeat("k", goneBytes), byPrefix: true})
	w.add(gone{key: "k", byPrefix: true})
	if list, all, _ := w.take(nil); len(list) != 0 || !all {
		t.Errorf("%d names are gone, all: %v", len(list), all)
	}
	if n := w.of.overflows.Load(); n != 2 {
		t.Errorf("%d overflows are counted", n)
	}
}
