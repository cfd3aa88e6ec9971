//go:build linux && !race

package proxy

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// A proxy neither keeps its loop for long with a request, nor takes much of the Go heap that is not charged. The test
// asks every command of the table what follows from its row: with a long word as each of its arguments, and with as
// many words as the row allows, as keys of one slot and of all slots. It measures the processor time of each turn of the
// loop, and what the process allocates without garbage collections. The only node refuses everything, and allocates
// nothing.
const (
	// manyMost has room for what one turn does with all words of a request: it parses them and finds the slots of the
	// keys, in 3 ms.
	manyMost = 12 * time.Millisecond
	// longMost is less than what a turn takes that looks at each byte of a long word by itself.
	longMost = 3 * time.Millisecond
	// heapSlack is how much more a request may allocate than what is charged, in bytes.
	heapSlack = 1 << 20
	// manyWords and longWord are the longest of a request.
	manyWords = 60_000
	longWord  = 4 << 20
	// tableTries is how often a request is measured again that was over a bound: the best one counts.
	tableTries = 8
)

// outOfTable are commands that the test cannot send, and why.
var outOfTable = map[string]string{
	"client|pause": "it would stop the test",
	"client|reply": "nobody would answer",
	"monitor":      "it is answered as often as somebody sends a command",
	"multi":        "what is behind it is queued",
	"quit":         "it closes the connection",
	"shutdown":     "it would end the test",
	"wait":         "it does nothing but wait",
	"waitaof":      "it does nothing but wait",
}

// tableRig is a proxy of one loop over a node that refuses everything.
type tableRig struct {
	*rig
	room    *roomOfTable
	thread  int
	last    int64        // processor time of the loop's thread
	longest atomic.Int64 // turn
}

// roomOfTable notes how much is charged at most.
type roomOfTable struct{ used, begun, most atomic.Int64 }

// begin forgets what was charged so far.
func (r *roomOfTable) begin() {
	r.begun.Store(r.used.Load())
	r.most.Store(0)
}

func (r *roomOfTable) Charge(n int64) bool {
	for more := r.used.Add(n) - r.begun.Load(); ; {
		if most := r.most.Load(); more <= most || r.most.CompareAndSwap(most, more) {
			return true
		}
	}
}

func (r *roomOfTable) Refund(n int64) { r.used.Add(-n) }

func newTableRig(t *testing.T) *tableRig {
	rig := &tableRig{room: &roomOfTable{}}
	rig.rig = newCluster(t, 0, oneLoop(t), func(cfg *Config) { cfg.Buffers, cfg.Databases = rig.room, 16 })
	table := &ring.Table{Epoch: 1, Issuer: "test", Level: ring.Level}
	table.Nodes = []ring.Member{{ID: "n", Boot: 1, State: ring.Serving, Addr: refusingNode(t)}}
	for p := range table.Follower {
		table.Follower[p] = ring.NoNode
	}
	rig.proxy.SetTable(table)
	rig.proxy.stopSampler() // it allocates once a second
	rig.proxy.sampler.Wait()
	rig.each(func(l *netloop.Loop) { l.OnIterationEnd(rig.tick) })
	beat := time.NewTicker(time.Millisecond)
	t.Cleanup(beat.Stop)
	go func() { // an idle loop changes its thread
		for {
			select {
			case <-beat.C:
				rig.proxy.cfg.Group.Loops()[0].Post(func() {})
			case <-t.Context().Done():
				return
			}
		}
	}()
	return rig
}

func (rig *tableRig) tick() {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	thread, now := unix.Gettid(), ts.Nano()
	if thread == rig.thread {
		rig.longest.Store(max(rig.longest.Load(), now-rig.last))
	}
	rig.thread, rig.last = thread, now
}

// refusingNode opens any pipe, knows of every topic, and refuses every other command. It has its
// buffers from the beginning.
func refusingNode(t *testing.T) (addr string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	buffers := make(chan []byte, 16) // more than there are lanes
	for range cap(buffers) {
		buffers <- make([]byte, 2*longWord)
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				buf := <-buffers
				refuseAll(c, buf)
				c.Close()
				buffers <- buf
			}()
		}
	}()
	return ln.Addr().String()
}

var (
	pipeOpened  = []byte("+OK later\r\n")
	topicNoted  = member.AppendHeard(nil, member.Noted)
	nodeRefuses = []byte("-ERR the node refuses\r\n")
)

// answerOf returns the answer to a request.
func answerOf(request []byte) []byte {
	switch head := request[:min(64, len(request))]; {
	case bytes.Contains(head, []byte("PIPE")):
		return pipeOpened
	case bytes.Contains(head, []byte("LISTEN")):
		return topicNoted
	}
	return nodeRefuses
}

func refuseAll(c net.Conn, buf []byte) {
	var scan resp.Scanner
	for have := 0; ; {
		n, err := c.Read(buf[have:])
		if err != nil {
			return
		}
		at := 0
		for have += n; at < have; {
			_, prefix, ok := member.CutPrefix(buf[at:have])
			if !ok || scan.Scan(buf[at+prefix:have]) != resp.Done {
				break
			}
			if _, err := c.Write(answerOf(buf[at : at+prefix+scan.Len()])); err != nil {
				return
			}
			at += prefix + scan.Len()
		}
		have = copy(buf, buf[at:have])
	}
}

