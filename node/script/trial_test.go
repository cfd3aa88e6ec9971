package script

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// trialHost notes the commands of a script. It answers what it has answered before, and ends a trial behind some.
type trialHost struct {
	host
	calls   []string
	replies []string
	until   int // so many commands
	random  *rand.Rand
}

func (h *trialHost) Call(args [][]byte, v resp.Version) ([]byte, error) {
	if len(h.calls) == h.until {
		return nil, ErrLong
	}
	h.calls = append(h.calls, fmt.Sprintf("%q %d", args, v))
	if n := len(h.calls); n <= len(h.replies) {
		return []byte(h.replies[n-1]), nil
	}
	reply := [...]string{"+OK\r\n", ":7\r\n", "$3\r\nabc\r\n", "*2\r\n$1\r\nx\r\n:1\r\n", "-ERR no\r\n", "$-1\r\n"}[h.random.IntN(6)]
	h.replies = append(h.replies, reply)
	return []byte(reply), nil
}

// seen are scripts that tell the host all that they can see.
var seen = []string{
	"for k, v in pairs(redis) do pcall(redis.call, 'x', k, tostring(v)) end for k, v in pairs(_G) do pcall(redis.call, 'x', k, tostring(v)) end",
	"for k, v in pairs(cjson) do pcall(redis.call, 'x', k, tostring(v)) end for k, v in pairs(string) do pcall(redis.call, k, tostring(v)) end",
	`local t = {} for i = 1, 20 do t[{}] = i t[function() end] = i t[tostring({})] = i end
		for k, v in pairs(t) do pcall(redis.call, 'x', tostring(k), v) end`,
	"for i = 1, 20 do pcall(redis.call, 'x', math.random(), math.random(100)) end math.randomseed(7) pcall(redis.call, 'x', math.random())",
	"for i = 1, 20 do local co = coroutine.create(function() end) pcall(redis.call, 'x', tostring(co), tostring(coroutine.resume(co))) end",
	"cjson.encode_sparse_array(true) for i = 1, 5 do pcall(redis.call, 'x', cjson.encode({a = 1, b = {2, 3}, [tostring({})] = 1})) end",
	"local cj = cjson.new() pcall(redis.call, 'x', tostring(cj)) pcall(redis.call, 'x', tostring(cmsgpack.unpack(cmsgpack.pack({1, {a = 2}}))))",
	"for i = 1, 9 do local ok, e = pcall(redis.call, 'x', i) pcall(redis.call, 'y', tostring(ok), type(e) == 'table' and cjson.encode(e) or tostring(e)) end",
	"local function f(n) if n == 0 then return pcall(error, {}) end return f(n - 1) end for i = 1, 5 do local ok, e = f(i) pcall(redis.call, 'x', tostring(e)) end",
	"redis.setresp(3) for i = 1, 5 do pcall(redis.call, 'x', i) end redis.setresp(2) pcall(redis.call, 'x')",
	"local s = '' for i = 1, 30 do s = s .. tostring({}) pcall(redis.call, 'x', s) end",
	"local ok, e = pcall(function() local x = nil + 1 end) pcall(redis.call, 'x', e) pcall(redis.call, 'x', select(2, pcall(string.rep)))",
	"local ok, e = pcall(string.rep, 'x', -1) local function f() return f() + 1 end ok, e = pcall(f) pcall(redis.call, 'x', e)",
	"pcall(redis.call, 'x', os.clock()) pcall(redis.call, 'x')",
	"pcall(redis.call, 'x') pcall(redis.call, 'x', collectgarbage('count'), gcinfo())",
	"pcall(redis.call, 'x') pcall(function() redis.log(3, 'x') end) pcall(redis.call, 'x')",
	"for _, k in ipairs(KEYS) do pcall(redis.call, k, unpack(ARGV)) end",
}

