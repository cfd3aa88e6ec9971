package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestChaosFence freezes a node until it has been replaced. When the node continues, its sockets
// hold old commands, and other nodes have accepted newer writes since. It must execute none of
// these commands, neither for clients that have waited since then nor for new ones.
func TestChaosFence(t *testing.T) {
	x := startRig(t)
	victim := x.C.Node(1)
	late := x.sendLate(victim, 8)
	cluster := x.startClusterClients(4)

	x.during("SIGSTOP "+victim.ID, victim, func() {
		x.Freeze(victim)
		late.send()
	})
	late.overwrite()
	x.during("SIGCONT "+victim.ID, victim, func() {
		late.sights = late.lookAll()
		victim.Cont()
	})
	late.judge()
	cluster.finish()
	x.Finish()
}

// TestChaosResumeAtDeath lets a frozen node continue when the others take it for dead and have no
// table without it yet: any member that it asks still names the old table as current.
func TestChaosResumeAtDeath(t *testing.T) {
	if testing.Short() {
		t.Skip("it hunts for a moment of milliseconds: not beside the race detector")
	}
	x := startRig(t)
	rng := rand.New(rand.NewPCG(x.Seed, 0))
	for i := range 3 * *Rounds {
		victim := x.C.Node(i % 3)
		x.during("SIGSTOP until death of "+victim.ID, victim, func() {
			x.Freeze(victim)
			x.awaitDeath(victim)
			// The coordinator waits this long for more changes.
			harness.SleepUpTo(150*time.Millisecond, rng)
			victim.Cont()
		})
		if x.FailedAlready() {
			break
		}
	}
	x.Finish()
}

// awaitDeath waits until the node that issues the next table takes another for dead.
func (x *Rig) awaitDeath(victim *harness.Member) {
	x.T.Helper()
	issuer := x.Coordinator(victim.ID)
	x.eventually(epochTime, victim.ID+" is declared dead", func() bool {
		s, err := issuer.Status()
		alive := err != nil
		for _, p := range s.Cluster.Peers {
			alive = alive || p.ID == victim.ID
		}
		return !alive
	})
}

// lateClients send commands to a frozen node, and read the replies when it runs again.
type lateClients struct {
	x       *Rig
	victim  *harness.Member
	writer  *Session // through a proxy
	clients []*Session
	keys    []*History
	sights  map[*History]sight // what was known when the node continued
}

// sendLate connects clients to a node, and stores the first values there.
func (x *Rig) sendLate(victim *harness.Member, clients int) *lateClients {
	l := &lateClients{x: x, victim: victim, writer: x.NewSession(x.C.Proxy(0), "writer of late keys")}
	for i := 0; len(l.keys) < 50; i++ {
		if key := fmt.Sprintf("late:%d", i); staysAt(victim.ID, key) {
			l.keys = append(l.keys, NewHistory(key))
		}
	}
	l.overwrite()
	for i := range clients {
		l.clients = append(l.clients, x.NewSession(victim, fmt.Sprintf("late client %d", i)))
	}
	return l
}

// overwrite stores the next values at the present owners.
func (l *lateClients) overwrite() {
	for _, h := range l.keys {
		l.writer.set(h)
	}
	l.writer.Exchange()
}

// send lets every client send a read and a write of every key without waiting for replies. The
// histories do not know these writes: none may be executed.
func (l *lateClients) send() {
	for _, c := range l.clients {
		for _, h := range l.keys {
			c.Add(func(reply []byte) { l.judgeRead(c, h, reply) }, "GET", h.Key)
			c.Add(func(reply []byte) {
				if !isRedirect(reply) {
					l.x.Violate("%s: a write to %s is answered %.80q long after other nodes took over", c.name, h.Key, reply)
				}
			}, "SET", h.Key, "written too late")
		}
		if err := c.Link.Send(c.out); err != nil {
			l.x.Violate("%s: cannot send: %v", c.name, err)
		}
	}
}

func (l *lateClients) lookAll() map[*History]sight {
	all := map[*History]sight{}
	for _, h := range l.keys {
		all[h] = h.Look()
	}
	return all
}

