package node

import (
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// TestScriptOfFinishedClient: a script that has changed nothing ends soon after its client has closed its connection.
func TestScriptOfFinishedClient(t *testing.T) {
	n := startLeveled(t)
	for _, line := range []string{`EVAL "while true do end" 1 {k}`, `EVAL "while true do redis.call('PING') end" 0`} {
		c := dial(t, n.Addr())
		c.send(line)
		eventually(t, "the script runs", func() bool { return runningScripts(n) == 1 })
		c.conn.Close()
		wantEnded(t, n)
	}
	// One whose script is short may finish sending first.
	c := dial(t, n.Addr())
	c.send(`EVAL "for i = 1, 100000 do end return 1" 1 {k}`)
	if err := c.conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := c.next(); got != "(integer) 1" {
		t.Errorf("the script answers %s", got)
	}
}

// takeAll takes all places.
func takeAll(p *places) (taken int) {
	for {
		w, ok := p.take(true)
		if !ok {
			p.leave(w)
			return taken
		}
		taken++
	}
}

// TestScriptsThatHoldHaveTheirPlaces: a script that holds a partition does not wait for those without keys. Without a
// place, others are told that it is busy, and it ends when its partition moves or its client leaves.
func TestScriptsThatHoldHaveTheirPlaces(t *testing.T) {
	n := startScripts(t)
	n.scripts.tryFor = -1 // no script ends on the loop
	tellLoops(t, n)
	c, beside := dial(t, n.Addr()), dial(t, n.Addr())
	takeAll(&n.scripts.keyless)
	c.want(`EVAL "return 1" 1 {k}`, "(integer) 1")
	taken := takeAll(&n.scripts.holding)

	gone := dial(t, n.Addr())
	gone.send(`EVAL "return 1" 1 {k}`)
	eventually(t, "others are told", func() bool { return beside.do("GET {k}") == "(error) "+errBusyScript })
	reset(t, gone)
	wantEnded(t, n)

	c.send(`EVAL "return 1" 1 {k}`)
	eventually(t, "it waits", func() bool { return runningScripts(n) == 1 })
	eventually(t, "it is killed", func() bool { return beside.do("SCRIPT KILL") == "OK" })
	if got := c.next(); got != "(error) "+errKilled {
		t.Errorf("the script answers %s", got)
	}
	wantEnded(t, n)

	c.send(`EVAL "return 1" 1 {k}`)
	eventually(t, "it holds its partition", func() bool { return len(n.engine.Holds()) == 1 })
	giveAway(n, partitionOf("{k}"))
	if got := c.next(); !strings.HasPrefix(got, "(error) MOVED ") {
		t.Errorf("the script answers %s", got)
	}
	wantEnded(t, n)
	for range taken {
		n.scripts.holding.give()
	}
	if n.scripts.holding.free != taken {
		t.Errorf("%d places are free, want %d", n.scripts.holding.free, taken)
	}
}

// TestPlaces: who had no turn goes first, but for some turns in between.
func TestPlaces(t *testing.T) {
	p := places{free: 1}
	p.take(false)
	old, _ := p.take(true)
	waits := make([]*placeWait, 2*freshRow)
	for i := range waits {
		waits[i], _ = p.take(false)
	}
	has := func(w *placeWait) bool {
		select {
		case <-w.ready:
			return true
		default:
			return false
		}
	}
	for i := range freshRow {
		if p.give(); !has(waits[i]) || has(old) {
			t.Fatalf("turn %d is not that of a new one", i)
		}
	}
	if p.give(); !has(old) || has(waits[freshRow]) {
		t.Error("the old one has no turn")
	}
	if p.give(); !has(waits[freshRow]) {
		t.Error("the new ones have no turn again")
	}
	if p.leave(old) || !p.leave(waits[freshRow+1]) {
		t.Error("those who wait are not known")
	}
}

// noHeap has nothing left.
type noHeap struct{ exec.Heap }

func (noHeap) Charge(int64) bool { return false }

// TestScriptedEcho: the text of ECHO is charged before it is copied.
func TestScriptedEcho(t *testing.T) {
	n := startLeveled(t)
	x := n.newRunner().(*runner)
	x.Heap = noHeap{x.Heap}
	w := &scriptRun{node: n, ctx: n.ctx, heap: heapBudget{n}}
	w.setBegun()
	x.begin(w)
	for _, name := range []string{"ECHO", "PING"} {
		reply, err := x.Call([][]byte{[]byte(name), make([]byte, 1<<20)}, resp.RESP2)
		if err != nil || string(reply) != "-"+exec.ErrOOM+"\r\n" {
			t.Errorf("%s of much text without memory: %q, %v", name, reply, err)
		}
	}
	x.end(false)
	w.End()
}

// TestScriptLogIsBounded: scripts log so many lines in a second, and what is left out is counted.
func TestScriptLogIsBounded(t *testing.T) {
	var l lineLimit
	now := time.Now()
	for i := range 2 * linesEachSecond {
		if may, skipped := l.take(now); may != (i < linesEachSecond) || skipped != 0 {
			t.Fatalf("line %d is logged: %t, left out: %d", i, may, skipped)
		}
	}
	if may, skipped := l.take(now.Add(time.Second)); !may || skipped != linesEachSecond {
		t.Errorf("the next line is logged: %t, left out: %d", may, skipped)
	}
}
