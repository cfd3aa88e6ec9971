package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/test/harness"
)

func startCrossing(t *testing.T, nodes, proxies int) *harness.Cluster {
	t.Helper()
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: nodes, Proxies: proxies, Env: []string{"DUNLIN_CROSS_SLOT=relaxed"}})
	for i := range proxies {
		harness.AwaitLevel(t, c.Proxy(i).Addr)
	}
	return c
}

// crossing makes commands whose keys lie in any slots.
type crossing struct{ rng *rand.Rand }

func (x *crossing) one(of ...string) string { return of[x.rng.IntN(len(of))] }

// key returns one of a few keys that mostly have a value of a type.
func (x *crossing) key(types string) string {
	if x.rng.IntN(20) == 0 {
		types = "szgphl" // the wrong one
	}
	return fmt.Sprintf("%c%d", types[x.rng.IntN(len(types))], x.rng.IntN(5))
}

func (x *crossing) keys(types string) string {
	all := []string{x.key(types)}
	for x.rng.IntN(2) == 0 {
		all = append(all, x.key(types))
	}
	return fmt.Sprintf("%d %s", len(all), strings.Join(all, " "))
}

func (x *crossing) bare(types string) string {
	_, keys, _ := strings.Cut(x.keys(types), " ")
	return keys
}

func (x *crossing) line() string {
	n := x.rng.IntN
	switch n(27) {
	case 0, 1:
		return fmt.Sprintf("SADD %s m%d m%d %d", x.key("s"), n(30), n(30), n(100))
	case 2:
		return fmt.Sprintf("ZADD %s %d m%d %d m%d", x.key("z"), n(50), n(30), n(50), n(30))
	case 3:
		return fmt.Sprintf("PFADD %s e%d e%d", x.key("p"), n(100), n(100))
	case 4:
		return fmt.Sprintf("SETRANGE %s %d %s", x.key("g"), n(40), x.one("abc", "zzz", "q"))
	case 5:
		return fmt.Sprintf("RPUSH %s %d %d", x.key("l"), n(50), n(50))
	case 6:
		return fmt.Sprintf("GEOADD %s %d.5 %d.25 m%d", x.key("h"), n(10), n(10), n(30))
	case 7:
		return x.one("SINTER ", "SUNION ", "SDIFF ") + x.bare("s")
	case 8:
		return "SINTERCARD " + x.keys("s") + x.one("", " LIMIT 2", " LIMIT -1")
	case 9, 10:
		return x.one("SINTERSTORE ", "SUNIONSTORE ", "SDIFFSTORE ") + x.key("s") + " " + x.bare("s")
	case 11:
		return x.one("ZINTER ", "ZUNION ") + x.keys("zs") + x.one("", " AGGREGATE MAX", " WITHSCORES")
	case 12:
		return x.one("ZDIFF ", "ZINTERCARD ") + x.keys("z")
	case 13:
		return x.one("ZINTERSTORE ", "ZUNIONSTORE ") + x.key("z") + " " + x.keys("zs") + x.one("", " AGGREGATE MIN", " WEIGHTS 1")
	case 14:
		return "ZDIFFSTORE " + x.key("z") + " " + x.keys("z")
	case 15:
		return fmt.Sprintf("ZRANGESTORE %s %s %d %d", x.key("z"), x.key("z"), n(3), n(9))
	case 16:
		// STOREDIST stores distances, which Redis 7.0 writes with other digits.
		return fmt.Sprintf("GEORADIUS %s 5 5 %d km STORE %s", x.key("h"), 100+n(900), x.key("z"))
	case 17:
		return x.one("PFMERGE "+x.key("p")+" ", "PFCOUNT ") + x.bare("p")
	case 18:
		return x.one("LCS "+x.key("g")+" "+x.key("g"), "BITOP "+x.one("AND", "OR", "XOR")+" "+x.key("g")+" "+x.bare("g"))
	case 19:
		return "SORT " + x.key("l") + x.one(" DESC", " ALPHA", "") + " STORE " + x.key("l")
	case 20:
		return x.one("RENAME ", "RENAMENX ") + x.pair()
	case 21:
		return "SELECT " + x.one("0", "3")
	case 22, 23:
		return x.one("LMOVE "+x.key("l")+" "+x.key("l")+x.one(" LEFT", " right")+x.one(" LEFT", " RIGHT", " UP"), "RPOPLPUSH "+x.key("l")+" "+x.key("l"))
	case 25:
		return fmt.Sprintf("MSETNX %s %d %s %d %s %d", x.key("g"), n(9), x.key("g"), n(9), x.key("g"), n(9)) + x.one("", " odd")
	case 24:
		return fmt.Sprintf("SMOVE %s %s m%d", x.key("s"), x.key("s"), n(30))
	default:
		return "COPY " + x.pair() + x.one("", " DB 0", " DB 3") + x.one("", " REPLACE")
	}
}

