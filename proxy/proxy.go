package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/cluster"
	"github.com/dunlin-cache/dunlin/internal/config"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/monitor"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// Config is the configuration of a proxy.
type Config struct {
	ID        string   // ring.Member.ID
	Boot      int64    // ring.Member.Boot: nodes tell lives of a proxy apart by it
	Listen    string   // host:port for clients
	Sentinel  string   // host:port for clients that look for the proxy with Redis Sentinel; empty: none
	Masters   []string // names of primaries that such clients are shown
	Advertise string   // host:port that CLUSTER SLOTS shows; empty: where the asking client reached us
	Version   string

	RequirePass *session.Passwords // of clients; none: they need none
	Secret      *member.Secrets    // of the cluster, proved to nodes; none: nodes trust everyone
	MaxClients  int
	Databases   int  // that clients may select; 0: config.DefaultDatabases
	Debug       bool // DEBUG is allowed

	Patience time.Duration // how long a command that no node could take is parked; 0: 5 s
	Silence  time.Duration // how long a node may send nothing with commands outstanding; 0: 250 ms
	MoveTime time.Duration // what clients that move when they are told to have for that; 0: 10 s

	// RelaxedMulti lets a transaction have keys of several slots. Each slot's commands are executed
	// as a whole, the transaction is not.
	RelaxedMulti bool
	// RelaxedSlots lets commands that combine, copy or rename keys, or move elements, have keys of
	// several slots. Most do not read them in one moment.
	RelaxedSlots bool

	HeapMoved   func()         // called when HeapMemory returns another value than before; nil: nobody asked
	Buffers     netloop.Budget // what the buffers of clients are charged to; nil: they are only counted
	PipeBuffers int64          // bytes that the buffers of all pipes may take; 0: 64 MiB
	PipeBudget  netloop.Budget // what the buffers of pipes are charged to; nil: they are only counted

	Wrapper netloop.Wrapper // of clients' connections; nil: none
	Dialer  netloop.Dialer  // to nodes; nil: plain TCP

	Group *netloop.Group // the loops; the caller closes them after the proxy
	Log   *slog.Logger
	// Moved is called when a refusal shows that a node has a newer table. It must not block.
	Moved func()
}

// Proxy accepts clients and forwards their commands. Its methods may be called from any goroutine.
type Proxy struct {
	cfg         Config
	server      *session.Server
	settings    *config.Config
	process     *figures.Process // INFO
	workers     []*worker        // one a loop, in the order of the loops
	listener    *netloop.Listener
	sentinel    *netloop.Listener // nil: there is none
	table       atomic.Pointer[ring.Table]
	monitors    *monitor.Hub
	pipeRoom    pipeRoom
	scripts     scripts
	clients     atomic.Int64 // connections, over all loops
	starved     atomic.Int64 // clients closed because there was no memory for their buffers, over all loops
	draining    atomic.Bool
	others      atomic.Bool           // other proxies are alive
	cached      atomic.Pointer[Stats] // a sample, at most sampleEvery old
	slow        figures.SlowLog
	dividers    dividers
	visiting    sync.WaitGroup                // goroutines that visit all clients: one, and those of UNBLOCK
	subscribers atomic.Pointer[pubsub.Limits] // what subscribers may leave unread
	base        atomic.Pointer[Stats]         // the counters at the last CONFIG RESETSTAT; nil: there was none

	sampler     sync.WaitGroup
	stopSampler context.CancelFunc
}

// Start begins to accept clients. Their commands are parked until SetTable is called. The caller must
// Close the proxy.
func Start(cfg Config) (*Proxy, error) {
	p := newProxy(cfg)
	listener, err := net.ResolveTCPAddr("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for clients on %q: %w", cfg.Listen, err)
	}
	if err := p.startWorkers(listener); err != nil {
		return nil, err
	}
	p.listener, err = cfg.Group.ListenWrapped(cfg.Listen, cfg.Wrapper, p.accept)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot listen for clients on %q: %w", cfg.Listen, err), p.stopWorkers())
	}
	if cfg.Sentinel != "" {
		if p.sentinel, err = cfg.Group.ListenWrapped(cfg.Sentinel, cfg.Wrapper, p.acceptForSentinel); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot listen for clients of Sentinel on %q: %w", cfg.Sentinel, err),
				p.listener.Close(), p.stopWorkers())
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.stopSampler = cancel
	p.sampler.Go(func() { p.sample(ctx) })
	return p, nil
}

