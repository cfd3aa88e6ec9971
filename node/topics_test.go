package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/broker"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestMoveTakesListenersAlong: PUBLISH counts a proxy's subscribers at the next owner of a channel before the
// proxy has heard of the table.
func TestMoveTakesListenersAlong(t *testing.T) {
	nodes, table, key := startLeveledTrio(t)
	nodes[0].topicsPatience = time.Minute
	p := partitionOf(key)
	_, say := listeningPipe(t, nodes[0])
	channel := []byte("{" + key + "}channel")
	for kind, count := range map[pubsub.Kind]int{pubsub.Channel: 3, pubsub.Shard: 2} {
		if got, _ := say(member.Listen{Kind: uint8(kind), Name: channel, Count: count}); got != member.Noted {
			t.Fatalf("LISTEN is answered by %d", got)
		}
	}
	moving := altered(table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: p, From: 0, To: 1}} })
	install(t, moving, nodes[:]...)
	eventually(t, "the copy is in sync", inSync(nodes[1], p))
	nodes[1].SetTable(altered(moving, func(next *ring.Table) { next.Moves, next.Owner[p] = nil, 1 }))
	eventually(t, "the new owner serves", nodes[1].Serving)
	b := dial(t, nodes[1].Addr())
	b.want("PUBLISH "+string(channel)+" m", "(integer) 3")
	b.want("SPUBLISH "+string(channel)+" m", "(integer) 2")

	// The proxy follows, with another number.
	_, say = listeningPipe(t, nodes[1])
	answer, messages := say(member.Listen{Mode: member.Follow, Name: channel, Count: 1})
	if answer != member.Noted || messages > 1 {
		t.Errorf("LISTEN is answered by %d behind %d messages", answer, messages)
	}
	b.want("PUBLISH "+string(channel)+" m", "(integer) 1")
}

// TestTopicsDelayNoHandOver: a next owner that does not take who listens there gets its partitions all the same.
func TestTopicsDelayNoHandOver(t *testing.T) {
	refusal := make(chan error, 1)
	n := startLeveled(t, func(c *Config) {
		c.Dialer = func(ctx context.Context, _ string) (net.Conn, error) {
			<-ctx.Done()
			refusal <- ctx.Err()
			return nil, ctx.Err()
		}
	})
	n.topicsPatience = 10 * time.Millisecond
	_, say := listeningPipe(t, n)
	say(member.Listen{Name: []byte("c"), Count: 1})
	gets := new(ring.PartitionSet)
	gets.Add(partitionOf("c"))
	n.handTopics(t.Context(), &toldTopics{heir: memberOf(n), gets: gets, began: n.view.Load().Began[:], epoch: 2})()
	if err := came(t, "the refusal", refusal); !errors.Is(err, context.Canceled) {
		t.Errorf("the next owner is given up because of %v", err)
	}
}

// TestChannelsThatMoveTwice: a channel moves on before a proxy has followed. What was published at the node in the
// middle comes to the proxy ahead of what comes later, and once. A proxy that has followed gets nothing twice.
func TestChannelsThatMoveTwice(t *testing.T) {
	for _, back := range []bool{false, true} {
		m := startMoves(t)
		m.moveAndFollow()
		if back {
			m.move(1, 0)
			m.publish(0, "four")
			m.listen(0, quick, member.Follow, member.Noted)
			m.gets(0, late, "zero", "one", "two", "three", "four") // it was live there
			m.listen(0, late, member.Follow, member.Noted)         // and has ended what it had there
			m.publish(0, "five")
			m.gets(0, late, "five")
			m.gets(0, quick, "four", "five")
		} else {
			m.move(1, 2)
			m.publish(2, "four")
			m.listen(2, quick, member.Follow, member.Noted)
			m.listen(2, late, member.Follow, member.Noted)
			m.gets(0, late, "zero")
			m.gets(2, late, "one", "two", "three", "four")
			m.gets(2, quick, "four")
		}
		m.gets(1, quick, "one", "two", "three")
	}
}

