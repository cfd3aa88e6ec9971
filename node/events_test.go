package node

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// eventScripts have for each command that changes keys, or misses them, what is told about. Keys lie in one
// slot.
var eventScripts = []string{
	"SET {k}s v; SET {k}s w EX 100; SET {k}s w XX KEEPTTL; SET {k}s w NX; SET {k}s w GET; SET {k}none w XX; SET {k}none2 w GET",
	"SETNX {k}s w; SETNX {k}s2 w; SETEX {k}s 10 v; PSETEX {k}s 10000 v; GETSET {k}s v; GETSET {k}s3 v; GETDEL {k}s; GETDEL {k}s",
	"APPEND {k}a x; APPEND {k}a y; APPEND {k}a ''; SETRANGE {k}a 5 xx; SETRANGE {k}a 5 ''; SETRANGE {k}b 5 xx; INCR {k}n; INCRBY {k}n 5; DECR {k}n; DECRBY {k}n 2; INCRBYFLOAT {k}n 1.5; INCR {k}n",
	"MSET {k}1 a {k}2 b {k}1 c; MSETNX {k}1 a {k}9 b; MSETNX {k}8 a {k}9 b; GET {k}1; GET {k}no; MGET {k}1 {k}no {k}no2; STRLEN {k}no; GETRANGE {k}no 0 1; LCS {k}no {k}1",
	"SET {k}e v; GETEX {k}e; GETEX {k}e EX 100; GETEX {k}e PERSIST; GETEX {k}e PERSIST; GETEX {k}no; EXPIRE {k}e 100; EXPIRE {k}e 100 NX; PEXPIRE {k}e 100000; EXPIREAT {k}e 9999999999; PEXPIREAT {k}e 9999999999999; PERSIST {k}e; PERSIST {k}e; EXPIRE {k}no 1; EXPIRE {k}e -1; TTL {k}e; PTTL {k}e; SET {k}e v; GETEX {k}e EXAT 1; TYPE {k}e",
	"SETBIT {k}bit 7 1; SETBIT {k}bit 7 1; GETBIT {k}none 1; BITFIELD {k}bit GET u8 0; BITFIELD {k}bit SET u8 0 1; BITFIELD {k}bit OVERFLOW FAIL INCRBY u8 0 300; BITFIELD {k}bit INCRBY u8 0 3 GET u8 0; BITFIELD_RO {k}none GET u8 0; BITCOUNT {k}none; BITPOS {k}none 1; BITOP AND {k}res {k}bit {k}bit; BITOP OR {k}res {k}x {k}y; BITOP OR {k}res {k}x {k}y",
	"PFADD {k}h a b; PFADD {k}h a; PFADD {k}h2; PFADD {k}h2; PFMERGE {k}h3 {k}h {k}h2; PFCOUNT {k}h {k}none; PFCOUNT {k}none",
	"SET {k}d v; DEL {k}d {k}no {k}d; SET {k}d v; UNLINK {k}d; EXISTS {k}d; TOUCH {k}d; DUMP {k}d; OBJECT ENCODING {k}d",
	"SET {k}f v; RENAME {k}f {k}g; RENAME {k}g {k}g; SET {k}h v; RENAME {k}g {k}h; RENAMENX {k}h {k}i; SET {k}j v; RENAMENX {k}i {k}j; COPY {k}i {k}k; COPY {k}i {k}k; COPY {k}i {k}k REPLACE; COPY {k}none {k}k",
	"RPUSH {k}l a b c; LPUSH {k}l z; LPUSHX {k}l y; RPUSHX {k}none y; LPOP {k}l; RPOP {k}l 2; LPOP {k}none; LPOP {k}l 0; RPOP {k}l 5; LPUSH {k}l a b c a; LSET {k}l 0 x; LINSERT {k}l BEFORE b y; LINSERT {k}l BEFORE none y; LREM {k}l 0 a; LREM {k}l 0 none; LTRIM {k}l 0 1; LTRIM {k}l 0 9; LTRIM {k}l 5 6; LTRIM {k}none 5 6; LLEN {k}none; LRANGE {k}none 0 1",
	"RPUSH {k}l a b; LMOVE {k}l {k}m LEFT RIGHT; LMOVE {k}l {k}l LEFT LEFT; RPOPLPUSH {k}l {k}m; RPOPLPUSH {k}l {k}m; LMPOP 2 {k}l {k}m LEFT COUNT 1; LMPOP 1 {k}m RIGHT COUNT 9; RPUSH {k}l a b c; BLPOP {k}l 0; BRPOP {k}l 0; BLMPOP 0 1 {k}l LEFT; RPUSH {k}l a b; BLMOVE {k}l {k}m LEFT LEFT 0; BRPOPLPUSH {k}l {k}m 0",
	"RPUSH {k}l 3 1 2; SORT {k}l STORE {k}o; SORT {k}none STORE {k}o; SORT {k}none STORE {k}o",
	"SADD {k}t a b; SADD {k}t a; SADD {k}t c a; SREM {k}t a; SREM {k}t none; SREM {k}t b c; SADD {k}t a b c d; SMOVE {k}t {k}u a; SMOVE {k}t {k}u none; SADD {k}u b; SMOVE {k}t {k}u b; SPOP {k}t; SPOP {k}t 0; SPOP {k}t 5; SPOP {k}t; SPOP {k}t 2; SADD {k}t x; SMOVE {k}t {k}u x; SCARD {k}none; SMEMBERS {k}none",
	"SADD {k}t a b; SADD {k}u b c; SINTERSTORE {k}o {k}t {k}u; SUNIONSTORE {k}o {k}t {k}u; SDIFFSTORE {k}o {k}t {k}u; SDIFFSTORE {k}o {k}t {k}t; SDIFFSTORE {k}o {k}t {k}t; SINTER {k}t {k}u; SUNION {k}t {k}none",
	"HSET {k}H a 1 b 2; HSET {k}H a 1; HMSET {k}H c 3; HSETNX {k}H c 3; HSETNX {k}H d 3; HINCRBY {k}H a 1; HINCRBYFLOAT {k}H a 1.5; HDEL {k}H none; HDEL {k}H a b; HDEL {k}H c d; HGET {k}none a; HGETALL {k}none; HMGET {k}none a; HLEN {k}none",
	"ZADD {k}z 1 a 2 b; ZADD {k}z 1 a; ZADD {k}z 3 a; ZADD {k}z INCR 3 a; ZADD {k}z NX 3 a; ZADD {k}z XX 3 none; ZINCRBY {k}z 1 a; ZINCRBY {k}z 0 a; ZREM {k}z none; ZREM {k}z a; ZREM {k}z b; ZADD {k}z 1 a 2 b 3 c; ZPOPMIN {k}z; ZPOPMAX {k}z 2; ZPOPMIN {k}z; ZADD {k}z 1 a 2 b 3 c; ZMPOP 1 {k}z MIN; ZMPOP 1 {k}z MAX COUNT 9; ZCARD {k}none; ZSCORE {k}none a; ZRANGE {k}none 0 1",
	"ZADD {k}z 1 a 2 b 3 c 4 d; ZREMRANGEBYRANK {k}z 0 0; ZREMRANGEBYSCORE {k}z 2 2; ZREMRANGEBYSCORE {k}z 9 9; ZREMRANGEBYLEX {k}z [c [c; ZREMRANGEBYRANK {k}z 0 -1; ZREMRANGEBYRANK {k}z 0 -1; ZADD {k}z 1 a; BZPOPMIN {k}z 0; ZADD {k}z 1 a 2 b; BZPOPMAX {k}z 0; BZMPOP 0 1 {k}z MIN",
	"ZADD {k}z 1 a 2 b; ZADD {k}y 1 a; ZRANGESTORE {k}o {k}z 0 -1; ZRANGESTORE {k}o {k}none 0 -1; ZRANGESTORE {k}o {k}none 0 -1; ZUNIONSTORE {k}o 2 {k}z {k}y; ZINTERSTORE {k}o 2 {k}z {k}y; ZDIFFSTORE {k}o 2 {k}z {k}y; ZDIFFSTORE {k}o 2 {k}z {k}z; ZDIFFSTORE {k}o 2 {k}z {k}z",
	"GEOADD {k}geo 13.36 38.11 p 15.08 37.50 c; GEOADD {k}geo 13.36 38.11 p; GEOSEARCHSTORE {k}o {k}geo FROMLONLAT 15 37 BYRADIUS 200 km; GEOSEARCHSTORE {k}o {k}geo FROMLONLAT 0 0 BYRADIUS 1 km; GEOSEARCHSTORE {k}o {k}geo FROMLONLAT 0 0 BYRADIUS 1 km; GEORADIUS {k}geo 15 37 200 km STORE {k}o; GEORADIUSBYMEMBER {k}geo p 200 km STOREDIST {k}o; GEORADIUS {k}none 15 37 200 km STORE {k}o",
	"XADD {k}x 1-1 a 1; XADD {k}x MAXLEN 1 2-1 a 1; XADD {k}x MAXLEN 5 3-1 a 1; XADD {k}none NOMKSTREAM * a 1; XADD {k}x 1-1 a 1; XTRIM {k}x MAXLEN 1; XTRIM {k}x MAXLEN 1; XTRIM {k}none MAXLEN 1; XDEL {k}x 3-1 9-9; XDEL {k}x 9-9; XDEL {k}none 1; XSETID {k}x 9-1; XLEN {k}none; XRANGE {k}none - +; XREVRANGE {k}none + -",
	"XADD {k}x 1-1 a 1; XGROUP CREATE {k}x g 0; XGROUP CREATE {k}x g 0; XGROUP CREATE {k}y g $ MKSTREAM; XGROUP SETID {k}x g 0; XGROUP CREATECONSUMER {k}x g c; XGROUP CREATECONSUMER {k}x g c; XCLAIM {k}x g c 0 1-1 FORCE; XCLAIM {k}x g d 0 1-1; XREADGROUP GROUP g e STREAMS {k}x >; XREADGROUP GROUP g e STREAMS {k}x 0; XACK {k}x g 1-1 9-9; XACK {k}none g 1; XCLAIM {k}none g c 0 1; XADD {k}x 2-1 a 1; XCLAIM {k}x g c 0 2-1 FORCE; XAUTOCLAIM {k}x g f 0 0; XAUTOCLAIM {k}none g f 0 0; XPENDING {k}none g; XINFO STREAM {k}none; XINFO GROUPS {k}none; XGROUP DELCONSUMER {k}x g f; XGROUP DELCONSUMER {k}x g f; XGROUP DESTROY {k}x g; XGROUP DESTROY {k}x g; XGROUP DESTROY {k}none g",
	"SET {k}f v; MOVE {k}f 15; MOVE {k}f 15; SELECT 15; APPEND {k}f x; GET {k}none; COPY {k}f {k}f DB 2; COPY {k}f {k}f DB 2 REPLACE; COPY {k}f {k}g; SELECT 2; MOVE {k}f 0; SELECT 0; DEL {k}f",
	"MULTI; SET {k}s v; SELECT 1; SET {k}s v; MOVE {k}s 2; EXEC; SELECT 0",
	"MULTI; SET {k}s v; SADD {k}t a; DEL {k}s; EXEC",
	`EVAL "redis.call('set', KEYS[1], 'v') return redis.call('del', KEYS[1])" 1 {k}s`,
}