func newProxy(cfg Config) *Proxy {
	cfg.Patience = orDefault(cfg.Patience, 5*time.Second)
	cfg.Silence = orDefault(cfg.Silence, 250*time.Millisecond)
	cfg.MoveTime = orDefault(cfg.MoveTime, 10*time.Second)
	cfg.PipeBuffers = orDefault(cfg.PipeBuffers, 64<<20)
	p := &Proxy{cfg: cfg, pipeRoom: pipeRoom{most: cfg.PipeBuffers}, dividers: newDividers(cfg.Log)}
	p.scripts.budget = cfg.Buffers
	return p
}

// startWorkers starts the loops' workers of a proxy that is to listen at an address.
func (p *Proxy) startWorkers(listener *net.TCPAddr) error {
	p.newSession(listener)
	p.monitors = monitor.New(p.cfg.Group.Loops(), p.cfg.Buffers)
	p.workers = make([]*worker, len(p.cfg.Group.Loops()))
	if err := p.cfg.Group.Each(func(l *netloop.Loop) { p.workers[l.Index()] = newWorker(p, l) }); err != nil {
		return fmt.Errorf("cannot start the proxy's workers: %w", err)
	}
	return nil
}

// newSession wires what a proxy answers itself: its parameters, INFO's description of it, and the
// state that sessions share.
func (p *Proxy) newSession(listener *net.TCPAddr) {
	start := time.Now()
	p.settings = config.New(config.Options{
		Bind: listener.IP.String(), Port: listener.Port, MaxClients: p.cfg.MaxClients, Databases: p.cfg.Databases,
		Changed: func(c *config.Config) {
			p.slow.Limit(c.SlowerThan(), c.SlowLogLen())
			limits := c.SubscriberLimits()
			p.subscribers.Store(&limits)
		},
		SetCluster: func(map[string]string) error {
			return errors.New("a proxy changes settings of the cluster through its nodes")
		},
	})
	p.server = session.NewServer(session.Options{
		Passwords: p.cfg.RequirePass, Debug: p.cfg.Debug, Start: start, Clock: p.cfg.Group.Clock,
		Config: p.settings, Cluster: cluster.New(p.view), Maintenance: true,
		Sentinel: &session.Sentinel{ID: p.cfg.ID, Names: p.cfg.Masters, Addr: p.clientAddr},
	})
	p.process = figures.NewProcess(figures.Identity{
		Version: p.cfg.Version, Role: ring.RoleProxy.String(), Start: start, Port: listener.Port,
		MaxClients: p.settings.MaxClients, Blocked: p.server.Blocked, Policy: p.settings.Policy,
	})
}

func orDefault[T ~int64](d, value T) T {
	if d == 0 {
		return value
	}
	return d
}

// Addr is the address for clients, with the port that was bound.
func (p *Proxy) Addr() string { return p.listener.Addr() }

// SentinelAddr is that for clients of Redis Sentinel; "": there is none.
func (p *Proxy) SentinelAddr() string {
	if p.sentinel == nil {
		return ""
	}
	return p.sentinel.Addr()
}

// SetTable routes by a table from now on, unless a newer one is in use. t is kept and must not
// change.
func (p *Proxy) SetTable(t *ring.Table) {
	for {
		have := p.table.Load()
		if have != nil && !t.Newer(have) {
			return
		}
		if p.table.CompareAndSwap(have, t) {
			break
		}
	}
	for _, w := range p.workers {
		w.loop.Post(func() { w.install(t) })
	}
}

// SetMembers sets the members that are alive. Pipes to all other nodes close at once.
func (p *Proxy) SetMembers(members []ring.Member) {
	alive, others := make(map[string]bool, len(members)), false
	for _, m := range members {
		alive[m.Name()] = true
		others = others || m.Role == ring.RoleProxy && m.ID != p.cfg.ID
	}
	p.others.Store(others)
	for _, w := range p.workers {
		w.loop.Post(func() { w.setAlive(alive) })
	}
}

// ApplySettings applies the cluster's settings. nil is the empty document.
func (p *Proxy) ApplySettings(s *ring.Settings) {
	if err := p.settings.ApplyCluster(s.Get); err != nil {
		p.cfg.Log.Warn("some settings cannot be applied", "error", err)
	}
	placement, version := ring.PlacementOf(s), s.ID().Version
	err := p.cfg.Group.Each(func(l *netloop.Loop) { p.workers[l.Index()].place(placement, version) })
	if err != nil {
		p.cfg.Log.Warn("some clients use pinned databases by older settings", "error", err)
	}
}