// TestTrialIsRepeated: a script that begins anew in another Machine, which has run others, calls what it has called
// before, whenever its trial ends.
func TestTrialIsRepeated(t *testing.T) {
	used, fresh := NewMachine(), NewMachine()
	for _, body := range seen {
		mustCompile(t, body)
		run(used, body, &trialHost{until: 1 << 30, random: rand.New(rand.NewPCG(1, 1))}, false)
	}
	longest := 0
	for _, body := range seen {
		for until := range 40 {
			first := &trialHost{until: until, random: rand.New(rand.NewPCG(7, uint64(until)))}
			machines := [2]*Machine{fresh, used}
			err := run(machines[until%2], body, first, true)
			again := &trialHost{until: 1 << 30, random: first.random, replies: first.replies}
			bad := run(machines[1-until%2], body, again, false)
			if n := len(first.calls); n > len(again.calls) || strings.Join(first.calls, "\n") != strings.Join(again.calls[:n], "\n") {
				t.Fatalf("%s\n calls %q, and then %q", body, first.calls, again.calls)
			}
			if !errors.Is(err, ErrLong) && fmt.Sprint(err) != fmt.Sprint(bad) {
				t.Errorf("%s\n ends with %v, and then with %v", body, err, bad)
			}
			longest = max(longest, len(first.calls))
		}
	}
	if longest < 30 {
		t.Errorf("no script calls more than %d commands", longest)
	}
}

func mustCompile(t *testing.T, body string) {
	t.Helper()
	if _, err := Compile(body); err != nil {
		t.Fatal(err)
	}
}

func run(m *Machine, body string, h Host, trial bool) error {
	s, err := Compile(body)
	if err != nil {
		return err
	}
	defer m.End()
	return m.Run(Run{Script: s, Keys: [][]byte{[]byte("k"), []byte("l")}, Args: [][]byte{[]byte("1"), []byte("x")}, Host: h, Trial: trial})
}

// TestTrialsEnd: what is long, takes much memory or does what happens once only ends a trial with ErrLong, and nothing
// that a script does hides that.
func TestTrialsEnd(t *testing.T) {
	m := NewMachine()
	for _, body := range []string{
		"while true do end", "local s = string.rep('x', 1e5)", "for i = 1, 100 do local s = string.rep('x', 1e3) end",
		"os.clock()", "redis.log(3, 'x')", "collectgarbage('count')", "gcinfo()", "for i = 1, 600 do pcall(redis.call, 'x') end",
		"local t = setmetatable({}, {__index = function() while true do end end}) return t.x",
		"local t = {} for i = 1, 1e6 do t[i] = i end", "coroutine.wrap(function() os.clock() end)()",
		"local t = {} for i = 1, 100 do t[i] = i + .1 end for i = 1, 15 do redis.call('x', unpack(t)) end",
	} {
		for _, form := range []string{"%s", "pcall(function() %s end) return 1"} {
			body := fmt.Sprintf(form, body)
			err := run(m, body, &host{}, true)
			if !errors.Is(err, ErrLong) {
				t.Errorf("%s\n ends with %v", body, err)
			}
		}
	}
	for _, body := range []string{
		"local s = {'x'} for i = 1, 20 do s = {s, s} end return s", // a million tables
		"local d, t = {double = .1}, {} for i = 1, 1000 do t[i] = d end return t",
		"local s, t = {ok = string.rep('x', 3e4)}, {} for i = 1, 15 do t[i] = s end return t",
		"local s, t = {err = string.rep('x', 3e4)}, {} for i = 1, 15 do t[i] = s end return t",
		"local s, t = {big_number = string.rep('1', 3e4)}, {} for i = 1, 15 do t[i] = s end return t",
	} {
		s, err := Compile(body)
		if err == nil {
			err = m.Run(Run{Script: s, Host: &host{}, Trial: true})
		}
		if err != nil {
			t.Fatalf("%s\n ends with %v", body, err)
		}
		if err = m.Reply(resp.RESP2, func([]byte) bool { return true }); !errors.Is(err, ErrLong) {
			t.Errorf("the reply of %s\n ends with %v", body, err)
		}
		m.End()
	}
	if err := run(m, "return 1", &host{}, true); err != nil {
		t.Errorf("the next script ends with %v", err)
	}
}
