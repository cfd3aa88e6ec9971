package node

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/node/script"
	"github.com/dunlin-cache/dunlin/ring"
)

// mustLoad loads a library that registers one function, f, with that body.
func mustLoad(t *testing.T, c *client, body string, flags ...string) {
	t.Helper()
	for i := range flags {
		flags[i] = "'" + flags[i] + "'"
	}
	c.want(`FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function{function_name='f', flags={`+strings.Join(flags, ",")+
		`}, callback=function(keys, args) `+body+` end}"`, `"lib"`)
}

// TestFunctionKill: others are told that a function takes long, FUNCTION KILL ends one that has changed nothing, and
// SCRIPT KILL ends none, nor the other way round. FUNCTION STATS shows it.
func TestFunctionKill(t *testing.T) {
	n := startScripts(t)
	c, beside := dial(t, n.Addr()), dial(t, n.Addr())
	mustLoad(t, c, "while true do end", "no-writes")
	c.send("FCALL f 1 {k} " + strings.Repeat("a", 1000))
	eventually(t, "others are told", func() bool { return beside.do("GET {k}") == "(error) "+errBusyFunction })
	beside.want("SET {other} 1", "OK")
	beside.want("SCRIPT KILL", "(error) "+errBusyFunction)
	stats := beside.do("FUNCTION STATS")
	if !strings.Contains(stats, `"f"`) || !strings.Contains(stats, `"{k}"`) || len(stats) > 1000 {
		t.Errorf("STATS answers %s", stats)
	}
	beside.want("FUNCTION KILL", "OK")
	if got := c.next(); got != "(error) "+errFunctionKilled+" script: f, on @user_function:2." {
		t.Errorf("the function answers %s", got)
	}
	wantEnded(t, n)
	beside.want("FUNCTION KILL", "(error) "+errNotBusy)

	c.send(`EVAL "while true do end" 1 {k}`)
	eventually(t, "others are told", func() bool { return beside.do("GET {k}") == "(error) "+errBusyScript })
	beside.want("FUNCTION KILL", "(error) "+errBusyScript)
	beside.want("SCRIPT KILL", "OK")
	c.next()
	wantEnded(t, n)

	mustLoad(t, c, "redis.call('SET', keys[1], 1) while true do end")
	c.send("FCALL f 1 {k}")
	eventually(t, "it cannot be killed", func() bool { return beside.do("FUNCTION KILL") == "(error) "+errUnkillable })
	giveAway(n, partitionOf("{k}"))
	c.next()
	wantEnded(t, n)
}

// TestFunctionsAnswerLater: FCALL and FUNCTION LOAD keep a pipe from nothing else.
func TestFunctionsAnswerLater(t *testing.T) {
	n := startLeveled(t)
	mustLoad(t, dial(t, n.Addr()), "for i = 1, 1000000 do end return redis.call('INCR', keys[1])")
	p := scriptPipe(t, n, 1)
	p.sendRaw([]byte("FCALL f 1 {k}\r\nINCR {k}\r\nINCR {j}\r\nDUNLIN RETRY 1\r\n"))
	p.frame("FCALL", "-DUNLINLATER 1")
	p.frame("INCR behind it", "-DUNLINWAIT 1")
	p.frame("INCR of another key", ":1")
	p.frame("RETRY", "+OK")
	if got := string(p.read()); got != push(1, ":1\r\n") {
		t.Errorf("FCALL answers %q", got)
	}
	p.sendArgs([]byte("FUNCTION"), []byte("LOAD"), []byte("#!lua name=other\nredis.register_function('g', function() end)"))
	p.sendRaw([]byte("INCR {j}\r\n"))
	p.frame("FUNCTION LOAD", "-DUNLINLATER 2")
	p.frame("INCR behind it", ":2")
	if got := string(p.read()); got != push(2, "$5\r\nother\r\n") {
		t.Errorf("FUNCTION LOAD answers %q", got)
	}
}

