package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/cluster"
	"github.com/dunlin-cache/dunlin/internal/config"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/lobby"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/monitor"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/broker"
	"github.com/dunlin-cache/dunlin/node/crew"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/measure"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/node/ticket"
	"github.com/dunlin-cache/dunlin/ring"
)

// memberReserve is how many connections over MaxClients, or without memory for clients, get a moment to
// prove that they are members: a node that is full of clients must still hear of new tables, and let
// proxies open a lost pipe again. memberShare is how many of them may come from one source. Each new one displaces
// the oldest, so clients cannot keep members out.
const (
	memberReserve = 64
	memberShare   = 32
)

// errUploadStalled closes a connection whose large value does not arrive.
var errUploadStalled = errors.New("a large value does not come")

// errPanicked closes a connection whose request cannot go on.
var errPanicked = errors.New("handler panicked")

// errClosed closes the connections of a node that closes.
var errClosed = errors.New("node is closed")

// Config is what a node needs. ID, Boot, Listen and Group must be set.
type Config struct {
	ID   string // the member's stable id
	Boot int64  // its start in unix nanoseconds: with the ID it names this node in tables

	Listen      string             // address for clients, proxies and other members
	Memory      int64              // limit of all memory of the node: values, index, bookkeeping, connections, Overhead
	Overhead    int64              // part of Memory that the process takes for itself
	Nodes       int                // in the process, which share the system's figures of it; 0: one
	Shards      int                // of the engine; 0: as many as suit the loops and the memory
	Eviction    string             // name of the policy, see ParseEviction
	RequirePass *session.Passwords // of clients; none: they need none
	Secret      *member.Secrets    // the cluster's; none: everyone is trusted, unless there is a password
	MaxClients  int                // 0: 10000
	Databases   int                // that clients may select; 0: config.DefaultDatabases
	Pinned      string             // databases, as ring.ParsePinned reads them, that are pinned if this node founds the cluster
	Whole       bool               // the whole cluster is this process: its nodes' clients may use pinned databases
	Debug       bool               // DEBUG is allowed
	Version     string             // of this build, for INFO

	Wrapper netloop.Wrapper // of the connections that it accepts; nil: none
	Dialer  member.Dialer   // to other nodes; nil: plain TCP

	Group *netloop.Group // the loops; the node does not close them
	Log   *slog.Logger   // slog.Default if nil

	// StallLimit is how long a loop can stand still before the node stops serving until it has
	// heard the table from another member. It must be shorter than the silence after which the
	// others declare a node dead. 0: 1.2 s.
	StallLimit time.Duration

	// MoveRate is how many bytes a second of snapshots the node sends to each other node. 0: no
	// limit.
	MoveRate int64
	// DumpForValkey says that DUMP writes hashes whose fields expire as Valkey 9 does, not as Redis 7.4 does.
	DumpForValkey bool
}

const (
	// Others declare a member dead after about 1.5 s of silence, which can consist of several
	// stalls with moments between them. A fence that was not needed costs a round trip.
	defaultStallLimit = 500 * time.Millisecond
	// collectionShare: a collection takes a quarter of the memory limit at most. Otherwise one key could
	// push out all others, and could neither be copied nor taken in by another node.
	collectionShare = 4
)

// TableSource is the member's gossip agent, which has the tables.
type TableSource interface {
	// Table returns the newest table adopted, or nil.
	Table() *ring.Table
	// Adopt offers a table that came another way, and reports whether it is newer.
	Adopt(t *ring.Table) bool
	// Confirm returns the table that another member has just named as the current one. doubted is
	// the one that this member had when it began to doubt. Confirm returns nil if for the suspicion
	// time nobody was left who knows whether others have gone on without this member since.
	Confirm(ctx context.Context, doubted *ring.Table) (*ring.Table, error)
	// Members returns the members that are alive, as far as this one knows. The caller must not
	// change the slice.
	Members() []ring.Member
}

