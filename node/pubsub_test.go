package node

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// CLIENT REPLY suppresses replies, but neither messages nor the answers to subscriptions, as in Redis.
func TestSubscribeWithoutReplies(t *testing.T) {
	n := startLeveled(t)
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	c.sendRaw([]byte("CLIENT REPLY OFF\r\nSUBSCRIBE a\r\nPING\r\n"))
	if got := string(c.read()); got != "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n" {
		t.Fatalf("SUBSCRIBE is answered by %q", got)
	}
	other.want("PUBLISH a m", "(integer) 1")
	if got := string(c.read()); got != "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nm\r\n" {
		t.Errorf("the message is %q", got)
	}
}

// A client that subscribes while a message for it is pending gets that between its replies.
func TestSubscribeWithMessagePending(t *testing.T) {
	n := startLeveled(t)
	long := strings.Repeat("m", 5000) // the output moves
	for version, push := range map[int]string{2: "*", 3: ">"} {
		c, a := dial(t, n.Addr()), string(rune('a'+version))
		c.sendRaw([]byte("HELLO 3\r\n"))
		c.read()
		c.sendRaw([]byte("PING one\r\nSUBSCRIBE " + a + "\r\nPUBLISH " + a + " " + long + "\r\nPUBLISH " + a + " short\r\nHELLO " +
			fmt.Sprint(version) + "\r\nSUBSCRIBE b\r\nUNSUBSCRIBE b\r\nPING two\r\n"))
		for i, want := range []string{
			"$3\r\none\r\n", ">3\r\n$9\r\nsubscribe\r\n$1\r\n" + a + "\r\n:1\r\n", ":1\r\n", ":1\r\n", "",
			push + "3\r\n$7\r\nmessage\r\n$1\r\n" + a + "\r\n$5000\r\n" + long + "\r\n",
			push + "3\r\n$7\r\nmessage\r\n$1\r\n" + a + "\r\n$5\r\nshort\r\n",
			push + "3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n",
			push + "3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:1\r\n",
		} {
			if got := string(c.read()); got != want && want != "" {
				t.Fatalf("RESP%d: reply %d is %q, want %q", version, i, got, want)
			}
		}
	}
}

// The limits of what a client may subscribe to and publish.
func TestPubSubLimits(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	long := strings.Repeat("x", pubsub.MaxName+1)
	c.want("SUBSCRIBE "+long, "(error) "+pubsub.ErrName)
	c.want("PUBLISH "+long+" m", "(error) "+pubsub.ErrName)
	publishLong(c, pubsub.MaxMessage-1, ":0\r\n")
	publishLong(c, pubsub.MaxMessage, "-"+pubsub.ErrMessage+"\r\n")
	subscribed := 0
	for subscribed < pubsub.MaxTopics {
		names := make([]string, 1000)
		for i := range names {
			names[i] = fmt.Sprint("c", subscribed+i)
		}
		names = names[:min(len(names), pubsub.MaxTopics-subscribed)]
		c.sendRaw([]byte("SUBSCRIBE " + strings.Join(names, " ") + "\r\n"))
		for range names {
			c.read()
			subscribed++
		}
	}
	c.want("SSUBSCRIBE c", "(error) "+pubsub.ErrTooMany)
	other := dial(t, n.Addr())
	other.want("PUBLISH c4095 m", "(integer) 1")
	c.conn.Close()
	for got := ""; got != ":0\r\n"; { // soon after the client has gone
		other.sendRaw([]byte("PUBLISH c4095 m\r\n"))
		got = string(other.read())
	}
}

func publishLong(c *client, size int, want string) {
	c.t.Helper()
	c.sendRaw(resp.AppendRequest(nil, []byte("PUBLISH"), []byte("c"), bytes.Repeat([]byte("m"), size)))
	if got := string(c.read()); got != want {
		c.t.Errorf("PUBLISH of %d bytes is answered by %q, want %q", size, got, want)
	}
}

// A message of the greatest length reaches its subscriber.
func TestLongMessage(t *testing.T) {
	n := startLeveled(t)
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	c.want("SUBSCRIBE c", "1) \"subscribe\"\n2) \"c\"\n3) (integer) 1")
	const size = pubsub.MaxMessage - 1
	publishLong(other, size, ":1\r\n")
	if got := string(c.read()); !strings.HasSuffix(got, "\r\n"+strings.Repeat("m", size)+"\r\n") {
		t.Errorf("a message of %d bytes comes as %d", size, len(got))
	}
}

