package main

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/metrics/admin"
	"github.com/dunlin-cache/dunlin/metrics/exporter"
	"github.com/dunlin-cache/dunlin/node"
	"github.com/dunlin-cache/dunlin/proxy"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/ring/gossip"
)

// memberOptions are the settings that differ between the members of one process.
type memberOptions struct {
	id, listen, gossip string
	join               []string
	// whole: the whole cluster ends with this process. No member is left to take over, so its
	// members skip the goodbye, which takes a second each.
	whole bool
}

func (o *options) member() memberOptions {
	return memberOptions{id: o.id, listen: o.listen, gossip: o.gossip, join: o.join}
}

// started is a running member, under the addresses that it advertises.
type started struct{ addr, gossip string }

func serveNode(ctx context.Context, o *options, con *console) error {
	if o.id == "" {
		o.id = memberID("", o.listen, dataPort)
	}
	return serve(ctx, o, con, 1, func(ctx context.Context, p *process) error {
		_, err := p.startNode(ctx, o.member(), 1)
		return err
	})
}

func serveProxy(ctx context.Context, o *options, con *console) error {
	if o.id == "" {
		o.id = memberID("-proxy", o.listen, clientPort)
	}
	return serve(ctx, o, con, 0, func(ctx context.Context, p *process) error {
		_, err := p.startProxy(ctx, o.member(), &p.memory.clients)
		return err
	})
}

// startNode starts a node and then its agent: when other members hear of the node, its data port
// already answers. nodes is how many nodes the process will have. The stop reverses the order: the
// agent hands the partitions over and leaves, then the node finishes its requests and closes.
func (p *process) startNode(ctx context.Context, m memberOptions, nodes int) (started, error) {
	self := ring.Member{ID: m.id, Boot: time.Now().UnixNano(), Role: ring.RoleNode, Level: ring.Level}
	n, err := node.Start(node.Config{
		ID:            self.ID,
		Boot:          self.Boot,
		Listen:        m.listen,
		Memory:        int64(p.o.memory),
		MoveRate:      int64(p.o.moveRate),
		Overhead:      nodeOverhead(int64(p.o.memory)*int64(nodes), p.memory.kept, p.o.loops, nodes),
		Nodes:         nodes,
		Eviction:      p.o.eviction,
		DumpForValkey: p.o.dumpFor == dumpForValkey,
		RequirePass:   p.known.passwords,
		Secret:        p.known.secrets,
		MaxClients:    p.o.maxClients,
		Databases:     p.o.databases,
		Whole:         m.whole,
		Pinned:        p.o.pinned,
		Debug:         p.o.debug,
		Version:       version(),
		Wrapper:       p.tls.members(),
		Dialer:        p.tls.dialer(),
		Group:         p.loops,
		Log:           p.log.With("member", self.ID),
	})
	if err != nil {
		return started{}, adviseAddress(err, "listen")
	}
	p.memory.nodes = append(p.memory.nodes, n)
	p.stop.push("node "+self.ID, func(context.Context) error { return n.Close() })
	var agent atomic.Pointer[gossip.Agent] // nil until it is started, below
	relay, err := p.startRelay(self, n, &agent)
	if err != nil {
		return started{}, err
	}
	p.stop.push("clients of node "+self.ID, n.Drain)

	if self.Addr, err = p.advertised(ctx, n.Addr()); err != nil {
		return started{}, err
	}
	a, err := p.startAgent(ctx, self, m, gossip.Config{
		OnTable:      func(t *ring.Table) { relay.SetTable(t); n.SetTable(t) }, // see proxy.Relay.SetTable
		OnMembers:    relay.SetMembers,
		OnSettings:   n.ApplySettings,
		OnSuperseded: func() { n.Fence("the other side of a split will win") },
		OnLeave:      n.Release,
		MinMembers:   p.o.minMembers,
		OnMinority:   func() { n.Fence("fewer nodes are alive than --min-members") },
		OnOutdated:   func() { n.Fence("the cluster needs a higher protocol level than this build speaks") },
	})
	if err != nil {
		return started{}, err
	}
	if !m.whole {
		p.stop.push("haste of node "+self.ID, func(context.Context) error {
			n.Hurry(p.o.drainTimeout)
			return nil
		})
	}
	agent.Store(a)
	n.SetAgent(a)
	n.RequireMembers(p.o.minMembers, a)
	n.SetSettings(a)
	a.SetState(ring.Serving)
	p.admin.AddNode(p.source(self, a), n, a)
	p.log.Info("node runs", "id", self.ID, "addr", self.Addr, "gossip", a.Addr(), "memory", p.o.memory.String())
	return started{self.Addr, a.Addr()}, nil
}

