package node

import (
	"bytes"
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

// setModel changes a few sets of one partition at random, beside maps.
type setModel struct {
	player
	want map[string]map[string]bool
}

func newSetModel(t *testing.T, c *client, tag string, seed uint64) *setModel {
	m := &setModel{newPlayer(t, c, tag, seed), map[string]map[string]bool{}}
	for i := range 4 {
		m.want[m.keyOf(i)] = map[string]bool{}
	}
	return m
}

func (m *setModel) keyOf(i int) string { return fmt.Sprintf("{%s}s%d", m.tag, i) }

func (m *setModel) key() string { return m.keyOf(m.r.IntN(4)) }

func (m *setModel) member() string {
	if m.r.IntN(20) == 0 && !m.short {
		return strings.Repeat("m", m.r.IntN(400))
	}
	return strconv.Itoa(m.r.IntN(400))
}

// do sends a command and returns its reply in one line.
func (m *setModel) do(args ...string) string {
	m.t.Helper()
	all := make([][]byte, len(args))
	for i, a := range args {
		all[i] = []byte(a)
	}
	m.c.sendArgs(all...)
	return m.c.next()
}

// members reads a reply of strings.
func (m *setModel) members(args ...string) (all []string) {
	m.t.Helper()
	words := make([][]byte, len(args))
	for i, a := range args {
		words[i] = []byte(a)
	}
	m.c.sendArgs(words...)
	return stringsOf(m.t, m.c.read())
}

// stringsOf are the strings of an array or set.
func stringsOf(t *testing.T, reply []byte) (all []string) {
	t.Helper()
	n, at, ok := resp.DecodeArray(reply)
	if !ok {
		t.Fatalf("the reply is %.100q", reply)
	}
	for range n {
		var s []byte
		s, at = resp.DecodeArgument(reply, at)
		all = append(all, string(s))
	}
	return all
}

func (m *setModel) wantReply(got, want string, args ...string) {
	m.t.Helper()
	if got != want {
		m.t.Fatalf("%.100q answers %s, want %s", args, got, want)
	}
}

// step executes a random command and checks its reply. It may find no memory: then nothing changes.
func (m *setModel) step() (full bool) {
	m.t.Helper()
	key := m.key()
	set := m.want[key]
	switch m.r.IntN(12) {
	case 0, 1, 2, 3:
		next, args := maps.Clone(set), []string{"SADD", key}
		for range 1 + m.r.IntN(1+m.r.IntN(300)) {
			args = append(args, m.member())
			next[args[len(args)-1]] = true
		}
		got := m.do(args...)
		if got == "(error) "+exec.ErrOOM {
			m.resume(key)
			return true
		}
		m.wantReply(got, fmt.Sprintf("(integer) %d", len(next)-len(set)), args...)
		m.want[key] = next
	case 4, 5:
		args, removed := []string{"SREM", key}, 0
		for range 1 + m.r.IntN(1+m.r.IntN(300)) {
			x := m.member()
			if args = append(args, x); set[x] {
				delete(set, x)
				removed++
			}
		}
		m.wantReply(m.do(args...), fmt.Sprintf("(integer) %d", removed), args...)
	case 6:
		m.pop(key, m.r.IntN(1+m.r.IntN(400)))
	case 7:
		to, x := m.key(), m.member()
		got := m.do("SMOVE", key, to, x)
		if got == "(error) "+exec.ErrOOM {
			return true
		}
		m.wantReply(got, fmt.Sprintf("(integer) %d", exec.BoolInt(set[x])), "SMOVE")
		if set[x] {
			delete(set, x)
			m.want[to][x] = true
		}
	case 8:
		m.random(key, m.r.IntN(600)-100)
	case 9:
		args, want := []string{"SMISMEMBER", key}, ""
		for i := range 1 + m.r.IntN(40) {
			x := m.member()
			args = append(args, x)
			want += fmt.Sprintf("%d) (integer) %d\n", i+1, exec.BoolInt(set[x]))
		}
		m.wantReply(m.do(args...), strings.TrimSpace(want), "SMISMEMBER")
	case 10:
		m.scan(key)
	default:
		m.check(key)
	}
	return false
}

// resume takes over what a SADD has added before it found no memory.
func (m *setModel) resume(key string) {
	next := map[string]bool{}
	for _, x := range m.members("SMEMBERS", key) {
		next[x] = true
	}
	m.want[key] = next
}

func (m *setModel) pop(key string, n int) {
	m.t.Helper()
	set := m.want[key]
	got := m.members("SPOP", key, strconv.Itoa(n))
	if len(got) != min(n, len(set)) {
		m.t.Fatalf("SPOP of %d of %d answers %d", n, len(set), len(got))
	}
	for _, x := range got {
		if !set[x] {
			m.t.Fatalf("SPOP answers %.40q, which the set lacks", x)
		}
		delete(set, x)
	}
}

func (m *setModel) random(key string, n int) {
	m.t.Helper()
	set, seen := m.want[key], map[string]bool{}
	got := m.members("SRANDMEMBER", key, strconv.Itoa(n))
	for _, x := range got {
		if !set[x] || n > 0 && seen[x] {
			m.t.Fatalf("SRANDMEMBER answers %.40q twice, or the set lacks it", x)
		}
		seen[x] = true
	}
	want := min(n, len(set))
	if n < 0 {
		want = -n * min(len(set), 1)
	}
	if len(got) != want {
		m.t.Fatalf("SRANDMEMBER of %d of %d answers %d", n, len(set), len(got))
	}
}

func (m *setModel) scan(key string) {
	m.t.Helper()
	seen := map[string]bool{}
	for cursor := "0"; ; {
		m.c.sendArgs([]byte("SSCAN"), []byte(key), []byte(cursor), []byte("COUNT"), []byte("50"))
		reply := m.c.read()
		_, at, _ := resp.DecodeArray(reply)
		next, at := resp.DecodeArgument(reply, at)
		for _, x := range stringsOf(m.t, reply[at:]) {
			seen[x] = true
		}
		if cursor = string(next); cursor == "0" {
			break
		}
	}
	if !maps.Equal(seen, m.want[key]) {
		m.t.Fatalf("SSCAN finds %d members, want %d", len(seen), len(m.want[key]))
	}
}

// check compares all of a set.
func (m *setModel) check(key string) {
	m.t.Helper()
	got, want := m.members("SMEMBERS", key), slices.Sorted(maps.Keys(m.want[key]))
	if slices.Sort(got); !slices.Equal(got, want) {
		m.t.Fatalf("SMEMBERS has %d members, want %d", len(got), len(want))
	}
	m.c.want("SCARD "+key, fmt.Sprintf("(integer) %d", len(want)))
	m.c.want("EXISTS "+key, fmt.Sprintf("(integer) %d", exec.BoolInt(len(want) > 0)))
}

func (m *setModel) checkAll() {
	m.t.Helper()
	for key := range m.want {
		m.check(key)
	}
}

// TestSets runs random commands beside maps, with memory and nearly without.
func TestSets(t *testing.T) {
	forOneClient(t)
	runBeside(t, newSetModel, 1, besides{steps: 1500, room: 300, mostFull: 1000})
}

func TestSetsReachTheFollower(t *testing.T) { reachTheFollower(t, newSetModel, 600, 0, 1) }

// TestLongSetIsRead: a long set is answered as it was in the command's turn, and SPOP answers all
// of it.
func TestLongSetIsRead(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	var want []string
	for i := range 20 {
		args := [][]byte{[]byte("SADD"), []byte("s")}
		for j := range 1000 {
			want = append(want, strconv.Itoa(i*1000+j))
			args = append(args, []byte(want[len(want)-1]))
		}
		c.sendArgs(args...)
		if got := c.next(); got != "(integer) 1000" {
			t.Fatalf("SADD answers %s", got)
		}
	}
	slices.Sort(want)
	lines := []string{"SMEMBERS s", "SREM s 1", "SADD s 1", "SRANDMEMBER s 30000", "SPOP s 20000", "SCARD s", "EXISTS s"}
	for _, line := range lines {
		c.send(line)
	}
	for _, line := range lines {
		reply := c.read()
		if slices.Contains([]string{"SMEMBERS s", "SRANDMEMBER s 30000", "SPOP s 20000"}, line) {
			if got := slices.Sorted(slices.Values(stringsOf(t, reply))); !slices.Equal(got, want) {
				t.Errorf("%s answers %d members, want %d", line, len(got), len(want))
			}
			continue
		}
		want := map[string]string{"SREM s 1": "(integer) 1", "SADD s 1": "(integer) 1"}[line]
		if want == "" {
			want = "(integer) 0"
		}
		if got := conversation.Text(reply); got != want {
			t.Errorf("%s answers %s, want %s", line, got, want)
		}
	}
}

func TestSetCommandsFail(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	c.want("SET {k}x v", "OK")
	for _, line := range []string{
		"SADD {k}x m", "SREM {k}x m", "SCARD {k}x", "SISMEMBER {k}x m", "SMISMEMBER {k}x m", "SMEMBERS {k}x", "SPOP {k}x", "SPOP {k}x 1",
		"SRANDMEMBER {k}x", "SRANDMEMBER {k}x 2", "SSCAN {k}x 0",
	} {
		c.want(line, "(error) "+exec.ErrWrongType)
	}
	c.want("SADD {k}s a b c", "(integer) 3")
	c.want("OBJECT ENCODING {k}s", `"listpack"`)
	c.want("SADD {k}i 1 2 3", "(integer) 3")
	c.want("OBJECT ENCODING {k}i", `"intset"`)
	c.want("TYPE {k}s", "set")
	c.want("SMOVE {k}s {k}x a", "(error) "+exec.ErrWrongType)
	c.want("SMOVE {k}x {k}s a", "(error) "+exec.ErrWrongType)
	c.want("SMOVE {k}nothing {k}x a", "(integer) 0")
	c.want("SMOVE {k}s {k}s a", "(integer) 1")
	c.want("SMOVE {k}s {k}s z", "(integer) 0")
	c.want("SPOP {k}s -1", "(error) ERR value is out of range, must be positive")
	c.want("SPOP {k}s x", "(error) ERR value is out of range, must be positive")
	c.want("SPOP {k}s 1 2", "(error) ERR syntax error")
	c.want("SPOP {k}s 0", "(empty array)")
	c.want("SPOP {k}nothing", "(nil)")
	c.want("SPOP {k}nothing 3", "(empty array)")
	c.want("SRANDMEMBER {k}s x", "(error) ERR value is not an integer or out of range")
	c.want("SRANDMEMBER {k}s -9223372036854775808", "(error) ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
	c.want("SRANDMEMBER {k}s 1 2", "(error) ERR syntax error")
	c.want("SRANDMEMBER {k}nothing", "(nil)")
	c.want("SRANDMEMBER {k}nothing 5", "(empty array)")
	c.want("SSCAN {k}s x", "(error) ERR invalid cursor")
	c.want("SSCAN {k}s 0 COUNT 0", "(error) ERR syntax error")
	c.want("SSCAN {k}s 0 COUNT", "(error) ERR syntax error")
	c.want("SSCAN {k}s 0 NOVALUES", "(error) ERR syntax error")
	c.want("SSCAN {k}nothing 0 COUNT 0", "1) \"0\"\n2) (empty array)")
	c.want("SSCAN {k}s 0 MATCH b", "1) \"0\"\n2) 1) \"b\"")
	c.want("SREM {k}s a b c d", "(integer) 3")
	c.want("EXISTS {k}s", "(integer) 0")
}

// TestSPopIsUniform: each member of a set is popped first as often as any other one, packed, in a
// table, and in one that SPOP has nearly emptied.
func TestSPopIsUniform(t *testing.T) {
	forOneClient(t)
	const members, rounds = 10, 4000
	c := dial(t, startLeveled(t).Addr())
	for _, more := range []int{0, 300, 20_000} {
		counts := map[string]int{}
		if more > 0 {
			fillInPieces(c, "SADD", "s", more, func(i int) []string { return []string{"more" + strconv.Itoa(i)} })
			c.send(fmt.Sprint("SPOP s ", more-members))
			c.read()
		} else {
			c.send("SADD s 0 1 2 3 4 5 6 7 8 9")
			c.read()
		}
		c.send(fmt.Sprint("SRANDMEMBER s ", -rounds))
		for _, x := range stringsOf(t, c.read()) {
			counts[x]++
		}
		c.want("DEL s", "(integer) 1")
		if len(counts) != members {
			t.Fatalf("%d members", len(counts))
		}
		for x, n := range counts { // 400 each, standard deviation 19
			if n < 280 || n > 520 {
				t.Errorf("of %d, %s was chosen %d times of %d", more, x, n, rounds)
			}
		}
	}
}

// A count that is far beyond the set has all its members, also where the bytes of so many would overflow.
func TestRandomMembersOfAnyCount(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	args := [][]byte{[]byte("SADD"), []byte("set")}
	for i := range 1000 {
		args = append(args, fmt.Append(nil, "member:", i))
	}
	c.sendArgs(args...)
	if got := c.next(); got != "(integer) 1000" {
		t.Fatalf("SADD answers %s", got)
	}
	for shift := 10; shift < 63; shift++ {
		c.send(fmt.Sprintf("SRANDMEMBER set %d", int64(1)<<shift))
		if got := c.read(); !bytes.HasPrefix(got, []byte("*1000\r\n")) {
			t.Fatalf("with a count of 1<<%d SRANDMEMBER answers %.20q", shift, got)
		}
	}
}
