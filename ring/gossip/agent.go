package gossip

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/dunlin-cache/dunlin/internal/beat"
	"github.com/dunlin-cache/dunlin/internal/boottime"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/ring/office"
)

// Agent is this process's membership of a cluster. Any goroutine may call its methods.
type Agent struct {
	cfg     Config
	name    string // of this life: memberlist's node name, and issuer of our tables
	list    *memberlist.Memberlist
	keyring *memberlist.Keyring // nil: gossip is not encrypted
	addr    string              // gossip address as others see it
	started time.Time
	rejoin  time.Duration

	table  atomic.Pointer[ring.Table]
	notify notifier

	mu    sync.Mutex
	self  announcement        // with the version of table
	peers map[string]peer     // by name; without this member
	lost  map[string]lostNode // by gossip address
	// lastStranger is when somebody last answered a join whom this member could not accept, or who
	// did not accept this member.
	lastStranger time.Time

	settings settingsState
	steering steering // of the steer loop alone
	pulse    pulse

	ctx         context.Context // done when the Agent closes
	cancel      context.CancelFunc
	loops       sync.WaitGroup
	closeOnce   sync.Once
	wake        chan struct{} // capacity 1: members, table or hints changed
	metaSoon    chan struct{} // capacity 1: publish our meta with the next batch
	metaNow     chan struct{} // capacity 1: publish our meta at once
	searched    atomic.Bool   // every join address has answered or failed
	wantRefresh atomic.Bool
	wantPause   atomic.Pointer[bool] // nil: nobody has asked

	updates sync.Mutex // held while our meta is published
	left    bool       // guarded by updates: said goodbye, nothing more to publish

	lastRejected atomic.Int64 // the last warning, by clock; 0: none

	rejoins, fetches, fetchErrors, issued, healed, rejected, strangers atomic.Uint64
}

// Stats are counters since the start, and gauges.
type Stats struct {
	// Health is 0 when this member meets its deadlines; it grows when its own probes fail.
	Health int
	// Members counts the alive members, this one included.
	Members int
	// Rejoins counts attempts to join an address not known alive; Fetches and FetchErrors count
	// tables read from other nodes; Issued counts the tables that this member issued as
	// coordinator, and Healed those among them that ended a split. Rejected counts messages about
	// members that cannot be in one cluster with this one, Strangers discarded messages of another
	// secret or cluster name.
	Rejoins, Fetches, FetchErrors, Issued, Healed, Rejected, Strangers uint64
}

// Start opens the gossip port and starts looking for the other members. It waits for none of them, but
// for up to beat.Grid.
func Start(cfg Config) (*Agent, error) {
	return start(cfg, func(*Agent, *memberlist.Config) {})
}

// start lets tests put a transport of their own into memberlist's configuration, and shorten the
// agent's intervals.
func start(cfg Config, adapt func(*Agent, *memberlist.Config)) (*Agent, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("cannot start gossip: %w", err)
	}
	listConfig, err := cfg.memberlistConfig()
	if err != nil {
		return nil, err
	}
	a := &Agent{
		cfg:      cfg,
		name:     cfg.Self.Name(),
		keyring:  listConfig.Keyring,
		self:     announcement{seq: 1, Member: cfg.Self},
		peers:    make(map[string]peer),
		lost:     make(map[string]lostNode),
		started:  time.Now(),
		rejoin:   rejoinInterval,
		wake:     make(chan struct{}, 1),
		metaSoon: make(chan struct{}, 1),
		metaNow:  make(chan struct{}, 1),
		settings: settingsState{changing: make(chan struct{}, 1), wake: make(chan struct{}, 1)},
		notify: notifier{
			onTable:      cfg.OnTable,
			onMembers:    cfg.OnMembers,
			onSuperseded: cfg.OnSuperseded,
			onMinority:   cfg.OnMinority,
			onOutdated:   cfg.OnOutdated,
			wake:         make(chan struct{}, 1),
		},
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	d := delegate{a}
	listConfig.Delegate, listConfig.Events, listConfig.Alive = d, d, d
	listConfig.Logger = memberlistLogger(a.ctx, cfg.Log, &a.strangers)
	adapt(a, listConfig)
	if err = a.open(listConfig); err != nil {
		a.cancel()
		return nil, fmt.Errorf("cannot open gossip port %q: %w", cfg.Bind, err)
	}
	// Now, because memberlist writes to its LocalNode in every UpdateNode.
	a.addr = a.list.LocalNode().Address()
	a.pulse.begin(boottime.Now)
	a.steering.mind = office.New(a.officeConfig(), host{a}, a.clock(time.Now()))
	a.loops.Go(func() { a.pulse.run(a.ctx.Done()) })
	a.loops.Go(a.steerLoop)
	a.loops.Go(a.joinLoop)
	a.loops.Go(a.metaLoop)
	a.loops.Go(a.settingsLoop)
	a.loops.Go(func() { a.notify.run(a.ctx.Done()) })
	poke(a.wake)
	return a, nil
}

// open opens the gossip port, unless cfg has a transport, and starts memberlist on the grid of package beat.
func (a *Agent) open(cfg *memberlist.Config) (err error) {
	if cfg.Transport == nil {
		t, err := listen(cfg.BindAddr, cfg.BindPort, cfg.Logger)
		if err != nil {
			return err
		}
		if cfg.Transport = t; cfg.BindPort == 0 {
			cfg.BindPort, cfg.AdvertisePort = t.port(), t.port()
		}
	}
	// Memberlist's tickers start with it, and their intervals are multiples of half the grid.
	time.Sleep(beat.Until(beat.Grid))
	if a.list, err = memberlist.Create(cfg); err != nil {
		return errors.Join(err, cfg.Transport.Shutdown())
	}
	return nil
}

