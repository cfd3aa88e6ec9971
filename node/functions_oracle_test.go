package node

import (
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/redistest"
)

// oracleLibraries are what follows the first line of a library that is loaded here and by redis-server. FCALL f
// calls what each has registered.
var oracleLibraries = []string{
	`x x`,
	`return foo`,
	`x = 1`,
	`local x = redis.call('get', 'a')`,
	`redis.register_function()`,
	`redis.register_function('f')`,
	`redis.register_function(1,2)`,
	`redis.register_function('f', 2)`,
	`redis.register_function({}, function() end)`,
	`redis.register_function('f-g', function() end)`,
	`redis.register_function('', function() end)`,
	`redis.register_function('f', function() end, {})`,
	`redis.register_function{}`,
	`redis.register_function{function_name='f'}`,
	`redis.register_function{callback=function() end}`,
	`redis.register_function{function_name='f', callback=1}`,
	`redis.register_function{function_name={}, callback=function() end}`,
	`redis.register_function{function_name='f', callback=function() end, description={}}`,
	`redis.register_function{function_name='f', callback=function() end, description=1}`,
	`redis.register_function{function_name='f', callback=function() end, flags=1}`,
	`redis.register_function{function_name='f', callback=function() end, flags={'x'}}`,
	`redis.register_function{function_name='f', callback=function() end, flags={1}}`,
	`redis.register_function{function_name='f', callback=function() end, x=1}`,
	`redis.register_function{function_name='f', callback=function() end, [1]=1}`,
	`redis.register_function{function_name='f', callback=function() end, [true]=1}`,
	`redis.register_function{FUNCTION_NAME='f', Callback=function() return 5 end, FLAGS={'NO-WRITES'}}`,
	`redis.register_function('f', function() end) redis.register_function('f', function() end)`,
	"while true do end", // it takes all steps that it may
	`redis.error_reply('x')`,
	`redis.setresp(3)`,
	`redis.log(redis.LOG_NOTICE,'hello') redis.log(redis.LOG_DEBUG)`,
	`KEYS=1`,
	`string.x=1`,
	`redis.x=1`,
	`local x = KEYS`,
	`local x = _G`,
	`return math.random()`,
	`return redis.LOG_WARNING + redis.REDIS_VERSION`,
	`local function f() return f() end f()`,
	`local function f() return 1 + f() end f()`,
	`return {} + 1`,
	``,
	`redis.register_function(5, function() return 5 end)`,
	`redis.register_function('f', function(keys, args) return {#keys, #args, keys[1], args[1]} end)`,
	`redis.register_function('f', function(keys, args) error('boom') end)`,
	`redis.register_function('f', function(keys, args) error({err='MY boom'}) end)`,
	`redis.register_function('f', function(keys, args) return redis.call('lpush', 'x') end)`,
	`redis.register_function('f', function(keys, args) return redis.call('set', keys[1], args[1]) end)`,
	`redis.register_function('f', function(keys, args) return redis.call('get', keys[1]) end)`,
	`redis.register_function('f', function(keys, args) return redis.pcall('nosuch', 'x') end)`,
	`redis.register_function('f', function(keys, args) return KEYS end)`,
	`redis.register_function('f', function(keys, args) return ARGV end)`,
	`redis.register_function('f', function(keys, args) x = 1 end)`,
	`redis.register_function('f', function(keys, args) redis.x = 1 end)`,
	`redis.register_function('f', function(keys, args) string.x = 1 end)`,
	`redis.register_function('f', function(keys, args) local t={} for k,v in pairs(redis) do t[#t+1]=k end table.sort(t) return table.concat(t,' ') end)`,
	`redis.register_function('f', function(keys, args) return type(_G) .. type(getmetatable(_G)) end)`,
	`redis.register_function('f', function(keys, args) redis.register_function('g', function() end) end)`,
	`local r = redis redis.register_function('f', function(keys, args) r.register_function('g', function() end) end)`,
	`redis.register_function('f', function(keys, args) return loadstring('return tostring(1)')() end)`,
	`redis.register_function('f', function(keys, args) return redis.setresp(3) end)`,
	`redis.register_function('f', function(keys, args) return redis.call('fcall', 'f', 0) end)`,
	`redis.register_function('f', function(keys, args) return redis.call('function', 'flush') end)`,
	`redis.register_function('f', function(keys, args) return {err='x'} end)`,
	`redis.register_function('f', function(keys, args) return redis.error_reply('A b') end)`,
	`redis.register_function('f', function(keys, ...) return {select('#', ...), ...} end)`,
	`redis.register_function('f', redis.log)`,
	`redis.register_function{function_name='f', callback=function() return redis.call('set','{k}',1) end, flags={'no-writes'}}`,
	`redis.register_function{function_name='f', callback=function() return redis.call('ping') end, description='what it does', flags={'no-writes','allow-stale','allow-oom','no-cluster','allow-cross-slot-keys'}}`,
	`redis.register_function{function_name='f', callback=function() return {1, 'a', {2}, true, false} end, flags={'allow-cross-slot-keys', 'allow-oom'}}`,
	"\n\nlocal function twice(n)\n return n * 2\nend\nredis.register_function('f', function(keys, args)\n return twice(nil)\nend)",
}