// measured is what a request has cost.
type measured struct {
	turn               time.Duration
	allocated, charged int64
}

// isLawful reports whether that is within the bounds.
func (m *measured) isLawful(most time.Duration) bool {
	return m.turn <= most && m.allocated <= heapSlack+m.charged
}

// lastReply ends the reply to the request behind the one that is measured.
var lastReply = []byte("behind the request\r\n")

// measure sends a request on a connection of its own, and waits for its reply.
func (rig *tableRig) measure(raw, scratch []byte) (m measured) {
	c, err := net.Dial("tcp", rig.proxy.Addr())
	if err != nil {
		rig.t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * patience)); err != nil {
		rig.t.Fatal(err)
	}
	runtime.GC()
	rig.each(func(*netloop.Loop) {})
	rig.longest.Store(0)
	rig.room.begin()
	before := heapAllocs()
	go func() { _, _ = c.Write(raw) }() // which the proxy may refuse before it has read all
	if !skipTo(c, lastReply, scratch) {
		rig.t.Errorf("%.60q is not answered", raw)
	}
	m.allocated = heapAllocs() - before
	m.charged = rig.room.most.Load() + int64(len(raw)) // which may lie in the buffers of pipes, too
	rig.each(func(*netloop.Loop) {})                   // the turn in which it was answered has ended
	m.turn = time.Duration(rig.longest.Load())
	return m
}

// heapAllocs returns how many bytes were allocated since the process has begun.
func heapAllocs() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// skipTo reads replies until they end with a word. It allocates nothing, and returns false if the connection ends
// before.
func skipTo(c net.Conn, word, scratch []byte) (found bool) {
	for kept := 0; !bytes.HasSuffix(scratch[:kept], word); {
		if kept > len(scratch)/2 {
			kept = copy(scratch, scratch[kept-len(word):kept])
		}
		n, err := c.Read(scratch[kept:])
		if err != nil {
			return false
		}
		kept += n
	}
	return true
}

// question is a request, what is bad about it, and how long a turn may take.
type question struct {
	what string
	args [][]byte
	most time.Duration
}

var oneLongWord = bytes.Repeat([]byte("1"), longWord)

// worstOf returns what a row can be asked.
func worstOf(row *command.Command) (all []question) {
	args := bytes.Fields([]byte(strings.ReplaceAll(row.Name, "|", " ")))
	names := len(args)
	for len(args) < max(row.Arity, -row.Arity) {
		args = append(args, []byte("1"))
	}
	all = append(all, question{"its fewest words", args, longMost})
	places := len(args)
	if row.Arity < 0 {
		places++
	}
	for i := names; i < places; i++ {
		request := append(slices.Clone(args[:i]), oneLongWord)
		if i < len(args) {
			request = append(request, args[i+1:]...)
		}
		all = append(all, question{fmt.Sprint("a long word at ", i), request, longMost})
	}
	words := manyWords
	for words > len(args) && !row.ArityOK(words) { // commands without keys take fewer
		words /= 2
	}
	if words <= len(args) {
		return all
	}
	for _, tag := range []string{"{k}", ""} {
		request := append([][]byte{}, args...)
		for i := len(request); i < words; i++ {
			request = append(request, fmt.Append(nil, tag, i))
		}
		for i := range row.Keys {
			if k := &row.Keys[i]; k.Find == command.FindKeyNum && k.Begin == command.BeginIndex {
				request[k.Index+k.NumIdx] = fmt.Append(nil, words-k.Index-k.FirstKey)
			}
		}
		all = append(all, question{"many words " + tag, request, manyMost})
	}
	return all
}

// TestTableLaw also fails if the proxy does not answer.
func TestTableLaw(t *testing.T) {
	rig := newTableRig(t)
	scratch := make([]byte, 1<<20)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, top := range command.All() {
		rows := top.Subs
		if rows == nil {
			rows = []*command.Command{top}
		}
		for _, row := range rows {
			if !row.Built || row.Flags&command.Internal != 0 || outOfTable[row.Name] != "" {
				continue
			}
			for _, q := range worstOf(row) {
				rig.judge(row.Name, q, scratch)
			}
		}
	}
}

// judge compares the best of a few measurements with the law.
func (rig *tableRig) judge(name string, q question, scratch []byte) {
	raw := resp.AppendRequest(nil, q.args...)
	raw = resp.AppendRequest(raw, []byte("PING"), lastReply[:len(lastReply)-len("\r\n")])
	best := rig.measure(raw, scratch)
	for try := 1; try < tableTries && !best.isLawful(q.most); try++ {
		m := rig.measure(raw, scratch)
		best.turn = min(best.turn, m.turn)
		if m.allocated < best.allocated {
			best.allocated, best.charged = m.allocated, m.charged
		}
	}
	cost := fmt.Sprintf("%s with %s: a turn of %v, %d bytes allocated, %d charged",
		name, q.what, best.turn, best.allocated, best.charged)
	switch {
	case !best.isLawful(q.most):
		rig.t.Errorf("%s, want at most %v, and %d bytes beside what is charged", cost, q.most, heapSlack)
	case best.turn > q.most/4 || best.allocated > heapSlack/2:
		rig.t.Log(cost)
	}
}
