package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/bench/load"
	"github.com/dunlin-cache/dunlin/internal/freeport"
)

const (
	// readyLimit is how long a peer may take to answer after its start, on a busy machine.
	readyLimit = 30 * time.Second
	// pollInterval is how often a starting peer is asked.
	pollInterval = 50 * time.Millisecond
	// fillLimit bounds filling one peer with one set of keys.
	fillLimit = 2 * time.Minute
	// backends is how many nodes each kind of proxy has.
	backends = 3
	// singleMemory is the limit of a node without a proxy: one value may take a quarter of it, as a
	// stream of 10 million entries does.
	singleMemory = "4gb"
)

// peer is one contender of the race.
type peer struct {
	name  string
	needs []string // tools besides Dunlin's binary
	start func(s *stable, tools map[string]string) (*live, error)
}

// live is a started peer. If start returns one with an error, the caller must still end it.
type live struct {
	name     string
	addr     string // where clients connect
	protocol load.Protocol
	procs    []*process
	doors    []string // where subscribers connect, in turns; nil: at addr

	// serving returns why the peer is not complete yet. nil: the peer is complete when it answers
	// SET.
	serving func(ctx context.Context) error
}

var peers = []peer{
	{"redis", []string{redisServer}, startRedis},
	{"memcached", []string{memcached}, startMemcached},
	{"twemproxy+3", []string{redisServer, nutcracker}, startTwemproxy},
	single("dunlin-node", 0),
	cluster("dunlin+3", backends, 0),
	{"relay+1", nil, startRelay},
}

// The tools, and the packages of Debian that have them.
const (
	redisServer = "redis-server"
	memcached   = "memcached"
	nutcracker  = "nutcracker"
	dunlin      = "dunlin"
)