// ownEventScripts are of commands that Redis 7.0 does not have, with what is told about, as by Redis 8.
var ownEventScripts = []struct{ script, events string }{
	{"HSET {k}H a 1 b 2; HEXPIRE {k}H 100 FIELDS 1 a; HEXPIRE {k}H 100 FIELDS 1 none; HPERSIST {k}H FIELDS 2 a b; HPERSIST {k}H FIELDS 1 a", "hset hexpire hpersist"},
	{"HSET {k}H a 1 b 2; HGETEX {k}H EX 100 FIELDS 1 a; HGETEX {k}H FIELDS 1 a; HGETEX {k}H PERSIST FIELDS 1 a; HGETDEL {k}H FIELDS 1 none; HGETDEL {k}H FIELDS 2 a b", "hset hexpire hpersist hdel del"},
	{"HSET {k}H a 1 b 2; HEXPIRE {k}H 0 FIELDS 1 a; HEXPIREAT {k}H 1 FIELDS 1 b", "hset hdel hdel del"},
	{"HSETEX {k}H FIELDS 1 a 1; HSETEX {k}H EX 100 FIELDS 1 a 1; HSETEX {k}H FNX FIELDS 1 a 1; HSETEX {k}H EXAT 1 FIELDS 1 a 1", "hset hset hexpire hdel del"},
	{"SET {k}s v; DELIFEQ {k}s w; DELIFEQ {k}s v; MSETEX 2 {k}1 a {k}2 b EX 100", "set del set expire set expire"},
	{"SET {k}s v EXAT 1", "set expire expired"},
	{"SET {k}s v; SET {k}s w IFNE v; SET {k}s w IFNE x; DELEX {k}s IFEQ v; DELEX {k}s IFNE v; DELEX {k}s; SADD {k}t a; DELEX {k}t", "set set del sadd del"},
	{"INCREX {k}n; INCREX {k}n BYFLOAT 0.5; INCREX {k}n BYFLOAT 1 UBOUND 0; SET {k}n 10 EX 100; INCREX {k}n PERSIST; INCREX {k}n PERSIST",
		"incrby incrbyfloat set expire incrby persist incrby"},
	{"SET {k}n 1; INCREX {k}n EX 100; INCREX {k}n EX 100 ENX; INCREX {k}n EXAT 1; INCREX {k}n EXAT 1", "set incrby expire incrby del"},
	{"XADD {k}x 1-1 a 1; XADD {k}x 2-1 a 1; XDELEX {k}x IDS 1 9-9; XDELEX {k}x DELREF IDS 2 1-1 9-9", "xadd xadd xdel"},
	{"XADD {k}x 1-1 a 1; XGROUP CREATE {k}x g 0; XCLAIM {k}x g c 0 1-1 FORCE; XACKDEL {k}x g IDS 1 9-9; XACKDEL {k}x g IDS 1 1-1", "xadd xgroup-create xgroup-createconsumer xdel"},
	{"XADD {k}x 1-1 a 1; XGROUP CREATE {k}x g $; XCLAIM {k}x g c 0 9-1; XADD {k}x ACKED MAXLEN 0 2-1 a 1; XTRIM {k}x ACKED MAXLEN 0", "xadd xgroup-create xgroup-createconsumer xadd xtrim"},
}

