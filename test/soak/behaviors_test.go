package soak

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// behaviors are all the ways to hurt others, by name. Each stands for something that once did.
var behaviors = map[string]func(*hostile){
	honest:              (*hostile).honest,
	"skipped replies":   (*hostile).skippedReplies,
	"EXEC of LCS":       (*hostile).execOfLCS,
	"LCS of many":       (*hostile).lcsOfMany,
	"EXEC of many":      (*hostile).execOfMany,
	"EXEC of BITCOUNT":  (*hostile).execOfBitcount,
	"WATCH of many":     (*hostile).watchOfMany,
	"COMMAND INFO":      (*hostile).commandInfo,
	"CONFIG GET":        (*hostile).configGet,
	"long KEYS":         (*hostile).longKeys,
	"slow KEYS":         (*hostile).slowKeys,
	"long SCAN":         (*hostile).longScan,
	"large SETs":        (*hostile).largeSets,
	"BITOP":             (*hostile).bitop,
	"direct jobs":       (*hostile).directJobs,
	"dribbled uploads":  (*hostile).dribbledUploads,
	"dribbled MSETs":    (*hostile).dribbledMSETs,
	"slow readers":      (*hostile).slowReaders,
	"FLUSHALL":          (*hostile).flushall,
	"PFCOUNT":           (*hostile).pfcount,
	"slot crossings":    (*hostile).slotCrossings,
	"loans over slots":  (*hostile).loans,
	"MSET of a million": (*hostile).msetOfAMillion, // words
	"PINGs unread":      (*hostile).pingsUnread,
	"rewrites":          (*hostile).rewrites,
	"RESTORE":           (*hostile).restore,
	"MONITOR":           (*hostile).monitor,
	"many MONITORs":     (*hostile).manyMonitors,
	"CLIENT LIST":       (*hostile).clientList,
	"cluster-wide":      (*hostile).clusterWide,
	"silent":            (*hostile).silent,
	"silent TLS":        (*hostile).silentTLS,
	"strangers":         (*hostile).strangers,
	"reconnects":        (*hostile).reconnects,
	"forged verbs":      (*hostile).forgedVerbs,
	"admin flood":       (*hostile).adminFlood,
	"scripts":           (*hostile).scripts,
	"functions":         (*hostile).functions,
}

const honest = "honest"

// kilobyte is the length of the words of hostile values.
const kilobyte = 1 << 10

var (
	large  = sync.OnceValue(func() string { return strings.Repeat("l", kilobyte*kilobyte) })
	filler = sync.OnceValue(func() string { return rand.Text() + strings.Repeat("ab", 6*kilobyte) })
)

// honest does what other clients do all day, as fast as it is answered: one in three has large values, one
// loads many small ones, and one has short pipelines.
func (h *hostile) honest() {
	p := h.login(h.one(h.Proxies))
	switch h.number % 3 {
	case 0:
		h.largeValues(p)
	case 1:
		h.load(p)
	case 2:
		h.shortPipelines(p)
	}
}

func (h *hostile) largeValues(p *peer) {
	for range 20 {
		key := fmt.Sprint("honest:large:", h.rng.IntN(10))
		p.ask("SET", key, large())
		p.ask("GET", key)
	}
}

// load reads while it writes, so that all is sent.
func (h *hostile) load(p *peer) {
	const commands, at = 60_000, 1000
	go unlessGone(func() {
		for i := range commands / at {
			var batch []byte
			for j := range at {
				batch = append(batch, request("SET", fmt.Sprint("honest:", i*at+j), "v")...)
			}
			p.say(batch)
		}
	})
	p.skip(commands)
}

func (h *hostile) shortPipelines(p *peer) {
	const depth = 16
	var batch []byte
	for range 1000 {
		batch = batch[:0]
		for range depth / 2 {
			key := fmt.Sprint("honest:", h.rng.IntN(100_000))
			batch = append(append(batch, request("SET", key, filler()[:200])...), request("GET", key)...)
		}
		p.say(batch)
		p.skip(depth)
	}
}

