package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// crossSlotCall is a call of a command with keys of several slots.
type crossSlotCall struct {
	before string // commands that make the keys, separated by "; "
	call   string
	after  string // commands that show what the call has left
	// strict: the call is executed whatever --cross-slot says. refused: it never is, except in a
	// pinned database, for this reason.
	strict  bool
	refused string
}

const (
	onePlace   = "it is executed where its keys lie: docs/compatibility.md sends users to pinned databases"
	notChanged = "it would change keys of several slots at once, of which some may fail"
)

// crossSlotCalls has a call of each command that can name several keys. The keys a, b, c, d, x and y lie in different
// partitions.
var crossSlotCalls = map[string]crossSlotCall{
	"bitop":             {before: "SET a abc; SET b xy", call: "BITOP XOR d a b", after: "GET d"},
	"blmove":            {before: "RPUSH a 1 2; RPUSH b 3", call: "BLMOVE a b LEFT RIGHT 1", after: "LRANGE a 0 -1; LRANGE b 0 -1"},
	"blmpop":            {before: "RPUSH b 1 2 3", call: "BLMPOP 1 2 a b LEFT COUNT 2", after: "LRANGE b 0 -1", strict: true},
	"blpop":             {before: "RPUSH b 1 2", call: "BLPOP a b 1", after: "LRANGE b 0 -1", strict: true},
	"brpop":             {before: "RPUSH b 1 2", call: "BRPOP a b 1", after: "LRANGE b 0 -1", strict: true},
	"brpoplpush":        {before: "RPUSH a 1 2; RPUSH b 3", call: "BRPOPLPUSH a b 1", after: "LRANGE a 0 -1; LRANGE b 0 -1"},
	"bzmpop":            {before: "ZADD b 1 m 2 n", call: "BZMPOP 1 2 a b MAX", after: "ZRANGE b 0 -1", strict: true},
	"bzpopmax":          {before: "ZADD b 1 m 2 n", call: "BZPOPMAX a b 1", after: "ZRANGE b 0 -1", strict: true},
	"bzpopmin":          {before: "ZADD b 1 m 2 n", call: "BZPOPMIN a b 1", after: "ZRANGE b 0 -1", strict: true},
	"copy":              {before: "SET a v EX 100; SET b w", call: "COPY a b REPLACE", after: "GET a; GET b; TTL b"},
	"del":               {before: "MSET a 1 b 2 c 3", call: "DEL a b x", after: "DBSIZE", strict: true},
	"eval":              {before: "SET a 1", call: `EVAL "return redis.call('GET', KEYS[1])" 2 a b`, refused: onePlace},
	"eval_ro":           {before: "SET a 1", call: `EVAL_RO "return redis.call('GET', KEYS[1])" 2 a b`, refused: onePlace},
	"evalsha":           {before: "SCRIPT LOAD 'return #KEYS'", call: "EVALSHA cb35aa5ca859d59b3e50fa6f9efbe7e14b5215dd 2 a b", refused: onePlace},
	"evalsha_ro":        {before: "SCRIPT LOAD 'return #KEYS'", call: "EVALSHA_RO cb35aa5ca859d59b3e50fa6f9efbe7e14b5215dd 2 a b", refused: onePlace},
	"exec":              {before: "MULTI; SET a 1; SET b 2", call: "EXEC", after: "MGET a b", refused: onePlace},
	"exists":            {before: "MSET a 1 b 2", call: "EXISTS a b x a", strict: true},
	"fcall":             {before: crossSlotLibrary, call: "FCALL names 2 a b", refused: onePlace},
	"fcall_ro":          {before: crossSlotLibrary, call: "FCALL_RO names 2 a b", refused: onePlace},
	"georadius":         {before: "GEOADD a 1 1 m 2 2 n", call: "GEORADIUS a 1 1 500 km STORE d", after: "ZRANGE d 0 -1"},
	"georadiusbymember": {before: "GEOADD a 1 1 m 2 2 n", call: "GEORADIUSBYMEMBER a m 500 km STORE d", after: "ZRANGE d 0 -1"},
	"geosearchstore":    {before: "GEOADD a 1 1 m 2 2 n", call: "GEOSEARCHSTORE d a FROMMEMBER m BYRADIUS 500 km", after: "ZRANGE d 0 -1"},
	"lcs":               {before: "MSET a ohmytext b mynewtext", call: "LCS a b"},
	"lmove":             {before: "RPUSH a 1 2; RPUSH b 3", call: "LMOVE a b RIGHT LEFT", after: "LRANGE a 0 -1; LRANGE b 0 -1"},
	"lmpop":             {before: "RPUSH b 1 2 3", call: "LMPOP 2 a b LEFT", after: "LRANGE b 0 -1", refused: notChanged},
	"mget":              {before: "MSET a 1 b 2", call: "MGET a b x", strict: true},
	"mset":              {call: "MSET a 1 b 2 a 3", after: "MGET a b", strict: true},
	"msetnx":            {before: "SET x 1", call: "MSETNX a 1 b 2", after: "MGET a b"},
	"pfcount":           {before: "PFADD a 1 2; PFADD b 2 3", call: "PFCOUNT a b x"},
	"pfmerge":           {before: "PFADD a 1 2; PFADD b 2 3", call: "PFMERGE a b x", after: "PFCOUNT a; PFCOUNT b"},
	"rename":            {before: "SET a v EX 100; SET b w", call: "RENAME a b", after: "MGET a b; TTL b"},
	"renamenx":          {before: "SET a v", call: "RENAMENX a b", after: "MGET a b"},
	"rpoplpush":         {before: "RPUSH a 1 2; RPUSH b 3", call: "RPOPLPUSH a b", after: "LRANGE a 0 -1; LRANGE b 0 -1"},
	"sdiff":             {before: "SADD a 1 2 3; SADD b 2", call: "SDIFF a b x"},
	"sdiffstore":        {before: "SADD a 1 2 3; SADD b 2", call: "SDIFFSTORE d a b x", after: "SMEMBERS d"},
	"sinter":            {before: "SADD a 1 2 3; SADD b 2 3", call: "SINTER a b"},
	"sintercard":        {before: "SADD a 1 2 3; SADD b 2 3", call: "SINTERCARD 2 a b LIMIT 1"},
	"sinterstore":       {before: "SADD a 1 2 3; SADD b 2 3", call: "SINTERSTORE d a b", after: "SMEMBERS d"},
	"smove":             {before: "SADD a 1 2; SADD b 3", call: "SMOVE a b 1", after: "SMEMBERS a; SMEMBERS b"},
	"sort":              {before: "RPUSH a 3 1 2", call: "SORT a DESC STORE d", after: "LRANGE d 0 -1"},
	"sunion":            {before: "SADD a 1 2; SADD b 2 3", call: "SUNION a b x"},
	"sunionstore":       {before: "SADD a 1 2; SADD b 2 3", call: "SUNIONSTORE d a b x", after: "SMEMBERS d"},
	"touch":             {before: "MSET a 1 b 2", call: "TOUCH a b x", strict: true},
	"unlink":            {before: "MSET a 1 b 2 c 3", call: "UNLINK a b x", after: "DBSIZE", strict: true},
	"watch":             {before: "MSET a 1 b 2", call: "WATCH a b", refused: onePlace},
	"xread":             {before: "XADD a 1-1 f v; XADD b 2-1 f w", call: "XREAD STREAMS a b 0 0", strict: true},
	"xreadgroup": {before: "XGROUP CREATE a g 0 MKSTREAM; XGROUP CREATE b g 0 MKSTREAM; XADD a 1-1 f v; XADD b 2-1 f w",
		call: "XREADGROUP GROUP g me STREAMS a b > >", after: "XPENDING a g; XPENDING b g", strict: true},
	"zdiff":       {before: "ZADD a 1 m 2 n; ZADD b 5 m", call: "ZDIFF 2 a b WITHSCORES"},
	"zdiffstore":  {before: "ZADD a 1 m 2 n; ZADD b 5 m", call: "ZDIFFSTORE d 2 a b", after: "ZRANGE d 0 -1 WITHSCORES"},
	"zinter":      {before: "ZADD a 1 m 2 n; ZADD b 5 m", call: "ZINTER 2 a b WEIGHTS 2 3 WITHSCORES"},
	"zintercard":  {before: "ZADD a 1 m 2 n; ZADD b 5 m", call: "ZINTERCARD 2 a b"},
	"zinterstore": {before: "ZADD a 1 m 2 n; SADD b m", call: "ZINTERSTORE d 2 a b", after: "ZRANGE d 0 -1 WITHSCORES"},
	"zmpop":       {before: "ZADD b 1 m 2 n", call: "ZMPOP 2 a b MIN", after: "ZRANGE b 0 -1", refused: notChanged},
	"zrangestore": {before: "ZADD a 1 m 2 n", call: "ZRANGESTORE d a 1 2 BYSCORE", after: "ZRANGE d 0 -1 WITHSCORES"},
	"zunion":      {before: "ZADD a 1 m 2 n; ZADD b 5 m", call: "ZUNION 2 a b AGGREGATE MAX WITHSCORES"},
	"zunionstore": {before: "ZADD a 1 m 2 n; ZADD b 5 m", call: "ZUNIONSTORE d 2 a b", after: "ZRANGE d 0 -1 WITHSCORES"},
}

