// Package test checks the repository itself: which package may import which, and whether what the
// documents name exists. The tests of whole clusters are in the packages below it.
package test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/dunlin-cache/dunlin"

// allowed lists, for every package, the packages of this module that it may import. A package that
// is not listed fails the test: add a new package here first.
var allowed = map[string][]string{
	"internal/lobby":        {},
	"internal/resp":         {},
	"internal/freeport":     {},
	"internal/redistest":    {"internal/freeport"},
	"internal/conversation": {"internal/resp"},
	"internal/mapping":      {},
	"internal/boottime":     {},
	"internal/beat":         {},
	"internal/netloop":      {"internal/beat", "internal/boottime", "internal/mapping"},
	"internal/monitor":      {"internal/netloop"},
	"internal/tlsbridge":    {"internal/lobby"},
	"internal/certtest":     {},
	"internal/command":      {},
	"internal/bitstring":    {},
	"internal/glob":         {},
	"internal/keyevent":     {},
	"internal/hoard":        {},
	"internal/tokenlist":    {},
	"internal/lcs":          {},
	"internal/lua":          {},
	"internal/longdouble":   {},
	"internal/hyperloglog":  {},
	"internal/rdb":          {},
	"internal/member":       {"internal/resp", "ring"},
	"internal/about":        {"internal/resp", "internal/command", "internal/glob"},
	"internal/config":       {"internal/resp", "internal/command", "internal/glob", "internal/keyevent", "internal/pubsub", "ring"},
	"internal/figures":      {"internal/resp", "internal/command"},
	"internal/cluster":      {"internal/resp", "internal/command", "ring"},
	"internal/pubsub":       {"internal/glob", "internal/resp"},
	"internal/tracking":     {"internal/pubsub", "internal/resp"},
	"internal/session": {
		"internal/pubsub", "internal/resp", "internal/command", "internal/about", "internal/config", "internal/cluster",
		"internal/lobby", "internal/tracking",
	},
	"node/engine":    {"internal/beat", "internal/mapping"},
	"node/ownership": {"ring"},
	"ring":           {},
	"ring/office":    {"ring"},
	"ring/gossip":    {"internal/beat", "internal/boottime", "ring", "ring/office"},
	"node/replica":   {"internal/member", "internal/resp", "node/ownership", "ring"},
	"node/exec": {
		"internal/resp", "internal/netloop", "internal/command", "internal/session", "internal/rdb",
		"internal/glob", "internal/keyevent", "internal/longdouble", "internal/member", "ring", "node/engine",
		"node/data/shape",
	},
	"node/measure": {"internal/command", "internal/figures", "node/engine", "ring"},
	"node/ticket":  {"internal/hoard", "internal/resp", "node/exec"},
	"node/crew":    {},
	"node/broker":  {"internal/glob", "internal/keyevent", "internal/pubsub", "node/ownership", "ring"},
	"node/stream": {
		"internal/beat", "internal/member", "internal/resp", "node/engine", "node/ownership", "node/replica", "ring",
	},
	"node/script":     {"internal/command", "internal/lua", "internal/rdb", "internal/resp"},
	"node/data/shape": {"node/engine"},
	"node/data/strings": {
		"internal/keyevent", "internal/resp", "internal/command", "internal/rdb", "internal/lcs", "internal/longdouble", "node/engine",
		"node/exec",
	},
	"node/data/hashes": {
		"internal/keyevent", "internal/resp", "internal/command", "internal/glob", "internal/longdouble", "internal/member", "internal/rdb", "ring",
		"node/engine", "node/exec", "node/data/shape",
	},
	"node/data/lists": {
		"internal/keyevent", "internal/rdb", "internal/resp", "internal/command", "node/engine", "node/exec", "node/data/shape", "ring",
	},
	"node/data/sortedsets": {
		"internal/keyevent", "internal/rdb", "internal/resp", "internal/command", "internal/glob", "internal/longdouble",
		"node/engine", "node/exec", "node/data/shape", "ring",
	},
	"node/data/sets": {
		"internal/keyevent", "internal/rdb", "internal/resp", "internal/command", "node/engine", "node/exec", "node/data/shape",
		"ring",
	},
	"node/data/streams": {
		"internal/keyevent", "internal/member", "internal/rdb", "internal/resp", "internal/command", "node/engine", "node/exec",
		"node/data/shape", "ring",
	},
	"node/data/geo":          {"internal/keyevent", "internal/resp", "internal/command", "node/engine", "node/exec", "node/data/shape", "node/data/sortedsets"},
	"node/data/bitmaps":      {"internal/keyevent", "internal/resp", "internal/command", "internal/bitstring", "node/engine", "node/exec"},
	"node/data/hyperloglogs": {"internal/keyevent", "internal/command", "internal/hyperloglog", "node/engine", "node/exec"},
	"node/data/keys": {
		"internal/keyevent", "internal/resp", "internal/command", "internal/cluster", "internal/member", "internal/glob", "internal/rdb",
		"ring", "node/engine", "node/exec", "node/data/shape",
	},
	"node": {
		"internal/boottime", "internal/member", "internal/monitor", "internal/resp", "internal/netloop", "internal/command",
		"internal/session", "internal/config", "internal/cluster", "internal/figures", "ring",
		"node/engine", "node/ownership", "node/replica", "node/crew", "node/exec", "node/measure", "node/stream",
		"node/ticket", "node/data/strings", "node/data/bitmaps", "node/data/hashes", "node/data/hyperloglogs", "node/data/lists",
		"node/data/keys", "node/data/sets", "node/data/sortedsets", "node/data/geo", "node/data/streams",
		"internal/lobby", "internal/glob", "internal/keyevent", "internal/pubsub", "node/broker", "node/script",
		"internal/hoard", "internal/tokenlist", "internal/tracking",
	},
	"proxy/order": {"internal/command", "internal/member", "internal/resp", "internal/tokenlist", "ring"},
	"proxy": {
		"internal/beat", "internal/cluster", "internal/command", "internal/config", "internal/figures", "internal/hoard",
		"internal/keyevent", "internal/longdouble", "internal/member", "internal/monitor", "internal/netloop", "internal/pubsub",
		"internal/resp", "internal/session",
		"internal/tracking", "proxy/order", "proxy/wide", "ring",
	},
	"metrics/exporter": {"node", "proxy", "ring", "internal/netloop", "internal/command", "internal/figures"},
	"metrics/status":   {"node", "proxy", "ring", "internal/command", "internal/figures"},
	"metrics/page":     {"metrics/status", "ring"},
	"metrics/control":  {},
	"metrics/admin": {
		"metrics/exporter", "metrics/status", "metrics/page", "metrics/control", "internal/netloop",
		"internal/lobby",
	},
	"metrics/fake":     {"metrics/status", "node", "proxy", "ring", "internal/figures"},
	"test/harness":     {"internal/conversation", "internal/freeport", "internal/member", "internal/resp", "ring"},
	"test/chaos":       {"internal/member", "internal/resp", "ring", "test/harness"},
	"bench/race":       {"bench/histogram", "bench/load", "internal/freeport"},
	"bench/engine":     {"node/engine", "ring", "bench/engine/sim", "bench/histogram"},
	"bench/engine/sim": {},
	"bench/histogram":  {},
	"bench/load":       {"bench/histogram"},
	"bench/reconnect":  {"bench/histogram"},
	"cmd/dunlin": {
		"node", "proxy", "ring", "ring/gossip", "metrics/admin", "metrics/control", "metrics/exporter",
		"metrics/status", "internal/member", "internal/netloop", "internal/session",
		"internal/beat", "internal/command", "internal/tlsbridge", "internal/mapping",
	},
	"proxy/wide": {
		"internal/member", "internal/resp", "internal/command", "internal/cluster", "internal/session", "internal/config",
		"internal/figures", "proxy/order", "ring",
	},
}

