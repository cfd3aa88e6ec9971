package node

import (
	"bytes"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// hashModel changes a few hashes of one partition at random, beside maps.
type hashModel struct {
	player
	want map[string]map[string]string
}

func newHashModel(t *testing.T, c *client, tag string, seed uint64) *hashModel {
	return &hashModel{newPlayer(t, c, tag, seed), map[string]map[string]string{}}
}

func (m *hashModel) key() string { return fmt.Sprintf("{%s}h%d", m.tag, m.r.IntN(4)) }

func (m *hashModel) field() string {
	if m.r.IntN(20) == 0 && !m.short {
		return strings.Repeat("f", m.r.IntN(400))
	}
	return strconv.Itoa(m.r.IntN(300))
}

func (m *hashModel) text() string {
	if m.short {
		return strings.Repeat("v", m.r.IntN(20))
	}
	switch m.r.IntN(40) {
	case 0:
		return strings.Repeat("long", m.r.IntN(20_000))
	case 1, 2:
		return strings.Repeat("v", m.r.IntN(300))
	}
	return strconv.Itoa(m.r.IntN(100_000))
}

// step executes a random command and checks its reply. It may find no memory: then nothing changes.
func (m *hashModel) step() (full bool) {
	m.t.Helper()
	key := m.key()
	hash := m.want[key]
	args := [][]byte{nil, []byte(key)}
	var want string
	switch m.r.IntN(10) {
	case 0, 1, 2, 3:
		args[0] = []byte("HSET")
		next, added := map[string]string{}, 0
		for f, v := range hash {
			next[f] = v
		}
		for range 1 + m.r.IntN(1+m.r.IntN(40)) {
			f, v := m.field(), m.text()
			if _, ok := next[f]; !ok {
				added++
			}
			next[f] = v
			args = append(args, []byte(f), []byte(v))
		}
		want = fmt.Sprintf("(integer) %d", added)
		got := conversation.Text(m.ask(args...))
		if got == "(error) "+exec.ErrOOM {
			return true
		}
		if got != want {
			m.t.Fatalf("HSET of %d fields answers %s, want %s", len(args)/2-1, got, want)
		}
		m.want[key] = next
		return false
	case 4, 5, 6:
		args[0] = []byte("HDEL")
		deleted := 0
		for range 1 + m.r.IntN(1+m.r.IntN(60)) {
			f := m.field()
			if _, ok := hash[f]; ok {
				deleted++
				delete(hash, f)
			}
			args = append(args, []byte(f))
		}
		want = fmt.Sprintf("(integer) %d", deleted)
	case 7:
		args[0], want = []byte("HLEN"), fmt.Sprintf("(integer) %d", len(hash))
	case 8:
		f := m.field()
		args = [][]byte{[]byte("HGET"), []byte(key), []byte(f)}
		want = "(nil)"
		if v, ok := hash[f]; ok {
			want = conversation.Text(resp.AppendBulkString(nil, v))
		}
	default:
		m.check(key)
		return false
	}
	if got := conversation.Text(m.ask(args...)); got != want {
		m.t.Fatalf("%s answers %s, want %s", args[0], got, want)
	}
	return false
}

// ask sends a request, again if the node is fenced for a moment, because the machine is busy.
func (m *hashModel) ask(args ...[]byte) (reply []byte) {
	m.t.Helper()
	eventually(m.t, "the node serves", func() bool {
		m.c.sendArgs(args...)
		reply = m.c.read()
		return !bytes.HasPrefix(reply, []byte("-TRYAGAIN"))
	})
	return reply
}

// check compares all of a hash.
func (m *hashModel) check(key string) {
	m.t.Helper()
	got := hashOf(m.t, m.ask([]byte("HGETALL"), []byte(key)))
	if len(got) != len(m.want[key]) {
		m.t.Fatalf("HGETALL has %d fields, want %d", len(got), len(m.want[key]))
	}
	for f, v := range m.want[key] {
		if got[f] != v {
			m.t.Fatalf("field %.40q has a value of %d bytes, want %d", f, len(got[f]), len(v))
		}
	}
	exists := fmt.Sprintf("(integer) %d", exec.BoolInt(len(got) > 0))
	if got := conversation.Text(m.ask([]byte("EXISTS"), []byte(key))); got != exists {
		m.t.Errorf("EXISTS answers %s, want %s", got, exists)
	}
}

func (m *hashModel) checkAll() {
	m.t.Helper()
	for i := range 4 {
		m.check(fmt.Sprintf("{%s}h%d", m.tag, i))
	}
}

// hashOf reads the reply of HGETALL.
func hashOf(t *testing.T, reply []byte) map[string]string {
	t.Helper()
	n, at, ok := resp.DecodeArray(reply)
	if !ok {
		t.Fatalf("HGETALL answers %.100q", reply)
	}
	all := map[string]string{}
	for range n / 2 {
		var field, value []byte
		field, at = resp.DecodeArgument(reply, at)
		value, at = resp.DecodeArgument(reply, at)
		all[string(field)] = string(value)
	}
	return all
}

// TestHashes runs random commands beside maps, with memory and nearly without.
func TestHashes(t *testing.T) {
	forOneClient(t)
	runBeside(t, newHashModel, 1, besides{steps: 3000, room: 500, mostFull: 2000})
}

func TestHashesReachTheFollower(t *testing.T) { reachTheFollower(t, newHashModel, 800, 0, 1, 2) }

// fillMemory stores strings until there is no memory.
func fillMemory(t *testing.T, n *Node) {
	t.Helper()
	for i := range 1_000_000 {
		if put(n, fmt.Sprint("fill", i), strings.Repeat("x", 1000), engine.TypeString) != nil {
			return
		}
	}
	t.Fatal("the memory was to be full")
}

// TestLongHashIsRead: a hash with many fields is answered as it was in the command's turn.
func TestLongHashIsRead(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	want := map[string]string{}
	for i := range 30 {
		args := [][]byte{[]byte("HSET"), []byte("h")}
		for j := range 1000 {
			f := strconv.Itoa(i*1000 + j)
			args = append(args, []byte(f), []byte("value"+f))
			want[f] = "value" + f
		}
		c.sendArgs(args...)
		if got := c.next(); got != "(integer) 1000" {
			t.Fatalf("HSET answers %s", got)
		}
	}
	c.sendArgs([]byte("HGETALL"), []byte("h"))
	c.send("HSET h 0 changed")
	c.send("HDEL h 1")
	c.send("DEL h")
	if got := hashOf(t, c.read()); !maps.Equal(got, want) {
		t.Errorf("HGETALL has %d fields, want %d, or they have other values", len(got), len(want))
	}
	for _, want := range []string{"(integer) 0", "(integer) 1", "(integer) 1"} {
		if got := c.next(); got != want {
			t.Errorf("behind HGETALL: %s, want %s", got, want)
		}
	}
}

func TestHashCommandsFail(t *testing.T) {
	c := dial(t, startLeveled(t).Addr())
	c.want("SET s x", "OK")
	for _, line := range []string{"HSET s f v", "HGET s f", "HDEL s f", "HLEN s", "HEXISTS s f", "HGETALL s"} {
		c.want(line, "(error) "+exec.ErrWrongType)
	}
	c.want("HSET h f", "(error) ERR wrong number of arguments for 'hset' command")
	c.want("HSET h f v g", "(error) ERR wrong number of arguments for 'hset' command")
	c.want("HSET h f v", "(integer) 1")
	c.want("GET h", "(error) "+exec.ErrWrongType)
	c.want("TYPE h", "hash")
	c.want("OBJECT ENCODING h", `"listpack"`)
	c.want("HGETALL nothing", "(empty array)")
}