// TestGapOfChannelsThatMoveTwice: a node in the middle cannot hand over what a proxy has not got. The proxy hears that
// there is a gap when it follows, or at once if it need not.
func TestGapOfChannelsThatMoveTwice(t *testing.T) {
	for _, back := range []bool{false, true} {
		m := startMoves(t, func(c *Config) {
			c.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
				return cutAtMissed{conn}, err
			}
		})
		m.moveAndFollow()
		if back {
			m.move(1, 0)
			eventually(t, "the gap is told", func() bool { return m.nodes[0].broker.Lost() > 0 })
			m.publish(0, "four")
			m.listen(0, quick, member.Follow, member.Gapped)
			m.gets(0, late, "zero", "lost 1", "four")
			m.gets(0, quick, "four")
		} else {
			m.move(1, 2)
			m.publish(2, "four")
			m.listen(2, late, member.Follow, member.Gapped)
			m.gets(2, late, "four")
		}
		if lost := m.nodes[1].broker.Lost(); lost != 3 {
			t.Errorf("the node in the middle has lost %d messages, want 3", lost)
		}
	}
}

// TestHandedWithoutAName: builds of this level that were never released say HANDED without a name,
// and refuse it with one. The messages come all the same, and whoever follows is told of a gap: the
// next owner cannot know that there is none.
func TestHandedWithoutAName(t *testing.T) {
	m := startMoves(t, func(c *Config) {
		c.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			return handsWithoutName{conn}, err
		}
	})
	m.listen(0, late, member.Live, member.Noted)
	m.listen(0, quick, member.Live, member.Noted)
	m.publish(0, "zero")
	m.move(0, 1)
	m.publish(1, "one")
	m.move(1, 2)
	m.publish(2, "two")
	for _, loop := range []int{late, quick} {
		m.gets(0, loop, "zero")
		m.listen(2, loop, member.Follow, member.Gapped)
		m.gets(2, loop, "one", "two")
	}
	for i, n := range m.nodes {
		if lost := n.broker.Lost(); lost != 0 {
			t.Errorf("node %d has lost %d messages", i, lost)
		}
	}
	peer, handed := dial(t, m.nodes[2].Addr()), new(ring.PartitionSet)
	peer.sendRaw(member.AppendRequest(nil, member.VerbHanded, handed[:]))
	if got := peer.next(); !strings.HasPrefix(got, "(error) ERR wrong number of arguments") {
		t.Errorf("it is answered by %s", got)
	}
	peer.want("PING", "PONG")
}

// TestHandedTooLate: if a node does not come to say in time that it has handed over everything, whoever follows is told
// of a gap, and the log says why.
func TestHandedTooLate(t *testing.T) {
	for _, inTime := range []bool{false, true} {
		said, stuck, goOn := make(saying, 1), make(chan bool, 1), make(chan struct{})
		m := startMoves(t, func(c *Config) {
			c.Log = slog.New(slog.NewTextHandler(said, nil))
			c.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
				return &stuckAtHanded{Conn: conn, stuck: stuck, goOn: goOn, cut: make(chan struct{})}, err
			}
		})
		m.listen(0, late, member.Live, member.Noted)
		m.begin(0, 1)
		want := member.Noted
		if !inTime {
			m.nodes[0].topicsPatience, want = 10*time.Millisecond, member.Gapped
		}
		for _, n := range m.nodes {
			n.SetTable(m.table)
		}
		if inTime {
			came(t, "the end of the hand-over", stuck)
			close(goOn)
		}
		install(t, m.table, m.nodes[:]...)
		m.gets(0, late)
		m.listen(1, late, member.Follow, want)
		if err := m.nodes[0].Close(); err != nil {
			t.Fatal(err)
		}
		if says := len(said) > 0; says == inTime {
			t.Errorf("in time: %v; the log says that something is missing: %v", inTime, says)
		}
	}
}

// saying takes a log, and has a line if that says that a next owner may count gaps.
type saying chan string

func (s saying) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "does not have everything of its channels") {
		select {
		case s <- string(line):
		default:
		}
	}
	return len(line), nil
}

