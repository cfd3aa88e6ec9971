package netloop

import (
	"bytes"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// visitor is an echo that is new until it has answered, and notes in order who was heard. Whoever
// says urgent does not wait.
type visitor struct {
	echo
	heard    *[]string // by all of the loop
	answered bool
}

func (v *visitor) IsNew() bool                { return !v.answered }
func (v *visitor) IsUrgent(first []byte) bool { return bytes.HasPrefix(first, []byte("urgent")) }

func (v *visitor) OnData(c *Conn, in []byte) int {
	*v.heard = append(*v.heard, string(in))
	v.answered = true
	return v.echo.OnData(c, in)
}

// visited makes a loop that is always strained, and returns what connects to it, and what hears of
// its visitors since the last call.
func visited(t *testing.T, strained *atomic.Bool) (l *Loop, connect func() *net.TCPConn, heard func() []string) {
	g := newGroup(t, Config{Loops: 1, strained: strained.Load})
	l = g.loops[0]
	var all []string
	ln := listen(t, g, func(*Conn) Handler { return &visitor{heard: &all} })
	connect = func() *net.TCPConn {
		accepted, before := uint64(0), uint64(0)
		each(t, g, func(l *Loop) { before = l.stats.Accepted })
		nc := dialTo(t, ln)
		for accepted <= before { // bounded by Each
			each(t, g, func(l *Loop) { accepted = l.stats.Accepted })
		}
		return nc
	}
	heard = func() (since []string) {
		each(t, g, func(*Loop) { since, all = all, nil })
		return since
	}
	return l, connect, heard
}

// TestNewcomersWait checks that a strained loop hears those that it knows and whoever is
// urgent first, and newcomers last.
func TestNewcomersWait(t *testing.T) {
	var strained atomic.Bool
	strained.Store(true)
	l, connect, heard := visited(t, &strained)
	known := connect()
	write(t, known, "hello")
	expect(t, known, "hello")
	heard()

	// All have something to say when the loop looks. It dispatches what it finds here, because an
	// iteration that takes long leaves some of it to the next one.
	names := []string{"a", "b", "c", "d", "urgent", "known"}
	clients := make([]*net.TCPConn, len(names))
	for i := range names[:5] {
		clients[i] = connect()
	}
	clients[5] = known
	begun, release := make(chan struct{}), make(chan struct{})
	l.Post(func() {
		close(begun)
		<-release
		for _, c := range l.conns {
			if c != nil {
				for n := 0; n <= 0; { // signals end a call
					n, _ = unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, -1)
				}
			}
		}
		n, _ := l.poller.waitRaw(l.events, 0)
		for i := range max(0, n) {
			l.dispatch(&l.events[i])
		}
	})
	<-begun
	for i, c := range clients {
		write(t, c, names[i])
	}
	close(release)
	for i, c := range clients {
		expect(t, c, names[i])
	}
	got := heard()
	slices.Sort(got[:2])
	slices.Sort(got[2:])
	if want := []string{"known", "urgent", "a", "b", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("heard %v, want %v: the first two and the others in any order", got, want)
	}
	write(t, clients[0], "again")
	expect(t, clients[0], "again")
	each(t, l.group, func(l *Loop) {
		if l.newcomers.Len() != 0 {
			t.Errorf("%d wait", l.newcomers.Len())
		}
	})
}

// TestUrgencyEnds checks that a new conn that goes on to call itself urgent waits in the end.
func TestUrgencyEnds(t *testing.T) {
	var strained atomic.Bool
	strained.Store(true)
	l, connect, _ := visited(t, &strained)
	nc := connect()
	each(t, l.group, func(l *Loop) {
		i := slices.IndexFunc(l.conns, func(c *Conn) bool { return c != nil })
		c := l.conns[i]
		write(t, nc, "urgent")
		for n := 0; n <= 0; { // signals end a call
			n, _ = unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, -1)
		}
		for n := range urgentReads {
			if l.waitsAsNew(c) {
				t.Errorf("it waits after %d reads", n)
			}
		}
		if !l.waitsAsNew(c) {
			t.Errorf("it does not wait after %d reads", urgentReads)
		}
	})
	expect(t, nc, "urgent")
}

// TestNewcomersLeave checks that new conns that close while they wait are forgotten, and that one
// that has finished sending is answered.
func TestNewcomersLeave(t *testing.T) {
	var strained atomic.Bool
	strained.Store(true)
	l, connect, heard := visited(t, &strained)
	first, gone, half := connect(), connect(), connect()
	each(t, l.group, func(l *Loop) {
		// As if it had waited: a loop lets one in at a time only if it has other work, too.
		for _, c := range l.conns {
			if c != nil && c.RemoteAddr() == gone.LocalAddr().String() {
				c.stopReading(stopNew)
				c.place = l.newcomers.PushBack(c)
				c.Close(nil)
			}
		}
		if l.newcomers.Len() != 0 {
			t.Errorf("%d wait, and have closed", l.newcomers.Len())
		}
	})
	write(t, half, "half")
	if err := half.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	expect(t, half, "half")
	write(t, first, strings.Repeat("x", 2*urgentPeek))
	expect(t, first, strings.Repeat("x", 2*urgentPeek))
	if got := heard(); len(got) != 2 {
		t.Errorf("heard %q", got)
	}
}

// TestShareOfNewcomers checks that accepting, and reading from newcomers, take a quarter of the time
// of a strained loop each.
func TestShareOfNewcomers(t *testing.T) {
	const ms = time.Millisecond
	if d := newcomersTime(3*ms, true); d != ms {
		t.Errorf("newcomers have %v after 3 ms for others, want 1 ms", d)
	}
	if d := newcomersTime(0, false); d != turnLimit {
		t.Errorf("newcomers have %v of a loop with time, want %v", d, turnLimit)
	}
	if until := restAfterAccept(7*ms, 7*ms+acceptTime); until != 7*ms+4*acceptTime {
		t.Errorf("accepting from 7 ms on for %v rests until %v", acceptTime, until)
	}
	if until := restAfterAccept(0, time.Second); until > time.Second+2*ms {
		t.Errorf("accepting that was interrupted until 1 s rests until %v", until)
	}
}