// TestFunctionStateEnds: what a function changes of its library's variables ends with the call.
func TestFunctionStateEnds(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	c.want(`FUNCTION LOAD "#!lua name=lib\nlocal n, t = 0, {}\nredis.register_function('f', function() n = n + 1 t[#t + 1] = n return {n, #t} end)"`, `"lib"`)
	for range 3 {
		c.want("FCALL f 0", "1) (integer) 1\n2) (integer) 1")
	}
	c.want(`EVAL "return type(redis.breakpoint)" 0`, `"function"`)
	c.want(`EVAL "return {#KEYS, #ARGV}" 0 a`, "1) (integer) 0\n2) (integer) 1")
}

// hostileLibraries must not be loaded.
var hostileLibraries = []string{
	"while true do end",
	"local s = 'x' while true do s = s .. s end",
	"local t = {} for i = 1, 1e9 do t[i] = {} end",
	"local function f() return 1 + f() end f()",
	"local n = 'f' for i = 1, 20 do n = n .. n end redis.register_function(n, function() end)",
	"local d = 'f' for i = 1, 24 do d = d .. d end redis.register_function{function_name='f', description=d, callback=function() end}",
	"for i = 1, 1e7 do redis.register_function('f' .. i, function() end) end",
	"local t = {} for i = 1, 1e7 do t[i] = 'no-writes' end redis.register_function{function_name='f', flags=t, callback=function() end} while true do end",
	"return " + strings.Repeat("(", 100_000),
	"redis.register_function('f', function() end) " + strings.Repeat("x", 1<<20),
}

// TestHostileLibraries: a library that takes all steps or memory that it can get is refused, keeps nothing, and holds
// up nobody.
func TestHostileLibraries(t *testing.T) {
	forOneClient(t)
	n := startLeveled(t, func(c *Config) { c.Memory = 192 << 20 })
	c, beside := dial(t, n.Addr()), dial(t, n.Addr())
	c.patience = 2 * time.Minute
	for _, code := range hostileLibraries {
		c.sendArgs([]byte("FUNCTION"), []byte("LOAD"), []byte("#!lua name=bad\n"+code))
		if got := c.next(); !strings.HasPrefix(got, "(error) ERR ") && !strings.HasPrefix(got, "(error) OOM ") {
			t.Errorf("%.100s answers %.200s", code, got)
		}
		beside.want("PING", "PONG")
	}
	c.want("FUNCTION LIST", "(empty array)")
	eventually(t, "all memory is given back", func() bool { return n.lists.Load() == 0 })
	// A function has the budgets of a script.
	mustLoad(t, c, "local t = {} while true do t[#t + 1] = {} end")
	if got := c.do("FCALL f 0"); !strings.Contains(got, "more memory") {
		t.Errorf("a function without a bound answers %s", got)
	}
	c.want("FUNCTION FLUSH", "OK")
	eventually(t, "all memory is given back", func() bool { return n.lists.Load() == 0 })
}

// TestFunctionsAreBounded: a cluster has so many functions, and not one more.
func TestFunctionsAreBounded(t *testing.T) {
	c := dial(t, startLeveled(t, func(c *Config) { c.Memory = 1 << 30 }).Addr())
	c.patience = time.Minute
	load := func(name string, functions, length int) string {
		var code strings.Builder
		fmt.Fprintf(&code, "#!lua name=%s\nfor i = 1, %d do redis.register_function('%s' .. i, function() end) end", name, functions, name)
		code.WriteString(strings.Repeat(" ", length-code.Len()))
		c.sendArgs([]byte("FUNCTION"), []byte("LOAD"), []byte(code.String()))
		return c.next()
	}
	const refused = "(error) ERR there are too many functions: a cluster can have 256 libraries with 2048 functions and 4 MiB"
	if got := load("a", script.MaxFunctions-1, 200); got != `"a"` {
		t.Fatal(got)
	}
	if got := load("b", 2, 200); got != refused {
		t.Error(got)
	}
	if got := load("b", 1, 200); got != `"b"` {
		t.Error(got)
	}
	c.want("FUNCTION FLUSH", "OK")
	for i := range 4 {
		want := fmt.Sprintf(`"l%d"`, i)
		if i == 3 {
			want = refused // names take some bytes as well
		}
		if got := load(fmt.Sprintf("l%d", i), 1, command.MaxScript); got != want {
			t.Errorf("library %d answers %s", i, got)
		}
	}
	c.want("FUNCTION FLUSH", "OK")
	for i := range script.MaxLibraries {
		if got := load(fmt.Sprintf("l%d_", i), 1, 200); !strings.HasPrefix(got, `"l`) {
			t.Fatal(got)
		}
	}
	if got := load("more", 1, 200); got != refused {
		t.Error(got)
	}
}

