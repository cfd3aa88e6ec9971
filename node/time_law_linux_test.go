//go:build linux && !race

package node

import (
	"bytes"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/hyperloglog"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// No command keeps a loop for more than a millisecond, or a shard locked for more than 0.2 ms. The
// test asks every command of the table the worst that it can be asked, and measures the processor
// time of the loop's thread, which other processes change little: of each turn, and of each lock of a
// loop or a goroutine, which an engine with the build tag checked times. What is not divided into
// slices takes several times lockBound.
const (
	// lockBound has room for what the build tag checked adds, for a busy machine, and for a slow one, on which
	// copying a long word takes 1.3 ms.
	lockBound = 8 * 200 * time.Microsecond
	// turnBound has room for what one turn does with all words of a request, more than the law
	// allows: it parses them, finds the slots of the keys, and copies them if the command goes on
	// later. For manyWords that is 3 ms. What is listed or planned in turns takes less than 1 ms.
	turnBound = 12 * time.Millisecond
	// manyWords is how many words the longest requests have, if the command's row allows that.
	manyWords = 60_000
	// tries is how often a request that took too long is measured again: the best one counts. Between them are
	// pauses, because whoever else uses the processors' caches now takes a while.
	tries    = 16
	tryPause = 20 * time.Millisecond
)

// hostile has for each command what it can be asked beside what follows from its row. Requests are
// separated by semicolons. What stands in parentheses is repeated, as often as a number and x say, or
// until the request has manyWords words; # is the number of the repetition. LONG is a word of a
// megabyte, WORD one of 60 kB. lawRig.fill has the keys.
var hostile = map[string]string{
	"append":          "{k}w WORD; {k}l LONG; {k}n LONG",
	"bitcount":        "{k}l; {k}z; {k}z 1 -1 BIT",
	"bitfield":        "{k}w ( GET u63 # ); {k}n ( INCRBY i64 # 1 ); {k}l ( SET u8 # 1 ); {k}n ( OVERFLOW SAT )",
	"bitfield_ro":     "{k}w ( GET u63 # )",
	"bitop":           "AND {k}d ( {k}n ); OR {k}d ( {k}# ); XOR {k}d ( 2000x {k}s ); OR {k}d ( 200x {k}l ); NOT {k}d {k}l",
	"bitpos":          "{k}z 1; {k}l 0",
	"client|kill":     "( ADDR a ); ID LONG",
	"client|list":     "ID ( # )",
	"client|setname":  "LONG",
	"command|docs":    "( get ); ( nothing )",
	"command|getkeys": "MGET ( # )",
	"command|info":    "( get )",
	"command|list":    "FILTERBY PATTERN *",
	"config|get":      "( * ); LONG; ( " + longPattern + " )",
	"config|set":      "( maxmemory-policy allkeys-lru ); maxmemory LONG",
	"copy": "{k}s {k}d REPLACE; {k}l {k}d REPLACE; {k}hash {k}d REPLACE; {k}set {k}d REPLACE; {k}n {k}d ( REPLACE ); {k}n {k}d ( DB 0 );" +
		"{k}hash {k}d DB 1; {k}l {k}d DB 1 REPLACE",
	"del":                  "( {k}# ); ( # ); ( {k}n )",
	"delex":                "{k}l IFEQ LONG; {k}l IFNE LONG; {k}z IFDEQ 0123456789abcdef; {k}l IFDNE 0123456789abcdef; {k}hash; {k}set",
	"delifeq":              "{k}l LONG",
	"digest":               "{k}l; {k}z",
	"dump":                 "{k}s; {k}l; {k}hash; {k}set; {k}few",
	"exists":               "( {k}# ); ( # ); ( {k}n )",
	"expire":               "{k}n 100 ( NX )",
	"expireat":             "{k}n 9999999999 ( NX )",
	"getex":                "{k}s ( EX 100 ); {k}l PERSIST",
	"getrange":             "{k}l 1 -2; {k}s 1 -2",
	"hdel":                 "{k}hash ( # ); {k}few ( # )",
	"hexists":              "{k}hash 7",
	"hexpire":              "{k}hash 100 FIELDS 20000 ( 20000x # ); {k}few 0 FIELDS 20000 ( 20000x # ); {k}few 9 FIELDS 1 1",
	"hexpireat":            "{k}hash 9999999999 LT FIELDS 20000 ( 20000x # )",
	"hexpiretime":          "{k}hash FIELDS 20000 ( 20000x # )",
	"hget":                 "{k}hash 7; {k}few 7",
	"hgetall":              "{k}hash; {k}few",
	"hgetdel":              "{k}hash FIELDS 20000 ( 20000x # )",
	"himport":              "SET ( # )",
	"hgetex":               "{k}hash EX 100 FIELDS 20000 ( 20000x # ); {k}hash PERSIST FIELDS 20000 ( 20000x # )",
	"hincrby":              "{k}hash 7 1",
	"hincrbyfloat":         "{k}new 7 WORD",
	"hkeys":                "{k}hash; {k}few",
	"hlen":                 "{k}hash",
	"hmget":                "{k}hash ( # ); {k}few ( # )",
	"hmset":                "{k}hash ( # w )",
	"hpersist":             "{k}hash FIELDS 20000 ( 20000x # )",
	"hpexpire":             "{k}hash 100000 FIELDS 20000 ( 20000x # )",
	"hpexpireat":           "{k}hash 0 FIELDS 20000 ( 20000x # )",
	"hpexpiretime":         "{k}hash FIELDS 20000 ( 20000x # )",
	"hpttl":                "{k}hash FIELDS 20000 ( 20000x # )",
	"hrandfield":           "{k}hash; {k}hash 100 WITHVALUES; {k}hash 15000; {k}hash -100000; {k}few -100000 WITHVALUES",
	"hscan":                "{k}hash 0 COUNT 1000000; {k}hash 0 MATCH " + longPattern + "; {k}hash 0 ( NOVALUES )",
	"hset":                 "{k}new ( # v ); {k}hash ( # w ); {k}few ( # v ); {k}few ( f v ); {k}few ( 100x # WORD )",
	"hsetex":               "{k}hash FXX EX 100 FIELDS 20000 ( 20000x # v ); {k}new FNX FIELDS 20000 ( 20000x # v )",
	"hsetnx":               "{k}hash 7 v",
	"hstrlen":              "{k}hash 7",
	"httl":                 "{k}hash FIELDS 20000 ( 20000x # )",
	"hvals":                "{k}hash; {k}few",
	"sadd":                 "{k}new ( # ); {k}set ( # ); {k}members ( 100x WORD )",
	"srem":                 "{k}set ( # ); {k}members ( # )",
	"scard":                "{k}set",
	"sismember":            "{k}set 7; {k}members 7",
	"smismember":           "{k}set ( # ); {k}members ( # )",
	"smembers":             "{k}set; {k}members",
	"spop":                 "{k}set 10000; {k}set 10000000; {k}members 10",
	"srandmember":          "{k}set 10000; {k}set -100000; {k}set 10000000; {k}members -100000",
	"smove":                "{k}set {k}new 7",
	"sscan":                "{k}set 0; {k}set 0 COUNT 1000000; {k}set 0 ( MATCH * ); {k}set 0 MATCH LONG COUNT 1000; {k}members 0",
	"sinter":               "{k}set {k}set; ( {k}set ); ( {k}# ); ( {k}members )",
	"sintercard":           "29998 ( {k}set ); 2 {k}set {k}set LIMIT 100000; 2 {k}members {k}set",
	"sinterstore":          "{k}new {k}set {k}set; {k}new ( {k}set )",
	"sunion":               "{k}set {k}set; ( {k}# ); ( {k}members )",
	"sunionstore":          "{k}new {k}set {k}set; {k}new ( {k}members )",
	"sdiff":                "{k}set {k}members; {k}set ( {k}# ); ( {k}members )",
	"sdiffstore":           "{k}new {k}set {k}members; {k}new ( {k}members )",
	"hello":                "3 ( SETNAME a )",
	"incrby":               "{k}n LONG; {k}l 1",
	"increx":               "{k}n BYINT LONG; {k}n BYFLOAT WORD LBOUND WORD; {k}n BYFLOAT 1e4000 UBOUND 1e4900 SATURATE; {k}l; {k}n EX 100 ( ENX )",
	"incrbyfloat":          "{k}n LONG; {k}n WORD; {k}s 1; {k}l 1",
	"info":                 "( all ); LONG",
	"keys":                 "*; LONG; " + strings.Repeat("*?", 500),
	"latency|histogram":    "( get )",
	"latency|reset":        "( get )",
	"lcs":                  "{k}n {k}n ( LEN ); {k}l {k}n IDX; {k}s {k}n; {k}s {k}s; {k}200 {k}240 IDX",
	"lindex":               "{k}list 10000; {k}dense -1000",
	"linsert":              "{k}list BEFORE no x; {k}list AFTER 9999 x; {k}dense BEFORE no x; {k}dense AFTER 1 WORD",
	"llen":                 "{k}list",
	"lmove":                "{k}list {k}dense LEFT RIGHT; {k}list {k}list RIGHT LEFT; {k}dense {k}dense LEFT RIGHT",
	"blpop":                "( 250x {k}# ) 0.001; {k}list 0.001",
	"brpop":                "( 250x {k}# ) 0.001; {k}list 0.001",
	"blmpop":               "0.001 250 ( 250x {k}# ) LEFT; 0.001 1 {k}list LEFT COUNT 100000",
	"blmove":               "{k}list {k}other LEFT RIGHT 0.001",
	"brpoplpush":           "{k}list {k}other 0.001",
	"bzpopmin":             "( 250x {k}# ) 0.001; {k}zset 0.001",
	"bzpopmax":             "( 250x {k}# ) 0.001; {k}zset 0.001",
	"bzmpop":               "0.001 250 ( 250x {k}# ) MIN; 0.001 1 {k}zset MAX COUNT 100000",
	"lmpop":                "60000 ( 60000x {k}# ) LEFT; 1 {k}list LEFT COUNT 100000; 1 {k}dense RIGHT COUNT 3000",
	"lpop":                 "{k}list; {k}list 100000; {k}dense; {k}dense 3000",
	"lpos":                 "{k}list no; {k}list 1 COUNT 0; {k}list no RANK -1; {k}dense 1 RANK -1 COUNT 0",
	"lpush":                "{k}new ( # ); {k}list ( # ); {k}dense ( # ); {k}dense ( 100x # WORD )",
	"lpushx":               "{k}dense ( # )",
	"lrange":               "{k}list 0 -1; {k}list 5000 5600; {k}dense 0 -1",
	"lrem":                 "{k}list 0 no; {k}list 0 1; {k}list -5000 1; {k}dense 0 1; {k}dense -1000 1",
	"lset":                 "{k}list 10000 x; {k}list 5 WORD; {k}dense 1000 x; {k}dense 5 WORD; {k}list 0 LONG",
	"ltrim":                "{k}list 10000 10010; {k}list 1 -1; {k}list 1 0; {k}dense 1000 1010",
	"rpop":                 "{k}list 100000; {k}dense 3000",
	"rpoplpush":            "{k}list {k}dense",
	"rpush":                "{k}list ( # ); {k}list ( 20x LONG )",
	"rpushx":               "{k}list ( # )",
	"lolwut":               "( 5 ); VERSION 5 1000 1000 1000",
	"memory|usage":         "{k}n ( SAMPLES 1 ); {k}l",
	"mget":                 "( {k}# ); ( # ); ( {k}n ); ( 2000x {k}s ); ( 300x {k}l )",
	"mset":                 "( {k}# v ); ( # v ); ( {k}n v ); ( 200x {k}# WORD )",
	"msetex":               "29998 ( {k}a# v ) EX 100",
	"msetnx":               "( {k}a# v ); ( {k}n v )",
	"pexpire":              "{k}n 100 ( NX )",
	"pexpireat":            "{k}n 9999999999999 ( NX )",
	"pfadd":                "{k}h ( # ); {k}new ( # ); {k}h ( 100x WORD )",
	"pfcount":              "( 8000x {k}h )",
	"pfmerge":              "{k}new ( 8000x {k}h )",
	"ping":                 "LONG",
	"psubscribe":           "( # ); " + longPattern + "; LONG",
	"publish":              "{k}c WORD; {k}c LONG; LONG m",
	"pubsub|channels":      "*; LONG; " + longPattern,
	"pubsub|numsub":        "( # )",
	"pubsub|shardchannels": "*; LONG; " + longPattern,
	"pubsub|shardnumsub":   "( # )",
	"punsubscribe":         "( # )",
	"move":                 "{k}s 1; {k}l 1; {k}hash 1; {k}set 1; {k}zset 1; {k}list 1",
	"rename":               "{k}s {k}d; {k}l {k}d; {k}hash {k}d; {k}set {k}d",
	"renamenx":             "{k}s {k}d; {k}l {k}d",
	"restore":              "{k}n 0 LONG ( REPLACE ); {k}n 0 WORD",
	"spublish":             "{k}c WORD; {k}c LONG; LONG m",
	"ssubscribe":           "( {k}# ); ( 4000x {k}# ); LONG",
	"subscribe":            "( # ); LONG",
	"sunsubscribe":         "( {k}# ); ( # )",
	"unsubscribe":          "( # )",
	"scan":                 "0; 0 COUNT 1000000; 0 ( MATCH * ); 0 MATCH LONG",
	"set":                  "{k}n LONG; {k}n v ( EX 100 ); {k}n v IFEQ LONG; {k}l LONG IFEQ LONG; {k}l v IFDNE 0123456789abcdef; {k}l v GET",
	"setbit":               "{k}n 400000 1; {k}l 4000000 1; {k}n 400000000 1",
	"setrange":             "{k}n 1000000 WORD; {k}s 0 WORD; {k}l 1000000 LONG; {k}n 1 LONG",
	"eval":                 "return(ARGV) 0 ( # ); return(ARGV) 1 {k}n LONG; LONG 0; return(string.rep('x',3e7)) 0; return(redis.call('GET',KEYS[1])) 1 {k}l; return(redis.call('DEL',KEYS[1])) 1 {k}hash",
	"eval_ro":              "return(ARGV) 0 ( # ); return(redis.call('LRANGE',KEYS[1],0,-1)) 1 {k}list; return(redis.call('HGETALL',KEYS[1])) 1 {k}hash",
	"evalsha":              "3fed5f8f0f6177b7248b5f6400068d88da6bf751 0 ( # ); 3fed5f8f0f6177b7248b5f6400068d88da6bf751 1 {k}n LONG",
	"evalsha_ro":           "3fed5f8f0f6177b7248b5f6400068d88da6bf751 0 ( # ); 3fed5f8f0f6177b7248b5f6400068d88da6bf751 1 {k}n LONG",
	"fcall":                "pass 0 ( # ); pass 1 {k}n LONG; none 0; LONG 0",
	"fcall_ro":             "pass 0 ( # ); pass 1 {k}n LONG; none 0",
	"function|delete":      "LONG; none",
	"function|list":        "WITHCODE; LIBRARYNAME * WITHCODE; LIBRARYNAME LONG; ( WITHCODE ); LONG",
	"function|load":        "LONG; WORD; ( REPLACE ); REPLACE LONG",
	"function|restore":     "LONG; WORD; LONG FLUSH; x LONG",
	"function|flush":       "SYNC; LONG",
	"script|exists":        "( # ); ( 3fed5f8f0f6177b7248b5f6400068d88da6bf751 )",
	"script|load":          "LONG; WORD",
	"script|show":          "3fed5f8f0f6177b7248b5f6400068d88da6bf751",
	"slowlog|get":          "1000000",
	"sort":                 "{k}list; {k}dense; {k}list BY {k}w* GET {k}n* GET #; {k}list ALPHA STORE {k}new; {k}dense ( GET # )",
	"sort_ro":              "{k}list LIMIT 5 10; {k}list BY nosort",
	"touch":                "( {k}# ); ( # ); ( {k}n )",
	"unlink":               "( {k}# ); ( # ); ( {k}n )",
	"zadd":                 "{k}newz ( # m# ); {k}zset ( # m# ); {k}zset ( 1 x# ); {k}zfew ( # m# ); {k}zfew ( 100x # WORD )",
	"zcount":               "{k}zset -inf (15000",
	"zdiff":                "2 {k}zset {k}zfew; 1 {k}zset",
	"zdiffstore":           "{k}newz 2 {k}zset {k}zfew; {k}zset 1 {k}zset",
	"zinter":               "2 {k}zset {k}zset",
	"zintercard":           "3 {k}zset {k}zset {k}zset LIMIT 10000",
	"zinterstore":          "{k}newz 2 {k}zset {k}zset",
	"zlexcount":            "{k}zset [m1 +",
	"zmpop":                "1 {k}zset MAX COUNT 100000",
	"zmscore":              "{k}zset ( m# )",
	"zpopmax":              "{k}zset 15000; {k}zset",
	"zpopmin":              "{k}zset 15000",
	"zrandmember":          "{k}zset 15000 WITHSCORES; {k}zset -30000; {k}zfew -30000",
	"zrange":               "{k}zset 0 -1 WITHSCORES; {k}zset 0 9999; {k}zset +inf -inf BYSCORE REV LIMIT 10 9000",
	"zrangebylex":          "{k}zset - +; {k}zset [m5 + LIMIT 1000 1000",
	"zrangebyscore":        "{k}zset -inf +inf WITHSCORES",
	"zrangestore":          "{k}newz {k}zset 0 -1; {k}zset {k}zset 1 -2",
	"zrank":                "{k}zset m15000 WITHSCORE",
	"zrem":                 "{k}zset ( m# ); {k}zfew ( m# )",
	"zremrangebylex":       "{k}zset [m1 +",
	"zremrangebyrank":      "{k}zset 10 -2",
	"zremrangebyscore":     "{k}zset 10 inf",
	"zrevrange":            "{k}zset 0 -1 WITHSCORES; {k}zset 0 9999",
	"zrevrangebylex":       "{k}zset + -",
	"zrevrangebyscore":     "{k}zset +inf -inf WITHSCORES",
	"zrevrank":             "{k}zset m15000",
	"zscan":                "{k}zset 0 COUNT 1000000; {k}zset 0 MATCH LONG; {k}zfew 0",
	"zunion":               "2 {k}zset {k}zfew; 2 {k}zset {k}zset WEIGHTS 1 2 WITHSCORES; 20000 ( 20000x {k}zfew )",
	"zunionstore":          "{k}newz 2 {k}zset {k}zfew; {k}zset 1 {k}zset",
	"watch":                "( 60000x {k}# ); ( {k}n )",
	"cluster|keyslot":      "LONG",
	"substr":               "{k}l 1 -2; {k}s 1 -2",
	"client|setinfo":       "LIB-NAME LONG",
	"geoadd":               "{k}newz ( 1 2 m# ); {k}zset ( 1 2 m# )", "geohash": "{k}zset ( m# )", "geopos": "{k}zset ( m# )",
	"georadius": "{k}places 10 40 20000 km WITHDIST DESC; {k}places 10 40 20000 km STORE {k}newz", "georadius_ro": "{k}places 10 40 20000 km WITHCOORD WITHDIST COUNT 9000",
	"georadiusbymember": "{k}places m1 20000 km STOREDIST {k}newz", "georadiusbymember_ro": "{k}places m1 20000 km WITHHASH",
	"geosearch":      "{k}places FROMLONLAT 10 40 BYRADIUS 20000 km ASC WITHDIST; {k}places FROMLONLAT 10 40 BYBOX 30000 100 km",
	"geosearchstore": "{k}newz {k}places FROMLONLAT 10 40 BYRADIUS 20000 km STOREDIST",
	"acl|cat":        "( read )", "acl|deluser": "( a )", "acl|dryrun": "default get ( a )",
	"acl|genpass": "256", "acl|log": "( 10 )", "acl|setuser": "a ( +get )", "auth": "( a ); a LONG",
	"bgsave": "( SCHEDULE )", "client|maint_notifications": "ON ( a )", "client|tracking": "ON ( PREFIX a )", "client|unblock": "1 ( ERROR )",
	"command|getkeysandflags": "MGET ( # )", "debug": "( a )", "failover": "( ABORT )", "flushall": "( ASYNC )",
	"flushdb": "( ASYNC )", "module|load": "a ( b )", "module|loadex": "a ( b )",
	"psync": "( a )",

	"cluster|countkeysinslot": "7629; LONG",
	"clusterscan":             "0-{k}-0 COUNT 1000000; 0-{k}-0 ( MATCH * ); 0-{k}-0 MATCH LONG; 0-{k}-0 SLOT 7629 COUNT 1000; LONG; 0 ( SLOT 1 )",
	"cluster|getkeysinslot":   "7629 1000000000; LONG 1",
	"cluster|slot-stats":      "SLOTSRANGE 0 16383; ORDERBY key-count ( ASC ); ORDERBY LONG; LONG 1",
}

// plain are the commands of which only a value or a word can be long, as their rows say.
const plain = `acl|getuser acl|help acl|list acl|load acl|save acl|users acl|whoami asking bgrewriteaof
	client|caching client|capa client|getname client|getredir client|help client|id client|info client|no-evict
	client|no-touch client|trackinginfo client|unpause cluster|help cluster|info cluster|links cluster|myshardid
	cluster|myid cluster|nodes cluster|replicas cluster|shards cluster|slaves cluster|slots command|count command|help config|help
	config|resetstat config|rewrite dbsize decr decrby echo expiretime function|dump function|help function|kill function|stats get getbit getdel getset
	hotkeys|big hotkeys|get hotkeys|help hotkeys|reset incr lastsave latency|doctor latency|graph
	latency|help latency|history latency|latest memory|doctor memory|help memory|malloc-stats memory|purge
	memory|stats module|help module|list module|unload object|encoding object|freq object|help
	object|idletime object|refcount persist pexpiretime pfdebug pfselftest psetex pttl pubsub|help pubsub|numpat randomkey readonly
	readwrite replicaof role save script|flush script|help script|kill select
	sentinel|ckquorum sentinel|failover sentinel|get-master-addr-by-name sentinel|get-primary-addr-by-name sentinel|help
	sentinel|master sentinel|masters sentinel|myid sentinel|primaries sentinel|primary sentinel|replicas sentinel|sentinels
	sentinel|slaves setex setnx slaveof slowlog|help slowlog|len slowlog|reset strlen
	swapdb sync time ttl type unwatch geodist xgroup|help xinfo|help zcard zincrby zscore`

// leftOut are commands that the test cannot send, and why.
var leftOut = map[string]string{
	"client|pause": "it would stop the test",
	"client|reply": "nobody would answer",
	"discard":      "it ends a transaction, in the time in which EXEC ends it",
	"exec":         "TestTimeLawOfTransactions",
	"monitor":      "it is answered as often as somebody sends a command",
	"multi":        "it begins a transaction and does nothing else",
	"quit":         "it closes the connection",
	"reset":        "it ends a transaction, in the time in which EXEC ends it",
	"shutdown":     "it would end the test",
	"wait":         "it does nothing but wait",
	"waitaof":      "it does nothing but wait",
}

var longPattern = strings.Repeat("*a", 200)

var longWord = bytes.Repeat([]byte("1"), 1<<20)

// requestOf returns the request that a pattern of hostile stands for, of that many words at most.
func requestOf(pattern string, words int) (args [][]byte) {
	before, rest, repeats := strings.Cut(pattern, "( ")
	group, after, _ := strings.Cut(rest, " )")
	add := func(text []string, number int) {
		for _, w := range text {
			switch w {
			case "LONG":
				args = append(args, longWord)
			case "HUGE":
				args = append(args, hugeWord)
			case "WORD":
				args = append(args, longWord[:60_000])
			default:
				args = append(args, []byte(strings.ReplaceAll(w, "#", strconv.Itoa(number))))
			}
		}
	}
	add(strings.Fields(before), 0)
	last := strings.Fields(after)
	if repeats {
		times := words
		if n, g, ok := strings.Cut(group, "x "); ok {
			if n, err := strconv.Atoi(n); err == nil {
				times, group = n, g
			}
		}
		each := strings.Fields(group)
		for i := 0; i < times && len(args)+len(each)+len(last) <= words; i++ {
			add(each, i)
		}
	}
	add(last, 0)
	return args
}

// rowRequests returns what can be asked according to a command's row alone.
func rowRequests(row *command.Command) (patterns []string) {
	args := strings.Fields(strings.ReplaceAll(row.Name, "|", " "))
	names := len(args)
	for len(args) < max(row.Arity, -row.Arity) {
		args = append(args, "1")
	}
	request := make([][]byte, len(args))
	for i, a := range args {
		request[i] = []byte(a)
	}
	keys, _ := row.AppendKeys(nil, request)
	for _, value := range []string{"{k}s", "{k}l"} {
		for _, k := range keys {
			args[k] = value
		}
		patterns = append(patterns, strings.Join(args[names:], " "))
		if len(keys) == 0 {
			break
		}
	}
	if last := len(args) - 1; last >= names && (len(keys) == 0 || keys[len(keys)-1] != last) {
		args[last] = "LONG"
		patterns = append(patterns, strings.Join(args[names:], " "))
	}
	return patterns
}

// TestTimeLaw also fails for a command of which it does not know what to ask.
func TestTimeLaw(t *testing.T) {
	var rig *lawRig
	if locksAreTimed {
		rig = newLawRig(t, startLeveled)
	}
	known := make(map[string]bool)
	for name := range strings.FieldsSeq(plain) {
		known[name] = true
	}
	for row := range rowsOfLaw() {
		requests, ok := hostile[row.Name]
		if !ok && !known[row.Name] {
			t.Errorf("%s has no entry: what is the worst that it can be asked?", row.Name)
		}
		if rig != nil {
			rig.row(row, requests)
		}
	}
}

// rowsOfLaw yields the rows of the commands that the law is about.
func rowsOfLaw() iter.Seq[*command.Command] {
	return func(yield func(*command.Command) bool) {
		for _, top := range command.All() {
			rows := top.Subs
			if rows == nil {
				rows = []*command.Command{top}
			}
			for _, row := range rows {
				if row.Built && leftOut[row.Name] == "" && !yield(row) {
					return
				}
			}
		}
	}
}

// wordsOf returns how many words the longest requests of a command have.
func wordsOf(row *command.Command) int {
	if !row.ArityOK(manyWords) {
		return 1024
	}
	return manyWords
}

// patternsOf returns what a command is asked.
func patternsOf(row *command.Command, requests string) (patterns []string) {
	own := rowRequests(row)
	if requests != "" {
		own = append(strings.Split(requests, ";"), own...)
	}
	name := strings.ToUpper(strings.ReplaceAll(row.Name, "|", " "))
	for _, pattern := range own {
		patterns = append(patterns, name+" "+strings.TrimSpace(pattern))
	}
	return patterns
}

// row measures one command.
func (rig *lawRig) row(row *command.Command, requests string) {
	eachRequest(row, requests, rig.measure)
}

// eachRequest calls f with all that a command is asked, and in which way: what its row says, and those patterns.
func eachRequest(row *command.Command, requests string, f func(way, pattern string, args [][]byte)) {
	for i, pattern := range patternsOf(row, requests) {
		args := requestOf(pattern, wordsOf(row))
		f("client", pattern, args)
		p := &plans[row.ID]
		if p.handler == nil || p.keys == noKeys {
			continue
		}
		ways := []string{"EACH"}
		if p.keys != allKeys {
			ways = []string{"MULTI", "pipe", "EXEC"}
			if i > 0 {
				ways = ways[:1]
			}
			if !strings.Contains(pattern, "{k}") {
				ways = nil
			}
		}
		for _, way := range ways {
			f(way, pattern, args)
		}
	}
}

// lawSketch returns a dense HyperLogLog.
func lawSketch() string {
	value := hyperloglog.AppendEmpty(nil)
	value, err := hyperloglog.Promote(value)
	if err != nil {
		panic(err)
	}
	return string(value)
}

// TestTimeLawOfTransactions: so does no transaction of very many commands or watched keys.
func TestTimeLawOfTransactions(t *testing.T) {
	if !locksAreTimed {
		t.Skip("needs the build tag checked")
	}
	rig := newLawRig(t, startNode) // to which proxies of the first level may open pipes
	const many = 60_000
	incr := resp.AppendRequest(nil, []byte("INCR"), []byte("{k}n"))
	commands := make([][]byte, many)
	for i := range commands {
		commands[i] = incr
	}
	rig.generation++
	p := openPipeTo(t, rig.node, 7, 0, "large", rig.generation, 2)
	p.patience = lawPatience
	done := 0
	rig.judge("EXEC of many commands on a pipe", func() cost {
		done += many
		return rig.send(p, rig.execOf(nil, commands...))
	})

	names := requestOf("WATCH ( {k}# )", many)
	c := dial(t, rig.node.Addr())
	c.patience = lawPatience
	rig.judge("EXEC of many watched keys", func() cost {
		c.sendArgs(names...)
		if got := c.next(); got != "OK" {
			t.Errorf("WATCH answers %s", got)
		}
		c.want("MULTI", "OK")
		c.want("INCR {k}n", "QUEUED")
		done++
		return rig.send(c, resp.AppendRequest(nil, []byte("EXEC")))
	})

	p.sendArgs(append([][]byte{[]byte("DUNLIN")}, names...)...)
	var watched [][]byte
	reply := p.read()
	n, header, _ := resp.DecodeArray(reply)
	for i := range n {
		var s resp.Scanner
		s.Scan(reply[header:])
		version, _ := resp.DecodeBulk(reply[header : header+s.Len()])
		header += s.Len()
		watched = append(watched, names[1+i], version)
	}
	if len(watched) != 2*(many-1) {
		t.Fatalf("DUNLIN WATCH answers %d versions", len(watched)/2)
	}
	rig.judge("EXEC of many watched keys on a pipe", func() cost {
		done++
		return rig.send(p, rig.execOf(watched, incr))
	})
	c.want("GET {k}n", fmt.Sprintf("%q", fmt.Sprint(done)))
}
