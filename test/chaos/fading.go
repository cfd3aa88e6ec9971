package chaos

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Fields of hashes expire. A field that is about to expire, or that may have done so, may be there or
// not; before, it must be there, and long after it must not:
//
//	sent ──────── least ╌╌╌╌╌ acknowledged + fieldLife ╌╌╌╌╌ + fieldLate ─────────
//	must be there     may be there or not                            must not
const (
	fieldLife = 4 * time.Second
	// fieldEarly is how much earlier a field may die: by the clocks of loops that stood still, its owner's when
	// the field came, and its next owner's.
	fieldEarly = 2500 * time.Millisecond
	// fieldLate is how much longer a field may live, since it does so whenever it is on its way to
	// another node, and nodes stand still meanwhile.
	fieldLate = 12 * time.Second
	// farLife is a time to live that does not end in a test.
	farLife = time.Hour
)

// life says how long a write shows. A write that another command has given more time may live for
// ever.
type life struct {
	least   time.Time
	forever bool
}

// expires notes that a write which is about to be sent expires.
func (h *History) expires(seq uint64, now time.Time) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.lives[seq] = life{least: now.Add(fieldLife - fieldEarly)}
}

// shortens notes that what is there may expire: a command that is about to be sent says so. That may
// be the last acknowledged write, or a later one whose outcome is unknown, also if another session has
// seen it.
func (h *History) shortens(now time.Time) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	for seq := max(min(h.acked, h.floor), 1); seq <= h.issuedLocked(); seq++ {
		least := now.Add(fieldLife - fieldEarly)
		if l, is := h.lives[seq]; is && l.least.Before(least) {
			least = l.least
		}
		h.lives[seq] = life{least: least, forever: true}
	}
}

// prolongs notes that what is there may live for ever.
func (h *History) prolongs() {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	for seq, l := range h.lives {
		h.lives[seq] = life{least: l.least, forever: true}
	}
}

func (h *History) mayBeDeadLocked(seq uint64, now time.Time) bool {
	l, is := h.lives[seq]
	return is && !now.Before(l.least)
}

// isDeadLocked reports whether a write had expired for certain when a read was sent.
func (h *History) isDeadLocked(s sight, seq uint64) bool {
	l, is := h.lives[seq]
	if !is || l.forever || seq <= h.Dropped {
		return false
	}
	acked := h.Acks[seq-h.Dropped-1]
	return !acked.IsZero() && s.at.After(acked.Add(fieldLife+fieldLate))
}

// fade adds a random command of those that only hashes have.
func (s *Session) fade(c *Collection) {
	switch some := c.some(s.Rng); s.Rng.IntN(8) {
	case 0, 1, 2:
		s.putFading(c, some)
	case 3:
		s.expireSome(c, some, s.Rng)
	case 4, 5:
		s.prolong(c, some)
	default:
		s.take(c, some)
	}
}

// fields are the last arguments of a command on some elements.
func (c *Collection) fields(args []string, some []int) []string {
	args = append(args, "FIELDS", strconv.Itoa(len(some)))
	for _, e := range some {
		args = append(args, c.name(e))
	}
	return args
}

// putFading writes elements that expire.
func (s *Session) putFading(c *Collection, some []int) {
	now, seqs := time.Now(), make([]uint64, len(some))
	args := []string{"HSETEX", c.Key, "PX", strconv.FormatInt(fieldLife.Milliseconds(), 10), "FIELDS", strconv.Itoa(len(some))}
	for i, e := range some {
		h := c.Elements[e]
		seqs[i] = h.Write(now)
		h.expires(seqs[i], now)
		args = c.kind.put(args, h, c.name(e), seqs[i])
	}
	s.Add(func(reply []byte) {
		o := s.X.Outcome(s, reply, ":1\r\n")
		for i, e := range some {
			c.Elements[e].Answered(seqs[i], o)
		}
	}, args...)
}

// expireSome has elements expire that are there.
func (s *Session) expireSome(c *Collection, some []int, rng *rand.Rand) {
	now := time.Now()
	for _, e := range some {
		c.Elements[e].shortens(now)
	}
	args := []string{"HPEXPIRE", c.Key, strconv.FormatInt(fieldLife.Milliseconds(), 10)}
	if rng.IntN(2) == 0 && len(s.X.Clocks) == 0 {
		at := now.Add(fieldLife).UnixMilli()
		args = []string{"HPEXPIREAT", c.Key, strconv.FormatInt(at, 10)}
	}
	s.Add(func(reply []byte) {
		if resp.IsError(reply) {
			s.X.Outcome(s, reply, "")
		}
	}, c.fields(args, some)...)
}

// prolong reads elements and has them live for long.
func (s *Session) prolong(c *Collection, some []int) {
	args := []string{"HGETEX", c.Key, "PX", strconv.FormatInt(farLife.Milliseconds(), 10)}
	if s.Rng.IntN(2) == 0 {
		args = []string{"HGETEX", c.Key, "PERSIST"}
	}
	seen := c.look(some)
	for _, e := range some {
		c.Elements[e].prolongs()
	}
	s.Add(func(reply []byte) { s.judgeSome(c, some, seen, reply) }, c.fields(args, some)...)
}

// take reads elements and deletes them.
func (s *Session) take(c *Collection, some []int) {
	now, seen, seqs := time.Now(), c.look(some), make([]uint64, len(some))
	for i, e := range some {
		seqs[i] = c.Elements[e].remove(now)
	}
	s.Add(func(reply []byte) {
		o := s.judgeSome(c, some, seen, reply)
		for i, e := range some {
			c.Elements[e].Answered(seqs[i], o)
		}
	}, c.fields([]string{"HGETDEL", c.Key}, some)...)
}

func (c *Collection) look(some []int) []sight {
	seen := make([]sight, len(some))
	for i, e := range some {
		seen[i] = c.Elements[e].Look()
	}
	return seen
}

// judgeSome judges a reply that shows some own elements.
func (s *Session) judgeSome(c *Collection, some []int, seen []sight, reply []byte) outcome {
	if resp.IsError(reply) {
		return s.X.Outcome(s, reply, "")
	}
	parts, err := split(reply)
	if err != nil || len(parts) != len(some) {
		s.X.Violate("%s: %d elements of %s are answered by %.80q: %v", s.name, len(some), c.Key, reply, err)
		return unknown
	}
	for i, e := range some {
		s.judgeShown(c.Elements[e], true, seen[i], bulkShown(parts[i]))
	}
	return Executed
}
