package gossip

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/ring/office"
)

// Adopt makes t, which did not arrive by gossip, the table of this member. It returns false if t is
// not newer than the present table along its lineage.
func (a *Agent) Adopt(t *ring.Table) bool {
	if !a.adopt(t, nil) {
		return false
	}
	poke(a.metaSoon)
	return true
}

// adopt is Adopt without announcing t to the other members. named is as in office.Host.
func (a *Agent) adopt(t *ring.Table, named *ring.Settings) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t == nil || !t.Newer(a.table.Load()) {
		return false
	}
	if named != nil {
		if !a.settings.proposed.CompareAndSwap(named, nil) {
			return false // it was withdrawn
		}
		a.settings.named.Store(named) // before anybody can ask for it
	}
	a.table.Store(t)
	a.self.Epoch, a.self.Issuer, a.self.TableLevel = t.Epoch, t.Issuer, t.Level
	a.self.seq++
	// Under the lock, so that tables are queued in the order of their adoption.
	a.notify.push(event{table: t})
	poke(a.wake)
	poke(a.settings.wake)
	return true
}

// Refresh says that somebody seems to have a newer table. It does not wait.
func (a *Agent) Refresh() {
	a.wantRefresh.Store(true)
	poke(a.wake)
}

// Confirm asks the other nodes which table is current, adopts that table and returns it. A node
// that has not run for a while must not trust its own: the others may have replaced it meanwhile,
// and any single other node may have slept as long. So Confirm asks all of them, and waits for one
// that does not answer for as long as declaring it dead takes. doubted is the table that the node
// had when it began to doubt. Confirm returns nil and no error if after that time nobody is left who
// knows whether the others went on without this node, and an error if ctx ends first.
func (a *Agent) Confirm(ctx context.Context, doubted *ring.Table) (*ring.Table, error) {
	begun := time.Now()
	decide := a.officeConfig()
	for {
		told := a.fetchEach(ctx, decide.Witnesses(host{a}), a.SuspicionTime(), office.NamesWitnesses(a.Table()))
		heard, err := decide.Confirm(host{a}, doubted, told)
		if err == nil {
			return heard, nil
		}
		if errors.Is(err, office.ErrForeign) {
			poke(a.wake)
		}
		if decide.Alone(host{a}, doubted, told) && time.Since(begun) >= a.SuspicionTime() {
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot confirm the table: %w", errors.Join(ctx.Err(), err))
		case <-a.ctx.Done():
			return nil, errors.New("cannot confirm the table: gossip is closed")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Ping asks another node for a sign of life: over the gossip port, which costs little, and if that
// fails, over the data port. It returns an error if neither answers before ctx ends.
func (a *Agent) Ping(ctx context.Context, m ring.Member) error {
	a.mu.Lock()
	p, known := a.peers[m.Name()]
	a.mu.Unlock()
	if known {
		addr, err := net.ResolveUDPAddr("udp", p.gossipAddr)
		if err == nil {
			_, err = a.list.Ping(m.Name(), addr)
		}
		if err == nil {
			return nil
		}
	}
	_, err := a.cfg.Fetch(ctx, m.Addr, "")
	return err
}

// fetchEach reads the tables of nodes, all at once and each address once. It returns those that
// arrive within timeout, the newest first, each from the first of the nodes at its address; if named, from no other one.
func (a *Agent) fetchEach(ctx context.Context, nodes []ring.Member, timeout time.Duration, named bool) []office.Told {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stop := context.AfterFunc(a.ctx, cancel)
	defer stop()

	var mu sync.Mutex
	var told []office.Told
	var fetches sync.WaitGroup
	asked := make(map[string]bool, len(nodes))
	for _, m := range nodes {
		if asked[m.Addr] {
			continue
		}
		asked[m.Addr] = true
		name := ""
		if named {
			name = m.Name()
		}
		fetches.Go(func() {
			if t := a.fetch(ctx, m.Addr, name); t != nil {
				mu.Lock()
				told = append(told, office.Told{By: m, Table: t})
				mu.Unlock()
			}
		})
	}
	fetches.Wait()
	slices.SortFunc(told, func(x, y office.Told) int {
		return ring.CompareVersions(y.Table.Version(), x.Table.Version())
	})
	return told
}

// fetch returns the table of the node at addr, or nil if it has none or cannot be read.
func (a *Agent) fetch(ctx context.Context, addr, name string) *ring.Table {
	a.fetches.Add(1)
	t, err := a.cfg.Fetch(ctx, addr, name)
	if err != nil {
		a.fetchErrors.Add(1)
		a.warnLevel(addr, err)
		a.cfg.Log.Debug("cannot fetch table", "addr", addr, "error", err)
		return nil
	}
	return t
}

// shuffledNodes returns the other nodes in random order, so that not all members fetch from the
// same one.
func (a *Agent) shuffledNodes(alive []ring.Member) []ring.Member {
	nodes := a.otherNodes(alive)
	rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes
}