// skippedReplies sends a command whose reply is skipped, and which is so large that the proxy
// fetches it in pieces. The next reply must not be that one.
func (h *hostile) skippedReplies() {
	p := h.login(h.one(h.Proxies))
	p.ask("SET", "skip:1", large())
	p.ask("SET", "skip:2", large())
	for range 20 {
		p.send("CLIENT", "REPLY", "SKIP")
		p.send("MGET", "skip:1", "skip:2")
		p.want(p.ask("PING"), "+PONG\r\n")
	}
}

func (h *hostile) execOfLCS() {
	p := h.login(h.one(h.Proxies))
	key := fmt.Sprintf("{lcs%d}", h.rng.IntN(100))
	p.ask("SET", key+"a", filler()[:11_500])
	p.ask("SET", key+"b", strings.Repeat("ba", 5_750))
	p.ask("MULTI")
	for range 150 {
		p.ask("LCS", key+"a", key+"b", "LEN")
	}
	p.ask("EXEC")
}

// lcsOfMany sends thousands at once that a loop just executes by itself.
func (h *hostile) lcsOfMany() {
	p := h.login(h.anyone())
	key := fmt.Sprintf("{lcs%d}", h.rng.IntN(100))
	p.ask("SET", key+"c", filler()[:220])
	p.ask("SET", key+"d", strings.Repeat("ba", 110))
	const commands = 10_000
	lcs := string(request("LCS", key+"c", key+"d", "LEN"))
	go unlessGone(func() {
		for range commands / 1000 {
			p.say([]byte(strings.Repeat(lcs, 1000)))
		}
	})
	p.skip(commands)
}

func (h *hostile) execOfMany() {
	p := h.login(h.anyone())
	const commands = 60_000
	key := fmt.Sprintf("many%d", h.rng.IntN(100))
	incr := request("INCR", key)
	p.say(request("MULTI"))
	go unlessGone(func() { // it reads while it writes, so that all is sent
		for range commands / 1000 {
			p.say([]byte(strings.Repeat(string(incr), 1000)))
		}
		p.send("EXEC")
	})
	p.skip(commands + 2)
}

func (h *hostile) execOfBitcount() {
	p := h.login(h.one(h.Proxies))
	key := fmt.Sprintf("{bits%d}", h.rng.IntN(100))
	p.ask("SET", key, large())
	p.ask("MULTI")
	for range 500 {
		p.ask("BITCOUNT", key)
	}
	p.ask("EXEC")
}

func (h *hostile) watchOfMany() {
	p := h.login(h.one(h.Proxies))
	tag := fmt.Sprintf("{watch%d}", h.rng.IntN(100))
	p.say(many(60_000, numbered(tag), "WATCH"))
	p.hear()
	p.ask("MULTI")
	p.ask("SET", tag, "v")
	p.ask("EXEC")
}

// commandInfo asks for what would be a reply of hundreds of megabytes if it were not refused.
func (h *hostile) commandInfo() {
	p := h.login(h.anyone())
	sub := []string{"INFO", "DOCS"}[h.rng.IntN(2)]
	p.say(many(40_000, same("get"), "COMMAND", sub))
	_, _ = p.conn.Read(make([]byte, 64*kilobyte))
}

func (h *hostile) configGet() {
	p := h.login(h.anyone())
	p.say(many(1_000_000, same("*"), "CONFIG", "GET"))
	p.hear()
}

// longKeys asks for a pattern of 24 MB, and does not wait for the answer.
func (h *hostile) longKeys() {
	p := h.login(h.anyone())
	p.say(many(1, func(int) string { return strings.Repeat(large()+"*", 24) }, "KEYS"))
	time.Sleep(time.Duration(h.rng.IntN(100)) * time.Millisecond)
}

func (h *hostile) slowKeys() {
	p := h.login(h.anyone())
	pattern := []string{strings.Repeat("*?", 500), strings.Repeat("*a", 200) + "b", strings.Repeat("[]", 500)}[h.rng.IntN(3)]
	p.send("KEYS", pattern)
	if h.rng.IntN(2) == 0 {
		p.hear()
	}
}

func (h *hostile) longScan() {
	p := h.login(h.anyone())
	p.say(many(1_000_000, func(i int) string { return []string{"MATCH", "*"}[i%2] }, "SCAN", "0"))
	p.hear()
}