// stuckAtHanded is a connection that does not write HANDED until it may go on, or its deadline is set.
type stuckAtHanded struct {
	net.Conn
	stuck chan<- bool
	goOn  <-chan struct{}
	cut   chan struct{}
	once  sync.Once
}

func (c *stuckAtHanded) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("\r\n"+member.VerbHanded+"\r\n")) {
		c.stuck <- true
		select {
		case <-c.goOn:
		case <-c.cut:
			return 0, os.ErrDeadlineExceeded
		}
	}
	return c.Conn.Write(b)
}

func (c *stuckAtHanded) SetDeadline(at time.Time) error {
	c.once.Do(func() { close(c.cut) })
	return c.Conn.SetDeadline(at)
}

// handsWithoutName is a connection over which HANDED has no name.
type handsWithoutName struct{ net.Conn }

func (c handsWithoutName) Write(b []byte) (int, error) {
	var p resp.Parser
	if p.Parse(b) != resp.Done || !bytes.Equal(p.Args()[1], []byte(member.VerbHanded)) {
		return c.Conn.Write(b)
	}
	if _, err := c.Conn.Write(resp.AppendRequest(nil, p.Args()[:3]...)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// TestUnservedPartitionsPassOnListeners: a channel moves on before its owner has served it. The
// next owner has what was handed over there, and tells nobody of a gap.
func TestUnservedPartitionsPassOnListeners(t *testing.T) {
	var mute atomic.Bool
	m := startMoves(t, func(c *Config) {
		c.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			return cutAtTake{conn, &mute}, err
		}
	})
	m.moveAndFollow()
	mute.Store(true)
	m.begin(1, 2)
	for _, n := range m.nodes {
		n.SetTable(m.table)
	}
	eventually(t, "the node that does not serve is handed everything", func() bool {
		return m.nodes[2].following.IsWhole(m.nodes[2].view.Load(), m.p)
	})
	if m.nodes[2].Serving() {
		t.Fatal("it serves what nobody has acknowledged")
	}
	m.table = altered(m.table, func(next *ring.Table) { next.Owner[m.p] = 0 })
	for _, n := range m.nodes {
		n.SetTable(m.table)
	}
	mute.Store(false) // not before: it would serve
	install(t, m.table, m.nodes[:]...)
	m.publish(0, "four")
	m.listen(0, quick, member.Follow, member.Noted)
	m.gets(0, late, "zero", "one", "two", "three", "four")
	m.gets(0, quick, "four")
}

// cutAtTake is a connection that breaks when it is to hand over a table, while that is so.
type cutAtTake struct {
	net.Conn
	breaks *atomic.Bool
}

func (c cutAtTake) Write(b []byte) (int, error) {
	if c.breaks.Load() && bytes.Contains(b, []byte("\r\n"+member.VerbTake+"\r\n")) {
		return 0, errors.New("broken")
	}
	return c.Conn.Write(b)
}

// TestChannelsThatWereToCome: what a node was handed of a channel that then went elsewhere neither
// counts nor comes when the channel comes here later.
func TestChannelsThatWereToCome(t *testing.T) {
	m := startMoves(t)
	m.listen(0, late, member.Live, member.Noted)
	peer, epoch := dial(t, m.nodes[1].Addr()), m.table.Epoch+1
	peer.sendRaw(member.AppendTopics(nil, epoch, []member.Topic{{Boot: 8, Name: m.channel, Count: 5}}))
	peer.sendRaw(member.AppendMissed(nil, epoch, &member.Missed{
		Channel: []byte(m.channel), Message: []byte("old"), By: []member.Loop{{Boot: 7, Loop: late}},
	}))
	for range 2 {
		if got := string(peer.read()); got != "+OK\r\n" {
			t.Fatalf("what is handed over is answered by %q", got)
		}
	}
	m.table = altered(m.table, func(*ring.Table) {})
	install(t, m.table, m.nodes[:]...)
	m.move(0, 1)
	m.clients[1].want("PUBLISH "+m.channel+" new", "(integer) 1")
	m.gets(0, late)
	m.listen(1, late, member.Follow, member.Noted)
	m.gets(1, late, "new")
}

// TestListenAheadOfTheTable: who listens where a channel is about to come asks again until the
// table has come. Before that messages may be published elsewhere.
func TestListenAheadOfTheTable(t *testing.T) {
	var mute atomic.Bool
	m := startMoves(t, func(c *Config) {
		c.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			return cutAtTake{conn, &mute}, err
		}
	})
	m.listen(0, late, member.Live, member.Noted)
	m.listen(0, quick, member.Live, member.Noted)
	m.begin(0, 1)
	m.listen(1, quick, member.Live, member.NotOwner)
	m.listen(1, quick, member.Ahead, member.Noted)
	m.listen(1, late, member.Follow, member.NotOwner)
	mute.Store(true)
	m.nodes[1].SetTable(m.table)
	m.listen(1, 2, member.Live, member.NotOwner)
	mute.Store(false)
	install(t, m.table, m.nodes[:]...)
	m.publish(1, "one")
	for _, loop := range []int{late, quick} {
		m.gets(0, loop)
		m.listen(1, loop, member.Follow, member.Noted)
		m.gets(1, loop, "one")
	}
}