// eventListener has the events of a server.
type eventListener struct {
	t        *testing.T
	commands *client
	events   *client
}

func listenToEvents(t *testing.T, addr, classes string) *eventListener {
	l := &eventListener{t, dial(t, addr), dial(t, addr)}
	l.commands.want("CONFIG SET notify-keyspace-events "+classes, "OK")
	l.events.want("PSUBSCRIBE __key*@*__:*", "1) \"psubscribe\"\n2) \"__key*@*__:*\"\n3) (integer) 1")
	return l
}

// run executes a command and returns what comes of it: channels and messages, up to a mark in the same slot.
func (l *eventListener) run(line string) (events []string) {
	l.t.Helper()
	l.commands.do(line)
	return l.until()
}

func (l *eventListener) until() (events []string) {
	l.commands.do("SETRANGE {k}mark 0 x")
	for {
		frame := strings.Split(string(l.events.read()), "\r\n")
		channel, message := frame[6], frame[8]
		if message == "{k}mark" && strings.HasSuffix(channel, ":setrange") {
			return events
		}
		if message != "{k}mark" && !strings.HasSuffix(channel, ":{k}mark") {
			events = append(events, channel+" "+message)
		}
	}
}

// TestEventsOfRedis compares the notifications of each command with redis-server's.
func TestEventsOfRedis(t *testing.T) {
	redistest.Want(t, "7.0")
	redis := listenToEvents(t, redistest.Start(t), "KEAnm")
	ours := listenToEvents(t, startLeveled(t).Addr(), "KEAnm")
	told := map[command.ID]bool{}
	for _, script := range eventScripts {
		ours.commands.do("FLUSHALL")
		redis.commands.do("FLUSHALL")
		var want, got []string
		for _, line := range strings.Split(script, "; ") {
			if line == "MULTI" || told[command.Multi] {
				told[command.Multi] = line != "EXEC"
				ours.commands.do(line)
				redis.commands.do(line)
				if line != "EXEC" {
					continue
				}
				want, got = redis.until(), ours.until()
			} else {
				want, got = redis.run(line), ours.run(line)
			}
			if strings.HasPrefix(line, "SMOVE") { // which makes the new set first
				slices.Sort(want)
				slices.Sort(got)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s:\n  got %q\n want %q", line, got, want)
			}
			if row := command.Row(words(t, line)); row != nil {
				told[row.ID] = true
			}
		}
	}
	// Every command that changes keys is among them, or in ownEventScripts.
	for _, own := range ownEventScripts {
		for _, line := range strings.Split(own.script, "; ") {
			told[command.Row(words(t, line)).ID] = true
		}
	}
	for _, c := range command.Listed() {
		switch {
		case c.Flags&command.Write == 0 || told[c.ID]:
		case slices.Contains([]string{"flushall", "flushdb", "restore", "hpexpire", "hpexpireat", "pfdebug", "swapdb"}, c.Name):
		default:
			t.Errorf("the events of %s are not compared", c.Name)
		}
	}
}

