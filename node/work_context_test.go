package node

import (
	"fmt"
	"net"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// sendLongAlgebra sends a command that compares a set with 20,000 others, which takes some turns of the loop,
// and waits until it holds its partition.
func sendLongAlgebra(t *testing.T, n *Node, c *client, words ...string) {
	t.Helper()
	const many = 20_000
	args := [][]byte{[]byte("SADD"), []byte("{k}set")}
	for i := range many {
		args = append(args, fmt.Append(nil, i))
	}
	c.sendArgs(args...)
	if got := c.next(); got != "(integer) 20000" {
		t.Fatalf("SADD answers %s", got)
	}
	args = args[:0]
	for _, w := range append(words, "{k}set") {
		args = append(args, []byte(w))
	}
	for i := range many {
		args = append(args, fmt.Append(nil, "{k}", i))
	}
	c.sendArgs(args...)
	eventually(t, "the command holds its partition", func() bool { return len(n.engine.Holds()) == 1 })
}

// TestLongWorkEndsWithItsClient: nobody holds a partition for a client that has left. What would
// have been stored is not.
func TestLongWorkEndsWithItsClient(t *testing.T) {
	for _, words := range [][]string{{"SDIFF"}, {"SDIFFSTORE", "{k}d"}} {
		t.Run(words[0], func(t *testing.T) {
			n := startLeveled(t, func(c *Config) { c.Group = newGroup(t, 1) })
			c, other := dial(t, n.Addr()), dial(t, n.Addr())
			other.want("SET {k}d old", "OK")
			sendLongAlgebra(t, n, c, words...)
			if err := c.conn.(*net.TCPConn).SetLinger(0); err != nil { // so that the node notices
				t.Fatal(err)
			}
			c.conn.Close()
			other.want("GET {k}d", `"old"`)
			if all := n.engine.Holds(); len(all) != 0 {
				t.Errorf("there are %d holds", len(all))
			}
		})
	}
}

// TestLongWorkEndsWithItsPartition: a node that has lost a partition after it was fenced does not
// hold it any longer, and one that was not fenced holds it for holdPatience.
func TestLongWorkEndsWithItsPartition(t *testing.T) {
	for _, doubted := range []bool{true, false} {
		for tries := 1; !endsWithItsPartition(t, doubted); tries++ {
			if tries == 10 {
				t.Fatalf("doubted: %t, but the command is executed to its end", doubted)
			}
		}
	}
}

// endsWithItsPartition reports false if the command had ended before the node lost the partition.
func endsWithItsPartition(t *testing.T, doubted bool) bool {
	t.Helper()
	n := startLeveled(t, func(c *Config) { c.Group = newGroup(t, 1) })
	if !doubted {
		n.holdPatience = 0
		tellLoops(t, n)
	}
	c := dial(t, n.Addr())
	c.want("SET {k}d old", "OK")
	sendLongAlgebra(t, n, c, "SDIFFSTORE", "{k}d")
	if doubted {
		n.fences.Add(1)
	}
	n.SetTable(altered(n.view.Load().Table, func(next *ring.Table) {
		next.Nodes = []ring.Member{memberOf(n), {ID: "b", Boot: 2, Role: ring.RoleNode, State: ring.Serving, Addr: "127.0.0.1:1"}}
		next.Joined = []uint64{1, 1}
		next.Owner[partitionOf("{k}")] = 1
	}))
	got := c.next()
	if got == "(integer) 20000" {
		return false
	}
	if got != "(error) "+errHalfway {
		t.Errorf("SDIFFSTORE answers %s", got)
	}
	eventually(t, "nobody holds the partition", func() bool { return len(n.engine.Holds()) == 0 })
	x := n.engine.Lock(partitionOf("{k}"), 1)
	if item, found := x.Peek([]byte("{k}d")); found && item.Type() != engine.TypeString {
		t.Error("the result was stored")
	}
	x.Unlock()
	return true
}
