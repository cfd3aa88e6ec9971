package cluster

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// subscribe subscribes by RESP3 and waits for the answers.
func subscribe(t *testing.T, addr, command string, names ...string) *harness.Wire {
	t.Helper()
	w := harness.DialWire(t, addr)
	w.Do("HELLO 3")
	w.Send([]byte(command + " " + strings.Join(names, " ") + "\r\n"))
	for _, name := range names {
		if got := string(w.Next()); !strings.HasPrefix(got, ">3\r\n$") || !strings.Contains(got, "\r\n"+name+"\r\n:") {
			t.Fatalf("%s %s is answered by %q", command, name, got)
		}
	}
	return w
}

// payload is the last element of a message.
func payload(frame []byte) string {
	lines := strings.Split(strings.TrimSuffix(string(frame), "\r\n"), "\r\n")
	return lines[len(lines)-1]
}

// TestPubSub checks that messages reach subscribers at all proxies, that PUBLISH counts them all, and that
// PUBSUB does.
func TestPubSub(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 2)
	one, two := c.Proxy(0).Addr, c.Proxy(1).Addr
	harness.AwaitLevel(t, one)
	harness.AwaitLevel(t, two)
	var channels []string
	for i := range 50 {
		channels = append(channels, fmt.Sprintf("channel-%d", i))
	}
	everything := subscribe(t, two, "PSUBSCRIBE", "channel-*", "*-1?")
	all, some := subscribe(t, one, "SUBSCRIBE", channels...), subscribe(t, two, "SUBSCRIBE", channels[:10]...)
	shards := subscribe(t, two, "SSUBSCRIBE", channels...)
	p := harness.DialWire(t, one)
	p.Want("PUBSUB NUMPAT", "(integer) 2")
	p.Want("PUBSUB NUMSUB channel-1 channel-20 none", `1) "channel-1"
2) (integer) 2
3) "channel-20"
4) (integer) 1
5) "none"
6) (integer) 0`)
	if got := string(p.Do("PUBSUB CHANNELS")); !strings.HasPrefix(got, "*50\r\n") {
		t.Errorf("PUBSUB CHANNELS answers %q", got)
	}
	p.Want("PUBSUB SHARDNUMSUB channel-1", "1) \"channel-1\"\n2) (integer) 1")
	for i, name := range channels {
		want := 2 // the channel, and the first pattern
		if i < 10 {
			want++
		}
		if i >= 10 && i < 20 {
			want++ // the second pattern
		}
		p.Want(fmt.Sprintf("PUBLISH %s m%d", name, i), fmt.Sprintf("(integer) %d", want))
		p.Want(fmt.Sprintf("SPUBLISH %s s%d", name, i), "(integer) 1")
	}
	expect := func(w *harness.Wire, prefix string, from, to int) {
		t.Helper()
		left := map[string]bool{}
		for i := from; i < to; i++ {
			left[fmt.Sprint(prefix, i)] = true
		}
		for n := len(left); n > 0; n-- {
			got := payload(w.Next())
			if !left[got] {
				t.Fatalf("%q comes twice, or to the wrong subscriber", got)
			}
			delete(left, got)
		}
	}
	expect(all, "m", 0, 50)
	expect(some, "m", 0, 10)
	expect(shards, "s", 0, 50)
	seen := map[string]int{}
	for range 60 {
		seen[payload(everything.Next())]++
	}
	if len(seen) != 50 || seen["m15"] != 2 || seen["m1"] != 1 {
		t.Errorf("the patterns were shown %d different messages, %v", len(seen), seen)
	}
	all.Conn.Close()
	harness.Eventually(t, 10*time.Second, "a subscriber that has gone does not count", func() bool {
		return string(p.Do("PUBLISH channel-30 m")) == ":1\r\n"
	})
	some.Want("GET nothing", "(nil)") // RESP3: other commands go on
	some.Send([]byte("CLIENT REPLY SKIP\r\nSUBSCRIBE x y\r\nPING\r\n"))
	for _, want := range []string{"x\r\n:11\r\n", "y\r\n:12\r\n", "+PONG\r\n"} { // as Redis does
		if got := string(some.Next()); !strings.HasSuffix(got, want) {
			t.Errorf("behind CLIENT REPLY SKIP comes %q, want %q", got, want)
		}
	}
}

