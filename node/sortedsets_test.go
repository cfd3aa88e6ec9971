package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// sortedModel changes a few sorted sets of one partition at random, beside maps.
type sortedModel struct {
	player
	want map[string]map[string]float64
}

func newSortedModel(t *testing.T, c *client, tag string, seed uint64) *sortedModel {
	return &sortedModel{newPlayer(t, c, tag, seed), map[string]map[string]float64{}}
}

func (m *sortedModel) key() string { return fmt.Sprintf("{%s}z%d", m.tag, m.r.IntN(4)) }

func (m *sortedModel) member() string {
	if m.r.IntN(30) == 0 && !m.short {
		return strings.Repeat("m", m.r.IntN(500))
	}
	return strconv.Itoa(m.r.IntN(400))
}

func (m *sortedModel) score() float64 {
	if m.r.IntN(2) == 0 {
		return float64(m.r.IntN(20) - 5)
	}
	return m.r.NormFloat64()
}

// ranked is a sorted set of the model in its order.
func (m *sortedModel) ranked(key string) []string {
	set := m.want[key]
	return slices.SortedFunc(maps.Keys(set), func(a, b string) int {
		return cmp.Or(cmp.Compare(set[a], set[b]), strings.Compare(a, b))
	})
}

// step executes a random command and checks its reply. It may find no memory: then nothing changes.
func (m *sortedModel) step() (full bool) {
	m.t.Helper()
	key := m.key()
	switch m.r.IntN(10) {
	case 0, 1, 2, 3:
		return m.add(key)
	case 4, 5:
		m.remove(key)
	case 6:
		order := m.ranked(key)
		from := m.r.IntN(len(order) + 1)
		n := m.r.IntN(len(order) - from + 1)
		if n > 0 {
			for _, member := range order[from : from+n] {
				delete(m.want[key], member)
			}
			m.ask(fmt.Sprintf("(integer) %d", n), "ZREMRANGEBYRANK", key, strconv.Itoa(from), strconv.Itoa(from+n-1))
		}
	case 7:
		order, want := m.ranked(key), "(nil)"
		member := m.member()
		if i := slices.Index(order, member); i >= 0 {
			want = fmt.Sprintf("(integer) %d", i)
		}
		m.ask(want, "ZRANK", key, member)
	case 8:
		order := m.ranked(key)
		if len(order) > 0 {
			last := order[len(order)-1]
			m.c.sendArgs([]byte("ZPOPMAX"), []byte(key))
			if got := m.pairs(m.c.read()); len(got) != 1 || got[0] != m.pair(key, last) {
				m.t.Fatalf("ZPOPMAX answers %.100q, want %.100q", got, last)
			}
			delete(m.want[key], last)
		}
	default:
		m.check(key)
	}
	return false
}

func (m *sortedModel) ask(want string, words ...string) {
	m.t.Helper()
	var args [][]byte
	for _, w := range words {
		args = append(args, []byte(w))
	}
	m.c.sendArgs(args...)
	if got := m.c.next(); got != want {
		m.t.Fatalf("%.100q answers %s, want %s", words, got, want)
	}
}

func (m *sortedModel) add(key string) (full bool) {
	m.t.Helper()
	next, added := map[string]float64{}, 0
	maps.Copy(next, m.want[key])
	args := [][]byte{[]byte("ZADD"), []byte(key)}
	for range 1 + m.r.IntN(1+m.r.IntN(60)) {
		member, score := m.member(), m.score()
		if _, ok := next[member]; !ok {
			added++
		}
		next[member] = score
		args = append(args, strconv.AppendFloat(nil, score, 'g', -1, 64), []byte(member))
	}
	m.c.sendArgs(args...)
	got := m.c.next()
	if got == "(error) "+exec.ErrOOM {
		return true
	}
	if want := fmt.Sprintf("(integer) %d", added); got != want {
		m.t.Fatalf("ZADD of %d members answers %s, want %s", len(args)/2-1, got, want)
	}
	m.want[key] = next
	return false
}

func (m *sortedModel) remove(key string) {
	m.t.Helper()
	args, removed := []string{"ZREM", key}, 0
	for range 1 + m.r.IntN(1+m.r.IntN(60)) {
		member := m.member()
		if _, ok := m.want[key][member]; ok {
			removed++
			delete(m.want[key], member)
		}
		args = append(args, member)
	}
	m.ask(fmt.Sprintf("(integer) %d", removed), args...)
}

