package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestPlanningTakesTurns: no turn looks at more than planAtOnce words of a transaction, but for the
// command with which it ends.
func TestPlanningTakesTurns(t *testing.T) {
	const many = 60_000
	f := func(what string, p *planning) {
		t.Helper()
		total := p.watched + p.commands
		for turns := 1; ; turns++ {
			before := p.looked
			p.turn()
			if p.problem != "" {
				t.Fatalf("%s: %s", what, p.problem)
			}
			if p.looked-before > planAtOnce || p.words > planAtOnce+2 {
				t.Fatalf("%s: turn %d looks at %d commands and keys, of %d words", what, turns, p.looked-before, p.words)
			}
			if p.looked == total {
				if turns < many/planAtOnce {
					t.Errorf("%s: %d turns", what, turns)
				}
				break
			}
		}
		if tx := p.x.Transaction; len(tx.Watched) != p.watched || len(tx.Queue) != p.commands {
			t.Errorf("%s: %d watched keys and %d commands, want %d and %d", what, len(tx.Watched), len(tx.Queue), p.watched, p.commands)
		}
	}
	incr, key := resp.AppendRequest(nil, []byte("INCR"), []byte("k")), []byte("k")
	commands, watched := execArgs(t, nil), make([][]byte, 2*many)
	for i := range many {
		commands = append(commands, incr)
		watched[2*i], watched[2*i+1] = key, key
	}
	for what, args := range map[string][][]byte{"commands": commands, "watched keys": append(execArgs(t, watched), incr)} {
		p := planning{x: &transaction{Transaction: &session.Transaction{}, owned: true}, encoded: true, keyed: true}
		if !p.read(args) || !p.isLong() {
			t.Fatalf("%s: not read, or not long", what)
		}
		f(what, &p)
	}
	tx := &session.Transaction{Watched: make([]session.Watched, many), Queue: make([]session.Queued, many)}
	for i := range many {
		tx.Watched[i].Key = key
		tx.Queue[i] = session.Queued{Cmd: command.ByID(command.Incr), Args: [][]byte{[]byte("INCR"), key}}
	}
	f("a client's", &planning{x: &transaction{Transaction: tx, owned: true}, watched: many, commands: many})
}

// TestPlanningOfALongCommand: no turn parses or compares more than planAtOnce words of a command.
func TestPlanningOfALongCommand(t *testing.T) {
	const many = 60_000
	del := manyKeys("DEL", many, nil)
	for i := range many {
		del[1+i] = fmt.Appendf(nil, "{k}%d", i)
	}
	raw := resp.AppendRequest(nil, del...)
	incr := resp.AppendRequest(nil, []byte("INCR"), []byte("{k}"))
	c := command.Lookup([]byte("DEL"))
	p := planning{x: &transaction{Transaction: &session.Transaction{}, owned: true}, encoded: true, keyed: true}
	if !p.read(append(execArgs(t, nil), incr, raw, incr)) || !p.isLong() {
		t.Fatal("not read, or not long")
	}
	direct := planning{commands: 2, x: &transaction{owned: true, Transaction: &session.Transaction{
		Queue: []session.Queued{{Cmd: c, Args: del}, {Cmd: command.ByID(command.Incr), Args: [][]byte{[]byte("INCR"), []byte("{k}")}}}}}}
	for what, p := range map[string]*planning{"a proxy's": &p, "a client's": &direct} {
		turns := 0
		for ; p.looked < p.commands; turns++ {
			parsed, hashed := p.parsed, p.hashed
			p.turn()
			if p.problem != "" || p.parsed-parsed > parseAtOnce || p.listed && p.hashed-hashed > planAtOnce {
				t.Fatalf("%s: %q, a turn parses %d bytes and compares %d keys", what, p.problem, p.parsed-parsed, p.hashed-hashed)
			}
		}
		if turns < many/planAtOnce {
			t.Errorf("%s: %d turns", what, turns)
		}
		q := p.x.Queue[len(p.x.Queue)-2]
		if q.Cmd != c || len(q.Args) != 1+many || string(q.Args[many]) != string(del[many]) || p.slot != ring.Slot([]byte("{k}")) {
			t.Errorf("%s: %s of %d words", what, q.Cmd.Name, len(q.Args))
		}
	}
	crossing := append(slices.Clone(del), []byte("far"))
	direct.x.Queue[0].Args, direct.looked, direct.keyed = crossing, 0, false
	for direct.looked == 0 && direct.problem == "" {
		direct.turn()
	}
	if direct.problem != session.ErrMultiCrossSlot {
		t.Errorf("keys of two slots: %q", direct.problem)
	}
}

// longExec is the commands of a transaction that is planned in several turns.
func longExec(last ...string) []string {
	lines := make([]string, 3*planAtOnce)
	for i := range lines {
		lines[i] = "INCR {k}n"
	}
	return append(lines, last...)
}

