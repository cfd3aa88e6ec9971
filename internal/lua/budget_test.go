package lua

import (
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// patience is for machines with other work: what is bounded by steps ends in less than a second, and what
// is not would take minutes.
const patience = 20 * time.Second

// ends reports where a script does not end by the error want, or takes much longer than it
// should: 10 million steps are 50 ms.
func ends(t *testing.T, source string, want error) {
	t.Helper()
	s := newTestState()
	limits := Limits{Steps: 10_000_000, Bytes: 16 << 20}
	if testing.Short() {
		limits.Steps /= 4
	}
	if want != ErrSteps {
		limits.Steps = 100_000_000
	}
	s.Reset(limits)
	proto, err := Compile("@test", source)
	if err != nil {
		t.Errorf("%.200s\n does not compile: %v", source, err)
		return
	}
	begin := time.Now()
	_, err = s.Call(s.Load(proto))
	if took := time.Since(begin); took > patience {
		t.Errorf("%.200s\n takes %v", source, took)
	}
	if !errors.Is(err, want) {
		t.Errorf("%.200s\n ends with %v, want %v", source, err, want)
	}
}

// long skips a test under the race detector, which has nothing to find in one goroutine.
func long(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("one goroutine: the race detector has nothing to find")
	}
}

// TestLargeGarbageIsCollected: what scripts make of large strings and forget, and what an ended one has left, makes the
// heap no larger than the runtime's limit.
func TestLargeGarbageIsCollected(t *testing.T) {
	long(t) // it has a heap of its own kind
	debug.FreeOSMemory()
	used, _, _ := runtimeUse()
	const room, bound = 40 << 20, 60 << 20
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(used + room))
	stop, most := make(chan bool), make(chan int64)
	go func() {
		highest := used
		for looks := time.NewTicker(100 * time.Microsecond); ; {
			select {
			case <-looks.C:
				now, _, _ := runtimeUse()
				highest = max(highest, now)
			case <-stop:
				most <- highest
				return
			}
		}
	}()
	s := newTestState()
	for range 5 {
		s.Reset(Limits{Steps: 100_000_000, Bytes: 30 << 20})
		proto, err := Compile("@test", `for i = 1, 8 do local s = string.rep("x", 28e6) end`)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.Call(s.Load(proto)); err != nil {
			t.Fatal(err)
		}
	}
	stop <- true
	if grown := <-most - used; grown > bound {
		t.Errorf("the heap has grown by %d MB, want at most %d", grown>>20, int64(bound)>>20)
	}
}