func (m *sortedModel) pair(key, member string) string {
	return member + " " + string(resp.AppendFloat(nil, m.want[key][member]))
}

// pairs reads a reply of members and scores.
func (m *sortedModel) pairs(reply []byte) (all []string) {
	m.t.Helper()
	n, at, ok := resp.DecodeArray(reply)
	if !ok {
		m.t.Fatalf("a range is %.100q", reply)
	}
	for range n / 2 {
		var member, score []byte
		member, at = resp.DecodeArgument(reply, at)
		score, at = resp.DecodeArgument(reply, at)
		all = append(all, string(member)+" "+string(score))
	}
	return all
}

// check compares all of a sorted set.
func (m *sortedModel) check(key string) {
	m.t.Helper()
	m.c.send("ZRANGE " + key + " 0 -1 WITHSCORES")
	got := m.pairs(m.c.read())
	want := m.ranked(key)
	if len(got) != len(want) {
		m.t.Fatalf("ZRANGE has %d members, want %d", len(got), len(want))
	}
	for i, member := range want {
		if got[i] != m.pair(key, member) {
			m.t.Fatalf("member %d is %.100q, want %.100q", i, got[i], m.pair(key, member))
		}
	}
	for _, member := range want[:min(3, len(want))] {
		score := string(resp.AppendFloat(nil, m.want[key][member]))
		m.ask(conversation.Text(resp.AppendBulkString(nil, score)), "ZSCORE", key, member)
	}
	m.c.want("ZCARD "+key, fmt.Sprintf("(integer) %d", len(want)))
	m.c.want("EXISTS "+key, fmt.Sprintf("(integer) %d", exec.BoolInt(len(want) > 0)))
}

func (m *sortedModel) checkAll() {
	m.t.Helper()
	for i := range 4 {
		m.check(fmt.Sprintf("{%s}z%d", m.tag, i))
	}
}

// TestSortedSets runs random commands beside maps, with memory and nearly without.
func TestSortedSets(t *testing.T) {
	forOneClient(t)
	runBeside(t, newSortedModel, 1, besides{steps: 2000, room: 500, mostFull: 1900})
}

func TestSortedSetsReachTheFollower(t *testing.T) { reachTheFollower(t, newSortedModel, 600, 0, 1) }

// A ZADD or GEOADD of more elements than one run has adds nothing if the last one is wrong.
func TestLongAddIsCheckedFirst(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	for command, wrong := range map[string]string{"ZADD k": " 1e400 last", "GEOADD k": " 1 x last"} {
		line := command
		for i := range 1000 {
			if command == "GEOADD k" {
				line += " 1"
			}
			line += fmt.Sprintf(" %d m%d", i%80, i)
		}
		c.want(line+wrong, "(error) ERR value is not a valid float")
		c.want("EXISTS k", "(integer) 0")
		c.want(line, "(integer) 1000")
		c.want(strings.Replace(line, " k ", " k CH ", 1), "(integer) 0")
		c.want("DEL k", "(integer) 1")
	}
}

// TestLongSortedSets: what takes many runs or slices is done as one.
func TestLongSortedSets(t *testing.T) {
	forOneClient(t)
	c := dial(t, startLeveled(t).Addr())
	const n = 12_000
	for from := 0; from < n; from += 1000 {
		args := [][]byte{[]byte("ZADD"), []byte("{k}a")}
		for i := from; i < from+1000; i++ {
			args = append(args, strconv.AppendInt(nil, int64(i), 10), fmt.Append(nil, "m", i))
		}
		c.sendArgs(args...)
		if got := c.next(); got != "(integer) 1000" {
			t.Fatalf("ZADD answers %s", got)
		}
	}
	c.want("ZUNIONSTORE {k}b 1 {k}a WEIGHTS 2", "(integer) 12000")
	c.want("ZINTERCARD 2 {k}a {k}b", "(integer) 12000")
	c.want("ZRANGESTORE {k}c {k}a 100 11099", "(integer) 11000")
	c.want("ZDIFFSTORE {k}d 2 {k}a {k}c", "(integer) 1000")
	c.want("ZSCORE {k}b m700", `"1400"`)
	c.want("ZRANK {k}c m100", "(integer) 0")
	c.send("ZRANGE {k}a 0 -1")
	c.send("ZREMRANGEBYSCORE {k}a 1 11998")
	c.wantArray(t, n)
	if got := c.next(); got != "(integer) 11998" {
		t.Errorf("ZREMRANGEBYSCORE answers %s", got)
	}
	c.want("ZRANGE {k}a 0 -1", `1) "m0"`+"\n"+`2) "m11999"`)
	c.want("OBJECT ENCODING {k}a", `"listpack"`)
	c.want("ZREMRANGEBYRANK {k}b -12000 -2", "(integer) 11999")
	c.want("ZRANGE {k}b 0 -1", `1) "m11999"`)
	c.send("ZPOPMIN {k}c 11000")
	c.wantArray(t, 22_000)
	c.want("EXISTS {k}c", "(integer) 0")
	c.want("MULTI", "OK")
	c.send("ZREMRANGEBYLEX {k}d - +")
	c.next()
	c.want("EXEC", "1) (integer) 1000")
}