// TestPlannedTransactions: a transaction that is planned in several turns is executed whole or not at
// all, whether a proxy's request survives by a copy or where it lies.
func TestPlannedTransactions(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory, c.Group = 128<<20, newGroup(t, 1) })
	p, old, c := laterPipe(t, n, "large", 1), openPipeTo(t, n, 7, 0, "large", 1, 2), dial(t, n.Addr())
	token := 0
	refused := func(what, want string, args ...[]byte) {
		t.Helper()
		token++
		p.sendArgs(args...)
		p.frame(what, fmt.Sprintf("-DUNLINLATER %d", token))
		p.frame(what, push(token, want))
		c.want("EXISTS {k}n", "(integer) 0")
	}
	refused("a key of another slot", "-"+errBadExec, execArgs(t, nil, longExec("INCR j")...)...)
	refused("no command", "-"+errBadExec, execArgs(t, nil, longExec("NOTHING")...)...)
	refused("a command that is cut off", "-"+errBadExec, append(execArgs(t, nil, longExec()...), []byte("*1\r\n"))...)
	refused("a stale version", "*-1", execArgs(t, [][]byte{[]byte("{k}n"), []byte("stale")}, longExec()...)...)

	large := resp.AppendRequest(nil, []byte("SET"), []byte("{k}l"), make([]byte, 1<<20))
	short := resp.AppendRequest(nil, []byte("SET"), []byte("{k}l"), nil)
	done := 0
	for _, last := range [][]byte{short, large} {
		token++
		p.sendArgs(append(execArgs(t, nil, longExec()...), last)...)
		p.frame("EXEC", fmt.Sprintf("-DUNLINLATER %d", token))
		old.sendRaw([]byte("GET {j}\r\n")) // another connection's bytes pass through the loop meanwhile
		old.frame("GET", "$-1")
		done += 3 * planAtOnce
		if got, want := string(p.read()), push(token, fmt.Sprintf("*%d\r\n", 3*planAtOnce+1)); !strings.HasPrefix(got, want) || !strings.Contains(got, fmt.Sprintf(":%d\r\n+OK", done)) {
			t.Errorf("EXEC answers %.60q, want %q", got, want)
		}
	}
	old.sendArgs(execArgs(t, nil, longExec()...)...)
	if got, want := string(old.read()), fmt.Sprintf("*%d\r\n", 3*planAtOnce); !strings.HasPrefix(got, want) {
		t.Errorf("EXEC on a pipe that waits answers %.60q, want %q", got, want)
	}
	done += 3 * planAtOnce
	c.want("GET {k}n", fmt.Sprintf("%q", fmt.Sprint(done)))
	eventually(t, "all memory is given back", func() bool { return n.lists.Load() == 0 && n.engine.Replies() == 0 })
}

// TestPlannedTransactionOfAClient: so is a client's, which waits if somebody else holds the partition
// when it is planned.
func TestPlannedTransactionOfAClient(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c, beside := dial(t, n.Addr()), dial(t, n.Addr())
	queue := func(lines []string) {
		t.Helper()
		c.sendLines(append([]string{"MULTI"}, lines...)...)
		for range len(lines) + 1 {
			c.next()
		}
	}
	queue(longExec("INCR j"))
	c.want("EXEC", "(error) "+session.ErrMultiCrossSlot)
	beside.want("EXISTS {k}n", "(integer) 0")

	queue(longExec("INCR {k}n"))
	h := holdPartition(n, "{k}")
	c.send("EXEC")
	for range 20 { // the loop reads both, and plans in between
		beside.want("GET {j}", "(nil)")
	}
	h.End()
	if got, want := string(c.read()), fmt.Sprintf("*%d\r\n", 3*planAtOnce+1); !strings.HasPrefix(got, want) {
		t.Errorf("EXEC answers %.60q, want %q", got, want)
	}
	c.want("GET {k}n", fmt.Sprintf("%q", fmt.Sprint(3*planAtOnce+1)))
	eventually(t, "all memory is given back", func() bool { return n.lists.Load() == 0 })
}

// TestPlannedTransactionIsRefused: a proxy's is refused if somebody else holds the partition when it
// is planned, and what follows it on the pipe stays behind it.
func TestPlannedTransactionIsRefused(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	p := laterPipe(t, n, "large", 1)
	h := holdPartition(n, "{k}")
	p.sendRaw(append(resp.AppendRequest(nil, execArgs(t, nil, longExec()...)...), "GET {k}n\r\n"...))
	p.frame("EXEC", "-DUNLINLATER 1")
	p.frame("GET", "-DUNLINWAIT 1")
	p.frame("EXEC", push(1, "-DUNLINWAIT 1"))
	h.End()
	p.raw("GET {k}n", "-DUNLINWAIT 1")
	p.raw("DUNLIN RETRY 1", "+OK")
	p.raw("GET {k}n", "$-1")
	p.sendRaw(append(resp.AppendRequest(nil, execArgs(t, nil, longExec()...)...), member.AppendCancel(nil, 2)...))
	p.frame("EXEC", "-DUNLINLATER 2")
	p.frame("CANCEL", "+OK")
	p.frame("EXEC", push(2, "-"+errCanceled))
	p.raw("GET {k}n", "$-1")
}

var _ exec.Work = (*planning)(nil)