var oracleFunctions = []string{
	"FUNCTION LOAD x",
	`FUNCTION LOAD "#!lua\nx"`,
	`FUNCTION LOAD "#!lua name=a b=c\nx"`,
	`FUNCTION LOAD "#!lua name=a name=b\nx"`,
	`FUNCTION LOAD "#!lua name=a-b\nx"`,
	`FUNCTION LOAD "#!lua name=\nx"`,
	`FUNCTION LOAD "#!luax name=a\nx"`,
	`FUNCTION LOAD "#!lua name=a"`,
	`FUNCTION LOAD "#! lua name=a\nx"`,
	`FUNCTION LOAD "#!\nx"`,
	`FUNCTION LOAD "#!lua name='e\nx"`,
	`FUNCTION LOAD "#!lua flags=no-writes name=e\nx"`,
	`FUNCTION LOAD`,
	`FUNCTION LOAD a b`,
	`FUNCTION LOAD REPLACE`,
	`FUNCTION LOAD REPLACE REPLACE b`,
	`FUNCTION LOAD "#!LUA  NAME=\"a\"  \nredis.register_function('f', function() return 1 end)"`,
	`FUNCTION LOAD "#!lua name=a\nredis.register_function('f', function() end)"`,
	`FUNCTION LOAD "#!lua name=a\nx x"`,
	`FUNCTION LOAD "#!lua name=b\nredis.register_function('f', function() end)"`,
	`FUNCTION LOAD "#!lua name=b\nredis.register_function('F', function() end)"`,
	`FUNCTION LOAD "#!lua name=b\nredis.register_function('g', function() return 2 end)"`,
	`FUNCTION LOAD replace "#!lua name=b\nredis.register_function('f', function() end)"`,
	`FUNCTION LOAD replace "#!lua name=b\nredis.register_function('h', function() return 3 end)"`,
	"FCALL g 0", "FCALL h 0", "FCALL H 0", "FCALL f 0",
	"FCALL f", "FCALL f a", "FCALL f -1", "FCALL f 3 a", "FCALL nosuch a", "FCALL_RO f 0", "FCALL_RO f a", "FCALL_RO nosuch 0",
	"FUNCTION LIST LIBRARYNAME a", "FUNCTION LIST LIBRARYNAME [b-z] WITHCODE", "FUNCTION LIST WITHCODE LIBRARYNAME x*",
	"FUNCTION LIST x", "FUNCTION LIST LIBRARYNAME", "FUNCTION LIST WITHCODE WITHCODE", "FUNCTION LIST LIBRARYNAME a LIBRARYNAME b",
	"FUNCTION LIST WITHCODE LIBRARYNAME", "FUNCTION STATS", "FUNCTION STATS x", "FUNCTION KILL", "FUNCTION KILL x", "SCRIPT KILL",
	"FUNCTION DELETE nosuch", "FUNCTION DELETE A", "FUNCTION DELETE b", "FUNCTION DELETE b", "FUNCTION LIST",
	"FUNCTION RESTORE x", "FUNCTION RESTORE x y", "FUNCTION RESTORE x FLUSH z", "FUNCTION restore x FLUSH z", "FUNCTION NOSUCH", "FUNCTION",
	"FUNCTION FLUSH x", "FUNCTION FLUSH SYNC x", "FUNCTION FLUSH ASYNC", "FUNCTION LIST", "FUNCTION DUMP", "FUNCTION FLUSH sync",
	"MULTI", "FCALL f 0", "FUNCTION LIST", "INCR {k}n", "EXEC",
}