// TestPubSubWhileNodesJoinAndLeave publishes to many channels while partitions move by plan: no message is
// lost, comes twice or is overtaken, and every PUBLISH counts the subscriber. If the machine is so busy that
// a node is given up, that is no plan, and messages may be lost.
func TestPubSubWhileNodesJoinAndLeave(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 2, 2)
	harness.AwaitLevel(t, c.Proxy(0).Addr)
	harness.AwaitLevel(t, c.Proxy(1).Addr)
	publishWhileNodesJoinAndLeave(t, c, c.Proxy(0), c.Proxy(1), c.Node(0), "dunlin_proxy_pubsub_gaps_total")
}

// publishPace is how often publishWhileNodesJoinAndLeave publishes. As fast as possible would take a processor from
// others for half a minute, and partitions would move under it no more often.
const publishPace = 2 * time.Millisecond

// publishWhileNodesJoinAndLeave publishes at one member for a subscriber of another while a node joins and one leaves.
// gaps is the figure of the subscriber's member that counts them.
func publishWhileNodesJoinAndLeave(t *testing.T, c *harness.Cluster, from, to, leaves *harness.Member, gaps string) {
	t.Helper()
	const count = 64
	var channels []string
	for i := range count {
		channels = append(channels, fmt.Sprintf("c%d", i))
	}
	s := subscribe(t, to.Addr, "SUBSCRIBE", channels...)
	p := harness.DialWire(t, from.Addr)
	sent, received := [count]int{}, [count]int{}
	end, published := make(chan struct{}), make(chan error, 1)
	pace := time.NewTicker(publishPace)
	defer pace.Stop()
	go func() {
		for turn := 0; ; turn++ {
			select {
			case <-end:
				published <- nil
				return
			case <-pace.C:
			}
			i := turn % count
			err := p.Write(fmt.Appendf(nil, "PUBLISH c%d %d\r\n", i, sent[i]))
			if reply, readErr := p.Read(); err != nil || string(reply) != ":1\r\n" {
				published <- fmt.Errorf("message %d of c%d has %q subscribers: %v", sent[i], i, reply, errors.Join(err, readErr))
				return
			}
			sent[i]++
		}
	}()
	read := func(until func() bool) error {
		for !until() {
			frame, err := s.Read()
			if err != nil {
				return fmt.Errorf("no message comes: %w", err)
			}
			name := strings.Split(string(frame), "\r\n")[4]
			i, _ := strconv.Atoi(strings.TrimPrefix(name, "c"))
			if got := payload(frame); got != strconv.Itoa(received[i]) {
				return fmt.Errorf("%s brings message %s, want %d", name, got, received[i])
			}
			received[i]++
		}
		return nil
	}
	// readWhile reads until f, which waits for members, has returned, and a while longer.
	readWhile := func(f func()) error {
		var over atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer over.Store(true)
			f()
		}()
		defer func() { <-done }() // the end of the test ends the members
		if err := read(over.Load); err != nil {
			return err
		}
		more := received[0] + 10
		return read(func() bool { return received[0] >= more })
	}
	joins := harness.NewMember(t, "node", "joins")
	joins.Flags = c.Node(0).Flags
	joins.Start()
	c.Members = append(c.Members, joins)
	err := readWhile(func() {
		for deadline := time.Now().Add(harness.ReadyTimeout); time.Now().Before(deadline); time.Sleep(harness.PollInterval) {
			if _, why := c.Agreed(); why == "" {
				return
			}
		}
	})
	if err == nil {
		err = readWhile(func() { leaves.Term(time.Minute) })
	}
	close(end)
	if failed := <-published; failed != nil {
		err = failed
	} else if err == nil {
		err = read(func() bool { return received == sent })
	}
	switch why := gaveUp(t, c.Members); {
	case err != nil && why != "":
		t.Skipf("a node was given up, so this does not count: %v\n%s", err, why)
	case err != nil:
		t.Fatal(err)
	default:
		t.Logf("%d messages of each channel; given up: %q", sent[0], why)
		n, ok := harness.Scrape(t, to.Admin).Sum(gaps)
		slow := tookTooLong(c.Members)
		switch {
		case n > 0 && ok && len(slow) > 0:
			t.Logf("%v gaps are counted, but nothing was lost:\n%s", n, strings.Join(slow, ""))
		case (n > 0 || !ok) && why == "":
			t.Errorf("%v gaps are counted, but nothing was lost", n)
		}
	}
}