// TestFunctionsNeedTheLevel: a cluster with members that know no functions has none.
func TestFunctionsNeedTheLevel(t *testing.T) {
	n := startBare(t)
	n.SetTable(altered(soleTable(n), func(next *ring.Table) { next.Level = ring.FunctionsLevel - 1 }))
	c := dial(t, n.Addr())
	for _, line := range []string{"FCALL f 0", "FCALL_RO f 0", "FUNCTION LOAD x", "FUNCTION LIST", "FUNCTION DUMP", "FUNCTION FLUSH"} {
		c.want(line, "(error) "+errFunctionsLevel)
	}
}

// settingsOf is a SettingsSource of a coordinator whose document changes when it is asked to, and before that once more
// if interferes is set.
type settingsOf struct {
	oneDocument
	n          *Node
	interferes map[string]string
	refused    atomic.Int32

	mu       sync.Mutex
	document *ring.Settings
}

func (s *settingsOf) Coordinator() (m ring.Member, self, ok bool) { return ring.Member{}, true, true }

func (s *settingsOf) ConfigureFrom(_ context.Context, based [32]byte, changes map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.interferes != nil {
		if err := s.change(s.interferes); err != nil {
			return err
		}
		s.interferes = nil
	}
	if s.document.ID().Hash != based {
		s.refused.Add(1)
		return ring.ErrSettingsChanged
	}
	return s.change(changes)
}

// interfere has other changes come ahead of the next.
func (s *settingsOf) interfere(changes map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interferes = changes
}

func (s *settingsOf) change(changes map[string]string) (err error) {
	if s.document, err = s.document.With(s.document.ID().Version+1, changes); err == nil {
		s.n.ApplySettings(s.document)
	}
	return err
}

// TestFunctionsOfTwoClients: a change that was made for another document is made again for the present one, and sees
// what came first.
func TestFunctionsOfTwoClients(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	c.want(`FUNCTION LOAD "#!lua name=first\nredis.register_function('f', function() return 1 end)"`, `"first"`)
	taken := make(map[string]string)
	for name, value := range n.functions.document.Load().Libraries() {
		taken[ring.FunctionPrefix+name] = value
	}
	c.want("FUNCTION FLUSH", "OK")
	s := &settingsOf{n: n}
	n.SetSettings(s)
	setView(n, viewWith(n, ring.SettingsID{}))
	n.ApplySettings(nil)
	s.interfere(taken)
	c.want(`FUNCTION LOAD "#!lua name=second\nredis.register_function('f', function() return 2 end)"`, "(error) ERR Function f already exists")
	s.interfere(map[string]string{"config/timeout": "77"})
	c.want(`FUNCTION LOAD REPLACE "#!lua name=first\nredis.register_function('f', function() return 2 end)"`, `"first"`)
	if got := s.refused.Load(); got != 2 {
		t.Errorf("%d changes were refused, want 2", got)
	}
	setView(n, viewWith(n, n.functions.document.Load().ID()))
	c.want("FCALL f 0", "(integer) 2")
}

// TestFunctionsOnTheirWay: a node that does not have the settings of its table yet has nobody believe that there is no
// such function.
func TestFunctionsOnTheirWay(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	c.want(`FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function(keys) return redis.call('INCR', keys[1]) end)"`, `"lib"`)
	there := n.functions.document.Load()
	n.ApplySettings(nil)
	n.SetSettings(&settingsOf{n: n, document: there})
	setView(n, viewWith(n, there.ID()))
	for _, line := range []string{"FCALL f 1 {k}", "FUNCTION LIST", "FUNCTION DUMP"} {
		c.want(line, "(error) "+errTakingOver)
	}
	p := scriptPipe(t, n, 1)
	p.sendRaw([]byte("FCALL f 1 {k}\r\nINCR {k}\r\n"))
	epoch := n.view.Load().Epoch()
	p.frame("FCALL", fmt.Sprintf("-DUNLINWAIT %d", epoch))
	p.frame("INCR behind it", fmt.Sprintf("-DUNLINWAIT %d", epoch))
	n.ApplySettings(there)
	p.raw(fmt.Sprintf("DUNLIN RETRY %d", epoch), "+OK")
	c.want("FCALL f 1 {k}", "(integer) 1")
	c.want("FCALL nosuch 0", "(error) "+errNoFunction)
}