// TestFunctionsOracle says the same to a node and to a real redis-server, and compares every reply.
func TestFunctionsOracle(t *testing.T) {
	forOneClient(t)
	real := dial(t, redistest.Start(t))
	ours := dial(t, startLeveled(t).Addr())
	compare := func(line string) {
		t.Helper()
		if got, want := ours.do(line), real.do(line); got != want {
			t.Errorf("%s answers\n\t%s\nwant\n\t%s", line, got, want)
		}
	}
	for _, line := range oracleFunctions {
		compare(line)
	}
	for _, version := range []string{"HELLO 2", "HELLO 3"} {
		real.do(version)
		ours.do(version)
		compare("SET {k} v")
		for _, body := range oracleLibraries {
			compare(`FUNCTION LOAD REPLACE "#!lua name=a\n` + strings.ReplaceAll(body, "\n", `\n`) + `"`)
			for _, call := range []string{"FUNCTION LIST", "FCALL f 1 {k} v", "FCALL_RO f 1 {k}", "FCALL f 0", "FUNCTION DELETE a", "FUNCTION STATS"} {
				compare(call)
			}
		}
	}
}

// TestFunctionDumpsOracle: redis-server reads our dumps, and we read its, compressed ones too.
func TestFunctionDumpsOracle(t *testing.T) {
	real, ours := dial(t, redistest.Start(t)), dial(t, startLeveled(t).Addr())
	long := strings.Repeat("-- the same line again and again\n", 300)
	for _, from := range []struct{ name, code string }{
		{"short", "redis.register_function('f', function() return 1 end)"},
		{"compressed", long + "redis.register_function('g', function() return 2 end)"},
		{"described", "redis.register_function{function_name='h', description='d', flags={'no-writes'}, callback=function() return 3 end}"},
	} {
		for _, c := range []*client{real, ours} {
			c.sendArgs([]byte("FUNCTION"), []byte("LOAD"), []byte("#!lua name="+from.name+"\n"+from.code))
			c.next()
		}
	}
	for _, pair := range [][2]*client{{real, ours}, {ours, real}} {
		giver, taker := pair[0], pair[1]
		giver.send("FUNCTION DUMP")
		frame := giver.read()
		payload := frame[strings.Index(string(frame), "\r\n")+2 : len(frame)-2]
		restore := func(mode, want string) {
			t.Helper()
			taker.sendArgs([]byte("FUNCTION"), []byte("RESTORE"), payload, []byte(mode))
			if got := taker.next(); got != want {
				t.Errorf("RESTORE %s answers %s, want %s", mode, got, want)
			}
		}
		taker.do("FUNCTION FLUSH")
		restore("append", "OK")
		taker.want("FCALL g 0", "(integer) 2")
		if got := taker.do("FUNCTION RESTORE"); !strings.HasPrefix(got, "(error) ERR wrong number") {
			t.Errorf("RESTORE without a payload answers %s", got)
		}
		if got := taker.do("FUNCTION LIST LIBRARYNAME described WITHCODE"); got != giver.do("FUNCTION LIST LIBRARYNAME described WITHCODE") {
			t.Errorf("what was restored is listed as %s", got)
		}
		taker.sendArgs([]byte("FUNCTION"), []byte("RESTORE"), payload)
		if got := taker.next(); !strings.HasPrefix(got, "(error) ERR Library ") || !strings.HasSuffix(got, " already exists") {
			t.Errorf("RESTORE of what exists answers %s", got)
		}
		restore("REPLACE", "OK")
		taker.want("FUNCTION DELETE short", "OK")
		taker.want(`FUNCTION LOAD "#!lua name=other\nredis.register_function('f', function() return 9 end)"`, `"other"`)
		restore("REPLACE", "(error) ERR Function f already exists")
		taker.want("FCALL f 0", "(integer) 9")
		restore("FLUSH", "OK")
		taker.want("FCALL f 0", "(integer) 1")
		taker.sendArgs([]byte("FUNCTION"), []byte("RESTORE"), append(payload[:len(payload)-1:len(payload)-1], payload[len(payload)-1]^1))
		if got := taker.next(); got != "(error) ERR DUMP payload version or checksum are wrong" {
			t.Errorf("RESTORE of a broken payload answers %s", got)
		}
		for _, key := range []string{"a", "bb"} {
			giver.do("SET {k}" + key + " v")
			giver.send("DUMP {k}" + key)
			frame = giver.read()
			taker.sendArgs([]byte("FUNCTION"), []byte("RESTORE"), frame[strings.Index(string(frame), "\r\n")+2:len(frame)-2])
			if got := taker.next(); got != "(error) ERR given type is not a function" {
				t.Errorf("RESTORE of a key's payload answers %s", got)
			}
		}
	}
}
