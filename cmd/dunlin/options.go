package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/dunlin-cache/dunlin/internal/tlsbridge"
	"github.com/dunlin-cache/dunlin/node"
	"github.com/dunlin-cache/dunlin/ring"
)

// Default ports, the same in every document and manifest.
const (
	clientPort = "6379"
	dataPort   = "6380"
	gossipPort = "7946"
	adminPort  = "9180"
)

// options holds every setting of every command. A command registers the flags
// that it reads; the others keep their zero values.
type options struct {
	alone bool // local: all members of the cluster are in this process

	id        string   // stable name of this member
	cluster   string   // members with another cluster name do not see each other
	listen    string   // host:port for clients (proxy) or data (node)
	gossip    string   // host:port for gossip, TCP and UDP
	admin     string   // host:port for admin HTTP
	advertise string   // host at which others reach this member; "": the host of the bound address
	join      []string // gossip host:ports of any members

	nodes    int    // local: how many nodes
	memory   size   // limit of one node
	eviction string // policy of the nodes
	copies   int    // 1 or 2
	moveRate size   // bytes a second; 0: no limit
	dumpFor  string // dumpForRedis or dumpForValkey

	minMembers int // nodes that must be alive for one of them to serve
	loops      int // event loops; 0: as many as the processors allow
	busyPoll   time.Duration

	nodeTimeout  time.Duration // how long a node may owe replies in silence
	drainTimeout time.Duration // how long a stopping node waits for others to take its data
	levelSettle  time.Duration // see gossip.Config; 0: as long as that says

	requirePass, requirePassFile string

	maxClients     int
	databases      int
	pinned         string
	debug          bool
	multi          string
	crossSlot      string
	sentinel       string   // host:port for clients of Redis Sentinel (proxy); "": none
	masters        []string // names of primaries that they are shown
	secretFile     string
	adminTokenFile string
	insecure       bool
	logLevel       string
	logFormat      string
	pprof          bool

	clientTLS, clusterTLS tlsbridge.Files
}