func TestBudgetOfSteps(t *testing.T) {
	long(t)
	for _, source := range []string{
		`while true do end`,
		`repeat until false`,
		`for i = 1, 1e18 do end`,
		`local i = 0 while true do i = i + 1 if i < 0 then break end end`,
		`local function f() return f() end f()`,
		`while true do pcall(error, "x") end`,
		`while true do pcall(function() while true do end end) end`,
		`while true do xpcall(function() error("x") end, function() while true do end end) end`,
		`local t = setmetatable({}, {__index = function() while true do end end}) pcall(function() return t.x end)`,
		`local t = setmetatable({}, {__lt = function() while true do end end}) pcall(function() return t < t end)`,
		`local t = setmetatable({}, {__eq = function() while true do end end}) return t == setmetatable({}, getmetatable(t))`,
		`local f f = function(...) return f(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, ...) end f()`,
		`local co = coroutine.wrap(function() while true do end end) pcall(co)`,
		`local co = coroutine.wrap(function() while true do coroutine.yield() end end) while true do co() end`,
		`for k in function() return 1 end do end`,
		`local f = loadstring("while true do end") pcall(f)`,
		`load(function() while true do end end)`,
		`load(function() return " " end)`,
		`string.find(string.rep("a", 5000), string.rep("a?", 500) .. string.rep("a", 500) .. "b")`,
		`pcall(string.find, string.rep("a", 30000), ".-.-.-.-b")`,
		`string.match(string.rep("a", 3000), string.rep("a*", 30) .. "b")`,
		`string.gsub(string.rep("a", 100000), ".-b", "")`,
		`string.find(string.rep("(", 100000), "%b()")`,
		`local s = string.rep("1", 1e6) while true do local x = s + 1 end`,
		`local s = string.rep("1", 1e6) while true do local x = -s end`,
		`local s = string.rep("1", 1e6) while true do math.floor(s) end`,
		`local s = string.rep(" ", 1e6) while true do tonumber(s) end`,
		`local s = string.rep("1", 1e6) while true do tonumber(s, 7) end`,
		`local s = string.rep("1", 1e6) local r = string.rep("1", 1e6) while true do rawequal(s, r) end`,
		`local s = string.rep("x", 1e5) local f = loadstring("local r = ... while true do if r == '" .. s .. "' then r = r end end") f(string.rep("x", 1e5))`,
		`local s = string.rep("x", 1e6) local t = {[s] = 1} local r = string.rep("x", 1e6) while true do local x = t[r] end`,
		`string.rep("x", 100000):gsub("x", function() while true do end end)`,
		`for w in string.gmatch(string.rep("a", 100000), "a*b") do end`,
		`string.find(string.rep("a", 1000000), "[" .. string.rep("b", 10000) .. "]")`,
		`local s = string.rep("a", 1000000) while true do local x = s:find("b", 1, true) end`,
		`local s = string.rep("a", 1000000) while true do s:upper() end`,
		`local s = string.rep("a", 1000000) while true do s:byte(1, 7000) end`,
		`local s = string.rep("a", 1000) while true do string.format("%s%s%s", s, s, s) end`,
		`while true do string.format("%.99f", 1e300) end`,
		`local t = {} for i = 1, 100000 do t[i] = i end while true do table.concat(t) end`,
		`local t = {} for i = 1, 100000 do t[i] = i end while true do table.sort(t) end`,
		`local t = {} for i = 1, 1000 do t[i] = i end table.sort(t, function() while true do end end)`,
		`local t = {} for i = 1, 100000 do t[i] = 100000 - i % 7 end while true do table.insert(t, 1, 5) table.remove(t, 1) end`,
		`local t = {} for i = 1, 100000 do t[i] = i end while true do table.maxn(t) end`,
		`table.foreach({1}, function() while true do end end)`,
		`local t = {} t[1e9] = 1 while true do table.insert(t, 1e8, 1) end`,
		`local t = setmetatable({}, {__index = function() return "x" end}) while true do pcall(table.concat, t, "", 1, 1e9) end`,
		`table.concat({}, "", 1, 0) for i = 1, 1e9 do table.remove({1, 2, 3}) end`,
		`local a = setmetatable({}, {__call = function(self) return self() end}) a()`,
		`local t = {} for i = 1, 1000 do t[i] = i end while true do next(t, 999) for k in pairs(t) do end end`,
		`local t = {} for i = 1, 2^16 do t[i] = i end for i = 1, 2^16 do t[i] = nil end while true do next(t) end`,
		`local s = "x" for i = 1, 20 do s = s .. s end local r = s .. "y" s = s .. "y" while true do if s ~= r then break end end`,
		`local s = "x" for i = 1, 20 do s = s .. s end while true do if s < s .. "" then break end end`,
	} {
		ends(t, source, ErrSteps)
	}
}

