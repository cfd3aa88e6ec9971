package figures

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Bounds of the arguments that an entry keeps, as in Redis.
const (
	maxSlowArgs = 32
	maxSlowArg  = 128
)

const errSlowLogCount = "ERR count should be greater than or equal to -1"

// SlowLog keeps the latest slow requests. Any goroutine may use it. Under its lock it calls nothing
// that blocks. The zero value keeps nothing until Limit is called.
type SlowLog struct {
	threshold atomic.Int64 // microseconds; negative: nothing is slow

	mu      sync.Mutex
	most    int         // entries kept
	entries []SlowEntry // oldest first
	lastID  int64
}

// SlowEntry is one slow request. NewSlowEntry makes it.
type SlowEntry struct {
	id, seconds, micros int64
	args                []string
	addr, name          string
}

// NewSlowEntry returns what the log shows about a request and its client. addr and name are the
// client's and may be "". NewSlowEntry does not keep args.
func NewSlowEntry(addr, name string, args [][]byte) SlowEntry {
	e := SlowEntry{addr: addr, name: name, args: make([]string, 0, min(len(args), maxSlowArgs))}
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

// Limit sets the least duration of a slow request, in microseconds, and how many entries the log
// keeps. If slowerThanMicros is negative, no request is slow.
func (l *SlowLog) Limit(slowerThanMicros int64, entries int) {
	l.threshold.Store(slowerThanMicros)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = entries
	l.trim()
}

// Threshold returns how long a request must take to be slow, at most an hour; if it is negative, no
// request is slow.
func (l *SlowLog) Threshold() time.Duration {
	micros := l.threshold.Load()
	if micros > int64(time.Hour/time.Microsecond) {
		return time.Hour
	}
	return time.Duration(micros) * time.Microsecond
}

// Slow reports whether a request that took so long belongs in the log.
func (l *SlowLog) Slow(took time.Duration) bool {
	threshold := l.Threshold()
	return threshold >= 0 && took >= threshold
}

// Add adds an entry, which may remove the oldest. The entry's id is the time in Unix microseconds,
// or the last id plus one if that is greater: so the ids of several servers, merged in one list,
// are distinct and in the order of time.
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

// AppendReply answers SLOWLOG GET, LEN or RESET. args is the whole request, with a number of
// arguments that fits.
func (l *SlowLog) AppendReply(dst []byte, args [][]byte) []byte {
	switch strings.ToLower(string(args[1])) {
	case "len":
		l.mu.Lock()
		defer l.mu.Unlock()
		return resp.AppendInt(dst, int64(len(l.entries)))
	case "reset":
		l.mu.Lock()
		defer l.mu.Unlock()
		l.entries = nil
		return resp.AppendOK(dst)
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

// SlowLogCount parses SLOWLOG GET [count]; -1 means all. refusal is the text of an error, or "".
func SlowLogCount(args [][]byte) (count int, refusal string) {
	switch len(args) {
	case 2:
		return 10, ""
	case 3:
		n, ok := resp.ParseInt(args[2])
		if !ok || n < -1 {
			return 0, errSlowLogCount
		}
		return int(min(n, math.MaxInt32)), ""
	}
	return 0, command.WrongSubArgs(args)
}

func (e *SlowEntry) append(dst []byte) []byte {
	dst = resp.AppendArray(dst, slowFields)
	dst = resp.AppendInt(dst, e.id)
	dst = resp.AppendInt(dst, e.seconds)
	dst = resp.AppendInt(dst, e.micros)
	dst = resp.AppendBulkStrings(resp.AppendArray(dst, len(e.args)), e.args...)
	dst = resp.AppendBulkString(dst, e.addr)
	return resp.AppendBulkString(dst, e.name)
}

// slowFields is the number of fields of an entry: id, Unix time in seconds, duration in
// microseconds, arguments, address and name of the client.
const slowFields = 6

// SlowRequest is an entry of the slow log in a form for the page and the status.
type SlowRequest struct {
	At     time.Time
	Took   time.Duration
	Words  []string // the command and its first argument
	More   int      // arguments beyond those
	Client string   // name or address
}

// Latest returns at most the given number of entries, the latest first.
func (l *SlowLog) Latest(most int) (list []SlowRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range slices.Backward(l.entries) {
		if len(list) == most {
			break
		}
		r := SlowRequest{At: time.Unix(e.seconds, 0), Took: time.Duration(e.micros) * time.Microsecond, Client: e.name}
		if r.Client == "" {
			r.Client = e.addr
		}
		r.Words = slices.Clone(e.args[:min(len(e.args), 2)])
		r.More = len(e.args) - len(r.Words)
		list = append(list, r)
	}
	return list
}