// tookTooLong returns what logs say of planned moves after which gaps are counted: a node did not get to tell the next
// owner everything of its channels, or left before all members had ended what they had there.
func tookTooLong(members []*harness.Member) (lines []string) {
	for _, m := range members {
		lines = append(lines, m.Says(time.Time{}, "the next owner does not have everything of its channels",
			"leaving before all proxies have closed their pipes")...)
	}
	return lines
}

// gaveUp returns what a log says of a node that was given up because it was silent, or that stood still.
func gaveUp(t *testing.T, members []*harness.Member) (why string) {
	t.Helper()
	for _, m := range members {
		log, err := os.ReadFile(m.Logged)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, "sent nothing for too long") || strings.Contains(line, "msg=fenced") {
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
}

// TestPubSubAfterNodeDies: subscriptions go on at the next owners, and the gap is counted.
func TestPubSubAfterNodeDies(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 2)
	harness.AwaitLevel(t, c.Proxy(0).Addr)
	harness.AwaitLevel(t, c.Proxy(1).Addr)
	var channels []string
	for i := range 50 {
		channels = append(channels, fmt.Sprintf("c%d", i))
	}
	s := subscribe(t, c.Proxy(1).Addr, "SUBSCRIBE", channels...)
	pattern := subscribe(t, c.Proxy(0).Addr, "PSUBSCRIBE", "c*")
	c.Node(1).Kill()
	killed := time.Now()
	p := harness.DialWire(t, c.Proxy(0).Addr)
	harness.Eventually(t, 30*time.Second, "PUBLISH counts all subscribers again", func() bool {
		for _, name := range channels {
			if got := string(p.Do("PUBLISH " + name + " again")); got != ":2\r\n" {
				return false
			}
		}
		return true
	})
	t.Logf("all subscribers count again %v after the node has died", time.Since(killed))
	for _, name := range channels {
		p.Want("PUBLISH "+name+" last-"+name, "(integer) 2")
	}
	for _, w := range []*harness.Wire{s, pattern} {
		for last := 0; last < len(channels); {
			if strings.HasPrefix(payload(w.Next()), "last-") {
				last++
			}
		}
	}
	p.Want("PUBSUB NUMPAT", "(integer) 1")
	if gaps, _ := harness.Scrape(t, c.Proxy(1).Admin).Sum("dunlin_proxy_pubsub_gaps_total"); gaps == 0 {
		t.Error("no gap is counted")
	}
}

// TestMessagesBesideLargeReplies: messages come between replies, also while a reply is fetched in pieces.
func TestMessagesBesideLargeReplies(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 2, 1)
	harness.AwaitLevel(t, c.Proxy(0).Addr)
	p := harness.DialWire(t, c.Proxy(0).Addr)
	const size = 4 << 20
	p.Send(fmt.Appendf(nil, "*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$%d\r\n%s\r\n", size, strings.Repeat("v", size)))
	if got := string(p.Next()); got != "+OK\r\n" {
		t.Fatalf("SET is answered by %q", got)
	}
	s := subscribe(t, c.Proxy(0).Addr, "SUBSCRIBE", "c")
	const replies, messages = 5, 300
	s.Send([]byte(strings.Repeat("GET big\r\nPING\r\n", replies)))
	published := make(chan struct{})
	go func() {
		defer close(published)
		for i := range messages {
			p.Want(fmt.Sprint("PUBLISH c ", i), "(integer) 1")
		}
	}()
	defer func() { <-published }() // the last message may come before PUBLISH's reply
	for values, pongs, next := 0, 0, 0; values < replies || pongs < replies || next < messages; {
		switch frame := s.Next(); {
		case len(frame) > size:
			values++
		case string(frame) == "+PONG\r\n":
			pongs++
		case payload(frame) == strconv.Itoa(next):
			next++
		default:
			t.Fatalf("behind %d values, %d PONGs and %d messages comes %.80q", values, pongs, next, frame)
		}
	}
}

