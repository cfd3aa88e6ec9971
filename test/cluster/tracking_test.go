package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// cacheKeys are the keys that caching clients read.
const cacheKeys = 40

func cacheKey(n int) string { return fmt.Sprint("cached", n) }

// caching is a client that keeps what it has read until it is told that it has changed.
type caching struct {
	w      *harness.Wire
	mode   string // options of CLIENT TRACKING
	copies map[string]string
	told   int // invalidations
	kept   int // replies that it has kept
}

func newCaching(t *testing.T, addr, mode string) *caching {
	t.Helper()
	c := &caching{w: harness.DialWire(t, addr), mode: mode, copies: make(map[string]string)}
	c.w.Do("HELLO 3")
	c.w.Want("CLIENT TRACKING ON "+mode, "OK")
	return c
}

// next returns the next reply, behind all invalidations that come before it.
func (c *caching) next() (lines []string, err error) {
	for {
		frame, err := c.w.Read()
		if err != nil {
			return nil, err
		}
		lines = strings.Split(string(frame), "\r\n")
		if lines[0] != ">2" || lines[2] != "invalidate" {
			return lines, nil
		}
		c.told++
		if lines[3] == "_" {
			clear(c.copies)
		} else {
			delete(c.copies, lines[5])
		}
	}
}

// keep keeps a reply for the keys, whose values begin at lines[at].
func (c *caching) keep(lines []string, at int, keys ...string) {
	for _, key := range keys {
		switch {
		case at >= len(lines) || lines[at] == "" || lines[at][0] == '-':
			return // an error: nothing was read
		case lines[at] == "_":
			c.copies[key] = ""
			at++
		default:
			c.copies[key] = lines[at+1]
			at += 2
		}
		c.kept++
	}
}

// read reads some keys of which there is no copy in one go, several commands in a pipeline.
func (c *caching) read(dice *rand.Rand) error {
	var lacks []string
	for n := range cacheKeys {
		if _, has := c.copies[cacheKey(n)]; !has {
			lacks = append(lacks, cacheKey(n))
		}
	}
	if len(lacks) == 0 {
		return c.ping()
	}
	lacking := func() string { return lacks[dice.IntN(len(lacks))] }
	var request []byte
	type reply struct {
		skip, at int // replies before it, and lines of it before the first value
		keys     []string
	}
	var replies []reply
	for range 1 + dice.IntN(6) {
		a, b, d := lacking(), lacking(), lacking()
		switch {
		case c.mode == "OPTIN":
			request = fmt.Appendf(request, "CLIENT CACHING YES\r\nMULTI\r\nPTTL %s\r\nGET %[1]s\r\nEXEC\r\n", a)
			replies = append(replies, reply{4, 2, []string{a}})
		case dice.IntN(3) == 0:
			request = fmt.Appendf(request, "MGET %s %s %s\r\n", a, b, d)
			replies = append(replies, reply{0, 1, []string{a, b, d}})
		default:
			request = fmt.Appendf(request, "GET %s\r\n", a)
			replies = append(replies, reply{0, 0, []string{a}})
		}
	}
	if err := c.w.Write(request); err != nil {
		return err
	}
	for _, r := range replies {
		for range r.skip {
			if _, err := c.next(); err != nil {
				return err
			}
		}
		lines, err := c.next()
		if err != nil {
			return err
		}
		if len(r.keys) > 1 || c.mode == "OPTIN" {
			if !strings.HasPrefix(lines[0], "*") {
				continue
			}
		}
		c.keep(lines, r.at, r.keys...)
	}
	return nil
}

// ping takes the invalidations that have come.
func (c *caching) ping() error {
	if err := c.w.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	_, err := c.next()
	return err
}

// stale returns a copy that is not what the key holds, "" if there is none.
func (c *caching) stale(truth map[string]string) string {
	for key, value := range c.copies {
		if truth[key] != value {
			return fmt.Sprintf("%s is %q, and the client %q has %q", key, truth[key], c.mode, value)
		}
	}
	return ""
}

// settle waits until no copy is stale, and returns one that is when patience ends.
func (c *caching) settle(truth map[string]string) error {
	for deadline := time.Now().Add(harness.ReadyTimeout); ; {
		if err := c.ping(); err != nil {
			return err
		}
		stale := c.stale(truth)
		if stale == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New(stale)
		}
	}
}