// viewWith is the node's view with other settings.
func viewWith(n *Node, id ring.SettingsID) *ownership.View {
	v := *n.view.Load()
	v.Table = altered(v.Table, func(next *ring.Table) { next.Settings = id })
	return &v
}

// takeMemory takes all memory of a node. The caller calls free.
func takeMemory(n *Node) (free func()) {
	heap, taken := heapBudget{n}, int64(0)
	for size := int64(1 << 20); size > 0; {
		if heap.Charge(size) {
			taken += size
		} else {
			size /= 2
		}
	}
	return func() { heap.Refund(taken) }
}

const wantOOM = "(error) OOM command not allowed when used memory > 'maxmemory'."

// TestFunctionsWithoutMemory: a library that finds no memory is compiled when there is some.
func TestFunctionsWithoutMemory(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Memory = 64 << 20 })
	n.functions.rest = time.Millisecond
	c := dial(t, n.Addr())
	mustLoad(t, c, "return 1")
	there := n.functions.document.Load()
	n.ApplySettings(nil)
	free := takeMemory(n)
	n.applyFunctions(there)
	c.want("FCALL f 0", wantOOM)
	free()
	eventually(t, "the library is compiled", func() bool { return c.do("FCALL f 0") == "(integer) 1" })
	c.want("FUNCTION FLUSH", "OK")
	eventually(t, "all memory is given back", func() bool { return n.lists.Load() == 0 })
}

// TestFunctionsRestWithoutMemory: while there is no memory to compile a library, calls do not have it tried all the
// time.
func TestFunctionsRestWithoutMemory(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Memory = 64 << 20 })
	n.functions.rest = time.Hour
	c := dial(t, n.Addr())
	mustLoad(t, c, "return 1")
	there := n.functions.document.Load()
	n.ApplySettings(nil)
	defer takeMemory(n)()
	n.applyFunctions(there)
	applied := n.functions.set.Load()
	c.want("FCALL f 0", wantOOM)
	eventually(t, "it is tried again", func() bool { return n.functions.set.Load() != applied })
	applied = n.functions.set.Load()
	for range 200 {
		c.want("FCALL f 0", wantOOM)
	}
	if n.functions.set.Load() != applied {
		t.Error("calls have had it tried again without a rest")
	}
}

// TestFunctionsStayNew: who compiles libraries again puts no older document in the place of a newer one.
func TestFunctionsStayNew(t *testing.T) {
	n := startLeveled(t)
	c, f := dial(t, n.Addr()), &n.functions
	mustLoad(t, c, "return 1")
	older := f.document.Load()
	mustLoad(t, c, "return 2")
	newer := f.document.Load()
	n.applyFunctions(older)
	f.mu.Lock()
	n.compileAgain()
	eventually(t, "it waits for the lock", func() bool { return waitsForLock("compileAgain") })
	n.applyFunctionsLocked(newer)
	f.mu.Unlock()
	eventually(t, "it has ended", func() bool { return !f.retries.Load() })
	if got := f.document.Load().ID().Version; got != newer.ID().Version {
		t.Errorf("document %d is applied, want %d", got, newer.ID().Version)
	}
	c.want("FCALL f 0", "(integer) 2")
}