// startRelay starts what listens at all nodes for the clients of a node. To brokers it is a proxy that has the boot of
// the node.
func (p *process) startRelay(self ring.Member, n *node.Node, agent *atomic.Pointer[gossip.Agent]) (*proxy.Relay, error) {
	relay, err := proxy.StartRelay(proxy.Config{
		ID:          self.ID,
		Boot:        self.Boot,
		Version:     version(),
		Secret:      p.known.secrets,
		Silence:     p.o.nodeTimeout,
		PipeBuffers: relayBuffers,
		PipeBudget:  n.ForMembers(),
		Dialer:      p.tls.pipeDialer(),
		Group:       p.loops,
		Log:         p.log.With("member", self.ID, "part", "relay"),
		Moved:       func() { refresh(agent) },
	})
	if err != nil {
		return nil, fmt.Errorf("cannot start the relay of node %q: %w", self.ID, err)
	}
	p.stop.push("relay of node "+self.ID, func(context.Context) error { return relay.Close() })
	n.SetRelay(relay)
	return relay, nil
}

// relayBuffers is how many bytes a relay's questions to brokers may take.
const relayBuffers = 4 << 20

// refresh has an agent that has started look for a newer table.
func refresh(agent *atomic.Pointer[gossip.Agent]) {
	if a := agent.Load(); a != nil {
		a.Refresh()
	}
}

// startProxy starts a proxy and then its agent. At the stop the proxy first finishes its clients'
// requests, while its agent still receives new tables.
func (p *process) startProxy(ctx context.Context, m memberOptions, buffers netloop.Budget) (started, error) {
	self := ring.Member{ID: m.id, Boot: time.Now().UnixNano(), Role: ring.RoleProxy, Level: ring.Level}
	// Without --advertise, a cluster client is told the address at which it connected. This is
	// right behind any load balancer.
	shown := ""
	if p.o.advertise != "" {
		var err error
		if shown, err = p.advertised(ctx, m.listen); err != nil {
			return started{}, err
		}
	}
	var agent atomic.Pointer[gossip.Agent] // nil until it is started, below
	x, err := proxy.Start(proxy.Config{
		ID:           self.ID,
		Boot:         self.Boot,
		Listen:       m.listen,
		Advertise:    shown,
		Sentinel:     p.o.sentinel,
		Masters:      p.o.masters,
		Version:      version(),
		RequirePass:  p.known.passwords,
		Secret:       p.known.secrets,
		MaxClients:   p.o.maxClients,
		Databases:    p.o.databases,
		Debug:        p.o.debug,
		Silence:      p.o.nodeTimeout,
		RelaxedMulti: p.o.multi == relaxedMulti,
		RelaxedSlots: p.o.crossSlot == relaxedSlots,
		HeapMoved:    p.memory.look,
		Buffers:      buffers,
		PipeBuffers:  p.memory.pipeBuffers(),
		Wrapper:      p.tls.clients(),
		Dialer:       p.tls.pipeDialer(),
		Group:        p.loops,
		Log:          p.log.With("member", self.ID),
		Moved:        func() { refresh(&agent) },
	})
	if err != nil {
		return started{}, adviseAddress(err, "listen")
	}
	p.memory.proxy = x
	p.stop.push("proxy "+self.ID, func(context.Context) error { return x.Close() })

	if self.Addr, err = p.advertised(ctx, x.Addr()); err != nil {
		return started{}, err
	}
	a, err := p.startAgent(ctx, self, m, gossip.Config{
		OnTable:    x.SetTable,
		OnMembers:  x.SetMembers,
		OnSettings: x.ApplySettings,
	})
	if err != nil {
		return started{}, err
	}
	agent.Store(a)
	p.stop.push("clients of proxy "+self.ID, x.Drain)
	a.SetState(ring.Serving)
	p.admin.AddProxy(p.source(self, a), x)
	p.log.Info("proxy runs", "id", self.ID, "addr", self.Addr, "gossip", a.Addr(), "sentinel", x.SentinelAddr())
	return started{self.Addr, a.Addr()}, nil
}