// Node is a running storage node. Its methods can be called from any goroutine except the loops.
type Node struct {
	cfg      Config
	log      *slog.Logger
	engine   *engine.Engine
	session  *session.Server
	reserve  *lobby.Lobby // connections on probation
	strained func() bool  // see strainOf
	settings *config.Config
	// settingsSource changes parameters of the cluster; nil without a cluster.
	settingsSource atomic.Pointer[SettingsSource]
	process        *figures.Process // INFO
	slow           figures.SlowLog
	listener       *netloop.Listener
	workers        []*worker // by loop index
	pipes          pipeRegistry
	monitors       *monitor.Hub
	broker         *broker.Broker
	events         events
	watchers       watchers
	following      broker.Following
	hasServed      atomic.Bool                   // some partition, so that it may have published
	subscribers    atomic.Pointer[pubsub.Limits] // what they may leave unread
	tickets        ticket.Keeper[*pipe]
	peak           atomic.Int64 // most bytes in use at any scrape or sample
	overhead       atomic.Int64 // bytes of the limit that are the process's
	timing         atomic.Int64 // from how many arguments on a command is timed, see timedFrom
	turnover       measure.Turnover
	removedBase    atomic.Pointer[removals] // at the last CONFIG RESETSTAT; nil: there was none
	big            measure.BigWalk
	lists          atomic.Int64  // bytes of the limit that commands have in the Go heap
	conns          atomic.Int64  // and that connections have there
	starved        atomic.Int64  // connections closed because there was no memory for their buffers
	turnTime       time.Duration // netloop.TurnTime, but in tests
	garbage        garbage

	heapWatch atomic.Pointer[heapWatch] // nil: nobody asked

	// Set last by Start; connections that come earlier wait for it.
	started chan struct{}

	view   atomic.Pointer[ownership.View]
	passed atomic.Pointer[ring.Table] // no loop executes under an older one
	// untold has the partitions that this node has lost, and of which it has not looked yet who listens there.
	untold [ring.Partitions]atomic.Bool
	// unheard has the partitions that a table has taken from this node, and whose new owner may not have
	// that table yet.
	unheard [ring.Partitions]atomic.Bool
	agent   atomic.Pointer[TableSource]
	relays  atomic.Pointer[Relay]

	// fenced: serve nothing, see fence.go. It is changed under fenceMu, which is held for moments,
	// because loops take it.
	fenceMu sync.Mutex
	fenced  atomic.Bool
	fences  atomic.Uint64 // how often it was fenced
	// These are the constants, but in tests.
	holdPatience, movingPatience, topicsPatience, closedLimit time.Duration
	fence                                                     ownership.Fence
	quorum                                                    quorum

	clients   atomic.Int64 // connections that count towards MaxClients
	waiters   atomic.Int64 // commands that wait for keys
	copyWaits copyWaits
	wakers    sync.Pool // of *waker

	scripts   scripting
	functions functions
	gathers   gathers
	lenders   lenders
	placing   atomic.Pointer[placing] // by the settings of the cluster
	reopens   func()                  // ends openAfter; it belongs to whoever applies settings

	forgetClock func() // ends the calls of nothingExpires

	// tableMu orders the events of ownership, and protects the fields below.
	tableMu sync.Mutex
	obedience
	replication

	// ctx ends with the node. jobs are the goroutines that Close waits for.
	ctx    context.Context
	cancel context.CancelFunc
	jobs   sync.WaitGroup
	crew   *crew.Crew // does what takes too long for a loop
	// pressing counts the work that waits for a place in the crew, and must not rest.
	pressing atomic.Int64
}

