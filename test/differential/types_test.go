package differential

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

var typesCommands = flag.Int("differential.commands", 400,
	"how many commands on each type, and on all types together, are compared")

// kinds are the families of commands that TestTypes compares. In the last one they meet: all types
// are beside each other, at keys that change their type.
var kinds = []struct {
	name    string
	command func(*composer) []string
}{
	{"hashes", (*composer).hash},
	{"lists", (*composer).list},
	{"sets", (*composer).set},
	{"sortedsets", (*composer).sortedSet},
	{"geo", (*composer).geo},
	{"sort", (*composer).sorts},
	{"streams", (*composer).stream},
	{"all", (*composer).any},
}

// TestTypes says the same random commands on collections to a redis-server, a node, and a proxy
// with three nodes, and compares the replies. What may differ is in the list of listed_test.go.
// Between the commands, values are moved from one server to the next by DUMP and RESTORE, and
// scanned piece by piece.
//
//	go test -run TestTypes/all ./test/differential -differential.commands 1000000 -differential.seed 7
func TestTypes(t *testing.T) {
	t.Parallel()
	servers, version, seed := startServers(t), redisVersion(t), max(*differentialSeed, 1)
	for i, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			c := &comparison{t: t, command: kind.command, listed: map[string]int{}, composer: composer{
				Rand: rand.New(rand.NewPCG(seed, uint64(i))), version: version, mixed: kind.name == "all",
				start: time.Now()}}
			for j, s := range servers {
				w := harness.DialWire(t, s.addr)
				w.Do(fmt.Sprintf("HELLO %d", 2+i%2)) // types take turns with the versions of the protocol
				c.peers = append(c.peers, &peer{server: servers[j], wire: w})
			}
			for c.said < *typesCommands && c.differences < shownDiffs {
				c.round()
			}
			t.Logf("seed %d, redis-server %d: %d commands, listed differences: %v", seed, version, c.said, c.listed)
		})
	}
}

type peer struct {
	server
	wire   *harness.Wire
	queued [][]string // by MULTI
}

// comparison says the commands of one family to all servers.
type comparison struct {
	composer
	t           *testing.T
	peers       []*peer // the real server first
	command     func(*composer) []string
	said        int
	rounds      int
	differences int
	lost        bool           // the servers hold different values since a difference
	recent      [][]string     // the last commands, for the report
	listed      map[string]int // how often a listed difference was met
}

const (
	roundCommands = 100 // in a pipeline
	tagRounds     = 40  // with the same keys
	recentShown   = 25
)

// round compares a pipeline of commands, and then perhaps a value as a whole.
func (c *comparison) round() {
	if c.rounds%tagRounds == 0 || c.lost {
		c.anew()
	}
	c.rounds++
	var commands [][]string
	for len(commands) < roundCommands || len(c.due) > 0 {
		commands = append(commands, c.next(c.command))
	}
	if c.compare(commands); c.lost {
		return
	}
	switch c.IntN(4) {
	case 0:
		c.transplant(c.keyFor(), c.keyFor())
	case 1:
		c.scan(c.keyFor())
	}
}

// keyFor returns a key that commands of the family use.
func (c *comparison) keyFor() string {
	for {
		if args := c.command(&c.composer); len(args) > 1 && strings.HasPrefix(args[1], c.tag) {
			c.due = nil
			if n := len(args[1]); args[1][n-1] >= '1' && args[1][n-1] <= '9' { // not one whose content is special
				return args[1]
			}
		}
	}
}

// anew empties the servers, and chooses another slot.
func (c *comparison) anew() {
	c.tag, c.begun, c.due, c.lost = fmt.Sprintf("{%d}", c.rounds), false, nil, false
	for _, p := range c.peers {
		p.wire.Do("RESET")
		p.wire.Do(fmt.Sprintf("HELLO %d", 2+c.rounds/tagRounds%2))
		p.wire.Do("FLUSHALL")
		p.queued = nil
	}
}

// compare sends commands in one pipeline, and compares the replies with the real server's.
func (c *comparison) compare(commands [][]string) {
	var pipeline []byte
	for _, args := range commands {
		pipeline = resp.AppendRequest(pipeline, byteSlices(args)...)
	}
	for _, p := range c.peers {
		_ = p.wire.Conn.SetWriteDeadline(time.Now().Add(patient))
		go func() { _, _ = p.wire.Conn.Write(pipeline) }() // an error shows in the replies
	}
	for _, args := range commands {
		c.said++
		c.recent = append(c.recent[max(0, len(c.recent)-4*roundCommands):], args)
		var want []byte
		var queued [][]string
		for i, p := range c.peers {
			got := p.wire.Next()
			if got == nil {
				c.t.Fatalf("%s closes the connection at %.200q", p.name, args)
			}
			was := p.note(args, got)
			if i == 0 {
				want, queued = bytes.Clone(got), was
				continue
			}
			c.judge(p, args, got, want, queued)
		}
	}
}

// note follows transactions, and returns the commands that an EXEC executes.
func (p *peer) note(args []string, got []byte) (executed [][]string) {
	switch name := strings.ToUpper(args[0]); {
	case string(got) == "+QUEUED\r\n":
		p.queued = append(p.queued, args)
	case name == "EXEC", name == "DISCARD", name == "MULTI":
		executed, p.queued = p.queued, nil
	}
	return executed
}