// A proxy's loop listens over a pipe: its subscribers count, and it gets each message once.
func TestListen(t *testing.T) {
	n := startLeveled(t)
	open := func(kind string, generation int) *client {
		c := dial(t, n.Addr())
		c.want(fmt.Sprintf("%s %d", pipeLine(7, 0, kind, generation, 3), ring.Level), "OK later")
		return c
	}
	p := open("listen", 1)
	say := func(l member.Listen, want member.Heard) {
		t.Helper()
		p.sendRaw(member.AppendListen(nil, l))
		if got, ok := member.ParseHeard(p.read()); !ok || got != want {
			t.Errorf("LISTEN %s is answered by %d, %v", l.Name, got, ok)
		}
	}
	say(member.Listen{Name: []byte("c"), Count: 2}, member.Noted)
	say(member.Listen{Kind: uint8(pubsub.Pattern), Name: []byte("c*"), Count: 3}, member.Noted)
	other := dial(t, n.Addr())
	other.want("PUBLISH c m", "(integer) 5")
	if m, ok := pubsub.ParseMessage(p.read()); !ok || string(m.Payload) != "m" {
		t.Errorf("the pipe gets %+v", m)
	}
	say(member.Listen{Name: []byte("c")}, member.Noted)
	other.want("PUBLISH c m2", "(integer) 3")
	p.read()
	common := open("common", 2)
	common.sendRaw(member.AppendListen(nil, member.Listen{Name: []byte("c"), Count: 2}))
	if got := string(common.read()); got != "-"+errBadListen+"\r\n" {
		t.Errorf("LISTEN on a common pipe is answered by %q", got)
	}
	p.conn.Close()
	for got := ""; got != ":0\r\n"; {
		other.sendRaw([]byte("PUBLISH c m\r\n"))
		got = string(other.read())
	}
}

// listeningPipe opens a pipe that listens, and returns how to say LISTEN there. The answer is the first frame
// that is no message.
func listeningPipe(t *testing.T, n *Node) (p *client, say func(l member.Listen) (answer member.Heard, messages int)) {
	t.Helper()
	p = dial(t, n.Addr())
	p.want(fmt.Sprintf("%s %d", pipeLine(7, 0, "listen", 1, 3), ring.Level), "OK later")
	return p, func(l member.Listen) (member.Heard, int) {
		t.Helper()
		p.sendRaw(member.AppendListen(nil, l))
		for messages := 0; ; messages++ {
			frame := p.read()
			if answer, ok := member.ParseHeard(frame); ok {
				return answer, messages
			}
			if _, ok := pubsub.ParseMessage(frame); !ok {
				t.Fatalf("%.80q is no message", frame)
			}
		}
	}
}

// TestFollowingAPatternLate: who listens to what all nodes know when the node has served already, and has
// subscribers of earlier, may have missed something there.
func TestFollowingAPatternLate(t *testing.T) {
	ask := func(say func(member.Listen) (member.Heard, int), kind pubsub.Kind, name string, mode member.Mode, want member.Heard) {
		t.Helper()
		got, _ := say(member.Listen{Kind: uint8(kind), Mode: mode, Name: []byte(name), Count: 1})
		if got != want {
			t.Errorf("LISTEN %s in mode %d is answered by %d, want %d", name, mode, got, want)
		}
	}
	_, early := listeningPipe(t, startBare(t))
	ask(early, pubsub.Pattern, "a*", member.Follow, member.Noted)
	_, late := listeningPipe(t, startLeveled(t))
	ask(late, pubsub.Pattern, "a*", member.Live, member.Noted)
	ask(late, pubsub.Pattern, "b*", member.Follow, member.Gapped)
	ask(late, pubsub.Channel, "__keyevent@0__:set", member.Follow, member.Gapped)
}

// TestListenEndsBehindMessages: nothing of a channel comes behind the answer Noted to the count 0, however
// many messages wait for the pipe.
func TestListenEndsBehindMessages(t *testing.T) {
	n := startLeveled(t)
	_, say := listeningPipe(t, n)
	say(member.Listen{Name: []byte("c"), Count: 1})
	other := dial(t, n.Addr())
	const size, messages = 64 << 10, 110 // less than pipeQueue, more than sockets hold
	for range messages {
		publishLong(other, size, ":1\r\n")
	}
	asked, got := 0, 0
	for answer := member.NotOwner; answer != member.Noted; asked++ {
		var more int
		answer, more = say(member.Listen{Name: []byte("c")})
		got += more
	}
	if got != messages || asked < 2 {
		t.Errorf("%d of %d messages come before the answer; asked %d times", got, messages, asked)
	}
}