// TestEventsOfItsOwn are those of commands that redis-server 7.0 does not have.
func TestEventsOfItsOwn(t *testing.T) {
	l := listenToEvents(t, startLeveled(t).Addr(), "KA")
	for _, own := range ownEventScripts {
		l.commands.do("FLUSHALL")
		var got []string
		for _, line := range strings.Split(own.script, "; ") {
			got = append(got, l.runKeyspace(line)...)
		}
		if s := strings.Join(got, " "); s != own.events {
			t.Errorf("%s:\n  got %s\n want %s", own.script, s, own.events)
		}
	}
}

// runKeyspace is run with class K alone: it returns the messages.
func (l *eventListener) runKeyspace(line string) (events []string) {
	l.t.Helper()
	l.commands.do(line)
	l.commands.do("SETRANGE {k}mark 0 x")
	for {
		frame := strings.Split(string(l.events.read()), "\r\n")
		if strings.HasSuffix(frame[6], "{k}mark") {
			return events
		}
		events = append(events, frame[8])
	}
}

// TestEventsAreFree: while nobody may listen, a change announces nothing, although classes are set.
func TestEventsAreFree(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	c.want("CONFIG SET notify-keyspace-events KEA", "OK")
	c.want("SET k v", "OK")
	if n.events.waiting.Load() != 0 {
		t.Error("an event is queued that nobody listens to")
	}
	if got := keyevent.Class(n.events.classes.Load()).String(); got != "AKE" {
		t.Errorf("the classes are %s", got)
	}
	c.want(`CONFIG SET notify-keyspace-events ""`, "OK")
	n.events.mu.Lock()
	defer n.events.mu.Unlock()
	if n.events.classes.Load() != 0 || n.events.charged {
		t.Error("classes or memory stay")
	}
}

