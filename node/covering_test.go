package node

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// Commands over all keys are answered later, too, and others of the kind at once.
func TestEachLater(t *testing.T) {
	n := startNode(t)
	p := laterPipe(t, n, "large", 1)
	p.raw("SET k v", "+OK")
	free := occupy(t, n)
	each := func(words ...string) {
		args := [][]byte{}
		for _, w := range words {
			args = append(args, []byte(w))
		}
		p.sendRaw(member.AppendEach(nil, &allPartitions, args...))
	}
	covered := strings.TrimSuffix(string(member.AppendCovered(nil, &allPartitions)), "\r\n") + "\r\n"
	each("KEYS", "*")
	each("DBSIZE")
	each("WAIT", "0", "10")
	p.frame("KEYS", "-DUNLINLATER 1")
	p.frame("DBSIZE", covered+":1")
	p.frame("WAIT", "-DUNLINLATER 2")
	p.frame("WAIT, which needs no processor", push(2, covered+":0"))
	free()
	p.frame("KEYS", push(1, covered+"*1\r\n$1\r\nk"))
}

// Commands over all keys leave room for others, however many clients ask for them and however long they wait.
func TestCoveringIsBounded(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	h := holdPartition(n, "{k}")
	p := laterPipe(t, n, "large", 1)
	flush := func(want string) {
		t.Helper()
		p.sendRaw(member.AppendEach(nil, &allPartitions, []byte("FLUSHALL")))
		p.frame("FLUSHALL", want)
	}
	for i := range maxCovering {
		flush(fmt.Sprintf("-DUNLINLATER %d", i+1))
	}
	flush("-DUNLINWAIT 1")
	p.raw("SET {j} x", "+OK")
	h.End()
	for range maxCovering {
		p.read()
	}
	flush(fmt.Sprintf("-DUNLINLATER %d", maxCovering+1))
}

// A FLUSHALL does not outlive its connection: what is written behind the repeated one stays.
func TestFlushDoesNotOutliveItsPipe(t *testing.T) {
	n := startNode(t)
	k := "" // in the partition for which FLUSHALL waits
	for i := 0; k == "" || ring.PartitionOf([]byte(k)) != 0; i++ {
		k = fmt.Sprint("k", i)
	}
	flush := member.AppendEach(nil, &allPartitions, []byte("FLUSHALL"))
	old := laterPipe(t, n, "large", 1)
	old.raw("SET "+k+" before", "+OK")
	n.tableMu.Lock() // FLUSHALL waits for it
	unlock := sync.OnceFunc(n.tableMu.Unlock)
	t.Cleanup(unlock)
	old.sendRaw(flush)
	old.frame("FLUSHALL", "-DUNLINLATER 1")
	newer := laterPipe(t, n, "large", 2)
	newer.raw("SET "+k+" behind", "+OK")
	unlock()
	newer.sendRaw(member.AppendEach(nil, &ring.PartitionSet{}, []byte("FLUSHALL"))) // in turn behind the older one
	newer.frame("FLUSHALL", "-DUNLINLATER 1")
	if _, _, ok := member.ParsePush(newer.read()); !ok {
		t.Error("FLUSHALL is not completed")
	}
	newer.raw("GET "+k, "$6\r\nbehind")
}

// The end of a connection ends the walk of its KEYS.
func TestKeysEndsWithItsConnection(t *testing.T) {
	n := startNode(t)
	for i := range 2000 {
		if err := put(n, fmt.Sprintf("{one}%d", i), "", engine.TypeString); err != nil {
			t.Fatal(err)
		}
	}
	p := laterPipe(t, n, "large", 1)
	txn := n.engine.Lock(ring.PartitionOf([]byte("{one}")), 1) // KEYS waits for it
	p.sendRaw(resp.AppendRequest(nil, []byte("DUNLIN"), []byte("EACH"), allPartitions[:], []byte("KEYS"), []byte("*")))
	p.frame("KEYS", "-DUNLINLATER 1")
	newer := laterPipe(t, n, "large", 2)
	txn.Unlock()
	newer.raw("PING", "+PONG")
	eventually(t, "KEYS has ended", func() bool { return n.lists.Load() == 0 })
}

// FLUSHALL ends with its client, also while it waits for the end of a hold: behind that its client may have asked for
// another one, which is answered, and have written. So those that wait do not fill their pipe either.
func TestCanceledFlush(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	h := holdPartition(n, "{k}")
	defer h.End()
	p := laterPipe(t, n, "common", 1)
	input := member.AppendEach(nil, &allPartitions, []byte("FLUSHALL"))
	p.sendRaw(member.AppendCancel(input, 1))
	p.frame("FLUSHALL", "-DUNLINLATER 1")
	p.frame("CANCEL", "+OK")
	p.frame("FLUSHALL that waits", push(1, "-"+errCanceled))
}