// TestSlowSubscriber: one that does not read is closed and counted. Nobody waits for it.
func TestSlowSubscriber(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 2, 1)
	harness.AwaitLevel(t, c.Proxy(0).Addr)
	subscribe(t, c.Proxy(0).Addr, "SUBSCRIBE", "c") // and reads no more
	reads := subscribe(t, c.Proxy(0).Addr, "SUBSCRIBE", "c")
	p := harness.DialWire(t, c.Proxy(0).Addr)
	request := fmt.Appendf(nil, "*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$%d\r\n%s\r\n", 256<<10, strings.Repeat("m", 256<<10))
	longest := time.Duration(0)
	sent := 0
	for got := ":2\r\n"; got != ":1\r\n"; sent++ {
		if sent == 1000 {
			t.Fatal("a subscriber that has left 250 MiB unread still counts")
		}
		begun := time.Now()
		p.Send(request)
		got = string(p.Next())
		longest = max(longest, time.Since(begun))
		if message := reads.Next(); len(message) < 256<<10 {
			t.Fatalf("the other subscriber gets %.80q", message)
		}
	}
	t.Logf("closed behind %d messages of 256 KiB; the longest PUBLISH took %v", sent, longest)
	harness.Eventually(t, harness.ReadyTimeout, "one slow subscriber is counted", func() bool {
		slow, err := c.Proxy(0).Figure("dunlin_proxy_slow_subscribers_total")
		return err == nil && slow == 1
	})
	if sent < (32<<20)/(256<<10) {
		t.Errorf("it was closed behind %d messages of 256 KiB, less than Redis's 32 MB", sent)
	}
}

// TestManySubscribersOfAChannel: so many that a message is shown to them in turns, and what comes
// behind it together. Each gets all messages in their order, at a node and through a proxy, while
// others come and go. Under the race detector a busy node may say nothing for so long that the
// proxy ends its pipe, and messages are lost.
func TestManySubscribersOfAChannel(t *testing.T) {
	harness.SkipUnderRace(t)
	t.Parallel()
	c := harness.StartCluster(t, 1, 1)
	for name, addr := range map[string]string{"node": c.Node(0).Addr, "proxy": c.Proxy(0).Addr} {
		t.Run(name, func(t *testing.T) {
			const subscribers, rounds, together = 1500, 4, 40
			harness.AwaitLevel(t, addr)
			var stay, leavers []*harness.Wire
			for i := range subscribers {
				w := subscribe(t, addr, "SUBSCRIBE", "many", "other")
				if i%10 == 9 {
					leavers = append(leavers, w)
				} else {
					stay = append(stay, w)
				}
			}
			var batch strings.Builder
			for i := range together {
				fmt.Fprintf(&batch, "PUBLISH many %d\r\n", i)
				if i%30 == 29 {
					batch.WriteString("PUBLISH other between\r\n")
				}
			}
			p := harness.DialWire(t, addr)
			replies := together + together/30
			for round := range rounds {
				p.Send([]byte(batch.String()))
				newcomer := subscribe(t, addr, "SUBSCRIBE", "many")
				for _, w := range leavers[round*len(leavers)/rounds : (round+1)*len(leavers)/rounds] {
					w.Conn.Close()
				}
				for range replies {
					if got := p.Next(); len(got) == 0 || got[0] != ':' {
						t.Fatalf("PUBLISH answers %q", got)
					}
				}
				for _, w := range stay {
					for i := range together {
						if got := payload(w.Next()); got != strconv.Itoa(i) {
							t.Fatalf("round %d: got %q, want %d", round, got, i)
						}
						if i%30 == 29 {
							if got := payload(w.Next()); got != "between" {
								t.Fatalf("round %d: got %q behind message %d", round, got, i)
							}
						}
					}
				}
				p.Do("PUBLISH many last")
				for _, w := range stay {
					if got := payload(w.Next()); got != "last" {
						t.Fatalf("round %d: got %q, want the last one", round, got)
					}
				}
				before := -1
				for got := payload(newcomer.Next()); got != "last"; got = payload(newcomer.Next()) {
					i, err := strconv.Atoi(got)
					if err != nil || before >= 0 && i != before+1 {
						t.Fatalf("round %d: who has come gets %q behind %d", round, got, before)
					}
					before = i
				}
				newcomer.Conn.Close()
			}
		})
	}
}