func TestBudgetOfBytes(t *testing.T) {
	long(t)
	for _, source := range []string{
		`local s = "x" while true do s = s .. s end`,
		`local s = "x" while true do pcall(function() s = s .. s end) end`,
		`local t = {} while true do t[#t + 1] = {} end`,
		`local t = {} local i = 0 while true do i = i + 1 t[i] = i end`,
		`local t = {} local i = 0 while true do i = i + 1 t["k" .. i] = i end`,
		`local t = {} while true do t = {t} end`,
		`local t = {} local i = 0 while true do i = i + 1 t[i] = function() return i end end`,
		`local t = {} local i = 0 while true do i = i + 1 t[i] = coroutine.create(function() end) end`,
		`local t = {} local i = 0 while true do i = i + 1 t[i] = "s" .. i end`,
		`local co co = coroutine.wrap(function() local t = {} while true do t[#t + 1] = {} end end) pcall(co)`,
		`string.rep("x", 1e9)`,
		`pcall(string.rep, "x", 1e15)`,
		`string.rep(string.rep("x", 1e6), 1e6)`,
		`local s = string.rep("x", 1e6) s:gsub("x", s)`,
		`local s = string.rep("x", 1e6) table.concat({s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s}, s)`,
		`local s = string.rep("x", 1e6) string.format(string.rep("%s", 50), s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s)`,
		`local t = {} for i = 1, 1e9 do t[i] = string.rep("x", 1e5):sub(2) end`,
		`local t = {} local s = string.rep("x", 1e6) for i = 1, 1e9 do t[i] = s:sub(i) end`,
		`local t = {} local s = string.rep("x", 1e6) for i = 1, 1e9 do t[i] = s:match("x(.*)") .. i end`,
		`local t = {} local s = string.rep("x", 1e6) for i = 1, 1e9 do t[i] = s:lower() end`,
		`local t = {} for i = 1, 1e9 do t[i] = ("x"):gmatch("y") end`,
		`local last = "" while true do last = setmetatable({}, {__index = last}) end`,
	} {
		ends(t, source, ErrMemory)
	}
}

// A script may use any amount of memory in the course of time.
func TestGarbageIsForgotten(t *testing.T) {
	long(t)
	ends(t, `
		local keep = {}
		for i = 1, 200000 do
			local t = {i, tostring(i), {}}
			keep[i % 100] = t
			local s = "some text " .. i
		end`, nil)
	ends(t, `local s = "" for i = 1, 10000 do s = s .. "xxxx" end`, nil)
	ends(t, `local s = "x" for i = 1, 16 do s = s .. s end local t = {} for i = 1, 10000 do t[i] = s end
		for i = 1, 100 do local u = s .. i end`, nil)
}

func TestStop(t *testing.T) {
	s := newTestState()
	s.Reset(Limits{Steps: 1 << 50, Bytes: 16 << 20})
	proto, err := Compile("@test", `while true do pcall(function() while true do end end) end`)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	time.AfterFunc(20*time.Millisecond, s.Stop)
	if _, err = s.Call(s.Load(proto)); !errors.Is(err, ErrStopped) {
		t.Errorf("ends with %v", err)
	}
	if took := time.Since(begin); took > patience {
		t.Errorf("takes %v to stop", took)
	}
	s.Reset(testLimits)
	if _, err := s.Call(s.Load(mustCompile(t, "return 1"))); err != nil {
		t.Errorf("after Reset: %v", err)
	}
}

func TestLookEndsScript(t *testing.T) {
	s := newTestState()
	s.Reset(Limits{Steps: 1 << 50, Bytes: 16 << 20})
	enough, looks := errors.New("enough"), 0
	s.Look = func() error {
		if looks++; looks == 5 {
			return enough
		}
		return nil
	}
	if _, err := s.Call(s.Load(mustCompile(t, "while true do pcall(error) end"))); !errors.Is(err, enough) {
		t.Errorf("ends with %v", err)
	}
}

func mustCompile(t testing.TB, source string) *Prototype {
	t.Helper()
	proto, err := Compile("@test", source)
	if err != nil {
		t.Fatal(err)
	}
	return proto
}