// forbidden gives the reasons for the edges that are tempting to add. "*" stands for every package
// of this module.
var forbidden = []struct{ from, to, because string }{
	{"internal/resp", "*", "the wire format is a leaf: it must be testable and fuzzable with bytes alone"},
	{"internal/mapping", "*", "memory from the system is a leaf: the engine and the loops each count what they take"},
	{"internal/netloop", "internal/resp", "the loop moves bytes; its handlers know what they mean"},
	{"internal/netloop", "internal/session", "the loop moves bytes; its handlers know what they mean"},
	{"internal/command", "*", "the table is data that both sides read; it cannot depend on either"},
	{"internal/bitstring", "*", "operations on bytes, tested against slow oracles"},
	{"internal/glob", "*", "operations on bytes, tested against slow oracles"},
	{"internal/lcs", "*", "operations on bytes, tested against slow oracles"},
	{"internal/longdouble", "*", "operations on bytes, tested against slow oracles"},
	{"internal/hyperloglog", "*", "one of Redis's formats is bytes in, bytes out: it is compared and fuzzed alone"},
	{"internal/rdb", "*", "one of Redis's formats is bytes in, bytes out: it is compared and fuzzed alone"},
	{"node/engine", "internal/resp",
		"storage knows neither protocol nor network, so that later types and replication use it alike"},
	{"node/engine", "internal/command", "commands belong to the node; storage knows keys, values and expiries"},
	{"node/engine", "internal/netloop", "storage is called with the time and never waits, so it needs no loop"},
	{"node/ownership", "node/engine",
		"ownership is decided without data: the node, or the simulation, carries the decisions out"},
	{"node/ownership", "internal/netloop",
		"ownership is decided without loops, goroutines and clocks, so that the simulation can run it"},
	{"node/replica", "node/engine",
		"what to send and what to keep is decided without storage, so that the simulation can run it"},
	{"internal/pubsub", "internal/netloop", "who is shown what is decided and tested without sockets"},
	{"node/broker", "internal/netloop", "a broker queues messages; whose loop takes them, the node knows"},
	{"node/measure", "node", "the node reports events to what measures it, which knows no node"},
	{"node/crew", "*", "work is functions: whose it is and what becomes of the result, the node knows"},
	{"node/exec", "node", "a handler sees its node as a Host, so that a family of commands needs no node to be read"},
	{"node/data/shape", "node/exec", "shapes of values know no command: they are tested beside maps and slices, without requests"},
	{"node/data/keys", "node/data/strings", "commands on keys of any type ask the Type, and know no type by name"},
	{"node/data/strings", "internal/netloop", "a handler appends to its request's output; sockets are the dispatcher's"},
	{"node/data/strings", "ring",
		"a handler acts on the partitions that it is given; the dispatcher knows who serves them"},
	{"node/replica", "node", "a step function is driven by its node and knows nothing of it"},
	{"node/stream", "node", "a stream needs an engine, a clock and an address; its tests start no node"},
	{"node/stream", "internal/netloop", "loops call a stream with what they have parsed, and it answers at once"},
	{"ring", "ring/gossip", "target, table and plan are pure: the same input gives the same table on every member"},
	{"ring/office", "ring/gossip", "gossip and the simulation both drive these step functions, which know neither"},
	{"ring", "*", "target, table and plan are pure, without I/O"},
	{"internal/session", "internal/netloop", "session state and replies are tested without sockets"},
	{"internal/about", "internal/session",
		"these replies follow from the command table and the request, without a connection"},
	{"internal/config", "internal/session", "a parameter belongs to the process and not to a connection"},
	{"internal/figures", "internal/session",
		"figures do not depend on the connection that asks; metrics reads them without sessions"},
	{"internal/figures", "internal/config",
		"INFO is given the few parameters that it shows; adding up figures needs none"},
	{"internal/cluster", "internal/session", "every connection is shown the same table"},
	{"metrics/exporter", "internal/session", "monitoring reads a process's figures, not its clients' connections"},
	{"metrics/status", "internal/session", "monitoring reads a process's figures, not its clients' connections"},
	{"metrics/page", "node", "the page draws the reports of members; its own process's is one of them"},
	{"metrics/control", "metrics/status", "the member that an order names obeys it, whatever people are shown"},
	{"metrics/exporter", "metrics/status",
		"a scrape reads members' counters, so that a change of the status report breaks no dashboard"},
	{"internal/session", "node", "both roles give these replies, so the package knows neither role"},
	{"internal/session", "proxy", "both roles give these replies, so the package knows neither role"},
	{"internal/member", "internal/netloop", "messages between members are bytes in, bytes out; the caller sends them"},
	{"internal/member", "internal/session", "a request between members has no client session"},
	{"internal/member", "node", "both sides of a conversation share its messages, and neither knows the other"},
	{"internal/member", "proxy", "both sides of a conversation share its messages, and neither knows the other"},
	{"proxy/order", "internal/netloop", "a step function has no clock and no socket: the simulation drives it"},
	{"proxy/order", "proxy/wide", "ordering requests does not depend on what they ask or how answers are merged"},
	{"proxy/wide", "internal/netloop",
		"a whole-cluster command is split up and its answers merged without sockets and clocks"},
	{"proxy/wide", "proxy", "a whole-cluster command sees its proxy through an interface"},
	{"proxy/order", "proxy", "the shell carries out the actions of the step function, which knows no shell"},
	{"proxy", "node",
		"a proxy knows nodes by their protocol only: in an upgrade, different versions of both run side by side"},
	{"proxy", "node/engine", "a proxy stores nothing"},
	{"proxy", "ring/gossip", "a proxy never remaps by itself: it is given tables, and must not see suspicions"},
	{"node", "proxy", "a node serves cluster clients without any proxy"},
	{"node", "ring/gossip", "a node is given tables through an interface, so that its tests need no network of members"},
	{"node", "metrics/exporter", "counters live where events happen, and know no exporter"},
	{"proxy", "metrics/exporter", "counters live where events happen, and know no exporter"},
	{"metrics/exporter", "ring/gossip", "membership is read through an interface; memberlist stays behind gossip"},
	{"metrics/status", "ring/gossip", "membership is read through an interface; memberlist stays behind gossip"},
	{"bench/race", "node", "a race measures the binaries that users run, from outside"},
	{"bench/race", "proxy", "a race measures the binaries that users run, from outside"},
	{"bench/load", "internal/resp", "the load generator must not share the mistakes of what it measures"},
	{"bench/engine", "node", "the engine is measured alone: without network, protocol and handlers"},
	{"ring/gossip", "node", "gossip spreads tables; it is given the function that fetches one"},
}

