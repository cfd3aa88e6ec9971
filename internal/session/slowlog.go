package session

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// What an entry keeps of a request's arguments, as in Redis.
const (
	maxSlowArgs = 32
	maxSlowArg  = 128
	// maxSlowEntries bounds slowlog-max-len: an entry may take 4 KiB.
	maxSlowEntries = 10000
)

// SlowLog keeps the latest requests that took long. It is safe for all loops
// and goroutines; its lock is never held across anything else.
type SlowLog struct {
	threshold atomic.Int64 // microseconds; negative: nothing is slow

	mu      sync.Mutex
	most    int         // entries
	entries []SlowEntry // oldest first
	lastID  int64
}

// SlowEntry is one request. NewSlowEntry makes it.
type SlowEntry struct {
	id, seconds, micros int64
	args                []string
	addr, name          string
}

// NewSlowEntry keeps what the log shows of a request of st; args is not kept.
func NewSlowEntry(st *State, args [][]byte) SlowEntry {
	e := SlowEntry{addr: st.Addr, name: st.Name, args: make([]string, 0, min(len(args), maxSlowArgs))}
	for i, arg := range args {
		switch {
		case i == maxSlowArgs-1 && len(args) > maxSlowArgs:
			e.args = append(e.args, "... ("+strconv.Itoa(len(args)-i)+" more arguments)")
			return e
		case len(arg) > maxSlowArg:
			e.args = append(e.args, string(arg[:maxSlowArg])+"... ("+strconv.Itoa(len(arg)-maxSlowArg)+" more bytes)")
		default:
			e.args = append(e.args, string(arg))
		}
	}
	return e
}

// Threshold is how long a request must take to be slow; negative: none is.
func (l *SlowLog) Threshold() time.Duration {
	micros := l.threshold.Load()
	if micros > int64(time.Hour/time.Microsecond) {
		return time.Hour
	}
	return time.Duration(micros) * time.Microsecond
}

// Slow tells whether a request that took so long belongs into the log.
func (l *SlowLog) Slow(took time.Duration) bool {
	threshold := l.Threshold()
	return threshold >= 0 && took >= threshold
}

// Add keeps an entry, which may push the oldest out. Its id is the time in unix
// microseconds, or one more than the last: so the ids of several servers in one
// list are in the order of time, and differ.
func (l *SlowLog) Add(e SlowEntry, took time.Duration, now time.Time) {
	e.seconds, e.micros = now.Unix(), took.Microseconds()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastID = max(l.lastID+1, now.UnixMicro())
	e.id = l.lastID
	l.entries = append(l.entries, e)
	l.trim()
}

func (l *SlowLog) trim() {
	if extra := len(l.entries) - l.most; extra > 0 {
		l.entries = slices.Delete(l.entries, 0, extra)
	}
}

func (l *SlowLog) setLen(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = n
	l.trim()
}

// SlowLog is the process's log.
func (s *Server) SlowLog() *SlowLog { return &s.slow }

// AppendSlowLog answers SLOWLOG GET, LEN or RESET; Refuse has let it pass.
func (s *Server) AppendSlowLog(dst []byte, args [][]byte) []byte {
	l := &s.slow
	switch lower(args[1]) {
	case "len":
		l.mu.Lock()
		defer l.mu.Unlock()
		return resp.AppendInt(dst, int64(len(l.entries)))
	case "reset":
		l.mu.Lock()
		defer l.mu.Unlock()
		l.entries = nil
		return appendOK(dst)
	}
	count, refusal := SlowLogCount(args)
	if refusal != "" {
		return resp.AppendError(dst, refusal)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if count < 0 || count > len(l.entries) {
		count = len(l.entries)
	}
	dst = resp.AppendArray(dst, count)
	for _, e := range slices.Backward(l.entries[len(l.entries)-count:]) {
		dst = e.append(dst)
	}
	return dst
}

// SlowLogCount reads SLOWLOG GET [count]; -1 is all.
func SlowLogCount(args [][]byte) (count int, refusal string) {
	switch len(args) {
	case 2:
		return 10, ""
	case 3:
		n, ok := resp.ParseInt(args[2])
		if !ok || n < -1 {
			return 0, errSlowLogCount
		}
		return int(min(n, maxSlowEntries)), ""
	}
	return 0, wrongSubArgs(args)
}

func (e *SlowEntry) append(dst []byte) []byte {
	dst = resp.AppendArray(dst, slowFields)
	dst = resp.AppendInt(dst, e.id)
	dst = resp.AppendInt(dst, e.seconds)
	dst = resp.AppendInt(dst, e.micros)
	dst = appendStrings(resp.AppendArray(dst, len(e.args)), e.args)
	dst = resp.AppendBulkString(dst, e.addr)
	return resp.AppendBulkString(dst, e.name)
}

// slowFields are those of an entry: id, unix seconds, microseconds, arguments,
// address and name of the client.
const slowFields = 6

// SlowLogs puts the answers of several nodes to SLOWLOG GET together.
type SlowLogs struct {
	entries []mergedEntry
}

type mergedEntry struct {
	id   int64
	node string
	text []byte // encoded
}

// Add takes a node's answer in; false if it is none. Entries of clients without
// a name, as those of a proxy's pipes are, get the node's instead.
func (m *SlowLogs) Add(reply []byte, node string) bool {
	n, at, ok := resp.DecodeArray(reply)
	if !ok {
		return false
	}
	var scan resp.Scanner
	for range n {
		if scan.Scan(reply[at:]) != resp.Done || !m.add(reply[at:at+scan.Len()], node) {
			return false
		}
		at += scan.Len()
	}
	return true
}

func (m *SlowLogs) add(entry []byte, node string) bool {
	n, at, ok := resp.DecodeArray(entry)
	if !ok || n != slowFields {
		return false
	}
	var id int64
	var scan resp.Scanner
	for i := range n {
		if scan.Scan(entry[at:]) != resp.Done {
			return false
		}
		field := entry[at : at+scan.Len()]
		if i == 0 {
			if id, ok = resp.DecodeInt(field); !ok {
				return false
			}
		}
		if name, _ := resp.DecodeBulk(field); i == n-1 && len(name) == 0 {
			entry = resp.AppendBulkString(entry[:at:at], node)
		}
		at += scan.Len()
	}
	m.entries = append(m.entries, mergedEntry{id, node, slices.Clone(entry)})
	return true
}

// Append encodes the latest of all; count is that of SlowLogCount.
func (m *SlowLogs) Append(dst []byte, count int) []byte {
	slices.SortStableFunc(m.entries, func(a, b mergedEntry) int {
		return cmp.Or(cmp.Compare(b.id, a.id), cmp.Compare(a.node, b.node))
	})
	if count >= 0 && count < len(m.entries) {
		m.entries = m.entries[:count]
	}
	dst = resp.AppendArray(dst, len(m.entries))
	for _, e := range m.entries {
		dst = append(dst, e.text...)
	}
	return dst
}