// wantArray reads an array of so many elements.
func (c *client) wantArray(t *testing.T, elements int) {
	t.Helper()
	if n, _, ok := resp.DecodeArray(c.read()); !ok || n != elements {
		t.Fatalf("an array has %d elements, want %d", n, elements)
	}
}

func TestSortedSetCommandsFail(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	c.want("SET s x", "OK")
	for _, line := range []string{
		"ZADD s 1 a", "ZINCRBY s 1 a", "ZREM s a", "ZSCORE s a", "ZMSCORE s a", "ZCARD s", "ZRANK s a", "ZCOUNT s 0 1",
		"ZRANGE s 0 1", "ZPOPMIN s", "ZMPOP 1 s MIN", "ZRANDMEMBER s", "ZSCAN s 0", "ZUNION 1 s", "ZREMRANGEBYRANK s 0 1",
		"ZRANGESTORE {s}d s 0 1", "ZINTERCARD 1 s",
	} {
		c.want(line, "(error) "+exec.ErrWrongType)
	}
	for line, want := range map[string]string{
		"ZADD z 1":                        "wrong number of arguments for 'zadd' command",
		"ZADD z 1 a 2":                    "syntax error",
		"ZADD z NX XX 1 a":                "XX and NX options at the same time are not compatible",
		"ZADD z GT LT 1 a":                "GT, LT, and/or NX options at the same time are not compatible",
		"ZADD z INCR 1 a 2 b":             "INCR option supports a single increment-element pair",
		"ZADD z nan a":                    "value is not a valid float",
		"ZCOUNT z x 1":                    "min or max is not a float",
		"ZLEXCOUNT z a [b":                "min or max not valid string range item",
		"ZRANGE z 0 1 LIMIT 0 1":          "syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
		"ZRANGE z - + BYLEX WITHSCORES":   "syntax error, WITHSCORES not supported in combination with BYLEX",
		"ZPOPMIN z -1":                    "value is out of range, must be positive",
		"ZMPOP 0 z MIN":                   "numkeys should be greater than 0",
		"ZMPOP 1 z MIN COUNT 0":           "count should be greater than 0",
		"ZUNION 0 z":                      "at least 1 input key is needed for 'zunion' command",
		"ZUNION 1 z WEIGHTS x":            "weight value is not a float",
		"ZINTERCARD 1 z LIMIT -1":         "LIMIT can't be negative",
		"ZSCAN z x":                       "invalid cursor",
		"ZRANK z a SCORE":                 "syntax error",
		"ZRANDMEMBER z 1 WITHSCORES more": "syntax error",
	} {
		c.want(line, "(error) ERR "+want)
	}
	c.want("ZADD z inf a", "(integer) 1")
	c.want("ZINCRBY z -inf a", "(error) ERR resulting score is not a number (NaN)")
	c.want("ZRANK z a WITHSCORE", "1) (integer) 0\n2) \"inf\"")
	c.want("ZADD z GT CH INCR -5 a", "(nil)")
	c.want("TYPE z", "zset")
}

// TestSortedSetEncoding: OBJECT ENCODING answers what Redis's default limits make of a sorted set,
// whatever its form is here.
func TestSortedSetEncoding(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	for _, x := range []struct {
		n, length int
		want      string
	}{{1, 10, "listpack"}, {128, 60, "listpack"}, {129, 10, "skiplist"}, {1, 64, "listpack"}, {1, 65, "skiplist"}} {
		c.do("DEL z")
		for i := range x.n {
			c.do(fmt.Sprintf("ZADD z %d.5 %0*d", i, x.length, i))
		}
		if got := c.do("OBJECT ENCODING z"); got != bulk(x.want) {
			t.Errorf("%d members of %d bytes are %s, want %s", x.n, x.length, got, x.want)
		}
	}
}
