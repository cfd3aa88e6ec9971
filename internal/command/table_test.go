package command

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// TestRows checks what must hold between the columns of any row.
func TestRows(t *testing.T) {
	for id := ID(1); id < NumIDs; id++ {
		c := ByID(id)
		check := func(ok bool, rule string) {
			t.Helper()
			if !ok {
				t.Errorf("%s: %s", c.Name, rule)
			}
		}
		has := func(f Flags) bool { return c.Flags&f != 0 }
		check(c.ID == id, "stands at another ID")
		check(c.Name == strings.ToLower(c.Name), "name is not in lower case")
		check(c.Arity != 0, "has no arity")
		check(c.Since != "" && c.Group != "" && strings.HasSuffix(c.Summary, "."), "is not described")
		check(!has(Write) || !has(ReadOnly), "both writes and only reads")
		check(!has(Idempotent) || has(Write) || has(ReadOnly) || c.ID == Info || c.Group == "generic",
			"only what touches data is sent again")
		check(!has(Blocking) || !has(Idempotent), "a blocking command is never sent again")
		check(c.repeatable == nil || has(Idempotent), "decides on options, but is not idempotent")

		check((c.Merge == MergeNone) == (c.Route < SplitKeys), "merges exactly if it is split")
		check(c.Route != Key || c.Keys != nil || c.Subs != nil || c.placed > 0, "routed by a key that it does not have")
		check(c.Route != AllNodes || c.Keys == nil, "goes to all nodes, but has keys")
		check(c.Route != SplitKeys || c.Last == -1 && c.Step == 1, "split by key, but not all arguments are keys")
		check(c.Route != SplitPairs || c.Last == -1 && c.Step == 2, "split by pairs, but has none")
		check(!c.Built || c.Route != Refused, "built, but nobody executes it")
		for _, sub := range c.Subs {
			check(!sub.Built || c.Built, "not built, but a subcommand is")
		}
	}
}

func TestOrder(t *testing.T) {
	byName := func(a, b *Command) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(All(), byName) || !slices.IsSortedFunc(Listed(), byName) {
		t.Error("rows are not in the order of their names")
	}
	if n := len(Listed()); n == 0 || n >= len(All()) {
		t.Errorf("%d of %d rows listed", n, len(All()))
	}
	for _, c := range All() {
		if c.Flags&Internal != 0 || slices.Contains(Listed(), c) != c.Built {
			t.Errorf("%s: internal, or wrongly listed", c.Name)
		}
	}
	if ByID(0) != nil || ByID(NumIDs) != nil {
		t.Error("an ID that names no row has one")
	}
}

func TestArityOK(t *testing.T) {
	f := func(name string, n int, want bool) {
		t.Helper()
		if got := find(name).ArityOK(n); got != want {
			t.Errorf("%s with %d arguments: %v, want %v", name, n, got, want)
		}
	}
	f("get", 1, false)
	f("get", 2, true)
	f("get", 3, false)
	f("set", 2, false)
	f("set", 3, true)
	f("set", 30, true)
	f("client|id", 1, false)
	f("client|id", 2, true)
	f("ping", 1, true)
	// Commands without keys are bounded, others and those of members are not.
	f("info", maxWords, true)
	f("info", maxWords+1, false)
	f("command|docs", maxWords+1, false)
	f("mget", 1<<20, true)
	f("watch", 1<<20, true)
	f("dunlin|exec", 1<<16, true)
	f("dunlin|each", 1<<16, true)
}

func TestTooManyArguments(t *testing.T) {
	request := make([][]byte, maxWords+1)
	for i := range request {
		request[i] = []byte("x")
	}
	request[0], request[1] = []byte("command"), []byte("info")
	c, refusal := Resolve(nil, request)
	const want = "ERR too many arguments for 'command|info' command: a command without keys takes at most 1024"
	if c != nil || string(refusal) != want {
		t.Errorf("refusal %q, want %q", refusal, want)
	}
}

func TestIdempotentCall(t *testing.T) {
	f := func(line string, want bool) {
		t.Helper()
		args := strings.Fields(line)
		if got := find(args[0]).IdempotentCall(request(args...)); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
	f("get k", true)
	f("mget a b", true)
	f("scan 0", true)
	f("set k v", true)
	f("set k v ex 10", true)
	f("set k v PXAT 10", true)
	f("set k v keepttl", true)
	f("set k v nx", false)
	f("set k v ex 10 NX", false)
	f("set k v xx", false)
	f("set k v get", false)
	f("set k v ifeq x", false)
	f("mset a 1", true)
	f("msetex 2 a 1 b 2 ex 10", true)
	f("msetex 1 nx 1", true)
	f("msetex 2 a 1 b 2 ex 10 nx", false)
	f("msetex 3 a 1 b 2", false)
	f("delifeq k v", false)
	f("setex k 1 v", true)
	f("psetex k 1 v", true)
	f("setrange k 0 v", true)
	f("expire k 10", true)
	f("expire k 10 nx", false)
	f("expire k 0", false)
	f("expire k -1", false)
	f("pexpireat k 100000 gt", false)
	f("flushall", true)
	f("setnx k v", false)
	f("msetnx k v", false)
	f("getset k v", false)
	f("getdel k", false)
	f("getex k", false)
	f("append k v", false)
	f("incr k", false)
	f("del k", false)
	f("unlink k", false)
	f("persist k", false)
	f("blpop k 0", false)
	f("xread streams k 0", false)
}

// TestZeroAllocations covers everything that runs once per request.
func TestZeroAllocations(t *testing.T) {
	f := func(what string, run func()) {
		t.Helper()
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s allocates %v times", what, n)
		}
	}
	get, mget := request("GeT", "k"), request("mget", "a", "b", "c")
	client, eval := request("client", "setinfo", "LIB-NAME", "x"), request("eval", "s", "2", "a", "b")
	set := request("set", "k", "v", "EX", "10")
	bad := request("foo", "bar")
	positions, text := make([]int, 0, 8), make([]byte, 0, 512)
	f("Lookup", func() { Lookup(get[0]) })
	f("Sub", func() { Lookup(client[0]).Sub(client[1]) })
	f("Resolve", func() { Resolve(nil, client) })
	f("refusing", func() { Resolve(text, bad) })
	f("FirstKey", func() { Lookup(get[0]).FirstKey(get) })
	f("FirstKey by count", func() { Lookup(eval[0]).FirstKey(eval) })
	f("AppendKeys", func() { Lookup(mget[0]).AppendKeys(positions, mget) })
	f("AppendKeys by count", func() { Lookup(eval[0]).AppendKeys(positions, eval) })
	f("IdempotentCall", func() { Lookup(set[0]).IdempotentCall(set) })
}

func TestWords(t *testing.T) {
	f := func(name, sub string, want int) {
		t.Helper()
		if got := Words([]byte(name), []byte(sub)); got != want {
			t.Errorf("%s %s: %d words, want %d", name, sub, got, want)
		}
	}
	f("scan", "0", maxWords+1)
	f("CONFIG", "GET", maxWords+1)
	f("config", "nosuch", maxWords+1)
	f("nosuch", "", maxWords+1)
	f("get", "k", 3)
	f("mget", "k", math.MaxInt)
	f("dunlin", "exec", math.MaxInt)
}
