package node

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// TestManyElements: commands of more elements, operations, sources or bytes than one run takes do
// what they do with few, on a client's connection, in a transaction and on a pipe.
func TestManyElements(t *testing.T) {
	forOneClient(t)
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	c, pipe := dial(t, n.Addr()), openPipeTo(t, n, 7, 0, "large", 1, 2)
	const many = 3000
	repeat := func(line, each string) string {
		for i := range many {
			line += " " + strings.ReplaceAll(each, "#", fmt.Sprint(i))
		}
		return line
	}
	send := func(c *client, line string) {
		var args [][]byte
		for arg := range strings.FieldsSeq(line) {
			args = append(args, []byte(arg))
		}
		c.sendArgs(args...)
	}
	check := func(name string, do func(line string) string, key string) {
		fields := do(repeat("BITFIELD "+key, "INCRBY u32 0 1"))
		if first, last := "1) (integer) 1\n2) (integer) 2\n", "\n3000) (integer) 3000"; !strings.HasPrefix(fields, first) || !strings.HasSuffix(fields, last) {
			t.Errorf("%s: BITFIELD answers %.60s ... %s", name, fields, fields[max(0, len(fields)-60):])
		}
		for _, x := range []struct{ line, want string }{
			{"BITFIELD " + key + " GET u32 0", "1) (integer) 3000"},
			{repeat("PFADD "+key+"h", "e#"), "(integer) 1"},
			{repeat("PFADD "+key+"h", "e#"), "(integer) 0"},
			{"SET " + key + "7 B", "OK"},
			{"SET " + key + "2999 A", "OK"},
			{repeat("BITOP OR "+key+"d", key+"#"), "(integer) 1"},
			{"GET " + key + "d", `"C"`},
			{repeat("BITOP AND "+key+"d", key+"#"), "(integer) 1"},
			{"GET " + key + "d", `"\x00"`},
			{repeat("BITOP OR "+key+"d", key+"none#"), "(integer) 0"},
			{"EXISTS " + key + "d", "(integer) 0"},
			{"SETRANGE " + key + "l 99999 Z", "(integer) 100000"},
			{repeat("BITOP OR "+key+"d "+key+"l", key+"#"), "(integer) 100000"},
			{"GETRANGE " + key + "d 0 0", `"C"`},
			{"GETRANGE " + key + "d -1 -1", `"Z"`},
		} {
			if got := do(x.line); got != x.want {
				t.Errorf("%s: %.40s answers %.60s, want %.60s", name, x.line, got, x.want)
			}
		}
	}
	on := func(c *client) func(line string) string {
		return func(line string) string {
			send(c, line)
			return c.next()
		}
	}
	check("client", on(c), "{c}")
	check("pipe", on(pipe), "{p}")
	check("transaction", func(line string) string {
		c.want("MULTI", "OK")
		send(c, line)
		c.next()
		c.send("EXEC")
		return conversation.Text(bytes.TrimPrefix(c.read(), []byte("*1\r\n")))
	}, "{t}")
	counts := []string{c.do("PFCOUNT {c}h"), c.do("PFCOUNT {p}h"), c.do("PFCOUNT {t}h")}
	if counts[0] != counts[1] || counts[0] != counts[2] {
		t.Errorf("the same elements are counted as %s", counts)
	}
	if st := n.engine.Stats(); st.Holds == 0 || st.Staged != 0 {
		t.Errorf("%d holds, %d bytes staged", st.Holds, st.Staged)
	}
}

// TestManyWatchedKeys: more keys are watched than are looked at in one slice.
func TestManyWatchedKeys(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	p := openPipeTo(t, n, 7, 0, "large", 1, 2)
	names := [][]byte{[]byte("WATCH")}
	for i := range 3000 {
		names = append(names, fmt.Appendf(nil, "{k}%d", i))
	}
	for _, changed := range []string{"", "{k}0", "{k}1500", "{k}2999"} {
		c.sendArgs(names...)
		if got := c.next(); got != "OK" {
			t.Fatalf("WATCH answers %s", got)
		}
		p.sendArgs(append([][]byte{[]byte("DUNLIN")}, names...)...)
		versions := p.read()
		if count, _, ok := resp.DecodeArray(versions); !ok || count != 3000 {
			t.Fatalf("DUNLIN WATCH answers %.60q", versions)
		}
		want := "1) OK\n2) \"1\""
		if changed != "" {
			want = "(nil)"
			other.want("SET "+changed+" new", "OK")
			other.want("DEL "+changed, "(integer) 1")
		}
		if got := c.exec("SET {k}x 1", "GET {k}x"); got != want {
			t.Errorf("%q has changed: EXEC answers %s, want %s", changed, got, want)
		}
	}
}

// TestManyKeysAreNotCopied: a command of very many keys, which goes on in runs, keeps its input and
// lists, and no run does anything for each key of the others. What is behind it in the input is executed
// after it.
func TestManyKeysAreNotCopied(t *testing.T) {
	forOneClient(t)
	const many, perKey = 100_000, 120 // bytes of the Go heap
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 256<<20, newGroup(t, 1) })
	pipe := openPipeTo(t, n, 7, 0, "huge", 1, 2)
	outside := n.engine.Stats().Outside + 1<<20
	for name, c := range map[string]*client{"client": dial(t, n.Addr()), "pipe": pipe} {
		args := [][]byte{[]byte("DEL")}
		for i := range many {
			args = append(args, fmt.Appendf(nil, "key:with:a:long:name:%d", i))
		}
		del := resp.AppendRequest(nil, args...)
		for i := range 10 {
			c.want(fmt.Sprintf("SET key:with:a:long:name:%d v", i*many/10), "OK")
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c.sendRaw(append(del, "*3\r\n$3\r\nSET\r\n$5\r\nother\r\n$1\r\nx\r\n"...))
		for range 2 {
			if got := c.next(); got != "(integer) 10" && got != "OK" {
				t.Errorf("%s: %s", name, got)
			}
		}
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) / many; took > perKey {
			t.Errorf("%s: each of many keys takes %d bytes, want at most %d", name, took, perKey)
		}
		c.want("GET other", `"x"`)
	}
	eventually(t, "all is given back", func() bool { return n.engine.Stats().Outside <= outside })
}
