package differential

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestOracle sends the same random pipelines to a proxy with three nodes and to a real
// redis-server, over several connections at once and in both protocol versions. Other clients close
// their connections in the middle of requests meanwhile. Every reply must be the same, byte for
// byte.
func TestOracle(t *testing.T) {
	t.Parallel()
	o := startOracle(t)
	stop := make(chan struct{})
	var rude sync.WaitGroup
	rude.Go(func() { hangUp(o.proxy, rand.New(rand.NewPCG(o.seed, 0)), stop) })
	o.compare(t, 25, func(i uint64, rng *rand.Rand) func() [][][]byte {
		return generator{rng, fmt.Sprintf("c%d:", i), new(int)}.batch
	})
	close(stop)
	rude.Wait()
}

// oracle is a proxy with three nodes, and the real server that gives the right replies.
type oracle struct {
	proxy, redis string
	seed         uint64
}

func startOracle(t *testing.T) *oracle {
	servers := startServers(t)
	o := &oracle{redis: servers[0].addr, proxy: servers[2].addr, seed: uint64(time.Now().UnixNano())}
	t.Logf("seed %d", o.seed)
	return o
}

// compare sends pipelines over several connections to each server, which change between the two
// protocol versions. generate makes the pipelines of the i-th connection.
func (o *oracle) compare(t *testing.T, batches int, generate func(i uint64, rng *rand.Rand) func() [][][]byte) {
	var all sync.WaitGroup
	for i := range uint64(4) {
		ours, theirs := harness.DialWire(t, o.proxy), harness.DialWire(t, o.redis)
		if i%2 == 1 {
			ours.Do("HELLO 3")
			theirs.Do("HELLO 3")
		}
		next := generate(i, rand.New(rand.NewPCG(o.seed, i+1)))
		all.Go(func() {
			for range batches {
				if err := compareBatch(next(), ours, theirs); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// compareBatch sends the requests as one pipeline to both and compares the replies.
func compareBatch(batch [][][]byte, ours, theirs *harness.Wire) error {
	var pipeline []byte
	for _, args := range batch {
		pipeline = resp.AppendRequest(pipeline, args...)
	}
	for _, w := range []*harness.Wire{ours, theirs} {
		_ = w.Conn.SetWriteDeadline(time.Now().Add(harness.ReplyTimeout))
		go func() { _, _ = w.Conn.Write(pipeline) }() // an error shows in the replies
	}
	for i, args := range batch {
		got, err := ours.Read()
		if err != nil {
			return fmt.Errorf("request %d, %.200q: %w", i, args, err)
		}
		want, err := theirs.Read()
		if err != nil {
			return fmt.Errorf("redis-server: %w", err)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("request %d of a pipeline, %.200q, answers %.200q, want %.200q", i, args, got, want)
		}
	}
	return nil
}

// generator generates requests on few keys, so that they often meet.
type generator struct {
	*rand.Rand
	prefix   string
	expiries *int // generated so far
}

// seconds returns a time of expiry that is far from all others: which one is greater must not
// depend on the millisecond in which a server executes the command.
func (g generator) seconds() string {
	*g.expiries++
	return strconv.Itoa(1000 + 100*(*g.expiries*7919%100_003))
}

func (g generator) batch() (batch [][][]byte) {
	for range 1 + g.IntN(200) {
		var args [][]byte
		for _, word := range g.request() {
			args = append(args, []byte(word))
		}
		batch = append(batch, args)
	}
	return batch
}

func (g generator) request() []string {
	k := g.key()
	n := strconv.Itoa(g.IntN(40) - 10)
	switch g.IntN(26) {
	case 24:
		return []string{"SELECT", g.database()}
	case 25:
		return []string{"MOVE", k, g.database()}
	case 0, 1, 2:
		return []string{"GET", k}
	case 3, 4:
		return []string{"SET", k, g.value()}
	case 5:
		return append([]string{"SET", k, g.value()},
			[][]string{{"NX"}, {"XX"}, {"GET"}, {"KEEPTTL"}, {"EX", "1000"}, {"NX", "XX"}}[g.IntN(6)]...)
	case 6:
		return []string{"APPEND", k, g.value()}
	case 7:
		return []string{"GETRANGE", k, n, strconv.Itoa(g.IntN(100_000))}
	case 8:
		return []string{"SETRANGE", k, n, g.value()}
	case 9:
		return []string{[]string{"INCR", "DECR", "STRLEN", "TYPE", "GETDEL", "PERSIST"}[g.IntN(6)], k}
	case 10:
		return []string{"INCRBY", k, n}
	case 11:
		return []string{"INCRBYFLOAT", k, n + ".5"}
	case 12:
		return []string{"GETSET", k, n}
	case 13:
		return []string{"SETNX", k, g.value()}
	case 14:
		return []string{"EXPIRE", k, g.seconds(), []string{"NX", "XX", "GT", "LT"}[g.IntN(4)]}
	case 15, 16:
		return append([]string{"MGET"}, g.keys()...)
	case 17, 18:
		request := []string{"MSET"}
		for _, k := range g.keys() {
			request = append(request, k, g.value())
		}
		return request
	case 19:
		return append([]string{[]string{"DEL", "UNLINK", "EXISTS", "TOUCH"}[g.IntN(4)]}, g.keys()...)
	case 20:
		return []string{"MSETNX", "{" + k + "}a", n, "{" + k + "}b", n}
	case 21:
		return []string{"ECHO", g.value()}
	case 22:
		return []string{"PING"}
	default:
		return [][]string{{"GET"}, {"NOSUCH", k}, {"SET", k}, {"MSET", k, n, k}, {"EXPIRE", k, "soon"},
			{"SELECT", "x"}}[g.IntN(6)]
	}
}

// database is the number of a database: of one of few, so that keys of one name meet in them.
func (g generator) database() string {
	if g.IntN(8) == 0 {
		return []string{"15", "16", "-1", ""}[g.IntN(4)]
	}
	return strconv.Itoa(g.IntN(3))
}

func (g generator) key() string { return g.prefix + strconv.Itoa(g.IntN(12)) }

func (g generator) keys() (keys []string) {
	for range 1 + g.IntN(8) {
		keys = append(keys, g.key())
	}
	return keys
}

// value returns a value that is mostly small, often a number, and sometimes large enough for the
// lanes of large values.
func (g generator) value() string {
	switch n := g.IntN(40); {
	case n == 0:
		return strings.Repeat("large", 10_000+g.IntN(20_000))
	case n < 5:
		return strings.Repeat("m", g.IntN(5000))
	case n < 20:
		return strconv.Itoa(g.IntN(1000))
	default:
		return strings.Repeat("\r\n", g.IntN(10))
	}
}

// hangUp connects, sends part of a pipeline, and closes or resets the connection.
func hangUp(addr string, r *rand.Rand, stop chan struct{}) {
	g := generator{r, "rude:", new(int)}
	for {
		select {
		case <-stop:
			return
		default:
		}
		var pipeline []byte
		for _, args := range g.batch() {
			pipeline = resp.AppendRequest(pipeline, args...)
		}
		harness.SendSome(addr, pipeline[:r.IntN(len(pipeline))], r.IntN(2) == 0)
	}
}

// TestSlowReader checks a client that requests much and reads nothing: the memory for its replies
// is bounded, other clients do not notice it, and when it finally reads, all replies arrive in
// order.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	harness.SkipUnderRace(t)
	c := harness.StartCluster(t, 3, 1)
	proxy := c.Proxy(0)
	const keys, rounds = 40, 15 // of 1 MB: 600 MB of replies
	w := harness.DialWire(t, proxy.Addr)
	var asks []byte
	for i := range keys {
		w.Send(resp.AppendRequest(nil, []byte("SET"), fmt.Appendf(nil, "big%d", i), bigValue(i)))
		if got := conversation.Text(w.Next()); got != "OK" {
			t.Fatal(got)
		}
		asks = resp.AppendRequest(asks, []byte("GET"), fmt.Appendf(nil, "big%d", i))
	}
	w.Send(bytes.Repeat(asks, rounds))

	other := harness.DialWire(t, proxy.Addr)
	begin, slowest := time.Now(), time.Duration(0)
	for i := 0; time.Since(begin) < time.Second; i++ {
		sent := time.Now()
		other.Want(fmt.Sprintf("SET other%d %d", i, i), "OK")
		other.Want(fmt.Sprintf("GET other%d", i), fmt.Sprintf("%q", strconv.Itoa(i)))
		slowest = max(slowest, time.Since(sent))
	}
	if slowest > time.Second {
		t.Errorf("another client waited %v for a reply", slowest)
	}
	for _, m := range c.Members {
		if size := harness.Resident(t, m); size > 300<<20 {
			t.Errorf("%s takes %d MB for a client that does not read", m.ID, size>>20)
		}
	}
	for i := range keys * rounds {
		got, ok := resp.DecodeBulk(w.Next())
		if !ok || !bytes.Equal(got, bigValue(i%keys)) {
			t.Fatalf("reply %d is not that of its request: %.100q", i, got)
		}
	}
	w.Want("PING", "PONG")
}

func bigValue(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%09d ", i), 100_000) }