// TestListenLiveBeforeTheTable: a proxy takes the next owner for a former process at its address,
// and so listens before it has the table. It ends that, and follows over the pipe of the next
// owner: it is shown nothing again.
func TestListenLiveBeforeTheTable(t *testing.T) {
	m := startMoves(t)
	m.listen(0, late, member.Live, member.Noted)
	m.move(0, 1)
	m.gets(0, late)
	m.listen(1, late, member.Live, member.Noted)
	m.clients[1].want("PUBLISH "+m.channel+" one", "(integer) 1")
	m.gets(1, late, "one")
	delete(m.pipes, [2]int{1, late})
	m.generation++
	m.listen(1, late, member.Follow, member.Noted)
	m.clients[1].want("PUBLISH "+m.channel+" two", "(integer) 1")
	m.gets(1, late, "two")
}

// TestDataThatBeginsAnew: what was handed over for receivers of channels whose partition then
// begins anew does not come behind what was published meanwhile.
func TestDataThatBeginsAnew(t *testing.T) {
	m := startMoves(t)
	m.listen(0, late, member.Live, member.Noted)
	m.move(0, 1)
	m.gets(0, late)
	m.nodes[1].broker.Miss(pubsub.Channel, []byte(m.channel), []byte("old"), []broker.Origin{{Boot: 7, Loop: late}}, m.table.Epoch)
	m.table = altered(m.table, func(next *ring.Table) { next.Since[m.p] = next.Epoch })
	install(t, m.table, m.nodes[:]...)
	m.listen(1, late, member.Follow, member.Gapped)
	m.gets(1, late)
}

// TestChannelsThatWentOnElsewhere: a node loses a channel, and the next owner begins anew without it. When the channel is
// about to come back and then does not, a proxy is not shown once more what it was shown over an earlier pipe.
func TestChannelsThatWentOnElsewhere(t *testing.T) {
	m := startMoves(t)
	m.listen(0, late, member.Live, member.Noted)
	m.move(0, 1)
	m.gets(0, late)
	m.listen(1, late, member.Follow, member.Noted)
	m.clients[1].want("PUBLISH "+m.channel+" old", "(integer) 1")
	delete(m.pipes, [2]int{1, late})
	m.generation++
	m.table = altered(m.table, func(next *ring.Table) { next.Owner[m.p], next.Since[m.p] = 2, next.Epoch })
	install(t, m.table, m.nodes[:]...)
	m.begin(2, 1)
	m.listen(1, late, member.Ahead, member.Noted)
	m.gets(1, late)
}