// cachingRound has clients read and others write while meanwhile runs, and until each of them has had so many
// turns behind that. Then no copy may stay that is stale.
func cachingRound(t *testing.T, writers []*harness.Wire, clients []*caching, turns int64, meanwhile func()) {
	t.Helper()
	end := make(chan struct{})
	var done sync.WaitGroup
	errs := make(chan error, len(writers)+len(clients))
	taken := make([]atomic.Int64, len(writers)+len(clients)) // turns, by each
	run := func(i int, turn func(dice *rand.Rand) error) {
		dice := rand.New(rand.NewPCG(rand.Uint64(), 1))
		done.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				if err := turn(dice); err != nil {
					errs <- err
					return
				}
				taken[i].Add(1)
			}
		})
	}
	for i, w := range writers {
		run(i, func(dice *rand.Rand) error {
			key := cacheKey(dice.IntN(cacheKeys))
			line := []string{"INCR %s", "DEL %s", "SET %s 7 PX 5", "INCRBY %s 100"}[dice.IntN(4)]
			if err := w.Write(fmt.Appendf(nil, line+"\r\n", key)); err != nil {
				return err
			}
			_, err := w.Read()
			return err
		})
	}
	for i, c := range clients {
		run(len(writers)+i, c.read)
	}
	meanwhile()
	begun := make([]int64, len(taken))
	for i := range taken {
		begun[i] = taken[i].Load()
	}
	harness.Eventually(t, harness.ReadyTimeout, "all have had their turns", func() bool {
		late := false
		for i := range taken {
			late = late || taken[i].Load() < begun[i]+turns
		}
		return !late || len(errs) > 0
	})
	close(end)
	done.Wait()
	select {
	case err := <-errs:
		t.Fatal(err)
	default:
	}
	settleAll(t, writers[0], clients)
}

// settleAll waits until no copy is stale.
func settleAll(t *testing.T, w *harness.Wire, clients []*caching) {
	t.Helper()
	truth := make(map[string]string)
	for n := range cacheKeys { // what expires is gone for good
		harness.Eventually(t, harness.ReadyTimeout, "a key has no time to live", func() bool {
			return string(w.Do("PTTL "+cacheKey(n))) < ":0" // -1 or -2
		})
		if lines := strings.Split(string(w.Do("GET "+cacheKey(n))), "\r\n"); len(lines) > 2 {
			truth[cacheKey(n)] = lines[1]
		}
	}
	for _, c := range clients {
		if err := c.settle(truth); err != nil {
			t.Fatalf("a copy stays: %v", err)
		}
	}
}

// TestTrackedCopies: no client that tracks keeps a copy that is stale, whatever mode it uses, through two
// proxies and directly.
func TestTrackedCopies(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 2)
	writers, clients := cachingClients(t, c)
	rounds := 20
	if testing.Short() {
		rounds = 6
	}
	for range rounds {
		cachingRound(t, writers, clients, 50, func() {})
	}
	for _, c := range clients {
		if c.told == 0 || c.kept == 0 {
			t.Errorf("the client %q has kept %d replies and was told %d times", c.mode, c.kept, c.told)
		}
	}
}

// cachingClients returns clients at both proxies.
func cachingClients(t *testing.T, c *harness.Cluster) (writers []*harness.Wire, clients []*caching) {
	for i := range 2 {
		addr := c.Proxy(i).Addr
		harness.AwaitLevel(t, addr)
		writers = append(writers, harness.DialWire(t, addr), harness.DialWire(t, addr))
		for _, mode := range []string{"", "OPTIN", "OPTOUT", "BCAST PREFIX cached", "NOLOOP"} {
			clients = append(clients, newCaching(t, addr, mode))
		}
	}
	return writers, clients
}

// TestTrackedCopiesWhileNodesComeAndGo: nor do they when partitions move, and when a node is killed.
func TestTrackedCopiesWhileNodesComeAndGo(t *testing.T) {
	t.Parallel()
	// With a second copy the node that has lost a partition would see the changes as its follower.
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 3, Proxies: 2, NodeFlags: []string{"--copies", "1"}})
	writers, clients := cachingClients(t, c)
	for n := 0; n < cacheKeys; n += 2 { // the others are not there, so that no copy of them is dropped either
		writers[0].Do("SET " + cacheKey(n) + " 1")
	}
	n4 := harness.NewMember(t, "node", "n4")
	n4.Flags = c.Node(0).Flags
	// Once while nobody else writes, so that nothing but the move can tell of the keys.
	for _, client := range clients {
		for len(client.copies) < cacheKeys {
			if err := client.read(rand.New(rand.NewPCG(1, 2))); err != nil {
				t.Fatal(err)
			}
		}
	}
	n4.Start()
	members := c.Members
	c.Members = append(slices.Clone(members), n4)
	harness.Eventually(t, harness.ReadyTimeout, "the new node serves some of the keys", func() bool {
		return string(harness.DialWire(t, n4.Addr).Do("DBSIZE")) != ":0\r\n"
	})
	c.Converge(harness.ReadyTimeout)
	c.Members = members
	for n := range cacheKeys {
		writers[0].Do("INCR " + cacheKey(n))
	}
	settleAll(t, writers[0], clients)
	turns, rounds := int64(200), 3
	if testing.Short() {
		turns, rounds = 50, 1
	}
	for range rounds {
		cachingRound(t, writers, clients, turns, func() { n4.Term(30 * time.Second) })
		cachingRound(t, writers, clients, turns, n4.Start)
		cachingRound(t, writers, clients, turns, func() {})
	}
	c.Members = append(slices.Clone(members), n4)
	cachingRound(t, writers, clients, turns, func() {
		c.Node(2).Kill()
		c.Converge(harness.ReadyTimeout)
	})
	cachingRound(t, writers, clients, turns, func() {})
}