// largeSets writes a megabyte at a time, also to a node that does not answer.
func (h *hostile) largeSets() {
	for range 10 {
		p := h.login(h.one(h.Proxies))
		p.send("SET", fmt.Sprint("large:", h.rng.IntN(1000)), large())
	}
	time.Sleep(time.Second)
}

func (h *hostile) bitop() {
	p := h.login(h.anyone())
	p.ask("SET", "{op}s", large())
	p.say(many(2000, same("{op}s"), "BITOP", "OR", "{op}d"))
	p.hear()
}

// directJobs has many connections to one node, each with work for a goroutine.
func (h *hostile) directJobs() {
	addr := h.one(h.Nodes)
	var all []*peer
	for range 40 {
		p := h.login(addr)
		key := fmt.Sprintf("{jobs%d}", h.rng.IntN(20))
		p.send("SET", key, large())
		switch h.rng.IntN(3) {
		case 0:
			p.say(many(200, same(key), "BITOP", "XOR", key+"d"))
		case 1:
			p.send("DUMP", key)
		case 2:
			p.send("KEYS", "*x*y*z*")
		}
		all = append(all, p)
	}
	for _, p := range all {
		p.skip(2)
	}
}

// dribbledUploads announces large values and sends a byte of them now and then.
func (h *hostile) dribbledUploads() {
	var all []*peer
	for range 30 {
		p := h.login(h.anyone())
		p.say([]byte("*3\r\n$3\r\nSET\r\n$7\r\ndribble\r\n$536870912\r\n"))
		all = append(all, p)
	}
	for range 30 {
		time.Sleep(100 * time.Millisecond)
		for _, p := range all {
			_, _ = p.conn.Write([]byte("d")) // it may have been turned away
		}
	}
}

// dribbledMSETs sends most of long requests, and a byte of the rest now and then.
func (h *hostile) dribbledMSETs() {
	mset := []string{"MSET"}
	for i := range 2000 {
		mset = append(mset, fmt.Sprintf("{dribble}%d", i), filler()[:kilobyte])
	}
	most := request(mset...)
	var all []*peer
	for range 30 {
		p := h.login(h.anyone())
		p.say(most[:len(most)-kilobyte])
		all = append(all, p)
	}
	for range 30 {
		time.Sleep(100 * time.Millisecond)
		for _, p := range all {
			_, _ = p.conn.Write([]byte("d")) // it may have been turned away
		}
	}
}

// slowReaders asks for much more than it reads.
func (h *hostile) slowReaders() {
	addr := h.anyone()
	for range 20 {
		p := h.login(addr)
		p.send("SET", "{slow}", large())
		for range 64 {
			p.send("GET", "{slow}")
		}
	}
	time.Sleep(visitTime)
}

// flushall does not wait for the end of what it asked for.
func (h *hostile) flushall() {
	p := h.login(h.one(h.Proxies))
	p.send("FLUSHALL", []string{"SYNC", "ASYNC"}[h.rng.IntN(2)])
	time.Sleep(time.Duration(h.rng.IntN(10)) * time.Millisecond)
}

func (h *hostile) pfcount() {
	p := h.login(h.anyone())
	p.say(many(5000, numbered("e"), "PFADD", "{pf}a"))
	p.hear()
	p.say(many(8192, same("{pf}a"), "PFCOUNT"))
	p.hear()
}

// slotCrossings has nodes hold partitions for each other, all the time.
func (h *hostile) slotCrossings() {
	p := h.login(h.one(h.Proxies))
	key := func(kind string) string { return fmt.Sprint("crossing:", kind, ":", h.rng.IntN(200)) }
	var batch []byte
	for range 200 {
		list, element := key("list"), fmt.Sprint(h.rng.IntN(100))
		batch = append(batch, request("RPUSH", list, filler()[:200])...)
		batch = append(batch, request("LMOVE", list, key("list"), "LEFT", "RIGHT")...)
		batch = append(batch, request("SADD", key("set"), element)...)
		batch = append(batch, request("SMOVE", key("set"), key("set"), element)...)
		batch = append(batch, request("MSETNX", key("lock"), "v", key("lock"), "v", key("lock"), "v")...)
		batch = append(batch, request("DEL", key("lock"), key("lock"))...)
	}
	p.say(batch)
	p.skip(1200)
}

