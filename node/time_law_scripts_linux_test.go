//go:build linux && !race

package node

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/script"
)

// hostileTrials are scripts that a loop tries, and that do in few steps, or in one command, as much as can be. KEYS are
// {k}l, {k}s, {k}w, {k}n, {k}hash, {k}set, {k}zset, {k}list, {k}dense and {k}new of lawRig.fill; ARGV[1] has 15,000
// bytes.
var hostileTrials = []string{
	"while true do end",
	"local function f() return f() end return f()",
	"local a = ARGV[1] while true do a = redis.sha1hex(a .. a) end",
	"local a = ARGV[1] while true do local x = a:rep(2) end",
	"local a = ARGV[1] while true do local x = a:upper() end",
	"local a = ARGV[1] while true do local x = a:find('2', 1, true) end",
	"local a = ARGV[1] while true do local x = a:gsub('.', '%0%0') end",
	"return ARGV[1]:find(string.rep('1-', 20) .. '2')",
	"return string.rep('a', 30):match(string.rep('a?', 30) .. string.rep('a', 30))",
	"local a = ARGV[1] while true do if a == a .. 'x' then end end",
	"local a, b = ARGV[1] .. 'x', ARGV[1] .. 'y' while true do if a < b then end end",
	"while true do local x = string.format('%99.99f', 1e300) end",
	"local t = {} for i = 1, 60 do t[i] = i + .5 end while true do local x = table.concat(t, ',') end",
	"local n = 1.1 while true do local x = tostring(n) n = n * 1.1 end",
	"while true do pcall(error, 'x') end",
	"while true do pcall(redis.call, 'GET') end",
	"while true do local x = cjson.encode({1.5, 2.5, ARGV[1]}) end",
	"local s = '[' .. string.rep('1.23456789,', 2000) .. '1]' return #cjson.decode(s)",
	"return #cjson.decode(string.rep('[', 900) .. string.rep(']', 900))",
	"local s = cmsgpack.pack({1, 2, ARGV[1]}) while true do cmsgpack.unpack(s) end",
	"while true do struct.unpack('<I4<I4', 'abcdefgh') end",
	"local t = {} for i = 1, 300 do t[i] = -i end table.sort(t, function(a, b) return a < b end) return t",
	"local t = {} for i = 1, 500 do t['k' .. i] = i end while true do for k in pairs(t) do end end",
	"local t = {} for i = 1, 900 do table.insert(t, 1, i) end return t",
	"local t = {} for i = 1, 200 do t[i] = {} end for i = 1, 200 do setmetatable(t[i], {__index = t[i + 1]}) end while true do local x = t[110].x end",
	"for i = 1, 60 do coroutine.wrap(function() end)() end",
	"loadstring('return 1')() loadstring('x = ' .. string.rep('1+', 200) .. '1')",
	"while true do local x = bit.bxor(1, 2, 3, 4, 5, 6, 7, 8) end",
	"local s = {'x'} for i = 1, 20 do s = {s, s} end return s",
	"local t = {} for i = 1, 3000 do t[i] = i end return t",
	"local t = {} for i = 1, 1000 do t[i] = ARGV[1] end return t",
	"local d, t = {double = .1}, {} for i = 1, 1750 do t[i] = d end return t",
	"local s = {ok = ARGV[1] .. ARGV[1]} return {s, s, s, s, s, s, s, s}",
	"local s = {err = ARGV[1] .. ARGV[1]} return {s, s, s, s, s, s, s, s}",
	"local t = {} for i = 1, 1000 do t[i] = i + .1 end return redis.call('SADD', KEYS[6], unpack(t))",
	"local x = 1.5 " + strings.Repeat("x=x^x ", 2700),
	"local x = 1.5 " + strings.Repeat("x=x%.7 ", 2000),
	"local t, x = {} for i = 0, 31 do t[2^i] = 1 end for i = 1, 900 do t[i] = 1 end " + strings.Repeat("x=#t ", 3000),
	"local t, x = {} local u = t for i = 1, 90 do local v = {} setmetatable(u, {__index = v}) u = v end " + strings.Repeat("x=t.y ", 2500),
	"local n, x = 1.1 " + strings.Repeat("x=n.."+strings.Repeat("n..", 200)+"n ", 25),
	"local a, b, x = ARGV[1] .. 'x', ARGV[1] .. 'y' " + strings.Repeat("x=a==b x=a<b ", 1000),

	"while true do redis.call('INCR', KEYS[4]) end",
	"while true do redis.call('TIME') end",
	"while true do redis.call('GET', KEYS[2]) end",
	"while true do redis.call('SET', KEYS[10], ARGV[1]) end",
	"return redis.call('GET', KEYS[1])",
	"return redis.call('GET', KEYS[3])",
	"return redis.call('MGET', KEYS[1], KEYS[2], KEYS[3], KEYS[2], KEYS[3], KEYS[1])",
	"local t = {} for i = 1, 120 do t[i] = i end redis.call('HSET', KEYS[5], unpack(t)) redis.call('ZADD', KEYS[7], unpack(t)) return redis.call('SADD', KEYS[6], unpack(t))",
	"local t = {} for i = 1, 60 do t[2 * i - 1] = i t[2 * i] = string.rep('v', 250) end return redis.call('HSET', KEYS[10], unpack(t))",
	"while true do redis.call('RPUSH', KEYS[10], ARGV[1]) end",
	"return redis.call('HGETALL', KEYS[5])",
	"return #redis.call('HKEYS', KEYS[5])",
	"return redis.call('SMEMBERS', KEYS[6])",
	"return redis.call('ZRANGE', KEYS[7], 0, -1)",
	"return redis.call('ZRANGE', KEYS[7], 0, 1000, 'WITHSCORES')",
	"return redis.call('LRANGE', KEYS[8], 5000, 6500)",
	"while true do redis.call('LRANGE', KEYS[8], 5000, 5100) end",
	"while true do redis.call('LINDEX', KEYS[8], 10000) end",
	"return redis.call('LINSERT', KEYS[8], 'BEFORE', 'no', 'x')",
	"return redis.call('LREM', KEYS[9], 0, '1')",
	"return redis.call('SORT', KEYS[8], 'ALPHA', 'STORE', KEYS[10])",
	"return redis.call('SUNIONSTORE', KEYS[10], KEYS[6], KEYS[6])",
	"return redis.call('ZUNIONSTORE', KEYS[10], 2, KEYS[7], KEYS[7])",
	"return redis.call('ZRANGESTORE', KEYS[10], KEYS[7], 0, -1)",
	"return redis.call('ZREMRANGEBYRANK', KEYS[7], 10, -2)",
	"return redis.call('SPOP', KEYS[6], 10000)",
	"return redis.call('DEL', KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[1])",
	"return redis.call('COPY', KEYS[5], KEYS[10], 'REPLACE')",
	"return redis.call('RENAME', KEYS[8], KEYS[10])",
	"return redis.call('SETRANGE', KEYS[1], 2000000, 'x')",
	"return redis.call('BITCOUNT', KEYS[1])",
	"return redis.call('BITOP', 'NOT', KEYS[10], KEYS[1])",
	"return redis.call('LCS', KEYS[2], KEYS[2])",
	"return redis.call('DUMP', KEYS[5])",
	"return redis.call('GETDEL', KEYS[1])",
	"while true do redis.call('PUBLISH', KEYS[4], ARGV[1]) end",
}

