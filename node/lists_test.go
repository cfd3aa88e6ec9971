package node

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// listModel changes a few lists of one partition at random, beside slices.
type listModel struct {
	player
	want map[string][]string
}

func newListModel(t *testing.T, c *client, tag string, seed uint64) *listModel {
	return &listModel{newPlayer(t, c, tag, seed), map[string][]string{}}
}

func (m *listModel) key() string { return fmt.Sprintf("{%s}l%d", m.tag, m.r.IntN(4)) }

func (m *listModel) element() string {
	switch m.r.IntN(40) {
	case 0:
		if !m.short {
			return strings.Repeat("long", m.r.IntN(20_000))
		}
	case 1, 2:
		return strings.Repeat("v", m.r.IntN(300))
	case 3, 4, 5:
		return strings.Repeat("same", 3)
	}
	return strconv.Itoa(m.r.IntN(1000))
}

func bulk(s string) string { return conversation.Text(resp.AppendBulkString(nil, s)) }
func number(n int) string  { return fmt.Sprintf("(integer) %d", n) }
func array(all []string) string {
	out := resp.AppendArray(nil, len(all))
	for _, s := range all {
		out = resp.AppendBulkString(out, s)
	}
	return conversation.Text(out)
}

// do executes a command and reports whether it found no memory. Any other reply than want fails.
func (m *listModel) do(want string, args ...string) (full bool) {
	m.t.Helper()
	var raw [][]byte
	for _, arg := range args {
		raw = append(raw, []byte(arg))
	}
	m.c.sendArgs(raw...)
	got := m.c.next()
	takes := !slices.Contains([]string{"LPOP", "RPOP", "LREM", "LTRIM"}, args[0])
	if takes && got == "(error) "+exec.ErrOOM {
		return true
	}
	if got != want {
		m.t.Fatalf("%.80q answers %.100s, want %.100s", args, got, want)
	}
	return false
}

// step executes a random command and checks its reply. It may find no memory: then nothing changes.
func (m *listModel) step() (full bool) {
	m.t.Helper()
	key := m.key()
	list := slices.Clone(m.want[key])
	keep := func(full bool) bool {
		if !full {
			m.want[key] = list
		}
		return full
	}
	switch n := m.r.IntN(20); {
	case n < 6:
		return keep(m.push(key, &list))
	case n < 9:
		return keep(m.pop(key, &list))
	case len(list) == 0:
		return m.do("(integer) 0", "LLEN", key)
	case n < 11:
		i, s := m.r.IntN(len(list)), m.element()
		list[i] = s
		if m.r.IntN(2) == 0 {
			i -= len(list)
		}
		return keep(m.do("OK", "LSET", key, strconv.Itoa(i), s))
	case n < 13:
		pivot, s := list[m.r.IntN(len(list))], m.element()
		i, where := slices.Index(list, pivot), "BEFORE"
		if m.r.IntN(2) == 0 {
			i, where = i+1, "AFTER"
		}
		list = slices.Insert(list, i, s)
		return keep(m.do(number(len(list)), "LINSERT", key, where, pivot, s))
	case n < 15:
		return keep(m.rem(key, &list))
	case n < 16:
		from := m.r.IntN(1 + len(list)/8)
		to := len(list) - m.r.IntN(1+len(list)/8)
		stop := strconv.Itoa(to - 1)
		if list = list[min(from, to):to]; len(list) == 0 {
			stop = strconv.Itoa(from - 1)
			if from == 0 {
				stop, from = "0", 1
			}
		}
		return keep(m.do("OK", "LTRIM", key, strconv.Itoa(from), stop))
	case n < 18:
		return m.move(key)
	case n < 19:
		s := list[m.r.IntN(len(list))]
		return m.do(number(slices.Index(list, s)), "LPOS", key, s)
	}
	m.check(key)
	return false
}

func (m *listModel) push(key string, list *[]string) (full bool) {
	args := []string{"RPUSH", key}
	for range 1 + m.r.IntN(1+m.r.IntN(60)) {
		args = append(args, m.element())
	}
	if m.r.IntN(2) == 0 {
		args[0] = "LPUSH"
		for _, s := range args[2:] {
			*list = slices.Insert(*list, 0, s)
		}
	} else {
		*list = append(*list, args[2:]...)
	}
	return m.do(number(len(*list)), args...)
}