// TestManySubscriptions: a client subscribes to as many channels as it may, in turns, and leaves them with one
// command. Others leave all of theirs at once, by RESET and by closing.
func TestManySubscriptions(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 2, 1)
	harness.AwaitLevel(t, c.Proxy(0).Addr)
	const count = 4096
	var commands strings.Builder
	for i := range count {
		if i%1000 == 0 {
			commands.WriteString("\r\nSUBSCRIBE")
		}
		fmt.Fprintf(&commands, " c%d", i)
	}
	p := harness.DialWire(t, c.Proxy(0).Addr)
	several := make([]*harness.Wire, 3)
	for i := range several {
		s := harness.DialWire(t, c.Proxy(0).Addr)
		s.Send([]byte("HELLO 3" + commands.String() + "\r\nPING\r\n"))
		s.Next()
		for n := range count {
			if got, want := string(s.Next()), fmt.Sprintf("c%d\r\n:%d\r\n", n, n+1); !strings.HasSuffix(got, want) {
				t.Fatalf("subscription %d is answered by %q", n, got)
			}
		}
		if got := string(s.Next()); got != "+PONG\r\n" {
			t.Fatalf("behind the subscriptions comes %q", got)
		}
		several[i] = s
	}
	p.Want("PUBLISH c4095 m", "(integer) 3")
	for i, s := range several {
		if got := payload(s.Next()); got != "m" {
			t.Errorf("subscriber %d gets %q", i, got)
		}
	}
	several[0].Send([]byte("UNSUBSCRIBE\r\nUNSUBSCRIBE\r\nPING\r\n"))
	for left := count - 1; left >= 0; left-- {
		if got := string(several[0].Next()); !strings.HasPrefix(got, ">3\r\n$11\r\nunsubscribe\r\n") || !strings.HasSuffix(got, fmt.Sprintf("\r\n:%d\r\n", left)) {
			t.Fatalf("with %d subscriptions left comes %q", left, got)
		}
	}
	for _, want := range []string{">3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n", "+PONG\r\n"} {
		if got := string(several[0].Next()); got != want {
			t.Errorf("behind the last subscription comes %q, want %q", got, want)
		}
	}
	several[1].Want("RESET", "RESET")
	several[2].Conn.Close()
	harness.Eventually(t, 10*time.Second, "nobody subscribes", func() bool { return string(p.Do("PUBSUB CHANNELS")) == "*0\r\n" })
	several[1].Want("PUBLISH c0 m", "(integer) 0")
}

// CONFIG SET at one proxy limits the subscribers of all, also of those that start later.
func TestLimitsOfSubscribers(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 2, 1)
	harness.AwaitLevel(t, c.Proxy(0).Addr)
	p := harness.DialWire(t, c.Proxy(0).Addr)
	p.Want(`CONFIG SET client-output-buffer-limit "pubsub 1mb 0 0"`, "OK")
	joins := harness.NewMember(t, "proxy", "p9")
	joins.Flags = c.Proxy(0).Flags
	joins.Start()
	for _, addr := range []string{joins.Addr, c.Proxy(0).Addr, c.Node(0).Addr} {
		w := harness.DialWire(t, addr)
		harness.Eventually(t, 10*time.Second, "the limit holds", func() bool {
			return strings.Contains(string(w.Do("CONFIG GET client-output-buffer-limit")), "pubsub 1048576 0 0")
		})
	}
	subscribe(t, joins.Addr, "SUBSCRIBE", "c") // and reads no more
	request := fmt.Appendf(nil, "*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$%d\r\n%s\r\n", 256<<10, strings.Repeat("m", 256<<10))
	sent := 0
	for got := ":1\r\n"; got != ":0\r\n"; sent++ {
		if sent == 100 {
			t.Fatal("a subscriber that has left 25 MiB unread still counts")
		}
		p.Send(request)
		got = string(p.Next())
	}
	if slow, _ := harness.Scrape(t, joins.Admin).Sum("dunlin_proxy_slow_subscribers_total"); slow != 1 {
		t.Errorf("%v slow subscribers are counted", slow)
	}
}