// startAgent completes c, starts the agent and makes it leave the cluster at the stop.
func (p *process) startAgent(ctx context.Context, self ring.Member, m memberOptions, c gossip.Config) (*gossip.Agent, error) {
	admin, err := p.advertisedAdmin(ctx, self.Addr)
	if err != nil {
		return nil, err
	}
	advertise, err := advertiseIP(ctx, p.o.advertise, m.gossip)
	if err != nil {
		return nil, err
	}
	self.Admin = admin
	c.Cluster, c.Self, c.Bind, c.Advertise, c.Join = p.o.cluster, self, m.gossip, advertise, m.join
	if c.LevelSettle, c.Whole = p.o.levelSettle, m.whole; m.whole {
		c.LevelSettle = time.Millisecond // no old member can come
	}
	c.Secrets, c.Copies, c.Log = p.known.secrets.All(), max(p.o.copies, 1), p.log.With("member", self.ID)
	c.Fetch = func(ctx context.Context, addr, name string) (*ring.Table, error) {
		return member.FetchTableOf(ctx, p.tls.dialer(), addr, name, p.known.secrets.First())
	}
	c.FetchReport = func(ctx context.Context, addr string) (*ring.Report, error) {
		return member.FetchReport(ctx, p.tls.dialer(), addr, p.known.secrets.First())
	}
	c.FetchSettings = func(ctx context.Context, addr string, id ring.SettingsID) (*ring.Settings, error) {
		s, err := member.FetchSettings(ctx, p.tls.dialer(), addr, p.known.secrets.First(), id)
		if self.Role == ring.RoleProxy {
			s = s.WithoutLibraries()
		}
		return s, err
	}
	agent, err := gossip.Start(c)
	if err != nil {
		return nil, adviseAddress(err, "gossip")
	}
	p.known.gossip = append(p.known.gossip, agent.SetSecrets)
	p.stop.push("gossip of "+self.ID, func(context.Context) error {
		if !m.whole {
			agent.Leave(p.o.drainTimeout)
		}
		agent.Close()
		return nil
	})
	return agent, nil
}

// advertised returns the address under which others reach a socket that is bound to bound.
func (p *process) advertised(ctx context.Context, bound string) (string, error) {
	ip, err := advertiseIP(ctx, p.o.advertise, bound)
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(bound)
	if err != nil {
		return "", fmt.Errorf("cannot advertise %q: %w", bound, err)
	}
	return net.JoinHostPort(ip, port), nil
}

// advertisedAdmin returns the member's admin address as other members shall know it, or "" if only
// this machine can reach it and other machines can reach the member: a loopback address would mean
// another machine to each reader, which is worse than none.
func (p *process) advertisedAdmin(ctx context.Context, member string) (string, error) {
	if isLoopback(ctx, p.admin.Addr()) && !isLoopback(ctx, member) {
		return "", nil
	}
	return p.advertised(ctx, p.admin.Addr())
}

func (p *process) source(self ring.Member, agent *gossip.Agent) admin.Source {
	return admin.Source{ID: self.ID, Boot: self.Boot, Addr: self.Addr, View: agent,
		NotReady: agent.NotReady, Gossip: func() exporter.Gossip {
			s := agent.Stats()
			return exporter.Gossip{
				Health: s.Health, Rejoins: s.Rejoins, Fetches: s.Fetches, FetchErrors: s.FetchErrors,
				Issued: s.Issued, Healed: s.Healed, Rejected: s.Rejected, Strangers: s.Strangers,
			}
		}}
}