// Nothing that is deep overflows the stack of Go, in the compiler or in the machine.
func TestDeep(t *testing.T) {
	long(t)
	const n = 100_000
	for _, source := range []string{
		"return " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n),
		"return " + strings.Repeat("{", n) + strings.Repeat("}", n),
		"return " + strings.Repeat("not ", n) + "1",
		"return " + strings.Repeat("- ", n) + "1",
		"return 1" + strings.Repeat(" .. 1", n),
		"return 1" + strings.Repeat(" ^ 1", n),
		strings.Repeat("do ", n) + strings.Repeat("end ", n),
		strings.Repeat("if x then ", n) + strings.Repeat("end ", n),
		"return " + strings.Repeat("function() return ", n) + "1 " + strings.Repeat("end ", n),
		"x" + strings.Repeat(", x", n) + " = 1",
		"local x" + strings.Repeat(", x", n) + " = 1",
		"return f" + strings.Repeat("{f", n) + strings.Repeat("}", n),
	} {
		if _, err := Compile("@test", source); err == nil {
			t.Errorf("%.60s… compiles", source)
		}
	}
	for _, source := range []string{
		"return 1" + strings.Repeat(" + x", n),
		"return x" + strings.Repeat(".x", n),
		"return x" + strings.Repeat("()", n),
		"return x" + strings.Repeat(" and x", n),
		"return x" + strings.Repeat(" < x", n),
		strings.Repeat("x = {1, 'a'} ", n),
		strings.Repeat("x = function() end ", n/10),
		"x = {" + strings.Repeat("1,", n) + "}",
		"x = {" + strings.Repeat("x = 1,", n) + "}",
		strings.Repeat("if x then elseif x then end ", n),
	} {
		if _, err := Compile("@test", source); err != nil {
			t.Errorf("%.60s… does not compile: %v", source, err)
		}
	}
	prints(t, `local function r(n) return r(n) + 1 end print(pcall(r))`, "false\ttest:1: stack overflow")
	prints(t, `local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end
		local ok, e = pcall(function() return t.x end) print(ok, e)`, "false\ttest:1: C stack overflow")
	prints(t, `local t = {} for i = 1, 200 do t = setmetatable({}, {__index = t}) end print(pcall(function() return t.x end))`,
		"false\ttest:1: loop in gettable")
	prints(t, `local function f() return pcall(f) end local n = select("#", f()) print(n, (select(n, f())))`,
		"200\tC stack overflow")
}

// Names are found without a walk through all functions around.
func TestResolveIsFast(t *testing.T) {
	long(t)
	var b strings.Builder
	for range 150 {
		b.WriteString("local function f() local a")
		for i := range 190 {
			b.WriteString(", v" + FormatNumber(float64(i)))
		}
		b.WriteString("\n")
	}
	b.WriteString(strings.Repeat("g()", 100_000) + strings.Repeat(" end", 150))
	begin := time.Now()
	if _, err := Compile("@test", b.String()); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("takes %v", took)
	}
}

// A census in the middle of a call forgets what is above the stack's top, and no argument.
func TestCensusSparesArguments(t *testing.T) {
	long(t)
	ends(t, `
		local function last(...) return (select(select("#", ...), ...)) end
		local function tail(n, ...) local keep = ("x"):rep(50000) .. n return last(...) end
		local numbers = {} for i = 1, 3000 do numbers[i] = i end
		for i = 1, 1000 do
			assert(tail(i, unpack(numbers)) == 3000)
			assert(last(unpack(numbers)) == 3000)
			assert(select("#", coroutine.wrap(function(...) return tail(i, ...) end)(unpack(numbers))) == 1)
		end`, nil)
}

// TestCensusCountsItself: it says how much memory it takes. What it allocates in the course of time is at most three
// times as much.
func TestCensusCountsItself(t *testing.T) {
	long(t)
	for _, source := range []string{
		`kept = {} for i = 1, 100000 do kept[i] = ("x"):rep(64) .. i end`,
		`kept = {} for i = 1, 100000 do kept[i] = {} end`,
	} {
		s := newTestState()
		s.Reset(Limits{Steps: 100_000_000, Bytes: 64 << 20})
		if _, err := s.Call(s.Load(mustCompile(t, source))); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c := s.count()
		runtime.ReadMemStats(&after)
		if took, own := int(after.TotalAlloc-before.TotalAlloc), c.own(); took < 1<<20 || took > 3*own || own > took {
			t.Errorf("%s\n the census of %d bytes took %d, and says %d", source, c.bytes, took, own)
		}
	}
}