func (l *lateClients) judgeRead(c *Session, h *History, reply []byte) {
	if !isRedirect(reply) {
		c.judgeRead(h, false, l.sights[h], reply)
	}
}

// judge reads and judges the replies.
func (l *lateClients) judge() {
	for _, c := range l.clients {
		for i, judge := range c.Judges {
			reply, err := c.receive(time.Now())
			if err != nil {
				l.x.Violate("%s: no reply to command %d: %v", c.name, i, hung(err))
				break
			}
			judge(reply)
		}
	}
}

// clusterClients use the nodes without a proxy, by go-redis's cluster client.
type clusterClients struct {
	x      *Rig
	client *redis.ClusterClient
	keys   []*History
	stop   chan struct{}
	done   sync.WaitGroup

	mu     sync.Mutex
	failed int
	worked map[string]int // by key
}

func (x *Rig) startClusterClients(n int) *clusterClients {
	cc := &clusterClients{x: x, stop: make(chan struct{}), worked: map[string]int{}}
	cc.client = redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:       []string{x.C.Node(0).Addr, x.C.Node(1).Addr, x.C.Node(2).Addr},
		ReadTimeout: 500 * time.Millisecond, DialTimeout: 500 * time.Millisecond, MaxRedirects: 8,
	})
	for i := range n {
		var keys []*History
		for j := range 10 {
			keys = append(keys, NewHistory(fmt.Sprintf("direct:%d:%d", i, j)))
		}
		cc.keys = append(cc.keys, keys...)
		cc.done.Go(func() { cc.run(keys) })
	}
	return cc
}

func (cc *clusterClients) run(keys []*History) {
	for i := 0; ; i++ {
		begin := time.Now()
		select {
		case <-cc.stop:
			return
		default:
		}
		h := keys[i/2%len(keys)]
		ctx, cancel := context.WithTimeout(context.Background(), harness.AnswerTime)
		var err error
		if i%2 == 0 {
			err = cc.set(ctx, h)
		} else {
			err = cc.get(ctx, h)
		}
		if ctx.Err() != nil && cc.x.Pulse.Missed(begin, time.Now()) < MachineLimit {
			cc.x.Violate("a cluster client waited %v for %s", harness.AnswerTime, h.Key)
		}
		cancel()
		cc.count(h, err)
		time.Sleep(time.Millisecond)
	}
}

func (cc *clusterClients) set(ctx context.Context, h *History) error {
	seq := h.Write(time.Now())
	err := cc.client.Set(ctx, h.Key, string(AppendValue(nil, h.Key, seq)), 0).Err()
	if err != nil { // the client has tried several times, and reports the last attempt only
		h.Answered(seq, unknown)
		return err
	}
	h.Answered(seq, Executed)
	return nil
}

func (cc *clusterClients) get(ctx context.Context, h *History) error {
	seen := h.Look()
	value, err := cc.client.Get(ctx, h.Key).Bytes()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	lost, wrong := h.read(seen, value, time.Now())
	cc.x.judged("a cluster client", lost, wrong)
	return nil
}

func (cc *clusterClients) count(h *History, err error) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if err != nil {
		cc.failed++
		return
	}
	cc.worked[h.Key]++
}

// worksOn reports whether every key was used twice since the counts were taken.
func (cc *clusterClients) worksOn(before map[string]int) bool {
	now := cc.counts()
	for _, h := range cc.keys {
		if now[h.Key] < before[h.Key]+2 {
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

// finish waits until the clients are served for all their keys, and ends them.
func (cc *clusterClients) finish() {
	cc.x.T.Helper()
	begin, before := time.Now(), cc.counts()
	harness.Eventually(cc.x.T, harness.AnswerTime, "cluster clients find their keys", func() bool { return cc.worksOn(before) }, cc.x.Shown)
	back := time.Since(begin)
	close(cc.stop)
	cc.done.Wait()
	cc.client.Close()
	total := 0
	for _, n := range cc.worked {
		total += n
	}
	cc.x.T.Logf("cluster clients at the nodes: %d commands, %d failed; all keys used again within %d ms", total, cc.failed, back.Milliseconds())
}