// TestTimeLawOfTrials: so does no script that a loop tries.
func TestTimeLawOfTrials(t *testing.T) {
	if !locksAreTimed {
		t.Skip("needs the build tag checked")
	}
	rig := newLawRig(t, startLeveled)
	c := dial(t, rig.node.Addr())
	c.patience = lawPatience
	keys := strings.Fields("{k}l {k}s {k}w {k}n {k}hash {k}set {k}zset {k}list {k}dense {k}new")
	tried := 0
	for _, body := range hostileTrials {
		rig.judge(body, func() cost {
			rig.fill()
			fresh := fmt.Sprintf("%s --%d", body, tried) // what was too long is not tried again
			tried++
			if len(fresh) > 16<<10 {
				t.Fatalf("%.40s is too long to be tried", body)
			}
			c.sendArgs([]byte("SCRIPT"), []byte("LOAD"), []byte(fresh))
			c.read()
			args := [][]byte{[]byte("EVALSHA"), []byte(script.SHA1([]byte(fresh))), fmt.Append(nil, len(keys))}
			for _, key := range keys {
				args = append(args, []byte(key))
			}
			c2 := dial(t, rig.node.Addr())
			defer c2.conn.Close()
			c2.patience = lawPatience
			return rig.sendKilled(c2, resp.AppendRequest(nil, append(args, longWord[:15_000])...))
		})
	}

	// Many on one connection.
	body := "local t = 0 for i = 1, 1500 do t = t + i end return t"
	c.sendArgs([]byte("SCRIPT"), []byte("LOAD"), []byte(body))
	c.read()
	one := resp.AppendRequest(nil, []byte("EVALSHA"), []byte(script.SHA1([]byte(body))), []byte("1"), []byte("{k}"))
	rig.judge("a pipeline of many scripts", func() cost {
		rig.meter.begin()
		const many = 500
		c.sendRaw(bytes.Repeat(one, many))
		for range many {
			if got := string(c.read()); got != ":1125750\r\n" {
				t.Fatalf("a script answers %q", got)
			}
		}
		return rig.meter.end()
	})
}

// sendKilled is send of a script that may have no end.
func (rig *lawRig) sendKilled(c *client, raw []byte) cost {
	rig.node.scripts.maxRun = 100 * time.Millisecond
	tellLoops(rig.t, rig.node)
	return rig.send(c, raw)
}