// Ready reports whether every partition has an owner by the table in use, and clients are accepted.
func (p *Proxy) Ready() bool {
	t := p.table.Load()
	if t == nil || p.draining.Load() {
		return false
	}
	for _, owner := range t.Owner {
		if int(owner) >= len(t.Nodes) {
			return false
		}
	}
	return true
}

// Drain stops accepting clients, answers the commands that were received, and closes each session
// after its last reply. Before that, if there is another proxy, sessions that move when they are told to
// have Config.MoveTime for it, in which nothing else changes. Drain returns when all sessions are closed,
// or with the context's error.
func (p *Proxy) Drain(ctx context.Context) error {
	if p.others.Load() {
		p.moveClients(ctx)
	}
	p.draining.Store(true)
	if err := p.stopListening(); err != nil {
		return fmt.Errorf("cannot stop listening: %w", err)
	}
	for _, w := range p.workers {
		w.loop.Post(w.drain)
	}
	tick := time.NewTicker(order.SilenceTick)
	defer tick.Stop()
	for p.clients.Load() > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot drain %d clients: %w", p.clients.Load(), ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// Close closes every connection of the proxy. The loops stay.
func (p *Proxy) Close() error {
	p.stopSampler()
	p.sampler.Wait()
	p.draining.Store(true)
	err := errors.Join(p.stopListening(), p.stopWorkers())
	p.dividers.all.Wait() // they read what loops have read
	p.visiting.Wait()
	return err
}

func (p *Proxy) stopListening() error {
	err := p.listener.Close()
	if p.sentinel != nil {
		err = errors.Join(err, p.sentinel.Close())
	}
	return err
}

func (p *Proxy) stopWorkers() error {
	if err := p.cfg.Group.Each(func(l *netloop.Loop) { p.workers[l.Index()].stop() }); err != nil {
		return fmt.Errorf("cannot stop the proxy's workers: %w", err)
	}
	return nil
}

// accept makes the session of a new connection, or refuses it over the limit.
func (p *Proxy) accept(c *netloop.Conn) netloop.Handler {
	w := p.workers[c.Loop().Index()]
	if p.draining.Load() {
		return nil
	}
	p.clients.Add(1)
	s := &client{w: w, conn: c, replySize: firstReply, timed: stopwatch{seq: noCommand}}
	s.Owner = s
	s.state = p.server.NewState(c.RemoteAddr(), c.LocalAddr(), w.loop.Now())
	s.state.FD, s.state.Loop, s.state.Client = c.FD(), w.loop.Index(), s
	if !p.server.Admit(s.state, c.RemoteIP(), p.isOverfull(), s.turnOut) {
		p.clients.Add(-1)
		w.stats.Rejected++
		c.SetOut(session.AppendTooManyClients(c.Out()))
		c.CloseAfterFlush()
		return abandoned{}
	}
	c.SetAccount(w.account)
	s.limitInput()
	w.add(s)
	return s
}

// acceptForSentinel is accept for a connection to which SENTINEL is known.
func (p *Proxy) acceptForSentinel(c *netloop.Conn) netloop.Handler {
	h := p.accept(c)
	if s, ok := h.(*client); ok {
		s.state.Sentinel = true
	}
	return h
}

// clientAddr is where clients find the proxy: where it is advertised, or where they reached it, at laddr.
// It is only asked for once the proxy listens.
func (p *Proxy) clientAddr(laddr string) (host string, port int) {
	self := p.view().Alone
	if host, port = self.Host, self.Port; host == "" {
		host, _, _ = net.SplitHostPort(laddr)
	}
	if port == 0 {
		_, digits, _ := net.SplitHostPort(p.listener.Addr())
		port, _ = strconv.Atoi(digits)
	}
	return host, port
}

// isOverfull reports whether there are more clients than there may be.
func (p *Proxy) isOverfull() bool {
	most := p.settings.MaxClients()
	return most > 0 && p.clients.Load() > int64(most)
}

// view is the cluster as the proxy shows it to clients of Redis Cluster: itself alone, so that they
// work through it.
func (p *Proxy) view() cluster.View {
	self := &cluster.Endpoint{ID: p.cfg.ID}
	if host, port, err := net.SplitHostPort(p.cfg.Advertise); err == nil {
		self.Host = host
		self.Port, _ = strconv.Atoi(port) // 0, where the client reached us, for a bad one
	}
	return cluster.View{Table: p.table.Load(), Self: p.cfg.ID, Alone: self}
}