// findTool also looks where Debian installs servers, which is not in every user's PATH.
func findTool(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	path = filepath.Join("/usr/sbin", name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("missing: %s (Debian: apt-get install %s)", name, name)
}

func (l *live) add(p *process, err error) error {
	if err == nil {
		l.procs = append(l.procs, p)
	}
	return err
}

func (l *live) addRedis(s *stable, tools map[string]string, name, addr string, more ...string) error {
	host, port, _ := net.SplitHostPort(addr) // freeAddr made it
	return l.add(s.start(roleNode, name, tools[redisServer], append([]string{
		"--bind", host, "--port", port, "--save", "", "--appendonly", "no", "--maxclients", s.maxClients}, more...)...))
}

func startRedis(s *stable, tools map[string]string) (*live, error) {
	l := &live{name: "redis", addr: freeAddr()}
	return l, l.addRedis(s, tools, "redis", l.addr)
}

func startMemcached(s *stable, tools map[string]string) (*live, error) {
	l := &live{name: "memcached", addr: freeAddr(), protocol: load.Memcached}
	me, err := user.Current()
	if err != nil {
		return l, fmt.Errorf("cannot tell who runs memcached: %w", err)
	}
	host, port, _ := net.SplitHostPort(l.addr) // freeAddr made it
	// Root must name a user; the defaults are 1,024 clients and 64 MB.
	return l, l.add(s.start(roleNode, "memcached", tools[memcached],
		"-l", host, "-p", port, "-U", "0", "-u", me.Username, "-m", "2048", "-c", s.maxClients))
}

func startTwemproxy(s *stable, tools map[string]string) (*live, error) {
	l := &live{name: "twemproxy+3", addr: freeAddr()}
	var servers strings.Builder
	for i := range backends {
		addr := freeAddr()
		if err := l.addRedis(s, tools, fmt.Sprintf("twemproxy-redis-%d", i), addr); err != nil {
			return l, err
		}
		fmt.Fprintf(&servers, "   - %s:1\n", addr)
	}
	// Without auto_eject_hosts a node that is slow once keeps its keys, as in Dunlin.
	settings := fmt.Sprintf("race:\n  listen: %s\n  hash: fnv1a_64\n  distribution: ketama\n  redis: true\n  timeout: 5000\n  servers:\n%s",
		l.addr, servers.String())
	file := filepath.Join(s.dir, "twemproxy.yml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		return l, fmt.Errorf("cannot write twemproxy's settings: %w", err)
	}
	// Both outputs go to the log that start has made, because lastWords reads it.
	host, port, _ := net.SplitHostPort(freeAddr())
	return l, l.add(s.start(roleProxy, "twemproxy", tools[nutcracker], "-c", file, "-a", host, "-s", port,
		"-o", filepath.Join(s.dir, "twemproxy.log"), "-p", filepath.Join(s.dir, "twemproxy.pid")))
}

// single is one node without a proxy. loops 0: the default.
func single(name string, loops int) peer {
	return peer{name: name, start: func(s *stable, tools map[string]string) (*live, error) {
		l := &live{name: name, addr: freeAddr()}
		l.serving = wholeCluster(l.addr, 1)
		return l, l.add(s.start(roleNode, name, tools[dunlin], withLoops(loops, "node", "--listen", l.addr,
			"--gossip", freeAddr(), "--admin", freeAddr(), "--memory", singleMemory, "--copies", "1", "--maxclients", s.maxClients)...))
	}}
}

// cluster is a proxy with nodes. If loops is not 0, the proxy has that many loops, and each node
// has one.
func cluster(name string, nodes, loops int) peer { return clusterWith(name, nodes, loops) }

// clusterWith is a cluster whose proxy has more arguments.
func clusterWith(name string, nodes, loops int, arguments ...string) peer {
	return peer{name: name, start: func(s *stable, tools map[string]string) (*live, error) {
		l, _, err := startCluster(s, tools, name, nodes, loops, arguments...)
		return l, err
	}}
}

// startCluster also returns the addresses of the nodes.
func startCluster(
	s *stable, tools map[string]string, name string, nodes, loops int, arguments ...string,
) (l *live, data []string, err error) {
	l = &live{name: name, addr: freeAddr()}
	stem := strings.NewReplacer("+", "-", ", ", "-", " ", "-").Replace(name) // of ids
	var gossip []string
	for range nodes {
		gossip, data = append(gossip, freeAddr()), append(data, freeAddr())
	}
	join := strings.Join(gossip[:min(nodes, backends)], ",")
	for i := range nodes {
		id := fmt.Sprintf("%s-node-%d", stem, i)
		err := l.add(s.start(roleNode, id, tools[dunlin], withLoops(min(loops, 1), "node", "--id", id, "--listen", data[i],
			"--gossip", gossip[i], "--admin", freeAddr(), "--join", join, "--memory", "1gb", "--copies", "1")...))
		if err != nil {
			return l, data, err
		}
	}
	l.serving = func(ctx context.Context) error { return wholeClusters(ctx, data) }
	return l, data, l.add(s.start(roleProxy, name, tools[dunlin], withLoops(loops, append([]string{"proxy", "--id", stem,
		"--listen", l.addr, "--gossip", freeAddr(), "--admin", freeAddr(), "--join", join, "--maxclients", s.maxClients},
		arguments...)...)...))
}

func withLoops(loops int, arguments ...string) []string {
	if loops > 0 {
		arguments = append(arguments, "--loops", strconv.Itoa(loops))
	}
	return arguments
}

// wholeClusters checks that all nodes know a table with all of them. A first table may name only
// the nodes that started quickly. Filling such a cluster would lose the keys that move when the
// others join.
func wholeClusters(ctx context.Context, addrs []string) error {
	for _, addr := range addrs {
		if err := wholeCluster(addr, len(addrs))(ctx); err != nil {
			return err
		}
	}
	return nil
}

// wholeCluster checks that the Dunlin node at addr knows a table in which size
// nodes own all slots.
func wholeCluster(addr string, size int) func(context.Context) error {
	return func(ctx context.Context) error {
		return wantClusterInfo(ctx, addr, "cluster_state:ok", fmt.Sprintf("cluster_size:%d", size))
	}
}

// wantClusterInfo returns an error if CLUSTER INFO does not have all of some lines.
func wantClusterInfo(ctx context.Context, addr string, lines ...string) error {
	text, err := ask(ctx, addr, "CLUSTER INFO")
	if err != nil {
		return err
	}
	for _, want := range lines {
		if !strings.Contains(text, want+"\r\n") {
			return fmt.Errorf("CLUSTER INFO of %s is without %q", addr, want)
		}
	}
	return nil
}

// waitReady asks until the peer serves. It gives up if one of the peer's processes has ended.
func (l *live) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		err := l.ready(ctx)
		if err == nil {
			return nil
		}
		for _, p := range l.procs {
			if !p.running() {
				return fmt.Errorf("%s has ended: %s", p.name, p.lastWords())
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %v: %w", l.name, readyLimit, err)
		case <-time.After(pollInterval):
		}
	}
}

func (l *live) ready(ctx context.Context) error {
	if l.serving != nil {
		if err := l.serving(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return load.Fill(ctx, small.config(l, 1), askLimit)
}

// fill sets all keys, so that every GET of the race finds its key.
func (l *live) fill(ctx context.Context, keys int) error {
	for _, d := range []data{small, middle, large} {
		if err := load.Fill(ctx, d.config(l, keys), fillLimit); err != nil {
			return err
		}
	}
	return nil
}

// usage adds up the usage of the processes by role.
func (l *live) usage() (cpu [roles]time.Duration, bytes [roles]int64, err error) {
	for _, p := range l.procs {
		u, bad := p.usage()
		err = errors.Join(err, bad)
		cpu[p.role] += u.cpu
		bytes[p.role] += u.bytes
	}
	return cpu, bytes, err
}

func (l *live) end() {
	for _, p := range l.procs {
		p.end()
	}
}

// freeAddr returns a loopback address that is free for TCP and UDP, below the ephemeral ports: the load's
// connections cannot take it before its server, nor can another process of tests or benchmarks.
func freeAddr() string {
	port, err := freeport.Choose()
	if err != nil {
		panic(err)
	}
	return freeport.Loopback(port)
}
