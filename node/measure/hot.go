package measure

import (
	"bytes"
	"hash/maphash"
	"time"

	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/ring"
)

// Hot keys are found in sampled inputs only, so that other commands pay nothing. Each worker counts
// the keys of its samples by Space-Saving (Metwally et al., "Efficient computation of frequent and
// top-k elements in data streams", ICDT 2005): the sketch has a fixed number of entries, and a key
// without an entry replaces the key with the smallest count and inherits that count. So a count may
// be too high by what was inherited. Only the certain part of a count is reported.

const (
	// SampleInputs: one of so many inputs is sampled. It is prime, so that clients that take turns
	// are all sampled.
	SampleInputs = 251

	// HotEntries is the number of keys that a sketch counts.
	HotEntries = 256
	// hotHalf is the period after which all counts are halved: a key that was hot fades in minutes.
	hotHalf = 30 * time.Second
	// HotKeyBytes is how many bytes of a key are kept. Longer keys with the same beginning count as
	// one.
	HotKeyBytes = 128
	// HotCertain is how many samples must certainly be a key's for it to be hot: among keys that
	// are used equally, none is.
	HotCertain = 4
	// hotOfCommand limits how many keys of one command are noted. A million would take a loop 0.1
	// s.
	hotOfCommand = 64
)

// HotSketch counts how often keys are used, on one loop. It allocates only when it is made.
type HotSketch struct {
	seed    maphash.Seed
	hashes  [HotEntries]uint64 // of the keys; an array of its own, because Note reads all of it
	entries [HotEntries]hotEntry
	begun   time.Duration // loop time of the last halving
	before  time.Duration // the time before it, halved like the counts
	turn    uint          // number of calls of NoteSome
	uses    Uses
}

type hotEntry struct {
	count, excess uint32 // excess: the part of count that may belong to another key
	length        uint8
	database      uint8
	key           [HotKeyBytes]byte
}

// NewHotSketch returns an empty sketch that begins now, by its loop's clock.
func NewHotSketch(now time.Duration) *HotSketch {
	return &HotSketch{seed: maphash.MakeSeed(), begun: now}
}

// Note counts one use of a key of a database.
func (h *HotSketch) Note(database uint8, key []byte) {
	key = key[:min(len(key), HotKeyBytes)]
	hash := maphash.Bytes(h.seed, key) + uint64(database)
	least := 0
	for i, have := range h.hashes {
		if have == hash && bytes.Equal(h.entries[i].text(), key) && h.entries[i].database == database {
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
	c.length, c.database = uint8(copy(c.key[:], key)), database
	h.hashes[least] = hash
}

// NoteSome counts uses of a command's keys, which are the arguments at the given indexes. Of more
// than hotOfCommand keys it counts some at equal distances, others each time. So keys of such
// commands count less than they are used. Weighting the counts would make a key certain that was
// met once.
func (h *HotSketch) NoteSome(database uint8, args [][]byte, keys []int) {
	stride := (len(keys) + hotOfCommand - 1) / hotOfCommand
	if stride == 0 {
		return
	}
	h.turn++
	for i := int(h.turn % uint(stride)); i < len(keys); i += stride {
		h.Note(database, args[keys[i]])
	}
}

// NoteCommand counts a command on keys of a database.
func (h *HotSketch) NoteCommand(database uint8) { h.uses[database]++ }

func (c *hotEntry) text() []byte { return c.key[:c.length] }

// Fade halves the counts if hotHalf has passed. Call it more often than that, with the loop's time.
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
	for d := range h.uses {
		h.uses[d] /= 2
	}
}

// AddUses adds the commands that were counted for each database.
func (h *HotSketch) AddUses(to *Uses) { to.Add(&h.uses) }

// Uses counts, for each database, the sampled commands on its keys.
type Uses [ring.MaxDatabases]uint32

// Add adds the counts of another.
func (u *Uses) Add(other *Uses) {
	for d, n := range other {
		u[d] += n
	}
}

// Share returns which part of all uses are those of a database, 0 to 1.
func (u *Uses) Share(database uint8) float64 {
	all := uint32(0)
	for _, n := range u {
		all += n
	}
	return float64(u[database]) / float64(max(all, 1))
}

// Report adds the uses a second of all certain keys to to, which must not have these keys yet.
// Looking each key up there took the loop 140 µs when all keys were certain.
func (h *HotSketch) Report(now time.Duration, to *figures.KeyFigures) {
	counted := (h.before + now - h.begun).Seconds()
	if counted <= 0 {
		return
	}
	for i := range h.entries {
		c := &h.entries[i]
		if certain := c.count - c.excess; certain >= HotCertain {
			rate := float64(certain) * SampleInputs / counted
			to.CountNew(figures.KeyFigure{Key: string(c.text()), Database: c.database, N: int64(rate + 0.5)})
		}
	}
}

// Heat counts, for each partition, how often its keys were certainly met in samples.
type Heat [ring.Partitions]uint32

// AddHeat adds the sketch's keys to their partitions.
func (h *HotSketch) AddHeat(to *Heat, placement ring.Placement) {
	for i := range h.entries {
		c := &h.entries[i]
		// A text of HotKeyBytes may be cut off, which hides the key's partition.
		if certain := c.count - c.excess; certain >= HotCertain && c.length < HotKeyBytes {
			to[placement.PartitionOf(c.database, c.text())] += certain
		}
	}
}