// TestFunctionsInTransactions: what changes functions is not for transactions.
func TestFunctionsInTransactions(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	mustLoad(t, c, "return redis.call('INCR', keys[1])")
	c.want("MULTI", "OK")
	if got := c.do("FUNCTION FLUSH"); !strings.HasPrefix(got, "(error) ERR changes of functions wait") {
		t.Errorf("FLUSH in a transaction answers %s", got)
	}
	c.want("EXEC", "(error) EXECABORT Transaction discarded because of previous errors.")
	p := scriptPipe(t, n, 1)
	lines := execArgs(t, nil, "FCALL f 1 {k}", "INCR {k}", "FCALL f 1 {k}", "FUNCTION DUMP")
	p.sendRaw(resp.AppendRequest(nil, lines...))
	p.frame("EXEC", "-DUNLINLATER 1")
	if got := string(p.read()); !strings.HasPrefix(got, push(1, "*4\r\n:1\r\n:2\r\n:3\r\n$")) {
		t.Errorf("EXEC answers %q", got)
	}
}

// TestFunctionDumpsAreBounded: a payload that decompresses to much more than a cluster can have is refused before that.
func TestFunctionDumpsAreBounded(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	// A library of n times the same byte, as LZF: a literal, and copies of what is behind.
	bomb := func(n int) []byte {
		packed := []byte{0, 'x'}
		for left := n - 1; left > 0; {
			size := min(left, 264)
			if size < 9 {
				packed = append(packed, byte(left-1))
				packed = append(packed, strings.Repeat("x", left)...)
				break
			}
			packed = append(packed, 7<<5, byte(size-9), 0)
			left -= size
		}
		b := binary.BigEndian.AppendUint32([]byte{245, 0xc3, 0x80}, uint32(len(packed)))
		b = binary.BigEndian.AppendUint32(append(b, 0x80), uint32(n))
		return append(b, packed...)
	}
	const many = "(error) ERR there are too many functions: a cluster can have 256 libraries with 2048 functions and 4 MiB"
	for _, test := range []struct {
		libraries, length int
		want              string
	}{
		{1, command.MaxScript, "(error) ERR Missing library metadata"},
		{1, command.MaxScript + 1, "(error) " + errLongLibrary},
		{5, command.MaxScript, many},
		{200, command.MaxScript, many},
		{script.MaxLibraries + 1, 100, many},
		{1 << 15, 100, many},
	} {
		payload := bytes.Repeat(bomb(test.length), test.libraries)
		payload = rdb.AppendFoot(payload, rdb.Sum(0, payload))
		c.sendArgs([]byte("FUNCTION"), []byte("RESTORE"), payload)
		if got := c.next(); got != test.want {
			t.Errorf("%d libraries of %d bytes: %s", test.libraries, test.length, got)
		}
	}
	eventually(t, "all memory is given back", func() bool { return n.lists.Load() == 0 })
}

// TestLoadOfGoneClient: a library of a client that has left ends soon, and changes nothing.
func TestLoadOfGoneClient(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	n.scripts.keyless.mu.Lock() // so that it waits for its place
	free := n.scripts.keyless.free
	n.scripts.keyless.free = 0
	n.scripts.keyless.mu.Unlock()
	c.send(`FUNCTION LOAD "#!lua name=a\nredis.register_function('f', function() end)"`)
	eventually(t, "it waits", n.scripts.keyless.hasWaiting)
	reset(t, c)
	eventually(t, "it has ended", func() bool { return !n.scripts.keyless.hasWaiting() && n.lists.Load() == 0 })
	n.scripts.keyless.mu.Lock()
	n.scripts.keyless.free = free
	n.scripts.keyless.mu.Unlock()
	dial(t, n.Addr()).want("FUNCTION LIST", "(empty array)")
}

// TestFunctionsNotEverywhere: the reply says what has become of a change that not all members have.
func TestFunctionsNotEverywhere(t *testing.T) {
	n := startLeveled(t)
	n.SetSettings(&lateSettings{settingsOf{n: n}})
	dial(t, n.Addr()).want(`FUNCTION LOAD "#!lua name=a\nredis.register_function('f', function() end)"`,
		"(error) ERR the cluster's settings have changed, but are not applied yet by b")
}

// lateSettings is a SettingsSource of a cluster with a member that is late.
type lateSettings struct{ settingsOf }

func (*lateSettings) ConfigureFrom(context.Context, [32]byte, map[string]string) error {
	return errors.New("the cluster's settings have changed, but are not applied yet by b")
}
