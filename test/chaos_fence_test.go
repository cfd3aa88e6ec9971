package test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// TestChaosFence: what a frozen node finds in its sockets when it goes on was sent
// in a time that is over; other nodes have taken newer writes since. It must answer
// none of it, neither to clients that wait since then nor to new ones.
func TestChaosFence(t *testing.T) {
	x := startChaos(t)
	victim := x.c.node(1)
	late := x.sendLate(victim, 8)
	cluster := x.startClusterClients(4)

	x.during("SIGSTOP "+victim.id, victim, func() {
		victim.stop()
		late.send()
	})
	late.overwrite()
	x.during("SIGCONT "+victim.id, victim, func() {
		late.sights = late.lookAll()
		victim.cont()
	})
	late.judge()
	cluster.finish()
	x.finish()
}

// TestChaosResumeAtDeath: a frozen node goes on when the others have given it up and
// no table says so yet. Whom it asks still names the old one as current.
func TestChaosResumeAtDeath(t *testing.T) {
	if testing.Short() {
		t.Skip("it hunts for a moment of milliseconds: not beside the race detector")
	}
	x := startChaos(t)
	rng := rand.New(rand.NewPCG(x.seed, 0))
	for i := range 3 * *chaosRounds {
		victim := x.c.node(i % 3)
		x.during("SIGSTOP until death of "+victim.id, victim, func() {
			victim.stop()
			x.awaitDeath(victim)
			sleepUpTo(150*time.Millisecond, rng) // for which the coordinator waits for more changes
			victim.cont()
		})
		if x.failedAlready() {
			break
		}
	}
	x.finish()
}

// awaitDeath waits until the node that issues the next table takes another for dead.
func (x *chaos) awaitDeath(victim *member) {
	x.t.Helper()
	issuer := x.coordinator(victim.id)
	eventually(x.t, epochTime, victim.id+" is declared dead", func() bool {
		s, err := issuer.status()
		alive := err != nil
		for _, p := range s.Cluster.Peers {
			alive = alive || p.ID == victim.id
		}
		return !alive
	})
}

// lateClients send their commands to a node that does not run, and read the replies
// when it does again.
type lateClients struct {
	x       *chaos
	victim  *member
	writer  *session // through a proxy
	clients []*session
	keys    []*history
	sights  map[*history]sight // when the node went on
}

// sendLate connects clients to a node, and has it store the first values.
func (x *chaos) sendLate(victim *member, clients int) *lateClients {
	l := &lateClients{x: x, victim: victim, writer: x.newSession(x.c.proxy(0), "writer of late keys")}
	for i := 0; len(l.keys) < 50; i++ {
		if key := fmt.Sprintf("late:%d", i); staysAt(victim.id, key) {
			l.keys = append(l.keys, newHistory(key))
		}
	}
	l.overwrite()
	for i := range clients {
		l.clients = append(l.clients, x.newSession(victim, fmt.Sprintf("late client %d", i)))
	}
	return l
}

// overwrite stores the next values, where the keys are served now.
func (l *lateClients) overwrite() {
	for _, h := range l.keys {
		l.writer.set(h)
	}
	l.writer.exchange()
}

// send has every client send a read and a write of every key, without waiting for
// replies. The writes belong to no history: none may be executed.
func (l *lateClients) send() {
	for _, c := range l.clients {
		for _, h := range l.keys {
			c.add(func(reply []byte) { l.judgeRead(c, h, reply) }, "GET", h.key)
			c.add(func(reply []byte) {
				if !isRedirect(reply) {
					l.x.violate("%s: a write to %s is answered %.80q long after other nodes took over", c.name, h.key, reply)
				}
			}, "SET", h.key, "written too late")
		}
		if err := c.link.send(c.out); err != nil {
			l.x.violate("%s: cannot send: %v", c.name, err)
		}
	}
}

func (l *lateClients) lookAll() map[*history]sight {
	all := map[*history]sight{}
	for _, h := range l.keys {
		all[h] = h.look()
	}
	return all
}

func (l *lateClients) judgeRead(c *session, h *history, reply []byte) {
	if !isRedirect(reply) {
		c.judgeRead(h, false, l.sights[h], reply)
	}
}

// judge reads the replies.
func (l *lateClients) judge() {
	for _, c := range l.clients {
		for i, judge := range c.judges {
			reply, err := c.link.receive(time.Now().Add(answerTime))
			if err != nil {
				l.x.violate("%s: no reply to command %d: %v", c.name, i, hung(err))
				break
			}
			judge(reply)
		}
	}
}

// isRedirect tells whether a node says that it does not serve the key, or not yet.
func isRedirect(reply []byte) bool {
	code, _, _ := strings.Cut(string(reply), " ")
	return code == "-MOVED" || code == "-TRYAGAIN" || code == "-CLUSTERDOWN"
}

