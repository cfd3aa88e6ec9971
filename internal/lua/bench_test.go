package lua

import (
	"os/exec"
	"testing"
)

// benchPrograms are timed here and, as Lua51/…, in lua5.1, process start included there.
var benchPrograms = []struct{ name, source string }{
	{"fib32", `local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end return fib(32)`},
	{"loop50M", `local s = 0 for i = 1, 50000000 do s = s + i end return s`},
	{"tables", `for i = 1, 100 do local t = {} for j = 1, 20000 do t[j] = j end local n = 0
		for j = 1, #t do n = n + t[j] end for k, v in pairs(t) do n = n + v end end`},
	{"fields", `local p = {x = 1, y = 2} for i = 1, 5000000 do p.x = p.x + p.y p.y = p.x - i end`},
	{"strings", `local t = {} for i = 1, 300000 do t[#t + 1] = "item:" .. i end local s = table.concat(t, ",")
		local n = 0 for w in s:gmatch("[^,]+") do n = n + #w end return n`},
	{"sort", `local t = {} for i = 1, 200000 do t[i] = i * 7919 % 200003 end table.sort(t, function(a, b) return a < b end)`},
	{"closures", `local n = 0 for i = 1, 2000000 do local f = function() return i end n = n + f() end`},
	{"pcall", `for i = 1, 2000000 do pcall(tostring, i) end`},
}

func BenchmarkProgram(b *testing.B) {
	for _, program := range benchPrograms {
		b.Run(program.name, func(b *testing.B) {
			s := newTestState()
			proto := mustCompile(b, program.source)
			for b.Loop() {
				s.Reset(Limits{Steps: 1 << 50, Bytes: 256 << 20})
				if _, err := s.Call(s.Load(proto)); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("Lua51/"+program.name, func(b *testing.B) {
			peer, err := exec.LookPath("lua5.1")
			if err != nil {
				b.Skip("lua5.1 is not installed")
			}
			for b.Loop() {
				if out, err := exec.Command(peer, "-e", program.source).CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
}

// compareAndDelete is the script that most locks run, with a stand-in for redis.call.
const compareAndDelete = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`

func BenchmarkCompareAndDelete(b *testing.B) {
	s := newTestState()
	s.Register(s.Library("redis"), map[string]HostFunction{"call": func(c *Call) {
		if c.CheckString(1) == "get" {
			c.PushString("token")
			return
		}
		c.PushNumber(1)
	}})
	s.Seal()
	fn := s.Load(mustCompile(b, compareAndDelete))
	limits := Limits{Steps: 1 << 40, Bytes: 64 << 20}
	b.ReportAllocs()
	for b.Loop() {
		s.Reset(limits)
		keys, args := s.NewTable(1, 0), s.NewTable(1, 0)
		keys.SetInt(1, String("key"))
		args.SetInt(1, String("token"))
		s.Globals.SetString("KEYS", TableValue(keys))
		s.Globals.SetString("ARGV", TableValue(args))
		results, err := s.Call(fn)
		if n, _ := results[0].AsNumber(); err != nil || n != 1 {
			b.Fatal(results, err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		mustCompile(b, compareAndDelete)
	}
}

// A script's cost when nothing goes wrong is an allocation for each table.
func TestCompareAndDeleteAllocations(t *testing.T) {
	s := newTestState()
	fn := s.Load(mustCompile(t, `local t = ... return t == "x"`))
	allocations := testing.AllocsPerRun(100, func() {
		s.Reset(testLimits)
		if _, err := s.Call(fn, String("x")); err != nil {
			t.Fatal(err)
		}
	})
	if allocations != 0 {
		t.Errorf("a run allocates %v times", allocations)
	}
}