// addCommon registers the flags of every command that runs a server.
func (o *options) addCommon(f *pflag.FlagSet) {
	f.StringVar(&o.admin, "admin", loopback(adminPort),
		"admin HTTP address: /metrics, /healthz, /readyz, /api/status")
	f.StringVar(&o.adminTokenFile, "admin-token-file", "", "file with a token, at least 16 bytes, the same for all members: without it, the admin address\n"+
		"shows no keys, client addresses or members. It is a bearer's token, or the password of any\n"+
		"user; with several lines, each is accepted. /metrics, /healthz and /readyz need none")
	f.StringVar(&o.cluster, "cluster", "dunlin", "cluster name; members with different names ignore each other")
	f.StringVar(&o.requirePass, "requirepass", "", "password that clients must give with AUTH or HELLO")
	f.StringVar(&o.requirePassFile, "requirepass-file", "",
		"file with that password, out of the sight of ps; with several lines, each is accepted. It\n"+
			"is read again when it changes; what it held before is accepted for another minute")
	f.IntVar(&o.maxClients, "maxclients", 10000, "maximum number of client connections at a time; lowered if the process may not open so\n"+
		"many files")
	f.IntVar(&o.databases, "databases", ring.MaxDatabases,
		"number of databases that clients may SELECT, at most 16; the same for all members")
	f.BoolVar(&o.debug, "debug-commands", false,
		"allow DEBUG SLEEP, which delays the replies of a connection: for tests of clients")
	f.StringVar(&o.secretFile, "secret-file", "",
		"file with the cluster's secret, which all members share, at least 16 bytes; with several\n"+
			"lines, each is accepted and the first is used. It is read again when it changes")
	f.BoolVar(&o.insecure, "insecure", false, "allow addresses other than loopback without a secret")
	f.IntVar(&o.loops, "loops", 0, "number of event loops (default: number of processors minus one)")
	f.DurationVar(&o.busyPoll, "busy-poll", 0,
		"how long an event loop looks for requests before it sleeps, at most 1ms: 50us saves the\n"+
			"wake-up of a thread for each request of a lone client, and costs up to a processor a\n"+
			"loop while there are requests. Never more loops than processors that nobody else uses\n"+
			"do so, and only while it is worth it (0: off; Linux)")
	f.StringVar(&o.logLevel, "log-level", "info", "log level: debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "text", "log format: text or json")
	f.BoolVar(&o.pprof, "pprof", false, "serve /debug/pprof on the admin address")
	o.addClusterTLS(f)
}

// addMember registers the flags of a process that is one member of a cluster.
func (o *options) addMember(f *pflag.FlagSet) {
	f.StringVar(&o.id, "id", "",
		"stable name of this member (default: the host name; for a proxy with the suffix -proxy;\n"+
			"with another --listen port than the default also with that port)")
	f.StringVar(&o.gossip, "gossip", loopback(gossipPort), "gossip address, TCP and UDP")
	f.StringVar(&o.advertise, "advertise", "", "host or IP at which other members and clients reach this one")
	f.StringSliceVar(&o.join, "join", nil,
		"gossip addresses of members to join; a name may resolve to several addresses")
	const settle = "level-settle" // for tests, which start many clusters of one build
	f.DurationVar(&o.levelSettle, settle, 0,
		"how long all members must have spoken a higher protocol level before the cluster uses it (0: 5s)")
	if err := f.MarkHidden(settle); err != nil {
		panic("BUG: " + err.Error())
	}
}

func (o *options) addNode(f *pflag.FlagSet) {
	f.StringVar(&o.listen, "listen", loopback(dataPort),
		"data address, for proxies, other nodes and cluster clients")
	f.IntVar(&o.minMembers, "min-members", 1,
		"number of nodes, itself included, that a node must see alive to serve; set it to more than\n"+
			"half of all nodes so that the smaller side of a network split stops serving")
	f.DurationVar(&o.drainTimeout, "drain-timeout", 25*time.Second,
		"how long a stopping node waits for others to take over its data; allow 20 s more\n"+
			"before you kill the process")
	o.addStorage(f, defaultNodeMemory())
}

func (o *options) addProxy(f *pflag.FlagSet) {
	f.StringVar(&o.listen, "listen", loopback(clientPort), "client address")
	o.addForwarding(f)
	o.addSentinel(f)
	o.addClientTLS(f)
}

// addForwarding registers the flags of a proxy, whatever else is in its process.
func (o *options) addForwarding(f *pflag.FlagSet) {
	f.DurationVar(&o.nodeTimeout, "node-timeout", defaultNodeTimeout,
		"how long a node may send nothing while it owes replies, before its connections are given up:\n"+
			"more than a node ever stands still because its processors are throttled, 100ms to 5s")
	f.StringVar(&o.multi, "multi", strictMulti,
		"transactions (MULTI) with keys of several slots: strict refuses them; relaxed executes\n"+
			"the commands of each slot atomically, but not the transaction as a whole")
	f.StringVar(&o.crossSlot, "cross-slot", strictSlots,
		"commands like SUNIONSTORE, RENAME, LMOVE and MSETNX with keys of several slots: strict refuses\n"+
			"them; relaxed executes them, most on values that are not read in one moment")
}

func (o *options) addSentinel(f *pflag.FlagSet) {
	f.StringVar(&o.sentinel, "sentinel-listen", "",
		"address for clients that are configured for Redis Sentinel: there, any name is that of the proxy\n"+
			"(default none; Redis's port is 26379)")
	f.StringSliceVar(&o.masters, "sentinel-masters", []string{"mymaster"},
		"names that SENTINEL MASTERS lists: some clients look theirs up in that list")
}

const (
	strictMulti  = "strict"
	relaxedMulti = "relaxed"

	strictSlots  = "strict"
	relaxedSlots = "relaxed"

	dumpForRedis  = "redis"
	dumpForValkey = "valkey"
)

func (o *options) addLocal(f *pflag.FlagSet) {
	f.StringVar(&o.listen, "listen", loopback(clientPort),
		"client address of the proxy; the nodes listen on the ports that follow")
	f.IntVar(&o.nodes, "nodes", 3, "number of nodes")
	o.addForwarding(f)
	o.addSentinel(f)
	o.addClientTLS(f)
	o.addStorage(f, localNodeMemory)
}

func (o *options) addStorage(f *pflag.FlagSet, memory size) {
	o.memory = memory
	f.Var(&o.memory, "memory",
		"memory limit of a node, such as 512mb or 2gb: values, index and connections. The process\n"+
			"stays within 1.1 times this limit; give a container a third more than the limit (default\n"+
			"in a container: three quarters of its memory)")
	f.StringVar(&o.pinned, "pinned-databases", "",
		"databases of which all keys lie on one node, such as 8-15 or 8,12-13: there, commands of several\n"+
			"keys, transactions and scripts may use any keys. Only for the first node of a new cluster;\n"+
			"later: CONFIG SET pinned-databases")
	f.StringVar(&o.eviction, "eviction", "allkeys",
		"what a node evicts when its memory is full: allkeys (any key, those used least first),\n"+
			"volatile-ttl (only keys with a time to live, the shortest first), noeviction\n"+
			"(nothing; writes fail). Redis's names are accepted as well: allkeys-lru, volatile-lfu, ...")
	f.IntVar(&o.copies, "copies", 2,
		"copies of every partition, 1 or 2: with 2, each partition has a follower, which takes\n"+
			"over when the owner dies (failover)")
	f.StringVar(&o.dumpFor, "dump-for", dumpForRedis,
		"redis or valkey: who reads what DUMP writes of hashes whose fields expire, Redis from 7.4 on\n"+
			"or Valkey from 9 on, and of streams, Redis from 7.0 on or Valkey; RESTORE reads both")
	f.Var(&o.moveRate, "move-rate",
		"bytes per second at which a node copies partitions to each new owner or follower, such\n"+
			"as 50mb; live changes are not throttled (default no limit)")
}

// check refuses settings with which no command could run, before anything is started. It looks only
// at settings that the command has a flag for.
func (o *options) check(f *pflag.FlagSet) error {
	has := func(name string) bool { return f.Lookup(name) != nil }
	addresses := []struct{ flag, value string }{
		{"listen", o.listen}, {"gossip", o.gossip}, {"admin", o.admin}, {"sentinel-listen", o.sentinel},
	}
	for _, a := range addresses {
		if !has(a.flag) || a.flag == "sentinel-listen" && a.value == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(a.value); err != nil {
			return fmt.Errorf("--%s %q is not host:port: %w", a.flag, a.value, err)
		}
	}
	if _, err := node.ParseEviction(o.eviction); err != nil {
		return fmt.Errorf("--eviction: %w", err)
	}
	pinned, err := ring.ParsePinned(o.pinned)
	if err != nil {
		return fmt.Errorf("--pinned-databases: %w", err)
	}
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	switch {
	case has("id") && (!utf8.ValidString(o.id) || strings.ContainsFunc(o.id, unprintable)):
		// The id is a label of many metrics.
		return fmt.Errorf("--id %q: want printable characters only", o.id)
	case has("nodes") && (o.nodes < 1 || o.nodes > maxLocalNodes):
		return fmt.Errorf("--nodes %d: want 1 to %d", o.nodes, maxLocalNodes)
	case has("copies") && o.copies != 1 && o.copies != 2:
		return fmt.Errorf("--copies %d: want 1 or 2", o.copies)
	case has("move-rate") && o.moveRate < 0:
		return fmt.Errorf("--move-rate %s: want 0 (no limit) or more", o.moveRate.String())
	case has("dump-for") && o.dumpFor != dumpForRedis && o.dumpFor != dumpForValkey:
		return fmt.Errorf("--dump-for %q: want redis or valkey", o.dumpFor)
	case has("memory") && o.memory <= 0:
		return fmt.Errorf("--memory %s: want more than 0", o.memory.String())
	case has("multi") && o.multi != strictMulti && o.multi != relaxedMulti:
		return fmt.Errorf("--multi %q: want strict or relaxed", o.multi)
	case has("cross-slot") && o.crossSlot != strictSlots && o.crossSlot != relaxedSlots:
		return fmt.Errorf("--cross-slot %q: want strict or relaxed", o.crossSlot)
	case has("min-members") && (o.minMembers < 1 || o.minMembers > ring.MaxNodes):
		return fmt.Errorf("--min-members %d: want 1 to %d", o.minMembers, ring.MaxNodes)
	case has("node-timeout") && (o.nodeTimeout < minNodeTimeout || o.nodeTimeout > maxNodeTimeout):
		return fmt.Errorf("--node-timeout %v: want %v to %v", o.nodeTimeout, minNodeTimeout, maxNodeTimeout)
	case o.drainTimeout < 0:
		return fmt.Errorf("--drain-timeout %v: want 0 (leave the data behind) or more", o.drainTimeout)
	case o.loops < 0:
		return fmt.Errorf("--loops %d: want 0 (as many as the processors allow) or more", o.loops)
	case o.busyPoll < 0 || o.busyPoll > maxBusyPoll:
		return fmt.Errorf("--busy-poll %v: want 0 (off) to %v", o.busyPoll, maxBusyPoll)
	case o.requirePass != "" && o.requirePassFile != "":
		return errors.New("--requirepass and --requirepass-file exclude each other")
	case o.maxClients < 1:
		return fmt.Errorf("--maxclients %d: want at least 1", o.maxClients)
	case has("databases") && (o.databases < 1 || o.databases > ring.MaxDatabases):
		return fmt.Errorf("--databases %d: want 1 to %d", o.databases, ring.MaxDatabases)
	}
	if err := pinned.CheckSelectable(o.databases); has("databases") && err != nil {
		return fmt.Errorf("--pinned-databases %s: %w", pinned, err)
	}
	return o.checkTLS()
}

// A proxy that gives a node up sooner than minNodeTimeout does so for a pause of the processors. Later than
// maxNodeTimeout, the node is dead for all members.
const (
	defaultNodeTimeout = 250 * time.Millisecond
	minNodeTimeout     = 100 * time.Millisecond
	maxNodeTimeout     = 5 * time.Second
)

// maxBusyPoll is more than any wake-up takes.
const maxBusyPoll = time.Millisecond

// maxLocalNodes keeps a typing error from starting thousands of nodes.
const maxLocalNodes = 64

func loopback(port string) string { return net.JoinHostPort("127.0.0.1", port) }

// memberID returns the id of a member without --id. The id is the same after a restart, and differs
// between two members on one machine: of two members with one id, the cluster takes the older for
// dead.
func memberID(suffix, listen, usualPort string) string {
	name, err := os.Hostname()
	if err != nil {
		name = "dunlin"
	}
	name += suffix
	if _, port, err := net.SplitHostPort(listen); err == nil && port != usualPort {
		name += "-" + port
	}
	return name
}
