package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/config"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

const oomReply = "(error) OOM command not allowed when used memory > 'maxmemory'."

// startLimited starts a node with a limit and a policy. It is not fenced when the test is held up.
func startLimited(t *testing.T, memory int64, eviction string) *Node {
	t.Helper()
	return startNode(t, func(c *Config) { c.Memory, c.Eviction, c.StallLimit = memory, eviction, time.Hour })
}

// fillWith sets keys fill:0, fill:1... of the length, a few at once, until one is refused, or so many
// are there, and returns how many were stored.
func (c *client) fillWith(length, atMost int, options ...string) (stored int) {
	c.t.Helper()
	value, atOnce := make([]byte, length), max(1, 4<<10/length)
	for from, full := 0, false; from < atMost && !full; from += atOnce {
		var input []byte
		to := min(from+atOnce, atMost)
		for i := from; i < to; i++ {
			args := [][]byte{[]byte("SET"), fmt.Append(nil, "fill:", i), value}
			for _, o := range options {
				args = append(args, []byte(o))
			}
			input = resp.AppendRequest(input, args...)
		}
		c.sendRaw(input)
		for i := from; i < to; i++ {
			switch got := c.next(); got {
			case "OK":
				stored++
			case oomReply:
				full = true
			default:
				c.t.Fatalf("SET fill:%d answers %s", i, got)
			}
		}
	}
	return stored
}

func TestParseEviction(t *testing.T) {
	f := func(name string, want engine.Policy, wantErr bool) {
		t.Helper()
		got, err := ParseEviction(name)
		if got != want || (err != nil) != wantErr {
			t.Errorf("ParseEviction(%q) = %v, %v", name, got, err)
		}
	}
	f("", engine.AllKeys, false)
	f("allkeys", engine.AllKeys, false)
	f("allkeys-lru", engine.AllKeys, false)
	f("allkeys-lfu", engine.AllKeys, false)
	f("allkeys-random", engine.AllKeys, false)
	f("volatile-ttl", engine.VolatileTTL, false)
	f("volatile-lru", engine.VolatileTTL, false)
	f("Volatile-LFU", engine.VolatileTTL, false)
	f("volatile-random", engine.VolatileTTL, false)
	f("noeviction", engine.NoEviction, false)
	f("lru", 0, true)
	if _, err := ParseEviction("lru"); !strings.Contains(err.Error(), "want allkeys, volatile-ttl or noeviction") {
		t.Errorf("%v does not name the choices", err)
	}
}

// TestNoEviction: a full node refuses what takes memory and goes on with the rest.
func TestNoEviction(t *testing.T) {
	forOneClient(t)
	n := startLimited(t, 8<<20, "noeviction")
	c := dial(t, n.Addr())
	c.want("CONFIG GET maxmemory-policy", "1) \"maxmemory-policy\"\n2) \"noeviction\"")
	stored := c.fillWith(1000, 9000)
	if stored < 5000 || stored == 9000 {
		t.Fatalf("%d values of 1000 bytes fit into 8 MiB", stored)
	}
	if evicted := n.engine.Stats().Evicted; evicted > 0 {
		t.Errorf("%d keys were evicted", evicted)
	}
	c.want(fmt.Sprintf(`APPEND fill:%d "%s"`, stored, strings.Repeat("x", 1000)), oomReply)
	c.want("STRLEN fill:0", "(integer) 1000")
	c.want("EXISTS fill:0 fill:1", "(integer) 2")
	c.want("EXPIRE fill:0 1000", "(integer) 1")
	c.wantTTL("fill:0", 1000)
	c.want("PERSIST fill:0", "(integer) 1")
	for i := range stored / 2 {
		c.want(fmt.Sprintf("DEL fill:%d", i), "(integer) 1")
	}
	if again := c.fillWith(1000, stored/4); again != stored/4 {
		t.Errorf("after %d were deleted, only %d fit again", stored/2, again)
	}
}