const crossSlotLibrary = `FUNCTION LOAD REPLACE "#!lua name=crossing\n` +
	`redis.register_function{function_name='names', callback=function(keys) return #keys end, flags={'no-writes'}}"`

// crossSlot is the refusal of a command whose keys lie in several slots.
const crossSlot = "CROSSSLOT Keys in request don't hash to the same slot"

// notInTheTable are commands of several keys that crossSlotCalls lacks, with the reason.
var notInTheTable = map[string]string{
	"msetex":       "redis-server 7.0 does not have it, and it is refused in several slots",
	"sort_ro":      "it has one key, and others by patterns only",
	"ssubscribe":   "channels are no keys",
	"sunsubscribe": "channels are no keys",
}

// severalKeys returns the names of the commands that can name several keys.
func severalKeys() (names []string) {
	for _, c := range command.Listed() {
		for _, row := range append([]*command.Command{c}, c.Subs...) {
			one := len(row.Keys) == 1 && row.Keys[0].Begin == command.BeginIndex &&
				row.Keys[0].Find == command.FindRange && row.Keys[0].Last == 0
			if row.Built && len(row.Keys) > 0 && !one {
				names = append(names, row.Name)
			}
		}
	}
	return names
}

// TestCrossSlotTable: every command of several keys answers and leaves what it does on one
// redis-server, when its keys lie in several slots, in each kind of database; or it answers
// CROSSSLOT where that is listed. With and without --cross-slot relaxed, through a proxy with three
// nodes.
func TestCrossSlotTable(t *testing.T) {
	t.Parallel()
	for _, name := range severalKeys() {
		_, called := crossSlotCalls[name]
		if _, listed := notInTheTable[name]; called == listed {
			t.Errorf("%s: it must be in crossSlotCalls, or in notInTheTable with the reason", name)
		}
	}
	c := harness.StartClusterWith(t, harness.StartOptions{
		Nodes: 3, Proxies: 1, NodeFlags: []string{"--pinned-databases", "8"}, Env: []string{"DUNLIN_CROSS_SLOT=relaxed"},
	})
	strict := harness.NewMember(t, "proxy", "strict")
	strict.Flags = c.Proxy(0).Flags
	strict.Start()
	c.Members = append(c.Members, strict)
	pinnedReady(t, c, "8")
	redis := redistest.Start(t)
	for _, m := range c.ByRole("proxy") {
		for _, database := range []int{0, 1, 8} {
			for _, name := range slices.Sorted(maps.Keys(crossSlotCalls)) {
				call := crossSlotCalls[name]
				refusal := ""
				switch {
				case database == 8 || call.strict:
				case m == strict:
					refusal = crossSlot
				case call.refused != "":
					refusal = crossSlot + ": scripts, transactions and this kind of command need keys with a common hash tag, or a pinned database"
				}
				call.compare(t, fmt.Sprintf("%s, database %d", m.ID, database), m.Addr, redis, database, refusal)
			}
		}
	}
}

// compare says a call to a proxy and to redis-server. Their answers are the same, unless the
// proxy's is to be a refusal.
func (call crossSlotCall) compare(t *testing.T, where, addr, redis string, database int, refusal string) {
	t.Helper()
	w, real := harness.DialWire(t, addr), harness.DialWire(t, redis)
	defer w.Conn.Close()
	defer real.Conn.Close()
	both := func(line string, same bool) {
		t.Helper()
		got, want := answer(w, line), answer(real, line)
		if !same {
			want = refusal
		}
		if strings.TrimPrefix(got, "(error) ") != strings.TrimPrefix(want, "(error) ") { // which answer takes off some
			t.Errorf("%s: %s answers\n%s\nwant\n%s", where, line, got, want)
		}
	}
	several := func(lines string) {
		t.Helper()
		for _, line := range strings.Split(lines, "; ") {
			if line != "" {
				both(line, true)
			}
		}
	}
	both("FLUSHALL", true)
	both(fmt.Sprint("SELECT ", database), true)
	several(call.before)
	both(call.call, refusal == "")
	if refusal == "" {
		several(call.after)
	}
}
