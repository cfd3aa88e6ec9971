package node

import (
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/redistest"
)

// oracleScripts are executed here and by redis-server, one after the other.
var oracleScripts = []string{
	`EVAL "return foo" 0`,
	`EVAL "redis.call('set','{k}s','x'); return redis.call('lpush','{k}s','b')" 1 {k}s`,
	`EVAL "local t = redis.pcall('lpush','{k}s','b'); return t.err" 1 {k}s`,
	`EVAL "return redis.pcall('lpush','{k}s','b')" 1 {k}s`,
	`EVAL "return redis.call('incr','a','b')" 1 a`,
	`EVAL "error('boom')" 0`,
	`EVAL "error({err='MY boom'})" 0`,
	`EVAL "return {err='MY boom'}" 0`,
	`EVAL "return {ok='fine'}" 0`,
	`EVAL "return redis.error_reply('x y')" 0`,
	`EVAL "return redis.error_reply('-x y')" 0`,
	`EVAL "return redis.error_reply('My')" 0`,
	`EVAL "return redis.error_reply(1,2)" 0`,
	`EVAL "return redis.error_reply({})" 0`,
	`EVAL "return redis.status_reply('x y')" 0`,
	`EVAL "return redis.status_reply()" 0`,
	`EVAL "x=1" 0`,
	`EVAL "local x = 1 return x x" 0`,
	`EVAL "return redis.call()" 0`,
	`EVAL "return redis.call('nosuch')" 0`,
	`EVAL "return redis.call('get')" 0`,
	`EVAL "return redis.call('get', {})" 0`,
	`EVAL "return redis.call('multi')" 0`,
	`EVAL "return redis.call('subscribe','q')" 1 q`,
	`EVAL "return redis.call('eval','return 1',0)" 0`,
	`EVAL "return 1" a`,
	`EVAL "return 1" -1`,
	`EVAL "return 1" 3 a`,
	`EVAL "return 1"`,
	`EVALSHA ffffffffffffffffffffffffffffffffffffffff 0`,
	`EVALSHA ff 0`,
	`EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0`,
	`EVAL "return 1" 0`,
	`EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0`,
	`EVALSHA_RO e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0`,
	`EVAL_RO "return redis.call('set','a',1)" 1 a`,
	`EVAL_RO "return redis.call('get','{k}s')" 1 {k}s`,
	`EVAL_RO "return redis.pcall('set','a',1)" 1 a`,
	`EVAL "#!lua flags=no-writes\nreturn redis.call('set','a',1)" 1 a`,
	`EVAL "#!lua flags=xx\nreturn 1" 0`,
	`EVAL "#!lua name=a\nreturn 1" 0`,
	`EVAL "#!luax\nreturn 1" 0`,
	`EVAL "#!lua" 0`,
	`EVAL "#!lua flags=allow-stale,allow-oom\nreturn 1" 0`,
	`EVAL "#!lua\n\nreturn x" 0`,
	`EVAL "return {1,2,3.7,'a',{1,{2}},false,nil,5}" 0`,
	`EVAL "return {true,false,{}}" 0`,
	`EVAL "return -3.99" 0`,
	`EVAL "return 1e300" 0`,
	`EVAL "return 0/0" 0`,
	`EVAL "return nil" 0`,
	`EVAL "return" 0`,
	`EVAL "return print" 0`,
	`EVAL "return tostring" 0`,
	`EVAL "return {double=3.3}" 0`,
	`EVAL "return {map={a=1}}" 0`,
	`EVAL "return {set={a=true}}" 0`,
	`EVAL "return {big_number='12345678901234567890'}" 0`,
	`EVAL "return {verbatim_string={format='txt',string='hello'}}" 0`,
	`EVAL "redis.setresp(3); return true" 0`,
	`EVAL "redis.setresp(3); return false" 0`,
	`EVAL "redis.setresp(3); redis.call('hset','{k}h','a','1'); return redis.call('hgetall','{k}h')" 1 {k}h`,
	`EVAL "redis.setresp(3); return redis.call('hgetall','{k}h')['map']['a']" 1 {k}h`,
	`EVAL "redis.setresp(3); redis.call('zadd','{k}z','1.5','m'); return redis.call('zscore','{k}z','m')" 1 {k}z`,
	`EVAL "redis.setresp(3); return redis.call('zscore','{k}z','m')['double'] * 2" 1 {k}z`,
	`EVAL "redis.setresp(3); return redis.call('get','{k}none') == nil" 1 {k}none`,
	`EVAL "return redis.call('get','{k}none') == false" 1 {k}none`,
	`EVAL "redis.setresp(3); redis.call('sadd','{k}t','x'); return redis.call('smembers','{k}t').set.x" 1 {k}t`,
	`EVAL "redis.setresp(4)" 0`,
	`EVAL "redis.setresp()" 0`,
	`EVAL "return redis.sha1hex('a')" 0`,
	`EVAL "return redis.sha1hex()" 0`,
	`EVAL "redis.log(redis.LOG_NOTICE)" 0`,
	`EVAL "redis.log(9,'a')" 0`,
	`EVAL "redis.log('x','a')" 0`,
	`EVAL "return redis.log(redis.LOG_DEBUG,'a')" 0`,
	`EVAL "local t={} for k,v in pairs(redis) do t[#t+1]=k end table.sort(t) return table.concat(t,' ')" 0`,
	`EVAL "return redis.acl_check_cmd('get','a')" 0`,
	`EVAL "return redis.acl_check_cmd('nosuch','a')" 0`,
	`EVAL "return redis.replicate_commands()" 0`,
	`EVAL "return redis.breakpoint()" 0`,
	`EVAL "return redis.debug('a')" 0`,
	`EVAL "return redis.set_repl(redis.REPL_ALL)" 0`,
	`EVAL "return redis.set_repl(9)" 0`,
	`SCRIPT LOAD "return 1"`,
	`SCRIPT LOAD "return x x"`,
	`SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db a`,
	`SCRIPT KILL`,
	`SCRIPT FLUSH foo`,
	`SCRIPT FLUSH ASYNC`,
	`SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db`,
	`SCRIPT NOSUCH`,
	`EVAL "redis.x=1" 0`,
	`EVAL "string.x=1" 0`,
	`EVAL "getmetatable('').__index = 1" 0`,
	`EVAL "setmetatable(_G, {})" 0`,
	`EVAL "rawset(_G, 'x', 1)" 0`,
	`EVAL "KEYS[1]='b' return KEYS[1]" 1 a`,
	`EVAL "KEYS = 1" 1 a`,
	`EVAL "return _G.foo" 0`,
	`EVAL "return rawget(_G,'foo')" 0`,
	`EVAL "local function f() error('in f') end\nf()" 0`,
	`EVAL "local ok, e = pcall(function() return redis.call('nosuch') end) return {type(e), e}" 0`,
	`EVAL "local ok, e = pcall(redis.call, 'nosuch') return {type(e), e}" 0`,
	`EVAL "local ok, e = pcall(error, {1}) return type(e)" 0`,
	`EVAL "return tostring(redis.call('set','{k}','v').ok)" 1 {k}`,
	`EVAL "redis.call('set','{k}',1.5) return redis.call('get','{k}')" 1 {k}`,
	`EVAL "redis.call('set','{k}',1e20) return redis.call('get','{k}')" 1 {k}`,
	`EVAL "redis.call('set','{k}',0.1) return redis.call('get','{k}')" 1 {k}`,
	`EVAL "redis.call('set','{k}',-7) return redis.call('get','{k}')" 1 {k}`,
	`EVAL "redis.call('set','{k}',2^53) return redis.call('get','{k}')" 1 {k}`,
	`EVAL "redis.call('set','{k}',1e17) return redis.call('get','{k}')" 1 {k}`,
	`EVAL "redis.call('set','{k}',1/0) return redis.call('get','{k}')" 1 {k}`,
	`EVAL "string.rep('x',10)()" 0`,
	`EVAL "table.sort({3,2,1},function(a,b) error('x') end)" 0`,
	`EVAL "return tonumber(nil)+1" 0`,
	`EVAL "return {KEYS[1],KEYS[2],ARGV[1],#KEYS,#ARGV}" 2 {k}a {k}b x`,
	`EVAL "return redis.call('MSET', KEYS[1], 1, KEYS[2], 2)" 2 {k}a {k}b`,
	`EVAL "return redis.call('MGET', unpack(KEYS))" 2 {k}a {k}b`,
	`EVAL "return redis.call('DEL', unpack(KEYS))" 2 {k}a {k}b`,
	`EVAL "for i = 1, 300 do redis.call('rpush', KEYS[1], i) end return redis.call('llen', KEYS[1])" 1 {k}l`,
	`EVAL "return #redis.call('lrange', KEYS[1], 0, -1)" 1 {k}l`,
	`EVAL "return redis.call('sort', KEYS[1], 'desc', 'limit', 0, 3)" 1 {k}l`,
	`EVAL "return redis.call('ping')" 0`,
	`EVAL "return redis.call('echo', 'x')" 0`,
	`EVAL "return #redis.call('time')" 0`,
	`EVAL "return cjson.encode({1,2,{a=1}})" 0`,
	`EVAL "return cjson.decode(ARGV[1]).a" 0 '{"a":[1,2,"x"]}'`,
	`EVAL "return bit.band(7, 12)" 0`,
	`EVAL "return struct.pack('>I2', 258)" 0`,
	`EVAL "return cmsgpack.unpack(cmsgpack.pack({1,2}))" 0`,
	`EVAL "return string.format('%.14g', 0.1)" 0`,
	`EVAL "return redis.call('object', 'encoding', KEYS[1])" 1 {k}n`,
	`EVAL "return {err=string.rep('x',100) .. '\\nabc'}" 0`,
	`EVAL "return {ok='a\\r\\nb'}" 0`,
	`EVAL "return redis.call('expire', KEYS[1], '100')" 1 {k}l`,
	`EVAL "return redis.call('set', KEYS[1], 'v', 'PX', 100000, 'NX')" 1 {k}new`,
	`EVAL "return redis.call('set', KEYS[1], 'v', 'PX', 100000, 'NX')" 1 {k}new`,
	`EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end" 1 {k}new w`,
	`EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end" 1 {k}new v`,
	`MULTI`,
	`EVAL "return redis.call('incr', KEYS[1])" 1 {k}n`,
	`EVAL "return redis.call('lpush', KEYS[1], 1)" 1 {k}n`,
	`EVALSHA ffffffffffffffffffffffffffffffffffffffff 0`,
	`INCR {k}n`,
	`EVAL "return 7" 0`,
	`EXEC`,
	`MULTI`,
	`EVAL "return 8" 0`,
	`EXEC`,
	`HELLO 3`,
	`EVAL "return {double=3.3}" 0`,
	`EVAL "return {map={a=1}}" 0`,
	`EVAL "return {set={a=true}}" 0`,
	`EVAL "return {big_number='12345678901234567890'}" 0`,
	`EVAL "return {verbatim_string={format='txt',string='hello'}}" 0`,
	`EVAL "return true" 0`,
	`EVAL "return false" 0`,
	`EVAL "redis.setresp(3); return {true, false}" 0`,
	`EVAL "redis.setresp(3); return redis.call('hgetall','{k}h')" 1 {k}h`,
	`EVAL "return redis.call('hgetall','{k}h')" 1 {k}h`,
	`EVAL "return nil" 0`,
}

// TestScriptsOracle says scripts to a node and to a real redis-server, and compares every reply.
func TestScriptsOracle(t *testing.T) {
	real := dial(t, redistest.Start(t))
	ours := dial(t, startLeveled(t).Addr())
	for _, line := range oracleScripts {
		if strings.HasSuffix(line, " skip") || strings.HasPrefix(line, "HELLO") {
			real.do(line)
			ours.do(line)
			continue
		}
		if got, want := ours.do(line), real.do(line); got != want {
			t.Errorf("%s answers\n\t%s\nwant\n\t%s", line, got, want)
		}
	}
	// With a key, and known, they are tried on the loop.
	for _, version := range []string{"HELLO 2", "HELLO 3"} {
		real.do(version)
		ours.do(version)
		for _, line := range oracleScripts {
			if !strings.HasPrefix(line, `EVAL "`) {
				continue
			}
			line = strings.Replace(line, `" 0`, `" 1 {k}`, 1)
			for range 2 {
				if got, want := ours.do(line), real.do(line); got != want {
					t.Errorf("%s again answers\n\t%s\nwant\n\t%s", line, got, want)
				}
			}
		}
	}
}