// owners lists the only packages that may import a third party's package (or one of the standard
// library's that has a place of its own), so that each of those can be replaced in one place.
var owners = []struct {
	prefix  string
	by      []string
	because string
}{
	{"github.com/hashicorp/memberlist", []string{"ring/gossip"}, "membership is an agent with Dunlin's own types"},
	{"github.com/buraksezer/consistent", []string{"ring"},
		"it locks and can panic: ring builds targets off the path and recovers"},
	{"github.com/prometheus/", []string{"metrics/exporter"}, "no Prometheus type on the path of a command"},
	{"github.com/spf13/", []string{"cmd/dunlin"}, "packages take a Config; only the binary knows flags"},
	{"golang.org/x/sys/", []string{"internal/boottime", "internal/netloop", "internal/mapping", "test/harness"},
		"raw system calls: sockets, memory and clocks, nowhere else"},
	{"github.com/VictoriaMetrics/fastcache", []string{"bench/engine"},
		"it is what the engine is compared with, and no part of Dunlin"},
	{"crypto/tls", []string{"internal/tlsbridge", "test/harness", "bench/reconnect"}, "loops and their handlers see plain sockets"},
	{"net/http", []string{"metrics/exporter", "metrics/status", "metrics/page", "metrics/control", "metrics/admin", "metrics/fake", "cmd/dunlin", "test/harness"},
		"HTTP is for the admin side only"},
	{"encoding/json", []string{"metrics/status", "cmd/dunlin", "bench/race", "test/harness"},
		"JSON is for the admin side and for reports only"},
}