// pair returns two different keys for values of one type.
func (x *crossing) pair() string {
	types := x.one("s", "z", "g", "p", "h", "l")
	a, b := x.key(types), x.key(types)
	for a == b {
		b = x.key(types)
	}
	return a + " " + b
}

// unordered are the commands that answer the members of a set, in any order.
func unordered(line string) bool {
	name, _, _ := strings.Cut(line, " ")
	return name == "SINTER" || name == "SUNION" || name == "SDIFF" || name == "SMEMBERS"
}

// answer returns a reply as text that can be compared.
func answer(w *harness.Wire, line string) string {
	text := conversation.Text(w.Do(line))
	if unordered(line) {
		lines := strings.Split(text, "\n")
		for i := range lines {
			if _, member, ok := strings.Cut(lines[i], ") "); ok {
				lines[i] = member
			}
		}
		slices.Sort(lines)
		text = strings.Join(lines, "\n")
	}
	return text
}

// TestCrossSlotBesideRedis: with --cross-slot relaxed commands answer and leave what they do on one redis-server, in
// whatever slots their keys lie.
func TestCrossSlotBesideRedis(t *testing.T) {
	t.Parallel()
	c := startCrossing(t, 3, 1)
	w, redis := harness.DialWire(t, c.Proxy(0).Addr), harness.DialWire(t, redistest.Start(t))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	x := crossing{rng: rand.New(rand.NewPCG(seed, 1))}
	commands := 3000
	if testing.Short() {
		commands = 800
	}
	for i := range commands {
		line := strings.Join(strings.Fields(x.line()), " ")
		if got, want := answer(w, line), answer(redis, line); got != want {
			t.Fatalf("command %d: %s answers\n%s\nand redis-server\n%s", i, line, got, want)
		}
	}
	for _, database := range []string{"0", "3"} {
		for _, conn := range []*harness.Wire{w, redis} {
			conn.Want("SELECT "+database, "OK")
		}
		compareCrossed(t, w, redis)
	}
}

// compareCrossed compares all that the keys hold.
func compareCrossed(t *testing.T, w, redis *harness.Wire) {
	t.Helper()
	w.Want("DBSIZE", answer(redis, "DBSIZE"))
	for _, typ := range "szgphl" {
		for i := range 5 {
			key := fmt.Sprintf("%c%d", typ, i)
			kind := answer(redis, "TYPE "+key)
			w.Want("TYPE "+key, kind)
			w.Want("PTTL "+key, answer(redis, "PTTL "+key))
			reads := map[string]string{"set": "SMEMBERS ", "zset": "ZRANGE ", "string": "GET ", "list": "LRANGE "}[kind]
			if reads == "ZRANGE " || reads == "LRANGE " {
				key += " 0 -1"
			}
			if reads != "" && kind != "string" || typ == 'g' && kind == "string" { // a HyperLogLog may be encoded differently
				if got, want := answer(w, reads+key), answer(redis, reads+key); got != want {
					t.Errorf("%s is\n%s\nand in redis-server\n%s", key, got, want)
				}
			}
		}
	}
}

// TestCrossSlotStrict: without the flag keys of several slots are refused, as in Redis Cluster.
func TestCrossSlotStrict(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 2, 1)
	w := harness.DialWire(t, c.Proxy(0).Addr)
	for _, line := range []string{"SINTER a b", "SUNIONSTORE a b c", "RENAME a b", "COPY a b", "PFMERGE a b", "SMOVE a b m", "LMOVE a b LEFT LEFT", "MSETNX a 1 b 2"} {
		w.Want(line, "(error) CROSSSLOT Keys in request don't hash to the same slot")
	}
}

// TestCrossSlotRenames: a key is renamed between nodes while others add to what it holds, and nodes join: no element is
// lost.
func TestCrossSlotRenames(t *testing.T) {
	t.Parallel()
	c := startCrossing(t, 2, 1)
	const adders, rounds = 4, 300
	var wg, mover sync.WaitGroup
	stop := make(chan struct{})
	names := []string{"ring:1", "ring:2", "ring:3", "ring:4"}
	mover.Go(func() {
		w := harness.DialWire(t, c.Proxy(0).Addr)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			line := fmt.Sprintf("RENAME %s %s:%d", names[i%4], names[i%4], i)
			if got := conversation.Text(w.Do(line)); got != "OK" && got != "(error) ERR no such key" && !strings.HasPrefix(got, "(error) TRYAGAIN") {
				t.Errorf("%s answers %s", line, got)
			}
		}
	})
	for a := range adders {
		wg.Go(func() {
			w := harness.DialWire(t, c.Proxy(0).Addr)
			for i := range rounds {
				line := fmt.Sprintf("SADD %s %d-%d", names[i%4], a, i)
				for {
					if got := conversation.Text(w.Do(line)); got == "(integer) 1" {
						break
					} else if !strings.HasPrefix(got, "(error) TRYAGAIN") {
						t.Errorf("%s answers %s", line, got)
						break
					}
				}
			}
		})
	}
	joins := harness.NewMember(t, "node", "n9")
	joins.Flags = c.Node(0).Flags
	joins.Start()
	wg.Wait()
	close(stop)
	mover.Wait()
	w := harness.DialWire(t, c.Proxy(0).Addr)
	found := make(map[string]bool)
	for _, key := range strings.Split(conversation.Text(w.Do("KEYS ring:*")), "\n") {
		_, key, _ = strings.Cut(key, ") ")
		for _, m := range strings.Split(conversation.Text(w.Do("SMEMBERS "+strings.Trim(key, `"`))), "\n") {
			_, m, _ = strings.Cut(m, ") ")
			found[m] = true
		}
	}
	if len(found) != adders*rounds {
		t.Errorf("%d elements are there, want %d", len(found), adders*rounds)
	}
}

