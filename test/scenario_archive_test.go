package test

import (
	"fmt"
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// archive is keys that are written once and then read over and over: what moves has
// to arrive whole, and is never missing on its way. Some of them expire, though not
// while the test runs.
type archive struct {
	x    *chaos
	keys []*history
}

const (
	archiveBatch = 64  // that a reader asks for at once
	checkBatch   = 512 // when all are asked for
	// archiveTTL is the time to live of every archiveExpires-th key.
	archiveTTL     = 2 * time.Hour
	archiveExpires = 8
	// archiveRest is how long a reader waits between two batches.
	archiveRest = 5 * time.Millisecond
)

// newArchive stores n keys.
func newArchive(x *chaos, n int) *archive {
	a := &archive{x: x}
	for i := range n {
		h := newHistory(fmt.Sprintf("archive:%d", i))
		h.dropped = uint64(i % (largeEvery - 1)) // values of all lengths
		a.keys = append(a.keys, h)
	}
	a.fill()
	return a
}

// fill stores what is missing.
func (a *archive) fill() {
	s := a.x.newSession(a.x.c.proxy(0), "writer of the archive")
	defer s.link.conn.Close()
	for i, h := range a.keys {
		if seen := h.look(); seen.floor <= seen.gone {
			a.store(s, i, h)
		}
		if len(s.judges) == checkBatch && !s.exchange() {
			return
		}
	}
	s.exchange()
}

func (a *archive) store(s *session, i int, h *history) {
	seq := h.write(time.Now())
	args := []string{"SET", h.key, string(appendValue(nil, h.key, seq))}
	if i%archiveExpires == 0 {
		args = append(args, "PX", strconv.FormatInt(archiveTTL.Milliseconds(), 10))
	}
	s.add(func(reply []byte) { h.answered(seq, a.x.outcome(s, reply, "+OK\r\n")) }, args...)
}

// check reads all keys, and returns by how much the times to live are wrong at most,
// beyond what it took to ask for them.
func (a *archive) check() (off time.Duration) {
	proxies := a.x.c.byRole("proxy")
	s := a.x.newSession(proxies[a.x.sessions.Load()%uint64(len(proxies))], "reader of the archive")
	defer s.link.conn.Close()
	for i, h := range a.keys {
		s.get(h, false)
		if i%archiveExpires == 0 {
			begin := time.Now()
			s.add(func(reply []byte) { off = max(off, a.ttlOff(h, begin, reply)) }, "PTTL", h.key)
		}
		if len(s.judges) >= checkBatch && !s.exchange() {
			return off
		}
	}
	s.exchange()
	return off
}

// ttlOff is by how much a remaining time is wrong that was asked for at the time.
func (a *archive) ttlOff(h *history, begin time.Time, reply []byte) time.Duration {
	millis, ok := resp.DecodeInt(reply)
	if !ok || millis < 0 {
		return 0 // it is missing, which its reader has noted
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	// It was stored between its sending and its reply, and asked between begin and now.
	left, last := time.Duration(millis)*time.Millisecond, len(h.sent)-1
	if h.acks[last].IsZero() {
		return 0
	}
	late := begin.Add(left).Sub(h.acks[last].Add(archiveTTL))
	early := h.sent[last].Add(archiveTTL).Sub(time.Now().Add(left))
	return max(early, late, 0)
}

// archiveReader reads the keys through a proxy, over and over.
type archiveReader struct {
	*session
	archive *archive
	next    int
}

func (a *archive) newReader(proxy *member) *archiveReader {
	s := a.x.newSession(proxy, "reader of the archive at "+proxy.id)
	return &archiveReader{session: s, archive: a, next: s.rng.IntN(len(a.keys))}
}

func (r *archiveReader) run() {
	for !r.x.stopped() && r.x.unpaused(r.batch) {
		time.Sleep(archiveRest)
	}
}

func (r *archiveReader) batch() bool {
	for range archiveBatch {
		r.get(r.archive.keys[r.next], false)
		r.next = (r.next + 1) % len(r.archive.keys)
	}
	return r.exchange()
}
