package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/dunlin-cache/dunlin/ring"
)

// DefaultPort is the gossip port of join addresses that name none.
const DefaultPort = 7946

// Failure detection. Measured by simulation for 10 members: a crash is known after 1.5 s in the
// mean and 2.2 s in the 99th percentile.
const (
	probeInterval = 250 * time.Millisecond
	probeTimeout  = 100 * time.Millisecond
	suspicionMult = 4
	// Memberlist would wait up to six times longer for other members' confirmations.
	suspicionMaxMult = 1
	// Memberlist probes more slowly when its own probes fail. Its default of eight makes it blind
	// for 2 s after two nodes have died at once.
	awarenessMaxMult = 2
	// wholeProbeInterval replaces probeInterval if Config.Whole.
	wholeProbeInterval = 10 * probeInterval
)

const (
	gossipInterval   = 100 * time.Millisecond
	pushPullInterval = 10 * time.Second
	// streamTimeout bounds joins and state exchanges, and therefore how long Close waits.
	streamTimeout = 2 * time.Second

	defaultBootstrapWait = 5 * time.Second
	defaultLevelSettle   = 5 * time.Second
)

// Config describes this member, and where it finds the others.
type Config struct {
	// Cluster is the cluster's name. Members ignore members of other clusters, even at an address
	// that once belonged to their own.
	Cluster string
	// Self is this member. Epoch and Issuer are filled in by the Agent. Level is what this build
	// speaks: ring.Level but in tests.
	Self ring.Member
	// Whole says that all members are in this process. None of them dies alone, so they hardly probe each other.
	Whole bool
	// Bind is the address of the gossip port, for UDP and TCP; port 0 takes a free one. Advertise
	// is the address at which others reach the port, if it differs, as it does if Bind is every address.
	Bind, Advertise string
	// Join has addresses of other members, host or host:port. A name that resolves to several
	// addresses, like that of a headless service, stands for all of them. This member may be among
	// them.
	Join []string
	// Secrets are the cluster's secrets, of any length; gossip is encrypted and authenticated with
	// keys derived from them. See SetSecrets. Empty: neither.
	Secrets [][]byte
	// Copies is how many nodes should hold each partition: 2 plans followers.
	Copies int
	Log    *slog.Logger
	// Fetch reads the table that the node at addr, a data address, holds: nil if it has none. If a name is
	// given, another node there must answer with an error. It must respect ctx.
	Fetch func(ctx context.Context, addr, name string) (*ring.Table, error)
	// FetchReport reads which copies the node at addr, a data address, has in sync; Node is filled
	// in by the Agent. It must respect ctx. nil: nobody reports, and so no data ever move.
	FetchReport func(ctx context.Context, addr string) (*ring.Report, error)
	// FetchSettings reads the settings document of that name from the node at addr, a data address:
	// nil if it does not have it. It must respect ctx. nil: there are no settings but this member's
	// own.
	FetchSettings func(ctx context.Context, addr string, id ring.SettingsID) (*ring.Settings, error)
	// OnSettings is called, on a goroutine of its own, with each document that holds from now on;
	// nil is the empty one. The others hear that this member has it when it has returned.
	OnSettings func(*ring.Settings)
	// OnTable is called with every adopted table, in the order of their epochs. OnMembers is called
	// with the alive members, sorted by id, when they changed (versions of tables apart); the list
	// is shared, only read it. OnSuperseded is called when the network was split, the sides have
	// found each other again, and the other side's lineage will win: this member's partitions may
	// have been given away, and a node should Confirm its table before it serves on.
	//
	// All run on one goroutine, one after another, and must not call Close or Leave. All functions
	// but Fetch may be nil.
	OnTable      func(*ring.Table)
	OnMembers    func([]ring.Member)
	OnSuperseded func()
	// MinMembers is how many nodes, itself included, a node must see alive to issue or Confirm a
	// table. As many must also answer then, because a dead node counts as alive until it is
	// declared dead. When fewer are alive and there is a table, OnMinority is called: the node
	// should serve nothing until it can Confirm its table. With more than half of all nodes, the
	// smaller side of a split does not serve what the larger side has given away. 0 and 1: any
	// number is enough.
	MinMembers int
	OnMinority func()
	// OnOutdated is called when another member holds a table of a higher protocol level than this
	// build speaks, as may happen after a split: this member cannot learn what has become of its
	// partitions, and should serve nothing until it can Confirm its table.
	OnOutdated func()
	// OnLeave is called by Leave, on its goroutine, with the table that no longer names this
	// member. The other members rely on this one until it says goodbye, which it does when OnLeave
	// returns: before that, a node should send them what it still has for them. ctx ends with the
	// time for leaving.
	OnLeave func(ctx context.Context, without *ring.Table)
	// BootstrapWait is how long a node with join addresses waits for an answer before it founds a
	// cluster of its own. A node that has met others waits as long for all of the addresses to
	// answer or fail before it founds a cluster with them. 0: 5 s.
	BootstrapWait time.Duration
	// LevelSettle is how long every member must have spoken a higher level before the coordinator
	// raises the cluster to it. The level never falls again, so old members that are about to come
	// back get this time. 0: 5 s.
	LevelSettle time.Duration
}

