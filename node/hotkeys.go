package node

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// Hot keys are found among the inputs that are sampled (timing.go), so that other
// commands pay nothing for it. Each worker counts the keys that it meets there by
// Space-Saving (Metwally et al., "Efficient computation of frequent and top-k elements
// in data streams", ICDT 2005): so many counters, and a key without one takes over the
// smallest, whose count may be too high by what that had. Only what is certain is told.

const (
	hotCounters = 256
	// hotHalf is after how long all counts are halved: what was hot fades in minutes.
	hotHalf = 30 * time.Second
	// hotKeyBytes is how much of a key is kept; longer ones that begin alike count as one.
	hotKeyBytes = 128
	// hotCertain is how many samples a key must have had for certain: of keys that are all
	// used alike none is hot.
	hotCertain = 4
	// hotOfCommand is how many keys of one command are noted at most: a million would take a loop
	// a tenth of a second.
	hotOfCommand = 64
)

// hotSketch is a worker's. It allocates once, and belongs to its loop.
type hotSketch struct {
	seed     maphash.Seed
	hashes   [hotCounters]uint64 // of the keys; apart, since all are looked at
	counters [hotCounters]hotCounter
	begun    time.Duration // loop time of the last halving
	before   time.Duration // what the time before it counts, halved as the counts are
	turn     uint          // of commands of which some keys were noted
}

type hotCounter struct {
	count, excess uint32 // excess of count may be another key's
	length        uint8
	key           [hotKeyBytes]byte
}

func newHotSketch(now time.Duration) *hotSketch {
	return &hotSketch{seed: maphash.MakeSeed(), begun: now}
}

// note counts one use of a key.
func (h *hotSketch) note(key []byte) {
	key = key[:min(len(key), hotKeyBytes)]
	hash := maphash.Bytes(h.seed, key)
	least := 0
	for i, have := range h.hashes {
		if have == hash && bytes.Equal(h.counters[i].text(), key) {
			h.counters[i].count++
			return
		}
		if h.counters[i].count < h.counters[least].count {
			least = i
		}
	}
	c := &h.counters[least]
	c.excess = c.count
	c.count++
	c.length = uint8(copy(c.key[:], key))
	h.hashes[least] = hash
}

// noteSome counts uses of a command's keys, which are the arguments at these places: of more than
// hotOfCommand some that lie apart, others each time. So what such commands use counts less than it
// is used; to count it in multiples would make keys certain that were met once.
func (h *hotSketch) noteSome(args [][]byte, keys []int) {
	stride := (len(keys) + hotOfCommand - 1) / hotOfCommand
	if stride == 0 {
		return
	}
	h.turn++
	for i := int(h.turn % uint(stride)); i < len(keys); i += stride {
		h.note(args[keys[i]])
	}
}

func (c *hotCounter) text() []byte { return c.key[:c.length] }

// fade is called now and then.
func (h *hotSketch) fade(now time.Duration) {
	if now-h.begun < hotHalf {
		return
	}
	h.before = (h.before + now - h.begun) / 2
	h.begun = now
	for i := range h.counters {
		h.counters[i].count /= 2
		h.counters[i].excess /= 2
	}
}

// report adds how often a second the keys are used that certainly are, to none. Looking for each
// key among the others took the loop 140 µs when all stand out.
func (h *hotSketch) report(now time.Duration, to *figures.KeyFigures) {
	counted := (h.before + now - h.begun).Seconds()
	if counted <= 0 {
		return
	}
	for i := range h.counters {
		c := &h.counters[i]
		if certain := c.count - c.excess; certain >= hotCertain {
			rate := float64(certain) * sampleInputs / counted
			to.CountNew(string(c.text()), int64(rate+0.5))
		}
	}
}

// partitionHeat is how often keys of each partition were met in samples, as far as is certain.
type partitionHeat [ring.Partitions]uint32

// heat adds the sketch's keys to their partitions.
func (h *hotSketch) heat(to *partitionHeat) {
	for i := range h.counters {
		c := &h.counters[i]
		if certain := c.count - c.excess; certain >= hotCertain && c.length < hotKeyBytes { // or else it may be a part of the key
			to[ring.PartitionOf(c.text())] += certain
		}
	}
}

// heat tells which partitions have keys that are used most. Without an answer of the loops none has.
func (n *Node) heat() *partitionHeat {
	parts := make([]partitionHeat, len(n.workers))
	err := n.cfg.Group.Each(func(l *netloop.Loop) {
		n.workers[l.Index()].hot.heat(&parts[l.Index()])
	})
	if err != nil {
		return new(partitionHeat)
	}
	for i := range parts[1:] {
		for p, uses := range parts[1+i] {
			parts[0][p] += uses
		}
	}
	return &parts[0]
}

// noteKeys counts the keys of a command that was executed in a sampled input.
func (r *request) noteKeys(s *step) {
	switch s.plan.keys {
	case oneKey:
		r.worker.hot.note(s.args[s.firstKey])
	case oneSlot, anySlots:
		r.worker.hot.noteSome(s.args, r.Keys)
	case noKeys, allKeys:
	}
}

// HotKeys returns the keys that are used most, with their uses a second as far as a
// sample of the last minute or so tells. The most used come first.
func (n *Node) HotKeys() ([]figures.KeyFigure, error) {
	parts := make([]figures.KeyFigures, len(n.workers))
	err := n.cfg.Group.Each(func(l *netloop.Loop) {
		n.workers[l.Index()].hot.report(l.Now(), &parts[l.Index()])
	})
	if err != nil {
		return nil, fmt.Errorf("cannot gather hot keys of node %q: %w", n.cfg.ID, err)
	}
	for i := range parts[1:] {
		parts[0].Add(&parts[1+i])
	}
	return parts[0].Top(), nil
}

// forgetHotKeys is HOTKEYS RESET. It is called on a loop, so it only posts.
func (n *Node) forgetHotKeys() {
	for _, w := range n.workers {
		w.loop.Post(func() { w.hot = newHotSketch(w.loop.Now()) })
	}
}

// hotKeys: HOTKEYS GET
func hotKeys(r *request) {
	n, reply := r.node, r.figuresReply(figures.UsesASecond)
	r.conn.CoverLater(func(context.Context, *ring.PartitionSet) []byte {
		list, err := n.HotKeys()
		if err != nil {
			return resp.AppendError(nil, exec.ErrBusy)
		}
		return reply(list)
	})
}

// bigKeys: HOTKEYS BIG
func bigKeys(r *request) {
	reply := r.figuresReply(figures.BytesOfKey)
	r.conn.Cover()
	r.Out = append(r.Out, reply(r.node.BigKeys())...)
}

// figuresReply returns what renders keys with their figures, for a client or as a part of a reply.
func (r *request) figuresReply(unit string) func(list []figures.KeyFigure) []byte {
	if r.Part {
		return func(list []figures.KeyFigure) []byte { return figures.EncodeKeyFigures(nil, list) }
	}
	version := r.Version()
	return func(list []figures.KeyFigure) []byte { return figures.AppendKeyFigures(nil, version, unit, list) }
}

// hotKeysReset: HOTKEYS RESET
func hotKeysReset(r *request) {
	r.node.forgetHotKeys()
	r.conn.Cover()
	r.ReplyOK()
}