func (m *listModel) pop(key string, list *[]string) (full bool) {
	all := *list
	n := min(len(all), m.r.IntN(1+m.r.IntN(80)))
	popped := slices.Clone(all[:n])
	args := []string{"LPOP", key, strconv.Itoa(n)}
	if m.r.IntN(2) == 0 {
		args[0] = "RPOP"
		popped = slices.Clone(all[len(all)-n:])
		slices.Reverse(popped)
		*list = all[:len(all)-n]
	} else {
		*list = all[n:]
	}
	want := array(popped)
	switch {
	case len(all) == 0:
		want = "(nil)"
	case n == 1:
		args, want = args[:2], bulk(popped[0])
	}
	return m.do(want, args...)
}

func (m *listModel) rem(key string, list *[]string) (full bool) {
	s, count, removed := (*list)[m.r.IntN(len(*list))], m.r.IntN(5)-2, 0
	remove := func(x string) bool {
		if x == s && (count == 0 || removed < max(count, -count)) {
			removed++
			return true
		}
		return false
	}
	if count < 0 {
		slices.Reverse(*list)
	}
	*list = slices.DeleteFunc(*list, remove)
	if count < 0 {
		slices.Reverse(*list)
	}
	return m.do(number(removed), "LREM", key, strconv.Itoa(count), s)
}

func (m *listModel) move(from string) (full bool) {
	to, sides := m.key(), [2]string{"LEFT", "LEFT"}
	if source := m.want[from]; from != to || len(source) > 1 {
		source = slices.Clone(source)
		i := 0
		if m.r.IntN(2) == 0 {
			sides[0], i = "RIGHT", len(source)-1
		}
		s := source[i]
		source = slices.Delete(source, i, i+1)
		target := source
		if from != to {
			target = slices.Clone(m.want[to])
		}
		i = 0
		if m.r.IntN(2) == 0 {
			sides[1], i = "RIGHT", len(target)
		}
		target = slices.Insert(target, i, s)
		if full = m.do(bulk(s), "LMOVE", from, to, sides[0], sides[1]); !full {
			m.want[from], m.want[to] = source, target
		}
	}
	return full
}

// check compares all of a list.
func (m *listModel) check(key string) {
	m.t.Helper()
	m.do(array(m.want[key]), "LRANGE", key, "0", "-1")
	m.do(number(int(exec.BoolInt(len(m.want[key]) > 0))), "EXISTS", key)
}

func (m *listModel) checkAll() {
	m.t.Helper()
	for i := range 4 {
		m.check(fmt.Sprintf("{%s}l%d", m.tag, i))
	}
}

// TestLists runs random commands beside slices, with memory and nearly without.
func TestLists(t *testing.T) {
	forOneClient(t)
	runBeside(t, newListModel, rand.Uint64(), besides{steps: 3000, room: 500, mostFull: 2500})
}

func TestListsReachTheFollower(t *testing.T) {
	reachTheFollower(t, newListModel, 800, rand.Uint64(), rand.Uint64(), rand.Uint64())
}

// longList makes a list of n elements: "0", "1" ... and every tenth is "same".
func longList(m *listModel, key string, n int) (all []string) {
	m.t.Helper()
	m.do(number(int(exec.BoolInt(len(m.want[key]) > 0))), "DEL", key)
	for i := range n {
		s := strconv.Itoa(i)
		if i%10 == 0 {
			s = "same"
		}
		all = append(all, s)
	}
	m.do(number(n), append([]string{"RPUSH", key}, all...)...)
	m.want[key] = slices.Clone(all)
	return all
}

// TestLongLists: commands on long lists do in many runs what they do with short ones in one, on a
// client's connection and in a transaction.
func TestLongLists(t *testing.T) {
	forOneClient(t)
	const n = 12_000
	c := dial(t, startLeveled(t, func(c *Config) { c.Memory = 128 << 20 }).Addr())
	m := newListModel(t, c, "x", 1)
	for _, within := range []bool{false, true} {
		do := func(want string, args ...string) {
			t.Helper()
			if within {
				c.want("MULTI", "OK")
				m.do("QUEUED", args...)
				c.send("EXEC")
				if got := c.next(); got != "1) "+strings.ReplaceAll(want, "\n", "\n   ") {
					t.Fatalf("within a transaction %.80q answers %.100s, want %.100s", args, got, want)
				}
				return
			}
			m.do(want, args...)
		}
		all := longList(m, "l", n)
		do(array(all), "LRANGE", "l", "0", "-1")
		do(number(n-1), "LPOS", "l", strconv.Itoa(n-1))
		do("(nil)", "LPOS", "l", "nothing")
		do("1) "+number(n-10)+"\n2) "+number(n-20), "LPOS", "l", "same", "RANK", "-1", "COUNT", "2")
		do("(integer) -1", "LINSERT", "l", "BEFORE", "nothing", "x")
		do(number(n+1), "LINSERT", "l", "AFTER", strconv.Itoa(n-1), "last")
		do(bulk("last"), "RPOP", "l")
		do(number(n/10), "LREM", "l", "0", "same")
		rest := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "same" })
		do(array(rest), "LRANGE", "l", "0", "-1")
		longList(m, "l", n)
		do(number(100), "LREM", "l", "-100", "same")
		do(number(n-100), "LLEN", "l")
		all = longList(m, "l", n)
		do("OK", "LTRIM", "l", "10000", "10009")
		do(array(all[10_000:10_010]), "LRANGE", "l", "0", "-1")
		all = longList(m, "l", n)
		slices.Reverse(all)
		do(array(all[:3000]), "RPOP", "l", "3000")
		do(number(n-3000), "LLEN", "l")
		slices.Reverse(all)
		want := "1) \"l\"\n2) " + strings.ReplaceAll(array(all[:n-3000]), "\n", "\n   ")
		do(want, "LMPOP", "2", "l", "l", "LEFT", "COUNT", strconv.Itoa(n))
		delete(m.want, "l")
		m.check("l")
	}
}