// TestEventsOverflow: nobody waits for those who listen. What the queues have no room for is counted.
func TestEventsOverflow(t *testing.T) {
	n := startLeveled(t)
	l := listenToEvents(t, n.Addr(), "KEA")
	n.events.waiting.Add(eventMemory)
	l.commands.want("SET {k}a v", "OK")
	if lost := n.events.lost.Load(); lost != 1 {
		t.Errorf("%d events are lost", lost)
	}
	n.events.waiting.Add(-eventMemory)
	if got := l.run("SET {k}b v"); fmt.Sprint(got) != "[__keyspace@0__:{k}b set __keyevent@0__:set {k}b]" {
		t.Errorf("then %q are told", got)
	}
}

// TestEventsOfTheEngine: keys that expire, at once when they are looked for or a while later, and keys that
// are evicted. Fields of hashes expire as well.
func TestEventsOfTheEngine(t *testing.T) {
	n := startLeveled(t)
	c, events := dial(t, n.Addr()), dial(t, n.Addr())
	c.want("CONFIG SET notify-keyspace-events Exeghn", "OK")
	events.want("PSUBSCRIBE __keyevent@0__:*", "1) \"psubscribe\"\n2) \"__keyevent@0__:*\"\n3) (integer) 1")
	next := func() string {
		frame := strings.Split(string(events.read()), "\r\n")
		return strings.TrimPrefix(frame[6], "__keyevent@0__:") + " " + frame[8]
	}
	expect := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if got := next(); got != w {
				t.Fatalf("%q is told, want %q", got, w)
			}
		}
	}
	c.want("SET a v PX 1", "OK") // is never looked for
	expect("new a", "expire a", "expired a")
	c.do("HSET h f v")
	expect("new h", "hset h")
	c.do("HPEXPIRE h 1 FIELDS 1 f")
	expect("hexpire h", "hexpired h", "del h")
	c.want(`CONFIG SET notify-keyspace-events Ee`, "OK")
	c.want("CONFIG SET maxmemory-policy allkeys-lru", "OK")
	value := bytes.Repeat([]byte("v"), 100_000)
	keys := map[string]bool{}
	for i := range 2000 { // three times the memory
		key := fmt.Sprint("key", i)
		c.sendRaw(resp.AppendRequest(nil, []byte("SET"), []byte(key), value))
		keys[key] = true
	}
	for range 2000 {
		c.read()
	}
	evicted := n.engine.Stats().Evicted
	if evicted == 0 {
		t.Fatal("nothing was evicted")
	}
	for range evicted {
		got := next()
		key, ok := strings.CutPrefix(got, "evicted ")
		if !ok || !keys[key] {
			t.Fatalf("%q is told", got)
		}
		delete(keys, key)
	}
	if lost := n.events.lost.Load(); lost > 0 {
		t.Errorf("%d events are lost", lost)
	}
}
