package netloop

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The hook runs before anything that arrived meanwhile is read.
func TestStallHook(t *testing.T) {
	const limit = 200 * time.Millisecond
	g := newGroup(t, Config{Loops: 1})
	order := make(chan string, 10)
	nc := dialTo(t, serve(t, g, funcs{data: func(_ *Conn, in []byte) int {
		order <- "read"
		return len(in)
	}}))
	g.OnStall(limit, func(_ *Loop, gap time.Duration) {
		if gap <= limit {
			t.Errorf("called for a gap of %v", gap)
		}
		order <- "stall"
	})
	each(t, g, func(*Loop) {})
	resume := holdLoop(g.loops[0])
	write(t, nc, "x")
	<-time.After(limit + limit/4) // the stall itself
	resume()
	for _, want := range []string{"stall", "read"} {
		if got := receive(t, order); got != want {
			t.Fatalf("%s, want %s first", got, want)
		}
	}
	if last := g.loops[0].LastStall(); last < limit {
		t.Fatalf("LastStall is %v", last)
	}
}

// stallChild makes the test's binary act as the process that is stopped.
const stallChild = "NETLOOP_STALL_CHILD"

// A process that is stopped and continued notices that at once, even if its loops have nothing to
// do.
func TestStoppedProcess(t *testing.T) {
	if os.Getenv(stallChild) != "" {
		runStallChild()
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestStoppedProcess$")
	child.Env = append(os.Environ(), stallChild+"=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	said := make(chan string, 2)
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			said <- s.Text()
		}
	}()
	if s := receive(t, said); s != "ready" {
		t.Fatalf("child says %q", s)
	}
	child.Process.Signal(unix.SIGSTOP)
	<-time.After(2 * stopLimit) // the stall itself
	child.Process.Signal(unix.SIGCONT)
	if s := receive(t, said); !strings.HasPrefix(s, "stalled") {
		t.Fatalf("child says %q", s)
	}
}

const stopLimit = 500 * time.Millisecond

func runStallChild() {
	g, err := NewGroup(Config{Loops: 1})
	if err != nil {
		panic(err)
	}
	done := make(chan bool, 1)
	g.OnStall(stopLimit, func(_ *Loop, gap time.Duration) {
		fmt.Println("stalled", gap)
		done <- true
	})
	g.Each(func(*Loop) {})
	fmt.Println("ready")
	<-done
}

// TestSuspendedMachine: the monotonic clock stands still in suspend. Loops notice before they read
// anything, and the time has passed for what expires. A clock that was only set is no suspension.
func TestSuspendedMachine(t *testing.T) {
	const sleep = time.Hour
	for _, suspended := range []bool{true, false} {
		g := newGroup(t, Config{Loops: 1})
		g.OnClockStep(func() bool { return false })
		order := make(chan string, 10)
		nc := dialTo(t, serve(t, g, funcs{data: func(_ *Conn, in []byte) int {
			order <- "read"
			return len(in)
		}}))
		g.OnStall(10*time.Second, func(_ *Loop, gap time.Duration) {
			if gap < sleep || gap > sleep+10*time.Second {
				t.Errorf("called for a gap of %v", gap)
			}
			order <- "stall"
		})
		before := g.UnixMilli()
		each(t, g, func(l *Loop) { // as if the clocks had gone on by so much since they were compared
			l.compared -= comparePeriod
			l.wall -= int64(sleep + comparePeriod)
			if suspended {
				l.suspended -= sleep
			}
		})
		write(t, nc, "x")
		want := []string{"read"}
		if suspended {
			want = []string{"stall", "read"}
		}
		for _, want := range want {
			if got := receive(t, order); got != want {
				t.Fatalf("suspended %v: %s, want %s first", suspended, got, want)
			}
		}
		if passed := time.Duration(g.UnixMilli()-before) * time.Millisecond; (passed > sleep/2) != suspended {
			t.Errorf("suspended %v: %v passed for what expires", suspended, passed)
		}
	}
}
