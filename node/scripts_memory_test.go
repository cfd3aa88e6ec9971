package node

import (
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// putLong stores values at {k}long, of which the reply does not fit into what scripts have anyway, and at {k}pinned.
func putLong(t *testing.T, n *Node) {
	t.Helper()
	for key, size := range map[string]int{"{k}long": exec.PinFrom - 40, "{k}pinned": 100_000} {
		if put(n, key, strings.Repeat("x", size), engine.TypeString) != nil {
			t.Fatal("cannot store")
		}
	}
}

// TestScriptFindsNoMemoryForReplies: a script that has written nothing is refused, and no other ends with an error that
// begins with OOM. What a write replies does not get lost.
func TestScriptFindsNoMemoryForReplies(t *testing.T) {
	n := startScripts(t)
	n.scripts.runners.New = func() any {
		x := n.newRunner().(*runner)
		x.Heap = noHeap{x.Heap}
		return x
	}
	tellLoops(t, n)
	c := dial(t, n.Addr())
	wrote := "(error) " + errWroteBefore + exec.ErrOOM + " script: "
	for _, test := range []struct{ body, want string }{
		{"return redis.call('GET', KEYS[2])", "(error) " + exec.ErrOOM + " script: "},
		{"return redis.call('GET', KEYS[3])", "(error) " + exec.ErrOOM + " script: "},
		{"pcall(redis.call, 'GET', KEYS[2]) return redis.call('SET', KEYS[1], 'x')", "OK"},
		{"redis.call('SET', KEYS[1], 'x') return redis.call('GET', KEYS[2])", wrote},
		{"redis.call('SET', KEYS[1], 'x') return redis.call('GET', KEYS[3])", wrote},
		{"redis.call('SET', KEYS[1], 'x') return redis.pcall('GET', KEYS[2])", "(error) " + errWroteBefore + exec.ErrOOM},
		{"redis.call('PUBLISH', 'c', 'x') return redis.call('GET', KEYS[2])", wrote},
		{"return #redis.call('GETSET', KEYS[2], 'y') .. redis.call('GET', KEYS[2])", `"65496y"`},
		{"return redis.call('GETDEL', KEYS[3])", "(error) " + exec.ErrReplyLost + " script: "},
	} {
		putLong(t, n)
		// os.clock ends the trial on the loop.
		got := c.do(`EVAL "os.clock() ` + test.body + `" 3 {k} {k}long {k}pinned`)
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s\n answers %.200s, want %s", test.body, got, test.want)
		}
	}
	c.want("EXISTS {k}pinned", "(integer) 0")
	wantEnded(t, n)
	if pinnedBytes(n) != 0 {
		t.Errorf("%d bytes are pinned", pinnedBytes(n))
	}
}

// TestTrialFindsNoMemoryForReplies: a script that finds none on the loop goes on in a runner.
func TestTrialFindsNoMemoryForReplies(t *testing.T) {
	n := startTrials(t)
	c := dial(t, n.Addr())
	c.want(`EVAL "`+loadBody(c, "return redis.call('INCR', KEYS[1])")+`" 1 {k}`, "(integer) 1")
	err := n.cfg.Group.Each(func(l *netloop.Loop) {
		for _, w := range n.workers {
			if w.loop == l && w.trier != nil {
				w.trier.Heap = noHeap{w.trier.Heap}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{
		"redis.call('INCR', KEYS[1]) return redis.call('STRLEN', KEYS[2]) - #redis.call('GET', KEYS[2])",
		"redis.call('INCR', KEYS[1]) return #redis.call('GETSET', KEYS[2], 'y') - 65496",
	} {
		putLong(t, n)
		before := movedScripts(n)
		c.want("SET {k} 0", "OK")
		c.want(`EVAL "`+loadBody(c, body)+`" 2 {k} {k}long`, "(integer) 0")
		c.want("GET {k}", `"1"`)
		if movedScripts(n) == before {
			t.Errorf("%s\n has not moved", body)
		}
	}
	wantEnded(t, n)
}
