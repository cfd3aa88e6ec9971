package measure

import (
	"bytes"
	"hash/maphash"
	"time"

	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/ring"
)

// Hot keys are found among the inputs that are sampled (timing.go), so that other
// commands pay nothing for it. Each worker counts the keys that it meets there by
// Space-Saving (Metwally et al., "Efficient computation of frequent and top-k elements
// in data streams", ICDT 2005): so many counters, and a key without one takes over the
// smallest, whose count may be too high by what that had. Only what is certain is told.

const (
	// SampleInputs is of how many inputs one is sampled. It is prime, so that clients that take
	// turns do not always meet the same of them.
	SampleInputs = 251

	HotEntries = 256
	// hotHalf is after how long all counts are halved: what was hot fades in minutes.
	hotHalf = 30 * time.Second
	// HotKeyBytes is how much of a key is kept; longer ones that begin alike count as one.
	HotKeyBytes = 128
	// HotCertain is how many samples a key must have had for certain: of keys that are all
	// used alike none is hot.
	HotCertain = 4
	// hotOfCommand is how many keys of one command are noted at most: a million would take a loop
	// a tenth of a second.
	hotOfCommand = 64
)

// HotSketch is a worker's. It allocates once, and belongs to its loop.
type HotSketch struct {
	seed    maphash.Seed
	hashes  [HotEntries]uint64 // of the keys; apart, since all are looked at
	entries [HotEntries]hotEntry
	begun   time.Duration // loop time of the last halving
	before  time.Duration // what the time before it counts, halved as the counts are
	turn    uint          // of commands of which some keys were noted
}

type hotEntry struct {
	count, excess uint32 // excess of count may be another key's
	length        uint8
	key           [HotKeyBytes]byte
}

// NewHotSketch returns an empty sketch that begins now, by its loop's clock.
func NewHotSketch(now time.Duration) *HotSketch {
	return &HotSketch{seed: maphash.MakeSeed(), begun: now}
}

// Note counts one use of a key.
func (h *HotSketch) Note(key []byte) {
	key = key[:min(len(key), HotKeyBytes)]
	hash := maphash.Bytes(h.seed, key)
	least := 0
	for i, have := range h.hashes {
		if have == hash && bytes.Equal(h.entries[i].text(), key) {
			h.entries[i].count++
			return
		}
		if h.entries[i].count < h.entries[least].count {
			least = i
		}
	}
	c := &h.entries[least]
	c.excess = c.count
	c.count++
	c.length = uint8(copy(c.key[:], key))
	h.hashes[least] = hash
}

// NoteSome counts uses of a command's keys, which are the arguments at these places: of more than
// hotOfCommand some that lie apart, others each time. So what such commands use counts less than it
// is used; to count it in multiples would make keys certain that were met once.
func (h *HotSketch) NoteSome(args [][]byte, keys []int) {
	stride := (len(keys) + hotOfCommand - 1) / hotOfCommand
	if stride == 0 {
		return
	}
	h.turn++
	for i := int(h.turn % uint(stride)); i < len(keys); i += stride {
		h.Note(args[keys[i]])
	}
}

func (c *hotEntry) text() []byte { return c.key[:c.length] }

// Fade is called now and then.
func (h *HotSketch) Fade(now time.Duration) {
	if now-h.begun < hotHalf {
		return
	}
	h.before = (h.before + now - h.begun) / 2
	h.begun = now
	for i := range h.entries {
		h.entries[i].count /= 2
		h.entries[i].excess /= 2
	}
}

// Report adds how often a second the keys are used that certainly are, to none. Looking for each
// key among the others took the loop 140 µs when all stand out.
func (h *HotSketch) Report(now time.Duration, to *figures.KeyFigures) {
	counted := (h.before + now - h.begun).Seconds()
	if counted <= 0 {
		return
	}
	for i := range h.entries {
		c := &h.entries[i]
		if certain := c.count - c.excess; certain >= HotCertain {
			rate := float64(certain) * SampleInputs / counted
			to.CountNew(string(c.text()), int64(rate+0.5))
		}
	}
}

// Heat is how often keys of each partition were met in samples, as far as is certain.
type Heat [ring.Partitions]uint32

// AddHeat adds the sketch's keys to their partitions.
func (h *HotSketch) AddHeat(to *Heat) {
	for i := range h.entries {
		c := &h.entries[i]
		if certain := c.count - c.excess; certain >= HotCertain && c.length < HotKeyBytes { // or else it may be a part of the key
			to[ring.PartitionOf(c.text())] += certain
		}
	}
}