// TestMissedComesLate: what is handed over when a node serves already is refused: it would come
// behind later messages. So is what is handed over for a later table, if the node has served all along.
func TestMissedComesLate(t *testing.T) {
	m := startMoves(t)
	m.listen(0, late, member.Live, member.Noted)
	m.move(0, 1)
	m.gets(0, late)
	m.listen(1, late, member.Follow, member.Noted)
	m.clients[1].want("PUBLISH "+m.channel+" new", "(integer) 1")
	m.table = altered(m.table, func(*ring.Table) {})
	install(t, m.table, m.nodes[:]...)
	peer := dial(t, m.nodes[1].Addr())
	for _, epoch := range []uint64{m.table.Epoch - 1, m.table.Epoch} {
		peer.sendRaw(member.AppendMissed(nil, epoch, &member.Missed{
			Channel: []byte(m.channel), Message: []byte("old"), By: []member.Loop{{Boot: 7, Loop: late}},
		}))
		if got, want := string(peer.read()), "-"+errServed+"\r\n"; got != want {
			t.Errorf("a message for table %d that comes too late is answered by %q, want %q", epoch, got, want)
		}
	}
	m.gets(1, late, "new")
}

// TestGapOfWhoStandsStill: a channel moves on when the node in the middle has forgotten a proxy that does
// not follow there. The proxy is told of a gap when it follows, or at once if it need not. One that
// was live in the middle is not.
func TestGapOfWhoStandsStill(t *testing.T) {
	for name, test := range map[string]struct{ back, ahead bool }{
		"it has heard of nothing":          {},
		"it has heard of the move to come": {ahead: true},
		"the channel comes back":           {back: true},
		"it comes back, and was heard of":  {back: true, ahead: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := startMoves(t)
			m.listen(0, late, member.Live, member.Noted)
			m.listen(0, quick, member.Live, member.Noted)
			m.begin(0, 1)
			if test.ahead {
				m.listen(1, late, member.Ahead, member.Noted)
			}
			install(t, m.table, m.nodes[:]...)
			m.gets(0, quick)
			m.listen(1, quick, member.Follow, member.Noted)
			m.publish(1, "one")
			m.nodes[1].following.Gained(1, -time.Hour)
			m.nodes[1].broker.Forget()
			to, counts := 2, 1
			if test.back {
				to, counts = 0, 2 // it is live there
			}
			m.move(1, uint16(to))
			m.gets(1, quick, "one")
			m.listen(to, quick, member.Follow, member.Noted)
			m.clients[to].want("PUBLISH "+m.channel+" two", fmt.Sprintf("(integer) %d", counts))
			if test.back {
				eventually(t, "the gap is told", func() bool { return m.nodes[0].broker.Lost() > 0 })
				m.gets(0, late, "lost 1", "two")
			} else {
				m.gets(0, late)
				m.listen(to, late, member.Follow, member.Gapped)
				m.gets(to, late, "two")
			}
			m.gets(to, quick, "two")
		})
	}
}

// TestGapBelowTheLevelOfHanded: in a cluster with members that do not say HANDED, too, a proxy that follows
// is told of a gap if the node in the middle has died.
func TestGapBelowTheLevelOfHanded(t *testing.T) {
	m := startMoves(t)
	m.table = altered(m.table, func(next *ring.Table) { next.Level = ring.HandedLevel - 1 })
	install(t, m.table, m.nodes[:]...)
	m.listen(0, late, member.Live, member.Noted)
	m.listen(0, quick, member.Live, member.Noted)
	m.move(0, 1)
	m.gets(0, quick)
	m.listen(1, quick, member.Follow, member.Noted)
	m.publish(1, "one")
	if err := m.nodes[1].Close(); err != nil {
		t.Fatal(err)
	}
	m.table = tableWithout(m.table, 1)
	install(t, m.table, m.nodes[0], m.nodes[2])
	m.gets(0, late)
	to := int(m.table.Owner[m.p])
	if m.table.OwnerOf(m.p).ID == m.nodes[2].cfg.ID {
		to = 2
	}
	m.listen(to, late, member.Follow, member.Gapped)
}

// cutAtMissed is a connection that breaks when it is to hand over a message.
type cutAtMissed struct{ net.Conn }

func (c cutAtMissed) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(member.VerbMissed)) {
		return 0, errors.New("broken")
	}
	return c.Conn.Write(b)
}

