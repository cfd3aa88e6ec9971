package scenarios

import (
	"fmt"
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/chaos"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// archive is a set of keys that are written once and then only read: what moves has to arrive
// complete, and is never missing meanwhile. Some keys expire, though not while the test runs.
type archive struct {
	x    *chaos.Rig
	keys []*chaos.History
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
func newArchive(x *chaos.Rig, n int) *archive {
	a := &archive{x: x}
	for i := range n {
		h := chaos.NewHistory(fmt.Sprintf("archive:%d", i))
		h.Dropped = uint64(i % (chaos.LargeEvery - 1)) // values of all lengths
		a.keys = append(a.keys, h)
	}
	a.fill()
	return a
}

// fill stores the keys that are missing.
func (a *archive) fill() {
	s := a.x.NewSession(a.x.C.Proxy(0), "writer of the archive")
	defer s.Link.Conn.Close()
	for i, h := range a.keys {
		if seen := h.Look(); seen.Floor <= seen.Gone {
			a.store(s, i, h)
		}
		if len(s.Judges) == checkBatch && !s.Exchange() {
			return
		}
	}
	s.Exchange()
}

func (a *archive) store(s *chaos.Session, i int, h *chaos.History) {
	seq := h.Write(time.Now())
	args := []string{"SET", h.Key, string(chaos.AppendValue(nil, h.Key, seq))}
	if i%archiveExpires == 0 {
		args = append(args, "PX", strconv.FormatInt(archiveTTL.Milliseconds(), 10))
	}
	s.Add(func(reply []byte) { h.Answered(seq, a.x.Outcome(s, reply, "+OK\r\n")) }, args...)
}

// check reads all keys, and returns the largest error of a time to live, beyond the time that it
// took to ask.
func (a *archive) check() (off time.Duration) {
	proxies := a.x.C.ByRole("proxy")
	s := a.x.NewSession(proxies[a.x.Sessions.Load()%uint64(len(proxies))], "reader of the archive")
	defer s.Link.Conn.Close()
	for i, h := range a.keys {
		s.Get(h, false)
		if i%archiveExpires == 0 {
			begin := time.Now()
			s.Add(func(reply []byte) { off = max(off, a.ttlOff(h, begin, reply)) }, "PTTL", h.Key)
		}
		if len(s.Judges) >= checkBatch && !s.Exchange() {
			return off
		}
	}
	s.Exchange()
	return off
}

// ttlOff returns the error of a remaining time to live that a client asked for at begin.
func (a *archive) ttlOff(h *chaos.History, begin time.Time, reply []byte) time.Duration {
	millis, ok := resp.DecodeInt(reply)
	if !ok || millis < 0 {
		return 0 // it is missing, which its reader has noted
	}
	h.Mu.Lock()
	defer h.Mu.Unlock()
	// It was stored between its sending and its reply, and asked between begin and now.
	left, last := time.Duration(millis)*time.Millisecond, len(h.Sent)-1
	if h.Acks[last].IsZero() {
		return 0
	}
	late := begin.Add(left).Sub(h.Acks[last].Add(archiveTTL))
	early := h.Sent[last].Add(archiveTTL).Sub(time.Now().Add(left))
	return max(early, late, 0)
}

// archiveReader reads the keys through a proxy until the test ends.
type archiveReader struct {
	*chaos.Session
	archive *archive
	next    int
}

func (a *archive) newReader(proxy *harness.Member) *archiveReader {
	s := a.x.NewSession(proxy, "reader of the archive at "+proxy.ID)
	return &archiveReader{Session: s, archive: a, next: s.Rng.IntN(len(a.keys))}
}

func (r *archiveReader) run() {
	for !r.X.Stopped() && r.X.Unpaused(r.batch) {
		time.Sleep(archiveRest)
	}
}

func (r *archiveReader) batch() bool {
	for range archiveBatch {
		r.Get(r.archive.keys[r.next], false)
		r.next = (r.next + 1) % len(r.archive.keys)
	}
	return r.Exchange()
}