// clusterClients use the nodes without a proxy, by go-redis's cluster client.
type clusterClients struct {
	x      *chaos
	client *redis.ClusterClient
	keys   []*history
	stop   chan struct{}
	done   sync.WaitGroup

	mu     sync.Mutex
	failed int
	worked map[string]int // by key
}

func (x *chaos) startClusterClients(n int) *clusterClients {
	cc := &clusterClients{x: x, stop: make(chan struct{}), worked: map[string]int{}}
	cc.client = redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:       []string{x.c.node(0).addr, x.c.node(1).addr, x.c.node(2).addr},
		ReadTimeout: 500 * time.Millisecond, DialTimeout: 500 * time.Millisecond, MaxRedirects: 8,
	})
	for i := range n {
		var keys []*history
		for j := range 10 {
			keys = append(keys, newHistory(fmt.Sprintf("direct:%d:%d", i, j)))
		}
		cc.keys = append(cc.keys, keys...)
		cc.done.Go(func() { cc.run(keys) })
	}
	return cc
}

func (cc *clusterClients) run(keys []*history) {
	for i := 0; ; i++ {
		select {
		case <-cc.stop:
			return
		default:
		}
		h := keys[i/2%len(keys)]
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		var err error
		if i%2 == 0 {
			err = cc.set(ctx, h)
		} else {
			err = cc.get(ctx, h)
		}
		if ctx.Err() != nil {
			cc.x.violate("a cluster client waited %v for %s", answerTime, h.key)
		}
		cancel()
		cc.count(h, err)
		time.Sleep(time.Millisecond)
	}
}

func (cc *clusterClients) set(ctx context.Context, h *history) error {
	seq := h.write(time.Now())
	err := cc.client.Set(ctx, h.key, string(appendValue(nil, h.key, seq)), 0).Err()
	if err != nil { // it has tried several times, and knows of the last one only
		h.answered(seq, unknown)
		return err
	}
	h.answered(seq, executed)
	return nil
}

func (cc *clusterClients) get(ctx context.Context, h *history) error {
	seen := h.look()
	value, err := cc.client.Get(ctx, h.key).Bytes()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	lost, wrong := h.read(seen, value, time.Now())
	cc.x.judged("a cluster client", lost, wrong)
	return nil
}

func (cc *clusterClients) count(h *history, err error) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if err != nil {
		cc.failed++
		return
	}
	cc.worked[h.key]++
}

// worksOn tells whether every key was used twice since the counts were taken.
func (cc *clusterClients) worksOn(before map[string]int) bool {
	now := cc.counts()
	for _, h := range cc.keys {
		if now[h.key] < before[h.key]+2 {
			return false
		}
	}
	return true
}

func (cc *clusterClients) counts() map[string]int {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	return maps.Clone(cc.worked)
}

// finish waits until the clients have found all their keys again, and ends them.
func (cc *clusterClients) finish() {
	cc.x.t.Helper()
	begin, before := time.Now(), cc.counts()
	eventually(cc.x.t, answerTime, "cluster clients find their keys", func() bool { return cc.worksOn(before) }, cc.x.shown)
	back := time.Since(begin)
	close(cc.stop)
	cc.done.Wait()
	cc.client.Close()
	total := 0
	for _, n := range cc.worked {
		total += n
	}
	cc.x.t.Logf("cluster clients at the nodes: %d commands, %d failed; all keys used again within %d ms", total, cc.failed, back.Milliseconds())
}

// direct reads everything at one node, as a cluster client does that has an old map.
type direct struct {
	x    *chaos
	node *member
}

// run connects again whenever the node has broken the connection.
func (d *direct) run() {
	for !d.x.stopped() {
		l, err := dialLink(d.node.addr)
		if err == nil {
			d.read(l)
			l.conn.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (d *direct) read(l *link) {
	for !d.x.stopped() && d.x.unpaused(func() bool { return d.readOnce(l) }) {
		time.Sleep(max(2*time.Millisecond, d.x.rest))
	}
}

func (d *direct) readOnce(l *link) bool {
	var out []byte
	seen := make([]sight, len(d.x.keys))
	for i, h := range d.x.keys {
		seen[i] = h.look()
		out = resp.AppendRequest(out, []byte("GET"), []byte(h.key))
	}
	if l.send(out) != nil {
		return false
	}
	s := &session{x: d.x, name: "reader at " + d.node.id}
	for i, h := range d.x.keys {
		reply, err := l.receive(time.Now().Add(answerTime))
		if err != nil {
			return false
		}
		if !isRedirect(reply) {
			s.judgeRead(h, false, seen[i], reply)
		}
	}
	return true
}