// moves are those of a channel over three nodes. Two loops of a proxy listen to it.
type moves struct {
	t       *testing.T
	nodes   [3]*Node
	clients [3]*client
	table   *ring.Table
	p       uint16
	channel string
	pipes   map[[2]int]*client // by node and loop

	generation int // of the pipes to come, beside 1
}

const late, quick = 0, 1 // the two loops

func startMoves(t *testing.T, change ...func(*Config)) *moves {
	t.Helper()
	m := &moves{t: t, pipes: make(map[[2]int]*client)}
	var key string
	m.nodes, m.table, key = startLeveledTrio(t, change...)
	m.p, m.channel = partitionOf(key), "{"+key+"}channel"
	for i, n := range m.nodes {
		n.topicsPatience = time.Minute
		m.clients[i] = dial(t, n.Addr())
	}
	return m
}

// moveAndFollow moves the channel to the second node, to which only the quick loop follows.
func (m *moves) moveAndFollow() {
	m.t.Helper()
	m.listen(0, late, member.Live, member.Noted)
	m.listen(0, quick, member.Live, member.Noted)
	m.publish(0, "zero")
	m.move(0, 1)
	m.publish(1, "one", "two")
	m.gets(0, quick, "zero")
	m.listen(1, quick, member.Follow, member.Noted)
	m.publish(1, "three")
}

func (m *moves) listen(node, loop int, mode member.Mode, want member.Heard) {
	m.t.Helper()
	at := m.pipes[[2]int{node, loop}]
	if at == nil {
		at = dial(m.t, m.nodes[node].Addr())
		at.want(fmt.Sprintf("%s %d", pipeLine(7, loop, "listen", 1+m.generation, 3), ring.Level), "OK later")
		m.pipes[[2]int{node, loop}] = at
	}
	at.sendRaw(member.AppendListen(nil, member.Listen{Mode: mode, Name: []byte(m.channel), Count: 1}))
	at.frame("LISTEN", fmt.Sprintf(":%d", want))
}

// gets ends what a loop has of the channel at a node. What waits there is shown ahead of the answer.
func (m *moves) gets(node, loop int, want ...string) {
	m.t.Helper()
	at := m.pipes[[2]int{node, loop}]
	at.sendRaw(member.AppendListen(nil, member.Listen{Name: []byte(m.channel)}))
	var got []string
	for {
		frame := at.read()
		if lost, ok := member.ParseLost(frame); ok {
			got = append(got, fmt.Sprintf("lost %d", lost))
			continue
		}
		message, ok := pubsub.ParseMessage(frame)
		if !ok {
			break
		}
		got = append(got, string(message.Payload))
	}
	if !slices.Equal(got, want) {
		m.t.Errorf("loop %d gets %q from node %d, want %q", loop, got, node, want)
	}
}

func (m *moves) move(from, to uint16) {
	m.t.Helper()
	m.begin(from, to)
	install(m.t, m.table, m.nodes[:]...)
}

// begin has the copy for a move be made. The table is then the one that ends the move.
func (m *moves) begin(from, to uint16) {
	m.t.Helper()
	moving := altered(m.table, func(next *ring.Table) { next.Moves = []ring.Move{{Partition: m.p, From: from, To: to}} })
	install(m.t, moving, m.nodes[:]...)
	eventually(m.t, "the copy is in sync", inSync(m.nodes[to], m.p))
	m.table = altered(moving, func(next *ring.Table) { next.Moves, next.Owner[m.p] = nil, to })
}

func (m *moves) publish(node int, messages ...string) {
	m.t.Helper()
	for _, message := range messages {
		m.clients[node].want("PUBLISH "+m.channel+" "+message, "(integer) 2")
	}
}

// TestLateFollowers: who follows when the next owner has forgotten what was published there is told
// of a gap.
func TestLateFollowers(t *testing.T) {
	m := startMoves(t)
	m.listen(0, late, member.Live, member.Noted)
	m.move(0, 1)
	m.gets(0, late)
	m.nodes[1].following.Gained(1, -time.Hour)
	m.listen(1, late, member.Follow, member.Gapped)
	m.listen(1, late, member.Live, member.Noted)
}