func (c *Config) complete() error {
	if c.BootstrapWait == 0 {
		c.BootstrapWait = defaultBootstrapWait
	}
	if c.LevelSettle == 0 {
		c.LevelSettle = defaultLevelSettle
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Fetch == nil {
		return errors.New("no way to fetch tables")
	}
	if c.Cluster == "" || len(c.Cluster) > memberlist.LabelMaxSize {
		return fmt.Errorf("cluster name %q has %d bytes, want 1 to %d",
			c.Cluster, len(c.Cluster), memberlist.LabelMaxSize)
	}
	c.Self.Fingerprint = ring.Fingerprint()
	c.Self.Epoch, c.Self.Issuer, c.Self.TableLevel = 0, "", 0
	if err := c.Self.Validate(); err != nil {
		return err
	}
	if c.Self.Role == ring.RoleNode && c.Self.Addr == "" {
		return fmt.Errorf("node %q has no data address", c.Self.ID)
	}
	return nil
}

// memberlistConfig translates c; the caller adds the delegates.
func (c *Config) memberlistConfig() (m *memberlist.Config, err error) {
	m = memberlist.DefaultLANConfig()
	m.Name = c.Self.Name()
	m.Label = c.Cluster
	m.ProbeInterval, m.ProbeTimeout = probeInterval, probeTimeout
	if c.Whole {
		m.ProbeInterval = wholeProbeInterval
	}
	m.SuspicionMult, m.SuspicionMaxTimeoutMult = suspicionMult, suspicionMaxMult
	m.AwarenessMaxMultiplier = awarenessMaxMult
	m.GossipInterval = gossipInterval
	m.PushPullInterval = pushPullInterval
	m.TCPTimeout = streamTimeout
	// A life's name is never used again, so the same name at a new address is the same process
	// whose address changed: let it have its name back.
	m.DeadNodeReclaimTime = time.Second
	// Our messages are a few hundred bytes; without decompression there is no decompression bomb.
	m.EnableCompression = false
	// Gossip carries three protocol versions of every member: the lowest and the highest that it
	// speaks, and the present one. The highest is our level. The other two stay 0 and mean nothing:
	// memberlist would part members whose versions do not overlap, but the cluster's level is in
	// its table. Builds that know no levels send 0 and check only for an overlap.
	m.DelegateProtocolMax = c.Self.Level
	if m.Keyring, err = newKeyring(c.Secrets); err != nil {
		return nil, err
	}
	ip, port, err := resolveOne(c.Bind, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot use gossip bind address %q: %w", c.Bind, err)
	}
	m.BindAddr, m.BindPort, m.AdvertisePort = ip, port, port
	if c.Advertise == "" {
		if net.ParseIP(ip).IsUnspecified() {
			return nil, fmt.Errorf("cannot advertise gossip bind address %q: name an address to advertise", c.Bind)
		}
		return m, nil
	}
	ip, advertised, err := resolveOne(c.Advertise, port)
	if err != nil {
		return nil, fmt.Errorf("cannot use gossip advertise address %q: %w", c.Advertise, err)
	}
	m.AdvertiseAddr, m.AdvertisePort = ip, advertised
	return m, nil
}

// resolveOne returns the first IP address and the port of addr, which is a host, a :port or a
// host:port. An empty host means every interface.
func resolveOne(addr string, defaultPort int) (ip string, port int, err error) {
	host, port, err := splitHostPort(addr, defaultPort)
	if err != nil {
		return "", 0, err
	}
	if host == "" {
		return "0.0.0.0", port, nil
	}
	if net.ParseIP(host) != nil {
		return host, port, nil
	}
	ips, err := net.LookupHost(host)
	if err != nil {
		return "", 0, err
	}
	return ips[0], port, nil
}

// splitHostPort is net.SplitHostPort for addresses whose port may be missing.
func splitHostPort(addr string, defaultPort int) (host string, port int, err error) {
	if net.ParseIP(addr) != nil {
		return addr, defaultPort, nil // an IPv6 one has colons, but no port behind the last
	}
	host, text, err := net.SplitHostPort(addr)
	var addrErr *net.AddrError
	if errors.As(err, &addrErr) && addrErr.Err == "missing port in address" {
		return addr, defaultPort, nil
	}
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("port %q is not a number below 65536", text)
	}
	return host, int(n), nil
}