// TestConfigSetMemory changes limit and policy under a filled node.
func TestConfigSetMemory(t *testing.T) {
	forOneClient(t)
	n := startLimited(t, 32<<20, "allkeys")
	c := dial(t, n.Addr())
	c.want("CONFIG GET maxmemory-policy", "1) \"maxmemory-policy\"\n2) \"allkeys-lru\"")
	c.fillWith(1000, 20_000)
	reaches := func(bytes int64) { // a slow machine answers before, see shrinkPatience
		t.Helper()
		eventually(t, fmt.Sprint("the limit is ", bytes), func() bool { return n.MaxMemory() == bytes })
	}
	c.want("CONFIG SET maxmemory 8mb", "OK")
	c.want("CONFIG GET maxmemory", "1) \"maxmemory\"\n2) \"8388608\"")
	reaches(8 << 20)
	eventually(t, "what is used fits", func() bool { return n.engine.Used() <= 8<<20 })
	c.want("CONFIG SET maxmemory-policy noeviction", "OK")
	if info := c.do("INFO memory"); !strings.Contains(info, "maxmemory_policy:noeviction") || !strings.Contains(info, "maxmemory:8388608") {
		t.Errorf("INFO memory says\n%s", info)
	}
	if stored := c.fillWith(10_000, 1000); stored == 1000 {
		t.Error("a full node stores more although nothing may be evicted")
	}
	c.want("CONFIG SET maxmemory 6mb", "OK") // below what is used, as in Redis
	c.want("CONFIG GET maxmemory", "1) \"maxmemory\"\n2) \"6291456\"")
	reaches(6 << 20)
	if stored := c.fillWith(10_000, 1000); stored == 1000 {
		t.Error("a node over its limit stores more")
	}
	c.want("CONFIG SET maxmemory 64mb maxmemory-policy volatile-lru", "OK")
	c.want("CONFIG GET maxmemory*", "1) \"maxmemory\"\n2) \"67108864\"\n3) \"maxmemory-policy\"\n4) \"volatile-lru\"")
	if stored := c.fillWith(10_000, 1000); stored != 1000 {
		t.Errorf("only %d values fit after the limit was raised", stored)
	}
	c.want("CONFIG SET maxmemory 1mb",
		"(error) ERR CONFIG SET failed (possibly related to argument 'maxmemory') - node a: a limit of 1048576 bytes is too small for 16 shards: the smallest is 3mb")
}

// TestConfigSetInOrder: what follows CONFIG SET in a pipeline is executed after it.
func TestConfigSetInOrder(t *testing.T) {
	c := dial(t, startNode(t).Addr())
	c.sendRaw([]byte("CONFIG SET timeout 77\r\nCONFIG GET timeout\r\nPING\r\n"))
	for _, want := range []string{"OK", "1) \"timeout\"\n2) \"77\"", "PONG"} {
		if got := c.next(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestCheckPart checks that a node which is asked whether it would refuse a CONFIG SET changes
// nothing, and does not count that as a client's command.
func TestCheckPart(t *testing.T) {
	n := startNode(t)
	c := openPipeTo(t, n, 1, 0, "large", 1, 2)
	limit := n.engine.MaxBytes()
	for set, want := range map[string]string{
		"maxmemory 32mb timeout 7":   "OK",
		"maxmemory 1mb":              "(error) ERR CONFIG SET failed (possibly related to argument 'maxmemory') - node a: a limit of 1048576 bytes is too small",
		"maxmemory-policy nonsense":  "(error) ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - ",
		"maxmemory 1000000000000000": "(error) ERR CONFIG SET failed (possibly related to argument 'maxmemory') - node a: cannot raise",
	} {
		line := append(words(t, "CONFIG SET"), words(t, set)...)
		request := member.AppendEach(nil, &allPartitions, config.CheckQuestion(line)...)
		c.sendRaw(request)
		reply := c.read()
		if covered, inner, ok := member.ParseAnswer(reply); ok {
			if reply = inner; *covered != allPartitions {
				t.Errorf("%s: not all partitions are covered", set)
			}
		}
		if got := inText(reply); !strings.HasPrefix(got, want) {
			t.Errorf("%s is answered %s, want %s", set, got, want)
		}
	}
	if n.engine.MaxBytes() != limit || n.settings.IdleTimeout() != 0 {
		t.Error("the question has set something")
	}
	if s, err := n.Stats(); err != nil || s.OfClients != 0 {
		t.Errorf("%d commands are counted, error %v", s.OfClients, err)
	}
}

// TestLowerLimitAnswersSoon: CONFIG SET maxmemory is answered while the node still evicts, CONFIG
// GET shows what was asked for, and a later limit counts at once.
func TestLowerLimitAnswersSoon(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 64 << 20 })
	c := dial(t, n.Addr())
	for i := range 20_000 {
		if err := put(n, fmt.Sprint("k", i), strings.Repeat("v", 2000), engine.TypeString); err != nil {
			t.Fatal(err)
		}
	}
	held := n.engine.Lock(7, 0) // eviction waits for this shard, among others
	locked := true
	defer func() {
		if locked {
			held.Unlock()
		}
	}()
	c.want("CONFIG SET maxmemory 8mb", "OK")
	if used := n.engine.Used(); used < 16<<20 {
		t.Errorf("all but %d bytes are evicted, though a shard is locked", used)
	}
	c.want("CONFIG GET maxmemory", "1) \"maxmemory\"\n2) \"8388608\"")
	c.want("CONFIG SET maxmemory 32mb", "OK")
	held.Unlock()
	locked = false
	eventually(t, "the later limit holds", func() bool { return n.MaxMemory() == 32<<20 && n.engine.Used() <= 32<<20 })
	if st := n.engine.Stats(); st.Keys < 5_000 {
		t.Errorf("%d keys are left: the limit of 8 MB was reached", st.Keys)
	}
	c.want("CONFIG SET maxmemory 8mb", "OK")
	eventually(t, "the lower limit holds", func() bool { return n.MaxMemory() == 8<<20 && n.engine.Used() <= 8<<20 })
}
