package gossip

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	rejoinInterval = 5 * time.Second
	// Until another node is found, addresses are tried more often: all pods of a new cluster start
	// at once, and most attempts meet a port that is not open yet.
	searchInterval = 500 * time.Millisecond
	joinsAtOnce    = 3
	// A node that searches before it founds a cluster does so once, and other members wait for it.
	searchesAtOnce = 16
	resolveTimeout = 2 * time.Second
)

// joinLoop looks for members that are not known alive, for ever: first to find the cluster, later
// to heal network partitions.
func (a *Agent) joinLoop() {
	for {
		a.joinSome()
		wait := a.rejoin
		if len(a.otherNodes(a.alive())) == 0 {
			wait = min(wait, searchInterval)
		}
		select {
		case <-a.ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (a *Agent) joinSome() { a.joinAll(a.candidates()) }

// joinAll joins all of addrs at once.
func (a *Agent) joinAll(addrs []string) {
	var joins sync.WaitGroup
	for _, addr := range addrs {
		joins.Go(func() { a.join(addr) })
	}
	joins.Wait()
}

// search asks every join address that no alive member has, once: see office.Search.
func (a *Agent) search() {
	for join := a.resolveJoin(); a.ctx.Err() == nil && a.Table() == nil; {
		join = unknown(join, a.addresses()) // members that answer name others
		if len(join) == 0 {
			break
		}
		n := min(len(join), searchesAtOnce)
		a.joinAll(join[:n])
		join = join[n:]
	}
	a.searched.Store(true)
	poke(a.wake)
}

// candidates returns the gossip addresses to join next: at most joinsAtOnce, and none of an alive
// member. One place is for a lost node, the others are for join addresses; each kind may use places
// that the other leaves free.
func (a *Agent) candidates() []string {
	join := a.resolveJoin()
	known := a.addresses()
	a.mu.Lock()
	lost := slices.Collect(maps.Keys(a.lost))
	a.mu.Unlock()

	join = unknown(join, known)
	for _, addr := range join {
		known[addr] = true
	}
	lost = unknown(lost, known)
	fromLost := min(len(lost), max(1, joinsAtOnce-len(join)))
	fromJoin := min(len(join), joinsAtOnce-fromLost)
	return append(join[:fromJoin], lost[:fromLost]...)
}

// addresses returns the gossip addresses of the alive members, including this one's.
func (a *Agent) addresses() map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := map[string]bool{a.addr: true}
	for _, p := range a.peers {
		known[p.gossipAddr] = true
	}
	return known
}

// unknown returns addrs without those in known, each once, in random order.
func unknown(addrs []string, known map[string]bool) []string {
	slices.Sort(addrs)
	addrs = slices.Compact(addrs)
	addrs = slices.DeleteFunc(addrs, func(addr string) bool { return known[addr] })
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	return addrs
}

func (a *Agent) join(addr string) {
	a.rejoins.Add(1)
	_, err := a.list.Join([]string{addr})
	if err == nil || isClosed(a.ctx.Done()) {
		return
	}
	// Memberlist wraps its errors as texts. One that is not about dialing means that a process is
	// there that does not speak with us.
	if strings.Contains(err.Error(), "dial tcp") {
		a.cfg.Log.Debug("cannot join member", "addr", addr, "error", err)
		return
	}
	a.heardStranger()
	level := slog.LevelDebug
	if len(a.otherNodes(a.alive())) == 0 {
		level = slog.LevelWarn // this is why we do not get ready
	}
	a.cfg.Log.Log(a.ctx, level, "gossip address answers but refuses us: another secret or another cluster?",
		"addr", addr, "error", err)
}

// resolveJoin returns the gossip addresses, ip:port, to which the join addresses now resolve.
func (a *Agent) resolveJoin() []string {
	ctx, cancel := context.WithTimeout(a.ctx, resolveTimeout)
	defer cancel()
	var addrs []string
	for _, join := range a.cfg.Join {
		host, port, err := splitHostPort(join, DefaultPort)
		if err != nil {
			a.cfg.Log.Warn("cannot use join address", "addr", join, "error", err)
			continue
		}
		ips, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			a.cfg.Log.Debug("cannot resolve join address", "addr", join, "error", err)
			continue
		}
		for _, ip := range ips {
			addrs = append(addrs, net.JoinHostPort(ip, strconv.Itoa(port)))
		}
	}
	return addrs
}

func (a *Agent) heardStranger() {
	a.mu.Lock()
	a.lastStranger = time.Now()
	a.mu.Unlock()
}
