package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestBlocking says random blocking commands to a redis-server, a node, and a proxy with three nodes, and compares the
// replies: in transactions, with elements there, with short limits, and with arguments that are wrong. Commands that
// wait until others serve them are those of TestBlocking in test/cluster.
func TestBlocking(t *testing.T) {
	t.Parallel()
	seed := max(*differentialSeed, 1)
	c := &comparison{t: t, listed: map[string]int{}, composer: composer{
		Rand: rand.New(rand.NewPCG(seed, 77)), version: redisVersion(t), start: time.Now()}}
	for _, s := range startServers(t) {
		c.peers = append(c.peers, &peer{server: s, wire: harness.DialWire(t, s.addr)})
	}
	for c.said < 4**typesCommands && c.differences < shownDiffs {
		if c.rounds%tagRounds == 0 || c.lost {
			c.anew()
		}
		c.rounds++
		var commands [][]string
		for len(commands) < roundCommands {
			commands = append(commands, c.waiting()...)
		}
		c.compare(commands)
	}
	t.Logf("seed %d: %d commands, listed differences: %v", seed, c.said, c.listed)
}

// waiting returns commands of which the blocking ones wait for a few milliseconds at most.
func (g *composer) waiting() (commands [][]string) {
	switch n := g.IntN(20); {
	case n < 4:
		return [][]string{g.elements(g.pick("LPUSH", "RPUSH"), g.keyOf("l"))}
	case n < 6:
		return [][]string{{"ZADD", g.keyOf("z"), g.pick("1", "2", "-3.5"), g.element(), g.pick("1", "0", "7"), g.element()}}
	case n < 8:
		return [][]string{{"DEL", g.keyOf("l"), g.keyOf("z")}, {"SET", g.tag + "k1", "x"}}
	case n < 9:
		return [][]string{{"LRANGE", g.keyOf("l"), "0", "-1"}, {"ZRANGE", g.keyOf("z"), "0", "-1", "WITHSCORES"}}
	case n < 13:
		return [][]string{g.blocking(g.pick("0.001", "0.002", "1e-3"))}
	case n < 15: // none of these waits
		return [][]string{g.blocking(g.pick("-1", "-0.5", "x", "", "nan", "inf", "-inf", "9223372036854775807", "1e400", "1 "))}
	}
	commands = append(commands, []string{"MULTI"})
	for range 1 + g.IntN(5) {
		if g.chance(3) {
			commands = append(commands, g.elements("RPUSH", g.keyOf("l")))
			continue
		}
		args := g.blocking(g.pick("0", "0", "1", "100.5", "-1", "x"))
		if g.chance(6) {
			if other := g.spoilt(args); g.isTagged(other) {
				args = other
			}
		}
		commands = append(commands, args)
	}
	return append(commands, []string{"EXEC"})
}

// isTagged reports whether all keys of a command are in the slot of the transaction: only a cluster refuses others.
func (g *composer) isTagged(args []string) bool {
	words := byteSlices(args)
	row := command.Lookup(words[0])
	if row == nil {
		return true
	}
	keys, _ := row.AppendKeys(nil, words)
	return !slices.ContainsFunc(keys, func(i int) bool { return !strings.HasPrefix(args[i], g.tag) })
}

// blocking returns a blocking command with that limit.
func (g *composer) blocking(limit string) (args []string) {
	some := func(name, kind string) []string {
		args := []string{name}
		for range 1 + g.IntN(3) {
			args = append(args, g.keyOf(kind))
		}
		return append(args, limit)
	}
	counted := func(name, kind string, ends ...string) []string {
		args := append(g.counted(name, kind, limit), g.pick(ends...))
		if g.chance(2) {
			args = append(args, g.pick("COUNT", "count", "x"), g.index())
		}
		return args
	}
	switch g.IntN(7) {
	case 0:
		return some("BLPOP", "l")
	case 1:
		return some("BRPOP", "l")
	case 2:
		return []string{"BLMOVE", g.keyOf("l"), g.keyOf("l"), g.side(), g.side(), limit}
	case 3:
		return []string{"BRPOPLPUSH", g.keyOf("l"), g.keyOf("l"), limit}
	case 4:
		return counted("BLMPOP", "l", "LEFT", "RIGHT", "right", "x")
	case 5:
		return counted("BZMPOP", "z", "MIN", "MAX", "max", "x")
	}
	return some(g.pick("BZPOPMIN", "BZPOPMAX"), "z")
}

