package differential

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

var hashCommands = flag.Int("differential.hashes", 6_000, "how many commands on hashes are compared")

// TestHashes sends random commands on a few hashes, with hostile arguments, to a node, a proxy with
// three nodes, and a real redis-server. Replies that list a hash may do so in any order, and random
// choices are checked by their number. Expiry of fields is left out, since a Redis older than 7.4
// has none.
func TestHashes(t *testing.T) {
	t.Parallel()
	targets := []string{redistest.Start(t), harness.StartCluster(t, 1, 0).Node(0).Addr, harness.StartCluster(t, 3, 1).Proxy(0).Addr}
	seed := *differentialSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	for _, addr := range targets[1:] {
		harness.AwaitLevel(t, addr)
	}
	for _, version := range []string{"2", "3"} {
		var wires []*harness.Wire
		for _, addr := range targets {
			w := harness.DialWire(t, addr)
			w.Do("HELLO " + version)
			w.Do("FLUSHALL")
			wires = append(wires, w)
		}
		g := hashGenerator{rand.New(rand.NewPCG(seed, uint64(version[0])))}
		for left := *hashCommands / 2; left > 0; left -= hashBatch {
			if !compareHashes(t, &g, wires) {
				return
			}
		}
	}
}

// hashBatch is how many commands are sent at a time.
const hashBatch = 100

// compareHashes sends the same commands to all servers, and compares the replies with the first
// one's.
func compareHashes(t *testing.T, g *hashGenerator, wires []*harness.Wire) bool {
	var commands [][]string
	var pipeline []byte
	for range hashBatch {
		args := g.command()
		commands = append(commands, args)
		var words [][]byte
		for _, a := range args {
			words = append(words, []byte(a))
		}
		pipeline = resp.AppendRequest(pipeline, words...)
	}
	for _, w := range wires {
		_ = w.Conn.SetDeadline(time.Now().Add(harness.ReplyTimeout))
		go func() { _, _ = w.Conn.Write(pipeline) }() // an error shows in the replies
	}
	for _, args := range commands {
		var want string
		for i, w := range wires {
			reply, err := w.Read()
			if err != nil {
				t.Errorf("%.300q: %v", args, err)
				return false
			}
			got := comparable(args, reply)
			if i == 0 {
				want = got
			} else if got != want {
				at := 0
				for at < min(len(got), len(want)) && got[at] == want[at] {
					at++
				}
				at = max(0, at-40)
				t.Errorf("%.300q answers, from byte %d on,\n%.300q\nwant\n%.300q", args, at, got[at:], want[at:])
				return false
			}
		}
	}
	return true
}

// comparable returns what of a reply must be equal.
func comparable(args []string, reply []byte) string {
	text := conversation.Text(reply)
	switch strings.ToLower(args[0]) {
	case "hgetall", "hkeys", "hvals", "hscan":
		lines := strings.Split(text, "\n")
		for i := range lines {
			lines[i] = strings.TrimLeft(lines[i], " 0123456789)#=>")
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	case "hrandfield":
		if !resp.IsError(reply) {
			return strconv.Itoa(strings.Count(text, "\n"))
		}
	}
	return text
}

// hashGenerator generates commands on hashes.
type hashGenerator struct{ *rand.Rand }

func (g *hashGenerator) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g *hashGenerator) key() string { return "{k}" + g.pick("a", "b", "c", "s", "t") }

func (g *hashGenerator) field() string {
	if g.IntN(30) == 0 {
		return g.pick("", strings.Repeat("f", g.IntN(1000)), "\x00\r\n")
	}
	return strconv.Itoa(g.IntN(40 + 400*g.IntN(2)))
}

func (g *hashGenerator) value() string {
	switch g.IntN(12) {
	case 0:
		return strings.Repeat("v", g.IntN(500))
	case 1:
		return strings.Repeat("long", g.IntN(600))
	case 2, 3:
		return g.number()
	}
	return g.pick("", "x", "1", "007", "-0", "12345678901234567890", "9223372036854775807", "-9223372036854775808", "1.5", "a b")
}

func (g *hashGenerator) number() string {
	return g.pick("0", "1", "-1", "10", "3.25", "1e3", "-5", "9223372036854775807", "-9223372036854775808", "0.1", "x", "", " 1", "1 ",
		"inf", "-inf", "nan", "1e400", "0x10", "+1", "99999999999999999999", "1.7e308")
}

func (g *hashGenerator) count() string {
	return g.pick("0", "1", "2", "5", "-1", "-3", "-50", "1000", "x", "", "1.5", "-9223372036854775808", "9223372036854775807", "4611686018427387904")
}

// some returns a few generated words.
func (g *hashGenerator) some(args []string, next func() string) []string {
	for n := g.IntN(3) * g.IntN(1+g.IntN(60)); n >= 0; n-- {
		args = append(args, next())
	}
	return args
}

func (g *hashGenerator) command() (args []string) {
	k := g.key()
	switch g.IntN(22) {
	case 0, 1, 2, 3:
		pair := false
		args = g.some([]string{g.pick("HSET", "HSET", "hmset"), k}, func() string {
			if pair = !pair; pair {
				return g.field()
			}
			return g.value()
		})
		if len(args)%2 != 0 && g.IntN(20) > 0 {
			args = append(args, g.value())
		}
		return args
	case 4:
		return []string{"HSETNX", k, g.field(), g.value()}
	case 5, 6:
		return []string{g.pick("HGET", "HEXISTS", "HSTRLEN"), k, g.field()}
	case 7, 8:
		return g.some([]string{"HMGET", k}, g.field)
	case 9, 10, 11:
		return g.some([]string{"HDEL", k}, g.field)
	case 12:
		return []string{g.pick("HGETALL", "HKEYS", "HVALS", "HLEN"), k}
	case 13:
		return []string{g.pick("HLEN", "TYPE", "EXISTS", "PERSIST"), k}
	case 14, 15:
		return []string{"HINCRBY", k, g.field(), g.number()}
	case 16, 17:
		return []string{"HINCRBYFLOAT", k, g.field(), g.number()}
	case 18:
		args = []string{"HRANDFIELD", k}
		if g.IntN(4) > 0 {
			args = append(args, g.count())
		}
		if g.IntN(3) == 0 {
			args = append(args, g.pick("WITHVALUES", "withvalues", "x", "WITHSCORES"))
		}
		return args
	case 19:
		args = []string{"HSCAN", k, g.pick("0", "0", "0", "x", "")}
		if args[2] != "x" { // all of it in one call
			args = append(args, "COUNT", "100000")
		}
		for range g.IntN(3) {
			args = append(args, g.pick("MATCH", "COUNT", "TYPE", "x"), g.pick("*", "1*", "[0-3]?", "4000", "0", "-1", "x"))
		}
		return args
	case 20:
		if g.IntN(10) == 0 {
			return []string{g.pick("DEL", "UNLINK"), k}
		}
		return []string{g.pick("GET", "APPEND", "LCS")[:3], k}
	}
	if g.IntN(6) == 0 {
		return []string{"SET", "{k}s", "string"}
	}
	return []string{"DEL", fmt.Sprint("{k}", g.pick("s", "t"))}
}