// loans has nodes borrow values and collections from each other, all the time.
func (h *hostile) loans() {
	p := h.login(h.one(h.Proxies))
	key := func(kind string) string { return fmt.Sprint("loan:", kind, ":", h.rng.IntN(20)) }
	p.ask("SET", key("value"), large())
	p.say(many(5000, numbered("e"), "SADD", key("set")))
	p.hear()
	p.say(many(5000, numbered("h"), "PFADD", key("sketch")))
	p.hear()
	var batch []byte
	const rounds = 20
	for range rounds {
		batch = append(batch, request("SUNIONSTORE", key("set"), key("set"), key("set"), key("set"))...)
		batch = append(batch, request("SDIFF", key("set"), key("set"))...)
		batch = append(batch, request("COPY", key("value"), key("value"), "REPLACE")...)
		batch = append(batch, request("RENAME", key("set"), key("set"))...)
		batch = append(batch, request("BITOP", "XOR", key("value"), key("value"), key("value"))...)
		batch = append(batch, request("PFMERGE", key("sketch"), key("sketch"), key("sketch"))...)
	}
	p.say(batch)
	p.skip(6 * rounds)
}

func (h *hostile) msetOfAMillion() {
	p := h.login(h.one(h.Proxies))
	const keys = 500_000 // a request has at most 1,048,576 words
	p.say(many(2*keys, func(i int) string { return fmt.Sprint("million:", i/2) }, "MSET"))
	p.hear()
	p.say(many(keys, numbered("million:"), "DEL"))
	p.hear()
}

func (h *hostile) pingsUnread() {
	p := h.login(h.anyone())
	batch := []byte(strings.Repeat("PING\r\n", 10_000))
	for range 100 {
		p.say(batch)
	}
}

// rewrites changes large values by a byte.
func (h *hostile) rewrites() {
	p := h.login(h.anyone())
	key := fmt.Sprintf("{rewrites%d}", h.rng.IntN(10))
	p.ask("SET", key, large())
	for range 50 {
		p.send("APPEND", key, "x")
		p.send("SETRANGE", key, "8000000", "x")
		p.send("COPY", key, key+"copy", "REPLACE")
	}
	p.skip(150)
}

func (h *hostile) restore() {
	p := h.login(h.anyone())
	for range 50 {
		p.ask("RESTORE", "restored", "0", large(), "REPLACE")
	}
}

func (h *hostile) monitor() {
	addr := h.anyone()
	for range 10 {
		h.login(addr).send("MONITOR")
	}
	time.Sleep(visitTime)
}

// manyMonitors reads what many watchers are shown of commands with long arguments.
func (h *hostile) manyMonitors() {
	addr := h.anyone()
	for range 100 {
		p := h.login(addr)
		p.send("MONITOR")
		go func() { _, _ = io.Copy(io.Discard, p.conn) }()
	}
	p := h.login(addr)
	for range 500 {
		p.ask("PING", filler()[:4*kilobyte])
	}
}

// clientList has many clients with long names, and some ask for all of them all the time.
func (h *hostile) clientList() {
	addr := h.anyone()
	name := filler()[:kilobyte]
	var all []*peer
	for range 500 {
		p := h.login(addr)
		p.send("CLIENT", "SETNAME", name)
		all = append(all, p)
	}
	const asking, lists = 10, 5
	for _, p := range all[:asking] {
		p.say([]byte(strings.Repeat("CLIENT LIST\r\n", lists)))
	}
	for _, p := range all[:asking] {
		p.skip(lists)
	}
}

func (h *hostile) clusterWide() {
	p := h.login(h.anyone())
	for range 20 {
		p.send("DBSIZE")
		p.send("INFO", "all")
		p.send("CLUSTER", "SLOTS")
		p.send("CLUSTER", "SHARDS")
		p.send("CLUSTER", "NODES")
		p.send("RANDOMKEY")
		p.send("SLOWLOG", "GET", "1000000")
		p.send("MEMORY", "STATS")
		p.send("CLIENT", "LIST")
		p.send("SCAN", "0", "COUNT", "1000000")
	}
	p.skip(200)
}