// TestPubSub lets clients of a redis-server, a node, and a proxy with three nodes subscribe and publish at random, and
// compares what each of them is shown, and all counts.
func TestPubSub(t *testing.T) {
	t.Parallel()
	seed := max(*differentialSeed, 1)
	rng := rand.New(rand.NewPCG(seed, 78))
	var clubs []*club
	for _, s := range startServers(t) {
		c := &club{name: s.name, publisher: harness.DialWire(t, s.addr)}
		for i := range members {
			w := harness.DialWire(t, s.addr)
			if i%2 == 1 {
				w.Do("HELLO 3")
			}
			c.subscribers = append(c.subscribers, w)
		}
		clubs = append(clubs, c)
	}
	steps, messages := *typesCommands, 0
	for step := range steps {
		who, line := -1, publishing(rng, step)
		if rng.IntN(3) == 0 {
			who, line = rng.IntN(members), subscribing(rng)
		}
		want := clubs[0].do(who, line)
		for _, shown := range want.shown {
			messages += len(shown)
		}
		for _, c := range clubs[1:] {
			if got := c.follow(who, line, want); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("seed %d, step %d: %d says %s\n%s: %v\nwant  %v", seed, step, who, line, c.name, got, want)
			}
		}
	}
	for _, c := range clubs[1:] { // nothing more has come
		for i, w := range c.subscribers {
			w.Send([]byte("PING end\r\n"))
			if got := string(w.Next()); got != "$3\r\nend\r\n" && got != "*2\r\n$4\r\npong\r\n$3\r\nend\r\n" {
				t.Errorf("%s: client %d is shown %q in the end", c.name, i, got)
			}
		}
	}
	t.Logf("seed %d: %d commands, %d frames", seed, steps, messages)
}

// members are the subscribers of a server. Those with odd numbers speak RESP3.
const members = 4

// club is the clients of one server.
type club struct {
	name        string
	publisher   *harness.Wire
	subscribers []*harness.Wire
}

// outcome is the publisher's reply, and what each subscriber is shown.
type outcome struct {
	reply string
	shown [members][]string
}

// publishing is a random command of a publisher.
func publishing(rng *rand.Rand, step int) string {
	channel := fmt.Sprintf("c%d", rng.IntN(4))
	switch rng.IntN(12) {
	case 0:
		return "PUBSUB CHANNELS"
	case 1:
		return "PUBSUB CHANNELS c[12]"
	case 2:
		return "PUBSUB NUMSUB c0 c1 c2 none"
	case 3:
		return "PUBSUB NUMPAT"
	case 4:
		return "PUBSUB SHARDCHANNELS"
	case 5:
		return "PUBSUB SHARDNUMSUB c0 c3"
	case 6:
		return fmt.Sprintf("SPUBLISH %s s%d", channel, step)
	case 7:
		return "PUBSUB NUMSUB"
	}
	return fmt.Sprintf("PUBLISH %s m%d", channel, step)
}

// subscribing is a random command of a subscriber. It names one topic: what comes for several has no order.
func subscribing(rng *rand.Rand) string {
	verb := []string{"SUBSCRIBE", "SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE"}[rng.IntN(7)]
	if verb[0] == 'P' {
		return verb + " " + []string{"c*", "c[01]", "*"}[rng.IntN(3)]
	}
	return verb + fmt.Sprintf(" c%d", rng.IntN(4))
}

// do has a client of the real server say something, and reads what everybody is shown until it answers a PING.
func (c *club) do(who int, line string) (o outcome) {
	if who < 0 {
		o.reply = inOrder(line, c.publisher.Do(line))
	} else {
		c.subscribers[who].Send([]byte(line + "\r\n"))
	}
	for i, w := range c.subscribers {
		w.Send([]byte("PING end\r\n"))
		for {
			got := string(w.Next())
			if got == "$3\r\nend\r\n" || got == "*2\r\n$4\r\npong\r\n$3\r\nend\r\n" {
				break
			}
			o.shown[i] = append(o.shown[i], got)
		}
		slices.Sort(o.shown[i]) // the order of a channel and of patterns is not promised
	}
	return o
}

// follow has a client of another server say the same, and reads as much.
func (c *club) follow(who int, line string, want outcome) (o outcome) {
	if who < 0 {
		o.reply = inOrder(line, c.publisher.Do(line))
	} else {
		c.subscribers[who].Send([]byte(line + "\r\n"))
	}
	for i, w := range c.subscribers {
		for range want.shown[i] {
			o.shown[i] = append(o.shown[i], string(w.Next()))
		}
		slices.Sort(o.shown[i])
	}
	return o
}

// inOrder writes a reply down: lists of channels have no order.
func inOrder(line string, b []byte) string {
	r, _ := decode(b)
	if strings.Contains(line, "CHANNELS") {
		return r.sorted(1)
	}
	return r.String()
}
