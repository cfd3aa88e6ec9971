package script

import (
	"errors"
	"runtime"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// host executes no commands.
type host struct{ end error }

func (h *host) Call([][]byte, resp.Version) ([]byte, error) { return []byte("+OK\r\n"), nil }
func (h *host) Look() error                                 { return h.end }
func (h *host) More(int64) bool                             { return true }
func (h *host) Log(int, string)                             {}
func (h *host) Knows([][]byte) bool                         { return true }

func mustRun(t *testing.T, m *Machine, h Host, body string) {
	t.Helper()
	s, err := Compile(body)
	if err == nil {
		err = m.Run(Run{Script: s, Host: h})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestReplyEnds: the Host may end a script while its reply is made, which takes steps of tables.
func TestReplyEnds(t *testing.T) {
	m, h := NewMachine(), &host{}
	mustRun(t, m, h, `local s = {} for i = 1, 1e5 do s['k' .. i] = 1 end for i = 1, 1e5 do s['k' .. i] = nil end
local e = {map = s} local a = {} for i = 1, 100 do a[i] = e end return a`)
	h.end = errors.New("gone")
	if err := m.Reply(resp.RESP2, func([]byte) bool { return true }); !errors.Is(err, h.end) {
		t.Errorf("the reply ends with %v", err)
	}
	m.End()
	h.end = nil
	mustRun(t, m, h, "return 1")
	var reply []byte
	if err := m.Reply(resp.RESP2, func(part []byte) bool { reply = append(reply, part...); return true }); err != nil || string(reply) != ":1\r\n" {
		t.Errorf("the next script answers %q, %v", reply, err)
	}
}

// TestEndKeepsNothing: a machine that is not used keeps alive nothing of the scripts before.
func TestEndKeepsNothing(t *testing.T) {
	m := NewMachine()
	for name, body := range map[string]string{
		"the result":               "return string.rep('x', 3e7)",
		"a variable of a function": "local s = string.rep('x', 3e7) local function f() return #s end return f() + f()",
		"a word of a command":      "redis.call('ECHO', 'a', string.rep('x', 3e7)) redis.call('ECHO')",
	} {
		before := heapBytes()
		mustRun(t, m, &host{}, body)
		m.End()
		if kept := heapBytes() - before; kept > 1<<20 {
			t.Errorf("%s: %d bytes are kept", name, kept)
		}
	}
	runtime.KeepAlive(m)
}

func heapBytes() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestClock: os.clock advances while a script runs.
func TestClock(t *testing.T) {
	m := NewMachine()
	mustRun(t, m, &host{}, "local from = os.clock() for i = 1, 1e9 do if os.clock() > from then return end end error('it stands still')")
}