func TestImports(t *testing.T) {
	for _, p := range listPackages(t) {
		may, known := allowed[p.name]
		if !known {
			t.Errorf("package %s is not in the table of allowed imports", p.name)
			continue
		}
		for _, path := range p.Imports {
			if to, ours := strings.CutPrefix(path, module+"/"); ours {
				if !slices.Contains(may, to) {
					t.Errorf("%s imports %s: %s", p.name, to, reason(p.name, to))
				}
				continue
			}
			for _, o := range owners {
				if strings.HasPrefix(path, o.prefix) && !slices.Contains(o.by, p.name) {
					t.Errorf("%s imports %s, which only %v may: %s", p.name, path, o.by, o.because)
				}
			}
		}
	}
}

// TestImportTables checks that no edge is both allowed and forbidden, and that each reason is
// given.
func TestImportTables(t *testing.T) {
	for _, f := range forbidden {
		if f.because == "" {
			t.Errorf("edge %s -> %s is forbidden without a reason", f.from, f.to)
		}
		if slices.Contains(allowed[f.from], f.to) || f.to == "*" && len(allowed[f.from]) > 0 {
			t.Errorf("edge %s -> %s is both allowed and forbidden", f.from, f.to)
		}
	}
}

func reason(from, to string) string {
	for _, f := range forbidden {
		if f.from == from && (f.to == to || f.to == "*") {
			return f.because
		}
	}
	return "the edge is not in the table of allowed imports"
}

type goPackage struct {
	ImportPath string
	Imports    []string // of the files that are built, not of tests
	GoFiles    []string

	name string // the path inside the module
}

// listPackages asks the go command, which knows which files are built on this system. It leaves out
// directories that have only tests: these may import anything.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-pgo=off", "-json=ImportPath,Imports,GoFiles", module+"/...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("cannot list packages: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("cannot list packages: %v", err)
	}
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("cannot decode package list: %v", err)
		}
		if len(p.GoFiles) == 0 {
			continue
		}
		p.name = strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("no packages listed")
	}
	return all
}