// TestLongListIsRead: a long list is answered as it was in the command's turn.
func TestLongListIsRead(t *testing.T) {
	c := dial(t, startLeveled(t, func(c *Config) { c.Memory = 128 << 20 }).Addr())
	m := newListModel(t, c, "x", 1)
	all := longList(m, "l", 30_000)
	for _, line := range []string{"LRANGE l 0 -1", "LPOS l same RANK -1", "LSET l 0 changed", "LPOP l", "LTRIM l 5 -2", "DEL l"} {
		c.send(line)
	}
	for _, want := range []string{array(all), number(29_990), "OK", `"changed"`, "OK", "(integer) 1"} {
		if got := c.next(); got != want {
			t.Errorf("%.100s, want %.100s", got, want)
		}
	}
}

// TestSortKeepsItsDestination: a SORT that goes on in later turns stores under the key that it names,
// whatever other clients send meanwhile.
func TestSortKeepsItsDestination(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	for i := range 10 {
		c.do(fmt.Sprintf("RPUSH {t}l %d", i))
		c.want(fmt.Sprintf("SET {t}v%d %s", i, strings.Repeat("x", 10_000)), "OK")
	}
	const sent = 200
	for range 10 {
		for range sent {
			other.send("SET another " + strings.Repeat("y", 100))
		}
		c.want("SORT {t}l BY nosort GET {t}v* STORE {t}destination", "(integer) 10")
		for range sent {
			other.next()
		}
		c.want("DEL {t}destination", "(integer) 1")
	}
	c.want("DBSIZE", "(integer) 12")
}

// TestSortOfLongStrings: what SORT answers of a long string lies where the limit knows it, not in the Go
// heap.
func TestSortOfLongStrings(t *testing.T) {
	forOneClient(t)
	c := dial(t, startLeveled(t, func(c *Config) { c.Memory = 256 << 20 }).Addr())
	const size = 16 << 20
	c.want("RPUSH {t}l 1", "(integer) 1")
	c.sendArgs([]byte("SET"), []byte("{t}v1"), make([]byte, size))
	if got := c.next(); got != "OK" {
		t.Fatal(got)
	}
	allocates := func(command ...string) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if got := c.long(command...); len(got) < size {
			t.Fatalf("%q answers %.100q", command, got)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	allocates("GET", "{t}v1") // what both buffers grow to
	get, sort := allocates("GET", "{t}v1"), allocates("SORT", "{t}l", "BY", "nosort", "GET", "{t}v*")
	if sort > get+size/2 {
		t.Errorf("SORT allocates %d MiB, GET of the same string %d", sort>>20, get>>20)
	}
}

// TestListEncoding: OBJECT ENCODING answers what Redis's default limit of 8 KiB makes of a list.
func TestListEncoding(t *testing.T) {
	m := newListModel(t, dial(t, startLeveled(t).Addr()), "x", 1)
	for _, x := range []struct {
		n, length int
		want      string
	}{{1, 10, "listpack"}, {60, 100, "listpack"}, {90, 100, "quicklist"}, {1, 9000, "quicklist"}, {2, 4000, "listpack"}, {3, 4000, "quicklist"}} {
		m.c.do("DEL l")
		for i := range x.n {
			m.do(number(i+1), "RPUSH", "l", strings.Repeat("x", x.length))
		}
		m.do(bulk(x.want), "OBJECT", "ENCODING", "l")
	}
}