func (h *hostile) silent() {
	addr := h.anyone()
	for range 200 {
		h.dial(addr)
	}
	time.Sleep(visitTime)
}

// silentTLS begins handshakes that it does not finish.
func (h *hostile) silentTLS() {
	for range 200 {
		p := h.dial(h.TLS)
		if h.rng.IntN(2) == 0 {
			p.say([]byte{0x16, 3, 1, 2, 0, 1})
		}
	}
	time.Sleep(visitTime)
}

// strangers do not know the password.
func (h *hostile) strangers() {
	for range 30 {
		p := h.dial(h.anyone())
		switch h.rng.IntN(4) {
		case 0:
			p.send("AUTH", rand.Text())
		case 1:
			p.say([]byte(strings.Repeat("x", 64*kilobyte)))
		case 2:
			p.say([]byte("*1000000\r\n"))
		case 3:
			p.say([]byte("*2\r\n$4\r\nAUTH\r\n$100000000\r\n"))
		}
	}
	time.Sleep(100 * time.Millisecond)
}

func (h *hostile) reconnects() {
	for range 100 {
		p := h.login(h.anyone())
		p.send("PING")
		p.conn.Close()
	}
	h.conns = h.conns[:0]
}

// forgedVerbs acts as a member that does not know the secret.
func (h *hostile) forgedVerbs() {
	p := h.login(h.one(h.Nodes))
	for _, verb := range []string{"TAKE", "TABLE", "EACH", "PIPE", "PEER", "STREAM", "REPORT", "RETRY", "EXEC", "FETCH", "LEVEL"} {
		p.send("DUNLIN", verb)
		p.send("DUNLIN", verb, large()[:60*kilobyte])
		p.send("DUNLIN", verb, "1", "2", "3", "4", "5")
	}
	p.skip(1)
}

func (h *hostile) adminFlood() {
	addr := h.one(h.Admins)
	for i := range 40 {
		p := h.dial(addr)
		path := []string{"/metrics", "/api/status?members", "/", "/healthz", "/api/keys", "/debug/pprof/profile"}[i%6]
		p.say([]byte("GET " + path + " HTTP/1.1\r\nHost: " + addr + "\r\n"))
		if h.rng.IntN(4) > 0 {
			p.say([]byte("\r\n"))
		}
	}
	time.Sleep(200 * time.Millisecond)
}

//go:embed testdata/scripts.txt
var scriptLines string

// hostileScripts are those of testdata/scripts.txt.
var hostileScripts = sync.OnceValue(func() []string {
	return slices.DeleteFunc(strings.Split(scriptLines, "\n"), func(line string) bool {
		return line == "" || strings.HasPrefix(line, "--")
	})
})

// scripts runs one that never ends, or takes all memory, or tries to get at what is not its own. Whoever wants
// its partition waits, or is told BUSY: all of them use the same one.
func (h *hostile) scripts() {
	p := h.login(h.anyone())
	const key = "{script}"
	script := h.one(hostileScripts())
	if strings.Contains(script, "KEYS[1]") {
		p.ask("EVAL", script, "1", key)
		p.ask("DEL", key)
	} else {
		p.ask("EVAL", script, "0")
	}
}

// functions loads libraries whose code is a hostile script, which are refused, and such with a function that is one,
// and calls it. Those that are accepted replace each other, so each is a change of the cluster's settings.
func (h *hostile) functions() {
	p := h.login(h.anyone())
	const key = "{function}"
	script := h.one(hostileScripts())
	switch h.rng.IntN(4) {
	case 0:
		p.ask("FUNCTION", "LOAD", "REPLACE", "#!lua name=hostile\n"+script)
	case 1:
		p.ask("FUNCTION", "LOAD", "REPLACE", "#!lua name=hostile\nredis.register_function('hostile', function(KEYS, ARGV) "+script+" end)")
	case 2:
		p.ask("FUNCTION", "RESTORE", large()[:60*kilobyte])
		p.ask("FUNCTION", "LIST", "WITHCODE")
		p.ask("FUNCTION", "DUMP")
	}
	p.ask("FCALL", "hostile", "1", key)
	p.ask("DEL", key)
}