// judge reports replies that differ and may not, and then begins anew.
func (c *comparison) judge(p *peer, args []string, gotBytes, wantBytes []byte, queued [][]string) {
	if bytes.Equal(gotBytes, wantBytes) || c.lost {
		return
	}
	got, _ := decode(gotBytes)
	want, _ := decode(wantBytes)
	if strings.EqualFold(args[0], "EXEC") && len(got.items) == len(queued) && len(want.items) == len(queued) {
		for i, args := range queued {
			c.judgeOne(p, args, got.items[i], want.items[i])
		}
		return
	}
	if queued != nil {
		args = append(args, fmt.Sprintf("%q", queued))
	}
	c.judgeOne(p, args, got, want)
}

func (c *comparison) judgeOne(p *peer, args []string, got, want reply) {
	if sameReply(args, got, want, c.mixed) {
		return
	}
	if l := findListed(args, got, want, c.version); l != nil {
		c.listed[l.why]++
		c.lost = c.lost || l.parts
		return
	}
	c.differences, c.lost = c.differences+1, true
	if strings.EqualFold(args[0], "XINFO") {
		got, want = got.timeless().idleless(), want.timeless().idleless()
	}
	a, b := got.String(), want.String()
	at := diverge(a, b)
	c.t.Errorf("%s, command %d: %.4000q answers, from byte %d of %d on,\n%.300s\nwant, of %d,\n%.300s\nafter %s",
		p.name, c.said, args, at, len(a), a[at:], len(b), b[at:], c.before(args))
	c.lost = true
}

// before returns the last commands on the keys of one.
func (c *comparison) before(args []string) string {
	var shown []string
	for _, r := range slices.Backward(c.recent[:len(c.recent)-1]) {
		shares := slices.ContainsFunc(r[1:], func(word string) bool {
			return strings.HasPrefix(word, c.tag) && slices.Contains(args, word)
		})
		if shares && len(shown) < recentShown {
			shown = append(shown, fmt.Sprintf("%.200q", r))
		}
	}
	slices.Reverse(shown)
	return strings.Join(shown, "\n")
}

// transplant hands each server's DUMP of a key to the next server: RESTORE reads what another
// implementation wrote.
func (c *comparison) transplant(from, to string) {
	var dumps [][]byte
	for _, p := range c.peers {
		p.wire.Send(resp.AppendRequest(nil, []byte("DUMP"), []byte(from)))
		dump, _ := resp.DecodeBulk(p.wire.Next())
		dumps = append(dumps, bytes.Clone(dump))
	}
	for i, dump := range dumps {
		if (dump == nil) != (dumps[0] == nil) {
			c.t.Errorf("%s dumps %s in %d bytes, redis-server in %d", c.peers[i].name, from, len(dump), len(dumps[0]))
			c.differences, c.lost = c.differences+1, true
		}
	}
	if dumps[0] == nil {
		return
	}
	var want []byte
	for i, p := range c.peers {
		p.wire.Send(resp.AppendRequest(nil, []byte("RESTORE"), []byte(to), []byte("0"), dumps[(i+1)%len(dumps)],
			[]byte("REPLACE")))
		got := p.wire.Next()
		if i == 0 {
			want = bytes.Clone(got)
		}
		if !bytes.Equal(got, want) {
			c.t.Errorf("%s restores a dump of %s with %.100q, redis-server with %.100q", p.name, from, got, want)
			c.differences, c.lost = c.differences+1, true
		}
	}
	c.said += 2
	c.recent = append(c.recent, []string{"RESTORE", to, "0", "(dump of " + from + " from the next server)"})
}

// scan reads a collection in pieces, and compares what all pieces have together.
func (c *comparison) scan(key string) {
	var want string
	for i, p := range c.peers {
		p.wire.Send(resp.AppendRequest(nil, []byte("TYPE"), []byte(key)))
		name := map[string]string{"+hash\r\n": "HSCAN", "+set\r\n": "SSCAN",
			"+zset\r\n": "ZSCAN"}[string(p.wire.Next())]
		if name == "" {
			return
		}
		size := 2
		if name == "SSCAN" {
			size = 1
		}
		seen := map[string]bool{}
		for cursor := "0"; ; {
			p.wire.Send(resp.AppendRequest(nil, byteSlices([]string{name, key, cursor, "COUNT", "30"})...))
			r, _ := decode(p.wire.Next())
			if name == "ZSCAN" {
				r.items[1].rewriteScores()
			}
			for _, one := range r.items[1].each(size) {
				seen[one] = true
			}
			c.said++
			if cursor = r.items[0].text; cursor == "0" {
				break
			}
		}
		all := fmt.Sprint(len(seen))
		for _, one := range slices.Sorted(maps.Keys(seen)) {
			all += " " + one
		}
		if i == 0 {
			want = all
		} else if all != want && !strings.HasSuffix(key, "distances") {
			at := diverge(all, want)
			c.t.Errorf("%s scans %s and finds, from byte %d on,\n%.300s\nwant\n%.300s", p.name, key, at, all[at:],
				want[at:])
			c.differences, c.lost = c.differences+1, true
		}
	}
}