// TestListenEndsBesideOtherMessages: messages of other channels that come behind the end of a channel do not
// delay its answer, however long the queue stays.
func TestListenEndsBesideOtherMessages(t *testing.T) {
	n := startLeveled(t)
	p, say := listeningPipe(t, n)
	say(member.Listen{Name: []byte("c"), Count: 1})
	say(member.Listen{Name: []byte("ends"), Count: 1})
	other := dial(t, n.Addr())
	const size, messages = 64 << 10, 110 // as above
	for range messages {
		publishLong(other, size, ":1\r\n")
	}
	got := 0
	for answer := member.NotOwner; answer != member.Noted; {
		if got > 4*messages {
			t.Fatalf("the channel has not ended behind %d messages of another", got)
		}
		p.sendRaw(member.AppendListen(nil, member.Listen{Name: []byte("ends")}))
		for answered := false; !answered; {
			frame := p.read()
			if answer, answered = member.ParseHeard(frame); !answered {
				got++
				publishLong(other, size, ":1\r\n")
			}
		}
	}
	err := n.cfg.Group.Each(func(l *netloop.Loop) {
		for cn := range n.workers[l.Index()].conns {
			if p := cn.pipe; p != nil && (p.listener.topics != 1 || len(p.listener.ends) > 0) {
				t.Errorf("%d topics are charged, %d end", p.listener.topics, len(p.listener.ends))
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// TestListenWhileOtherLoopsPublish: a node that obeys a table is the broker of what that takes from it for
// those who listen there, until no loop executes under an older one.
func TestListenWhileOtherLoopsPublish(t *testing.T) {
	n := startLeveled(t)
	_, say := listeningPipe(t, n)
	want := func(name string, want member.Heard) {
		t.Helper()
		if got, _ := say(member.Listen{Name: []byte(name), Count: 1}); got != want {
			t.Errorf("LISTEN %s is answered by %d, want %d", name, got, want)
		}
	}
	want("{c}1", member.Noted)
	untold := &n.untold[partitionOf("c")]
	giveAway(n, partitionOf("c"))
	eventually(t, "the node has looked who listens", func() bool { return !untold.Load() })
	want("{c}1", member.NotOwner)
	passed := n.passed.Swap(nil)
	want("{c}1", member.Noted)
	want("{c}2", member.NotOwner) // to which nobody has listened
	n.passed.Store(passed)
	want("{c}1", member.NotOwner)
	untold.Store(true) // who listens must not go before the next owner is told of it
	want("{c}1", member.Noted)
	want("{c}2", member.NotOwner)
	untold.Store(false)
	want("{c}1", member.NotOwner)
}

// Clients of a node use shard channels of its slots. When it loses one they are told so, and are redirected
// from then on.
func TestShardChannelsMove(t *testing.T) {
	n := startLeveled(t)
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	c.want("SSUBSCRIBE {a}1 {a}2", "1) \"ssubscribe\"\n2) \"{a}1\"\n3) (integer) 1")
	c.read()
	c.want("SSUBSCRIBE b", "1) \"ssubscribe\"\n2) \"b\"\n3) (integer) 3")
	c.want("SSUBSCRIBE a b", "(error) "+errCrossSlot)
	giveAway(n, partitionOf("a"))
	for left := 2; left > 0; left-- {
		got := c.next()
		if !strings.HasPrefix(got, "1) \"sunsubscribe\"\n2) \"{a}") || !strings.HasSuffix(got, fmt.Sprintf("3) (integer) %d", left)) {
			t.Errorf("behind the move comes %s", got)
		}
	}
	slot := ring.Slot([]byte("a"))
	moved := fmt.Sprintf("(error) MOVED %d 127.0.0.1:1", slot)
	c.want("SSUBSCRIBE a", moved)
	other.want("SPUBLISH {a}1 m", moved)
	other.want("SPUBLISH b m", "(integer) 1")
	if got := c.next(); got != "1) \"smessage\"\n2) \"b\"\n3) \"m\"" {
		t.Errorf("the channel that stays brings %s", got)
	}
	other.want("SUBSCRIBE c", "(error) "+errSubscribeHere)
	other.want("PUBSUB SHARDCHANNELS", "1) \"b\"")
}

// TestSubscribersOfOneNode: clients that subscribe to channels or patterns at a node that is alone are closed when it
// has others, behind the messages that came before. Those with shard channels alone stay.
func TestSubscribersOfOneNode(t *testing.T) {
	var log bytes.Buffer
	n := startLeveled(t, func(cfg *Config) { cfg.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	var closed []*client
	subscribe := func(lines ...string) *client {
		c := dial(t, n.Addr())
		for _, line := range lines {
			c.do(line)
		}
		return c
	}
	for range 3 * leaveTopics / closeTopics {
		closed = append(closed, subscribe("SUBSCRIBE c"))
	}
	waits := subscribe("HELLO 3", "PSUBSCRIBE c")
	waits.send("BLPOP k 0")
	closed = append(closed, subscribe("PSUBSCRIBE c"), subscribe("SSUBSCRIBE {a}1", "SUBSCRIBE c"), waits)
	shard, ended, other := subscribe("SSUBSCRIBE c"), subscribe("SUBSCRIBE c", "UNSUBSCRIBE c"), dial(t, n.Addr())
	next := *n.view.Load().Table
	next.Epoch++
	n.SetTable(&next) // of one node
	other.want("PUBLISH c m", fmt.Sprintf("(integer) %d", len(closed)))
	giveAway(n, partitionOf("a"))
	for i, c := range closed {
		c.conn.SetReadDeadline(time.Now().Add(replyTimeout))
		rest, err := io.ReadAll(c.conn)
		if err != nil || !strings.Contains(string(rest), "c\r\n$1\r\nm\r\n") {
			t.Fatalf("subscriber %d gets %q and %v, want the message and its end", i, rest, err)
		}
	}
	shard.want("PING", "1) \"pong\"\n2) \"\"")
	ended.want("PING", "PONG")
	other.want("SPUBLISH c m", "(integer) 1")
	other.want("SUBSCRIBE c", "(error) "+errSubscribeHere)
	if err := n.Close(); err != nil { // which waits for what is being logged
		t.Fatal(err)
	}
	lines, told := 0, 0
	for line := range strings.Lines(log.String()) {
		if _, count, is := strings.Cut(strings.TrimSpace(line), `others have joined" clients=`); is {
			clients, _ := strconv.Atoi(count)
			lines, told = lines+1, told+clients
		}
	}
	if lines > len(n.workers) || told != len(closed) {
		t.Errorf("%d lines of the log tell of %d clients, want one of each loop, and %d", lines, told, len(closed))
	}
}

// A message on a long name is refused when there are many costly patterns. When their subscriber goes, they
// go in turns.
func TestCostlySubscriptions(t *testing.T) {
	n := startLeveled(t)
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	var names strings.Builder
	const patterns = 500
	for i := range patterns {
		fmt.Fprintf(&names, " *a?a?%d*b?*", i)
	}
	c.sendRaw([]byte("PSUBSCRIBE" + names.String() + "\r\n"))
	for range patterns {
		c.read()
	}
	long := strings.Repeat("a", pubsub.MaxName)
	other.want("PUBLISH "+long+" m", "(error) "+errCostlyChannel)
	other.want("PUBLISH "+long[:256]+" m", "(integer) 0")
	other.want("SPUBLISH "+long+" m", "(integer) 0")
	other.sendRaw([]byte(strings.Repeat("PUBLISH "+long[:256]+" m\r\n", 100)))
	for range 100 {
		if got := string(other.read()); got != ":0\r\n" {
			t.Fatalf("a message of a pipeline is answered by %q", got)
		}
	}
	c.conn.Close()
	for got := ""; got != ":0\r\n"; {
		other.sendRaw([]byte("PUBSUB NUMPAT\r\n"))
		got = string(other.read())
	}
	other.want("PUBLISH "+long+" m", "(integer) 0")
}

// What subscribes to many channels, or ends that, takes turns, between which other connections are served.
// What comes behind it in the pipeline waits.
func TestManySubscriptionsTakeTurns(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	const count = 4000
	var names strings.Builder
	for i := range count {
		fmt.Fprintf(&names, " {a}%d", i)
	}
	c.sendRaw([]byte("CLIENT REPLY OFF\r\nSSUBSCRIBE" + names.String() + "\r\nSUNSUBSCRIBE {a}7\r\nSUNSUBSCRIBE\r\nSUNSUBSCRIBE\r\nCLIENT REPLY ON\r\n"))
	for i := range count {
		if got := string(c.read()); !strings.HasSuffix(got, fmt.Sprintf("{a}%d\r\n:%d\r\n", i, i+1)) {
			t.Fatalf("subscription %d is answered by %q", i, got)
		}
	}
	for left := count - 1; left >= 0; left-- {
		if got := string(c.read()); !strings.HasPrefix(got, "*3\r\n$12\r\nsunsubscribe\r\n") || !strings.HasSuffix(got, fmt.Sprintf("\r\n:%d\r\n", left)) {
			t.Fatalf("behind the %d-th end comes %q", left, got)
		}
	}
	if got := string(c.read()); got != "*3\r\n$12\r\nsunsubscribe\r\n$-1\r\n:0\r\n" {
		t.Errorf("the end of nothing is answered by %q", got)
	}
	if got := string(c.read()); got != "+OK\r\n" {
		t.Errorf("then comes %q", got)
	}
	onLoop(t, n, func(cn *conn) {
		r := cn.worker.begin(cn)
		cn.topics = newSubscriber(cn)
		r.Cmd = command.ByID(command.Subscribe)
		in := &topicChange{kind: pubsub.Channel, more: true}
		for i := range count {
			in.names = append(in.names, fmt.Append(nil, i))
		}
		for done := false; !done; {
			before := cn.topics.Count(pubsub.Channel)
			if done = r.changeTopics(in); cn.topics.Count(pubsub.Channel)-before > namesAtOnce {
				t.Errorf("a turn subscribes to %d channels", cn.topics.Count(pubsub.Channel)-before)
			}
		}
		out := &topicChange{kind: pubsub.Channel, all: true}
		for done := false; !done; {
			before := cn.topics.Count(pubsub.Channel)
			if done = r.changeTopics(out); before-cn.topics.Count(pubsub.Channel) > namesAtOnce {
				t.Errorf("a turn unsubscribes from %d channels", before-cn.topics.Count(pubsub.Channel))
			}
		}
		if n := cn.topics.Count(pubsub.Channel); n > 0 {
			t.Errorf("%d subscriptions stay", n)
		}
	})
}

// When a node loses the partition of many shard channels, their subscriptions end in turns.
func TestManyShardChannelsMove(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	const count = 4000
	var names strings.Builder
	for i := range count {
		fmt.Fprintf(&names, " {a}%d", i)
	}
	c.sendRaw([]byte("SSUBSCRIBE b\r\nSSUBSCRIBE" + names.String() + "\r\n"))
	for range count + 1 {
		c.read()
	}
	if err := n.cfg.Group.Each(func(l *netloop.Loop) {
		w := n.workers[l.Index()]
		for cn := range w.conns {
			if cn.topics == nil {
				continue
			}
			v := *n.view.Load()
			v.Standing[partitionOf("a")] = ownership.Foreign
			if ended := cn.endForeign(&v, 10); ended != 10 || cn.topics.Count(pubsub.Shard) != count+1-10 {
				t.Errorf("a turn of 10 ends %d subscriptions", ended)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	giveAway(n, partitionOf("a"))
	for left := count; left > 0; left-- {
		if got := string(c.read()); !strings.HasPrefix(got, "*3\r\n$12\r\nsunsubscribe\r\n$") || !strings.HasSuffix(got, fmt.Sprintf("\r\n:%d\r\n", left)) {
			t.Fatalf("behind the move comes %q", got)
		}
	}
	c.sendRaw([]byte("SUNSUBSCRIBE\r\n"))
	if got := string(c.read()); !strings.HasSuffix(got, "b\r\n:0\r\n") {
		t.Errorf("of the channel that stays comes %q", got)
	}
}

// TestUnsubscribedBetweenTurns: what unsubscribes from all shard channels in turns ends without an answer when a
// table takes the last ones between two turns.
func TestUnsubscribedBetweenTurns(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	c.want("SSUBSCRIBE a", "1) \"ssubscribe\"\n2) \"a\"\n3) (integer) 1")
	c.want("SUNSUBSCRIBE", "1) \"sunsubscribe\"\n2) \"a\"\n3) (integer) 0")
	if err := n.cfg.Group.Each(func(l *netloop.Loop) {
		for cn := range n.workers[l.Index()].conns {
			cn.takeTurns(&topicChange{cmd: command.ByID(command.SUnsubscribe), kind: pubsub.Shard, all: true, begun: true})
		}
	}); err != nil {
		t.Fatal(err)
	}
	c.want("PING", "PONG")
}
