package node

import (
	"bytes"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

func TestWait(t *testing.T) {
	a := startNode(t)
	b, _ := startReceiver(t)
	r := newRelay(t, b.Addr())
	c := dial(t, a.Addr())
	c.want("SET key value", "OK")
	begun := time.Now()
	c.want("WAIT 1 30", "(integer) 0")
	if took := time.Since(begun); took < 30*time.Millisecond {
		t.Errorf("WAIT gave up after %v, want 30 ms", took)
	}
	c.want("WAIT 0 0", "(integer) 0")

	s := a.senders.To(r.behind(b))
	syncAll(s)
	c.want("WAIT 1 0", "(integer) 1")
	c.want("SET key other", "OK")
	c.want("WAIT 1 5000", "(integer) 1")
	sameContents(t, a, b)
	c.want("WAIT 2 300", "(integer) 1") // the copy has to answer again by then
	if _, reply := c.each(&allPartitions, "WAIT 1 0"); inText(reply) != "(integer) 1" {
		t.Errorf("EACH WAIT answers %s", inText(reply))
	}

	// One partition that has no copy counts for all of them, unless it is not asked about.
	p := ring.PartitionOf([]byte("key"))
	s.Stop(p)
	c.want("WAIT 1 10", "(integer) 0")
	others := allPartitions
	others.Remove(p)
	if _, reply := c.each(&others, "WAIT 1 0"); inText(reply) != "(integer) 1" {
		t.Errorf("EACH WAIT about other partitions answers %s", inText(reply))
	}
	s.Sync(p, 1)
	c.want("WAIT 1 0", "(integer) 1")

	// Who does not answer has no copy.
	r.set(func() { r.stopped = true })
	c.want("SET key again", "OK")
	c.want("WAIT 1 200", "(integer) 0")
}

// TestWaitForEver: a WAIT without a limit lasts as long as its client.
func TestWaitForEver(t *testing.T) {
	ctx, cancel := limited(t.Context(), 0)
	defer cancel()
	if deadline, ends := ctx.Deadline(); ends {
		t.Errorf("it ends at %v", deadline)
	}
	waits := func() bool {
		var all bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(all.Bytes(), []byte("awaitCopies"))
	}
	c := dial(t, startNode(t).Addr())
	c.send("WAIT 9 0")
	eventually(t, "the client waits", waits)
	c.conn.Close()
	eventually(t, "nobody waits for the client's sake", func() bool { return !waits() })
}