// Start opens the engine and begins to accept connections. Until SetTable, the node answers
// commands on keys with an error.
func Start(cfg Config) (*Node, error) {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.StallLimit <= 0 {
		cfg.StallLimit = defaultStallLimit
	}
	if cfg.Shards == 0 {
		cfg.Shards = engine.ShardsFor(len(cfg.Group.Loops()), cfg.Memory)
	}
	if cfg.RequirePass.Needed() && cfg.Secret.First() == nil {
		return nil, fmt.Errorf("cannot start node %q: clients need a password, so members need a secret", cfg.ID)
	}
	policy, err := ParseEviction(cfg.Eviction)
	if err != nil {
		return nil, fmt.Errorf("cannot start node %q: %w", cfg.ID, err)
	}
	loops, strained := len(cfg.Group.Loops()), strainOf(cfg.Group)
	var n *Node
	store, err := engine.New(engine.Config{
		MaxBytes: cfg.Memory, Shards: cfg.Shards, Policy: policy,
		Strained: strained,
		Forms:    types.Forms(),
		Share:    collectionShare,
		Outside:  cfg.Overhead + floorsOf(cfg.Memory, loops),
		Announce: func(section uint16, key []byte, event engine.Event) { n.events.announce(section, key, event) },
		Revoke:   func(w engine.Watch, key []byte, actor uint64) { n.watchers.revoke(w, key, actor) },
		Changed:  func(key []byte, actor uint64) { n.watchers.changed(key, actor) },
		Servers: engine.Servers{
			Serves:  func(p uint16) bool { return n.servesBlocked(p) },
			End:     endOf,
			Serve:   func(t engine.Txn, w *engine.Waiter) (func(), bool, int) { return n.serveBlocked(t, w) },
			Finds:   func(t engine.Txn, w *engine.Waiter) bool { return n.finds(t, w) },
			Tell:    func(w *engine.Waiter, turn engine.Turn) func() { return n.tellClaim(w, turn) },
			ServeOn: func(h *engine.Hold) { n.serveOn(h) },
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot start node %q: %w", cfg.ID, err)
	}
	n = &Node{
		turnTime: netloop.TurnTime,
		cfg:      cfg, log: cfg.Log, engine: store, strained: strained,
		started: make(chan struct{}), reserve: lobby.New(memberReserve, memberShare), holdPatience: holdPatience,
		movingPatience: movingPatience, topicsPatience: topicsPatience, closedLimit: closedLimit, reopens: func() {},
	}
	n.events.node, n.events.wake = n, make(chan struct{}, 1)
	n.overhead.Store(cfg.Overhead)
	n.wakers.New = n.newWaker
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.crew = crew.New(max(1, runtime.NumCPU()/2), n.goJob, n.restBehind)
	n.placing.Store(new(placing))
	n.startScripting()
	n.lenders.node = n
	n.gathers.open(n)
	n.startObedience()
	n.startQuorum()
	n.startReplication()
	n.monitors = monitor.New(cfg.Group.Loops(), heapBudget{n})
	n.broker = broker.New(heapBudget{n}.Charge, heapBudget{n}.Refund)
	n.goJob(func() { n.events.run(n.ctx) })
	for _, l := range cfg.Group.Loops() {
		n.workers = append(n.workers, newWorker(n, l))
	}
	if n.listener, err = cfg.Group.ListenWrapped(cfg.Listen, cfg.Wrapper, n.accept); err != nil {
		n.cancel()
		store.Close()
		return nil, fmt.Errorf("cannot start node %q: %w", cfg.ID, err)
	}
	n.newSession()
	for _, w := range n.workers {
		w.loop.Post(w.startTimers)
	}
	cfg.Group.OnStall(cfg.StallLimit, n.stalled)
	n.forgetClock = cfg.Group.OnClockStep(n.nothingExpires)
	// Expired keys disappear when they are looked up. The engine's sweep, in its own goroutine,
	// frees those that nobody asks for again.
	n.goJob(func() { n.engine.KeepSwept(n.ctx.Done(), cfg.Group.UnixMilli) })
	n.goJob(func() { n.big.Run(n.ctx, n.engine, cfg.Group.UnixMilli) })
	n.goJob(n.watchPinned)
	close(n.started)
	return n, nil
}

// newSession sets up what answers commands that are not about keys: the parameters, INFO's
// description of this node, and the state that connections share.
func (n *Node) newSession() {
	host, portText, _ := net.SplitHostPort(n.listener.Addr())
	port, _ := strconv.Atoi(portText)
	start := time.Now()
	n.settings = config.New(config.Options{
		Bind: host, Port: port, MaxClients: n.cfg.MaxClients, Databases: n.cfg.Databases, Policy: n.cfg.Eviction,
		MaxMemory: n.engine.Limit, SetMaxMemory: n.setMemory, CheckMaxMemory: n.checkMemory,
		SetPolicy: n.setEviction, ResetStats: n.resetStats,
		Changed: n.obeySettings, SetCluster: n.setCluster,
	})
	n.session = session.NewServer(session.Options{
		Passwords: n.cfg.RequirePass, Debug: n.cfg.Debug, Start: start, Clock: n.cfg.Group.Clock, Config: n.settings,
		Cluster: cluster.New(func() cluster.View { return cluster.View{Table: n.view.Load().Table, Self: n.cfg.ID} }),
	})
	n.process = figures.NewProcess(figures.Identity{
		Version: n.cfg.Version, Role: ring.RoleNode.String(), Start: start, Port: port,
		MaxClients: n.settings.MaxClients, Blocked: n.session.Blocked, Policy: n.settings.Policy,
	})
}

// obeySettings applies the parameters to subscribers, the slow log, and the timing of commands for that.
func (n *Node) obeySettings(c *config.Config) {
	limits := c.SubscriberLimits()
	n.subscribers.Store(&limits)
	n.slow.Limit(c.SlowerThan(), c.SlowLogLen())
	n.timing.Store(int64(timedFrom(&n.slow)))
	n.events.obey(c.KeyspaceEvents())
}

// Addr returns the address that was bound, ip:port.
func (n *Node) Addr() string { return n.listener.Addr() }

// SetAgent gives the node its source of tables. The node asks it when other nodes hand over a
// table, and before it serves again after a stall.
func (n *Node) SetAgent(a TableSource) { n.agent.Store(&a) }

func (n *Node) source() TableSource {
	if a := n.agent.Load(); a != nil {
		return *a
	}
	return nil
}

// Serving reports whether the node serves every partition that its table gives it.
func (n *Node) Serving() bool {
	v := n.view.Load()
	if v.Table == nil || n.isFenced(n.cfg.Group.Clock()) {
		return false
	}
	for _, s := range v.Standing {
		if s == ownership.Gained {
			return false
		}
	}
	return true
}

// accept returns the handler of a new connection, on the connection's loop.
func (n *Node) accept(c *netloop.Conn) netloop.Handler {
	<-n.started // a moment at most, while Start returns from Listen
	w := n.workers[c.Loop().Index()]
	if n.ctx.Err() != nil {
		return nil
	}
	noMemory := !c.TrySetAccount(w.clients) || !c.TrySetOther(connMemory+firstBuffer)
	if noMemory {
		c.SetAccount(w.members)
	}
	full := n.isFull(0)
	cn := w.add(c)
	if cn.noMemory = noMemory; noMemory || !n.session.Admit(cn.State, c.RemoteIP(), full, cn.turnOut) {
		cn.beginProbation()
	}
	cn.limitRequests()
	return cn
}

// isFull reports whether there are as many clients as there may be, and so many more.
func (n *Node) isFull(more int64) bool {
	return n.clients.Load() >= int64(n.settings.MaxClients())+more
}

// Drain stops accepting, answers what has been received, and closes each connection between two
// requests. It does not execute requests that CLIENT PAUSE holds, nor wait for brokers that are asked
// for a subscription. Drain returns when no connection is left, or ctx ends.
func (n *Node) Drain(ctx context.Context) error {
	if err := n.listener.Close(); err != nil {
		return err
	}
	for {
		open := make([]int, len(n.workers))
		err := n.cfg.Group.Each(func(l *netloop.Loop) {
			w := n.workers[l.Index()]
			w.closeIdle()
			open[l.Index()] = len(w.conns)
		})
		if err == nil && sum(open) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func sum(numbers []int) (total int) {
	for _, n := range numbers {
		total += n
	}
	return total
}

// Close closes every connection at once and frees the memory. If a loop does not answer, it may
// still use the engine, so Close does not free the memory.
func (n *Node) Close() error {
	n.cancel()
	errs := []error{n.listener.Close()}
	n.forgetClock()
	n.forbidJobs()
	err := n.cfg.Group.Each(func(l *netloop.Loop) { n.workers[l.Index()].stop() })
	if err == nil {
		err = n.cfg.Group.Each(func(*netloop.Loop) {}) // by now the ends of connections have begun their jobs
	}
	n.jobs.Wait()
	n.lenders.close()
	if err == nil {
		// What the jobs have posted, and the turns that it takes: they end pins.
		err = n.cfg.Group.Each(func(l *netloop.Loop) { n.workers[l.Index()].turns.drain() })
	}
	n.receivers.Drop()
	if err == nil || errors.Is(err, netloop.ErrClosed) {
		err = n.engine.Close()
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("cannot close node %q: %w", n.cfg.ID, err)
	}
	return nil
}

// forbidJobs cancels ctx once more, under the locks. After its return no sender begins, and only
// connections begin jobs: everybody else looks at ctx under one of these locks.
func (n *Node) forbidJobs() {
	n.senders.Close()
	n.tableMu.Lock()
	defer n.tableMu.Unlock()
	n.fenceMu.Lock()
	defer n.fenceMu.Unlock()
	n.cancel()
}

// goJob runs f in a goroutine that Close waits for. f must return soon after n.ctx ends.
func (n *Node) goJob(f func()) { n.jobs.Go(f) }

// nothingExpires reports whether the clock by which keys expire may step, because no time that was
// reckoned by it is stored or on its way: neither in a record, nor in a large value that is written
// or received, nor in what is left to send of a partition that is being handed over.
func (n *Node) nothingExpires() bool {
	n.tableMu.Lock()
	moving := len(n.handOvers) > 0
	n.tableMu.Unlock()
	st := n.engine.Stats()
	return !moving && st.Volatile == 0 && st.Staged == 0
}