// Table returns the adopted table, or nil before the first.
func (a *Agent) Table() *ring.Table { return a.table.Load() }

// Members returns the alive members, this one included, sorted by id.
func (a *Agent) Members() []ring.Member { return a.alive() }

// Addr returns the gossip address that other members use.
func (a *Agent) Addr() string { return a.addr }

// SuspicionTime returns how long a member that does not answer is suspected before it is declared
// dead.
func (a *Agent) SuspicionTime() time.Duration {
	a.mu.Lock()
	n := len(a.peers) + 1
	a.mu.Unlock()
	return time.Duration(suspicionMult * max(1, math.Log10(float64(n))) * float64(probeInterval))
}

// SetState announces this member's state to all. It does not wait.
func (a *Agent) SetState(s ring.State) {
	a.mu.Lock()
	a.self.State = s
	a.self.seq++
	a.mu.Unlock()
	poke(a.metaNow)
	poke(a.wake)
}

// Drain makes the other nodes take over all that this node owns and follows, as if it left; but it
// stays a member. With on false, the node takes part again. Do not combine Drain with Leave.
func (a *Agent) Drain(on bool) error {
	if !on {
		a.SetState(ring.Serving)
		return nil
	}
	if !a.othersServe() {
		return errors.New("cannot drain: no other node serves")
	}
	a.SetState(ring.Leaving)
	return nil
}

// PauseRebalance makes this member, which must be the coordinator, issue a table in which only
// unavoidable moves happen, or in which all moves happen again. It does not wait. The order is lost
// if the coordinator dies, so the caller should check whether the table says so, and repeat the
// order.
func (a *Agent) PauseRebalance(paused bool) error {
	if c, ok := ring.Coordinator(a.alive()); !ok || c.Name() != a.name {
		return fmt.Errorf("cannot pause or resume: the coordinator is %q", c.ID)
	}
	a.wantPause.Store(&paused)
	poke(a.wake)
	return nil
}

// Stats returns the present counters.
func (a *Agent) Stats() Stats {
	return Stats{
		Health:      a.list.GetHealthScore(),
		Members:     len(a.alive()),
		Rejoins:     a.rejoins.Load(),
		Fetches:     a.fetches.Load(),
		FetchErrors: a.fetchErrors.Load(),
		Issued:      a.issued.Load(),
		Healed:      a.healed.Load(),
		Rejected:    a.rejected.Load(),
		Strangers:   a.strangers.Load(),
	}
}

// Leave leaves the cluster in order, within about timeout. It announces that this member is
// leaving, and waits until a table without this member has been issued (if another node can take
// over) and OnLeave has returned. Then it tells the others that this member is gone. Close must
// follow.
func (a *Agent) Leave(timeout time.Duration) {
	deadline := time.Now().Add(timeout)
	a.SetState(ring.Leaving)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for a.stillNeeded() && time.Now().Before(deadline) {
		select {
		case <-a.ctx.Done():
			return
		case <-tick.C:
		}
	}
	if t := a.Table(); a.cfg.OnLeave != nil && t != nil && !a.named(t) {
		ctx, cancel := context.WithDeadline(a.ctx, deadline)
		a.cfg.OnLeave(ctx, t)
		cancel()
	}
	if isClosed(a.ctx.Done()) {
		return // memberlist panics when it is to leave after its end
	}
	a.updates.Lock()
	a.left = true
	a.updates.Unlock()
	// Memberlist waits for the message to be sent often enough, half a second.
	if err := a.list.Leave(max(time.Until(deadline), time.Second)); err != nil {
		a.cfg.Log.Debug("cannot say goodbye to every member", "error", err)
	}
}

// stillNeeded reports whether the table names this member although another node could take over.
func (a *Agent) stillNeeded() bool {
	t := a.Table()
	return t != nil && a.named(t) && a.othersServe()
}

// named reports whether t names this boot of this member.
func (a *Agent) named(t *ring.Table) bool {
	return t.NodeIndex(a.cfg.Self.ID, a.cfg.Self.Boot) >= 0
}

func (a *Agent) othersServe() bool {
	return slices.ContainsFunc(a.otherNodes(a.alive()), func(m ring.Member) bool {
		return m.State == ring.Serving
	})
}

// Close stops gossip without a message: to the others this member has crashed, unless Leave was
// called before. It waits for the agent's goroutines, and up to 2 s for a join in progress.
func (a *Agent) Close() {
	a.closeOnce.Do(func() {
		a.cancel()
		if err := a.list.Shutdown(); err != nil {
			a.cfg.Log.Debug("cannot shut down gossip", "error", err)
		}
		a.loops.Wait()
	})
}

func (a *Agent) ownAnnouncement() announcement {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.self
}

// metaBatch is how long a member that has adopted a table waits before gossip announces that. All
// members adopt at about the same time, and each broadcast costs every member a few packets; the
// issuer's announcement is what spreads the table.
const metaBatch = 200 * time.Millisecond

// metaLoop keeps what gossip says about this member up to date. UpdateNode waits until its message
// was sent, so nobody else calls it.
func (a *Agent) metaLoop() {
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-a.metaNow:
		case <-a.metaSoon:
			select {
			case <-a.ctx.Done():
				return
			case <-a.metaNow:
			case <-time.After(metaBatch):
			}
		}
		a.publish()
	}
}

// publish makes gossip spread this member's meta. Memberlist forgets a member that has left, even
// itself, and panics if it then has to update it.
func (a *Agent) publish() {
	a.updates.Lock()
	defer a.updates.Unlock()
	if !a.left {
		// Sending goes on after the timeout: the error says nothing.
		_ = a.list.UpdateNode(gossipInterval)
	}
}
