package node

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// crowdedNode starts a node with a small limit, and has values that crowd can ask for.
func crowdedNode(t *testing.T, change ...func(*Config)) *Node {
	t.Helper()
	n := startLeveled(t, append(change, func(c *Config) { c.Memory, c.Group = 32<<20, newGroup(t, 1) })...)
	dial(t, n.Addr()).fillWith(crowdedSize, crowdedKeys)
	return n
}

const crowdedKeys, crowdedSize = 100, 1000

// crowdedGets asks for many values, whose replies take a few megabytes.
var crowdedGets = bytes.Repeat(resp.AppendRequest(nil, []byte("GET"), []byte("fill:1")), 5000)

// commonPipe opens a pipe for commands.
func commonPipe(t *testing.T, n *Node) *client {
	t.Helper()
	c := dial(t, n.Addr())
	c.want(fmt.Sprintf("%s %d", pipeLine(7, 0, "common", 2, 3), ring.Level), "OK later")
	return c
}

// crowd has clients take all memory that clients may have, with replies that they do not read. What is
// too little for another one is taken as a proxy of the process takes it.
func (n *Node) crowd(t *testing.T) {
	t.Helper()
	for range 40 {
		_, _ = dial(t, n.Addr()).conn.Write(crowdedGets) // the node may close the connection
	}
	eventually(t, "there is no memory for some", func() bool {
		s, err := n.Stats()
		return err == nil && s.Starved >= 5
	})
	n.takeRest()
}

func (n *Node) takeRest() {
	for size := int64(1 << 20); size > 0; {
		if !n.Charge(size) {
			size /= 2
		}
	}
}

// Clients with replies that they do not read starve no pipe: commands, and messages.
func TestCrowdLeavesPipes(t *testing.T) {
	n := crowdedNode(t)
	common := commonPipe(t, n)
	listens, say := listeningPipe(t, n)
	say(member.Listen{Name: []byte("c"), Count: 1})
	n.crowd(t)

	common.sendRaw(crowdedGets)
	for i := range 5000 {
		if reply := common.read(); len(reply) < crowdedSize {
			t.Fatalf("reply %d over a pipe beside the crowd is %q", i, reply)
		}
	}
	message := strings.Repeat("m", 1<<20)
	n.workers[0].loop.Post(func() {
		n.Refund(2 << 20) // what the message takes itself is clients'
		_, ok := n.broker.Publish(pubsub.Channel, []byte("c"), []byte(message), 0)
		if n.takeRest(); !ok {
			t.Error("there is no memory for the message itself")
		}
	})
	if m, ok := pubsub.ParseMessage(listens.read()); !ok || string(m.Payload) != message {
		t.Errorf("a pipe that listens gets %d bytes", len(m.Payload))
	}
	answer, _ := say(member.Listen{Name: []byte("c2"), Count: 1})
	if answer != member.Noted {
		t.Errorf("LISTEN beside the crowd is answered by %d", answer)
	}
}

// Clients with replies that they do not read leave memory to commands: for a reply that is gathered, and for what a
// script needs to run. What scripts have beyond that, they do not get.
func TestCrowdLeavesCommands(t *testing.T) {
	n := crowdedNode(t)
	n.crowd(t)
	heap := heapBudget{n}
	reply, err := heap.StageReply(1 << 20)
	if err != nil {
		t.Error("there is no memory for a reply of a megabyte")
	} else {
		reply.Discard()
	}
	if !heap.Charge(1 << 20) {
		t.Error("there is no megabyte for a command's work")
	} else {
		heap.Refund(1 << 20)
	}
	eventually(t, "a script takes nothing of what commands need", func() bool {
		n.takeRest() // of the crowd, some are closed still
		granted := n.grant(1 << 20)
		if granted {
			n.ungrant(1 << 20)
		}
		return !granted
	})
	if s, err := n.makeScratch(); err == nil {
		s.free()
		t.Error("a command that borrows values takes what others need")
	}
}

// A member finds a place beside clients that have all memory of theirs. Another client does not.
func TestCrowdLeavesPlacesToMembers(t *testing.T) {
	n := crowdedNode(t)
	n.crowd(t)
	got := ""
	for i := 0; got != oomReply; i++ { // until the floor is taken, too
		n.takeRest() // of the crowd, some are closed still
		if got = dial(t, n.Addr()).do("PING"); i == 500 {
			t.Fatalf("beside the crowd, a client is answered %s", got)
		}
	}
	if _, err := member.FetchTable(t.Context(), nil, n.Addr(), nil); err != nil {
		t.Error(err)
	}
	p := commonPipe(t, n)
	p.sendRaw(crowdedGets)
	for range 5000 {
		if reply := p.read(); len(reply) < crowdedSize {
			t.Fatalf("a reply over a pipe that opens beside the crowd is %q", reply)
		}
	}
	used := n.engine.Stats()
	if most := used.Max/connShare + 1<<20; used.Outside > most {
		t.Errorf("connections have %d bytes, want %d at most", used.Outside, most)
	}
}

// What a connection has is charged to members once it is one, and given back to clients.
func TestMembersAccount(t *testing.T) {
	n := crowdedNode(t)
	check := func(what string, clients, members int64) {
		t.Helper()
		eventually(t, what, func() bool {
			var ofClients, ofMembers int64
			err := n.cfg.Group.Each(func(l *netloop.Loop) {
				w := n.workers[l.Index()]
				ofClients, ofMembers = w.clients.Used(), w.members.Used()
			})
			return err == nil && ofClients/connMemory == clients && ofMembers/connMemory == members
		})
	}
	check("one client", 1, 0)
	c := commonPipe(t, n)
	check("and a pipe", 1, 1)
	peer := dial(t, n.Addr())
	peer.want(`DUNLIN PEER 7 ""`, "OK")
	check("and a peer", 1, 2)
	c.conn.Close()
	peer.conn.Close()
	check("both have gone", 1, 0)
}
