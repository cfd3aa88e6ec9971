package cluster

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestNoMoreIsCommitted takes from a node the memory that its limit allows: it may write to 320 MiB
// more than it starts with, which the kernel refuses in the same calls, and with the same error, as
// where vm.overcommit_memory is 2. The node refuses what finds no memory, and lives.
func TestNoMoreIsCommitted(t *testing.T) {
	harness.SkipUnderRace(t) // the detector maps memory, and dies when it is refused
	t.Parallel()
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 1, NodeFlags: []string{"--memory", "1gb"}})
	node := c.Node(0)
	w := harness.DialWire(t, node.Addr)
	w.Want("SET early kept", "OK")
	pid := node.Cmd.Process.Pid
	limit := unix.Rlimit{Cur: uint64(writableBytes(t, pid) + 320<<20), Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, &limit, nil); err != nil {
		t.Skip(err)
	}
	const oom = "(error) OOM command not allowed when used memory > 'maxmemory'."
	stored, refused := 0, 0
	for refused < 10 {
		switch got := conversation.Text(w.Do(fmt.Sprintf("SETRANGE large:%d 399999 v", stored))); got {
		case "(integer) 400000":
			stored++
		case oom:
			refused++
		default:
			t.Fatalf("SETRANGE answers %s", got)
		}
		if stored > 1000 {
			t.Fatal("more is stored than there is memory for")
		}
	}
	// The limit leaves room for several times as many, and for Go's heap.
	if stored < 100 {
		t.Errorf("%d values are stored before one is refused", stored)
	}
	w.Want("GET early", "\"kept\"")
	w.Want(fmt.Sprint("STRLEN large:", stored/2), "(integer) 400000")
	w.Want("FLUSHALL", "OK")
	for i := range stored * 3 / 4 {
		w.Want(fmt.Sprintf("SETRANGE again:%d 299999 v", i), "(integer) 300000")
	}
}

// writableBytes is how much memory the process may write to.
func writableBytes(t *testing.T, pid int) (n int64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip(err)
	}
	_, after, _ := strings.Cut(string(status), "VmData:")
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatal(err)
	}
	return n << 10
}