// TestCrossSlotOwnerStopped: while the owner of a source stands still, an answer comes within some seconds.
func TestCrossSlotOwnerStopped(t *testing.T) {
	t.Parallel()
	c := startCrossing(t, 3, 1)
	w := harness.DialWire(t, c.Proxy(0).Addr)
	for i := range 30 {
		w.Want(fmt.Sprintf("SADD s%d %d", i, i), "(integer) 1")
	}
	w.Want("WAIT 1 10000", "(integer) 1") // or the next owner may not have all of them
	c.Node(2).Stop()
	begun := time.Now()
	for i := range 30 {
		got := conversation.Text(w.Do(fmt.Sprintf("SUNIONSTORE d%d s%d s%d s%d", i, i, (i+7)%30, (i+13)%30)))
		if took := time.Since(begun); took > 15*time.Second {
			t.Errorf("SUNIONSTORE answers %s after %v", got, took)
		}
		if got != "(integer) 3" && !strings.HasPrefix(got, "(error) TRYAGAIN") && !strings.HasSuffix(got, "outcome unknown") {
			t.Errorf("SUNIONSTORE answers %s", got)
		}
		begun = time.Now()
	}
	c.Node(2).Cont()
}

// TestCrossSlotEvents: keyspace notifications are those of one redis-server; nothing is told of what was lent.
func TestCrossSlotEvents(t *testing.T) {
	t.Parallel()
	c := startCrossing(t, 3, 1)
	addrs := []string{c.Proxy(0).Addr, redistest.Start(t)}
	var told [2][]string
	for i, addr := range addrs {
		w := harness.DialWire(t, addr)
		for _, line := range []string{"SADD a x y", "SADD b y z", "SADD e old", "PFADD p one", "PFADD q two", "SET g one", "SET h two", "RPUSH q 1 2", "RPUSH r 3"} {
			w.Do(line)
		}
		w.Want("CONFIG SET notify-keyspace-events KEA", "OK")
		all := subscribe(t, addr, "PSUBSCRIBE", "__keyevent@0__:*")
		for _, line := range []string{
			"SUNIONSTORE d a b", "SINTERSTORE e a none", "SINTERSTORE none2 a none", "PFMERGE p q", "BITOP AND i g h", "COPY a f", "COPY b f REPLACE",
			"RENAME f j", "RENAMENX j k", "RENAMENX none l", "ZUNIONSTORE m 2 a b", "ZRANGESTORE n m 0 0", "SINTER a b", "LCS g h", "MSETNX a 1 new1 2", "MSETNX new1 1 new2 2 new1 3", "SMOVE a b x", "SMOVE a o y", "SMOVE b o none",
			"LMOVE q r LEFT RIGHT", "RPOPLPUSH q s", "RPOPLPUSH q s", "LMOVE r g LEFT LEFT", "SET last v",
		} {
			w.Do(line)
		}
		for told[i] == nil || told[i][len(told[i])-1] != "__keyevent@0__:set last" {
			channel, message := event(all.Next())
			told[i] = append(told[i], channel+" "+message)
		}
		slices.Sort(told[i]) // RENAME is two commands at two nodes
	}
	if !slices.Equal(told[0], told[1]) {
		t.Errorf("what is told is\n%s\nand by redis-server\n%s", strings.Join(told[0], "\n"), strings.Join(told[1], "\n"))
	}
}

// TestCrossSlotTracking: a client that caches is told behind the reply that what it has read may have changed, because
// nobody marks keys that are lent.
func TestCrossSlotTracking(t *testing.T) {
	t.Parallel()
	c := startCrossing(t, 3, 1)
	client := newCaching(t, c.Proxy(0).Addr, "")
	client.w.Want("SADD a x", "(integer) 1")
	client.w.Want("SADD b x", "(integer) 1")
	client.copies["a"], client.copies["b"] = "kept", "kept"
	client.w.Send([]byte("SINTER a b\r\nPING\r\n"))
	for range 2 {
		if _, err := client.next(); err != nil {
			t.Fatal(err)
		}
	}
	if client.told != 2 || len(client.copies) > 0 {
		t.Errorf("it is told %d times, and has %v", client.told, client.copies)
	}
}
