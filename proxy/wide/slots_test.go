package wide

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// TestSlotStats checks that the nodes' figures are put in order, and that others are refused.
func TestSlotStats(t *testing.T) {
	call := &Call{
		Command: command.ByID(command.ClusterSlotStats), Version: resp.RESP2,
		Args: [][]byte{[]byte("CLUSTER"), []byte("SLOT-STATS"), []byte("ORDERBY"), []byte("key-count"), []byte("LIMIT"), []byte("2")},
	}
	q, err := New(call)
	if err != nil {
		t.Fatal(err)
	}
	q.Begin()
	for _, a := range []string{"*4\r\n:8\r\n:5\r\n:9\r\n:0\r\n", "*0\r\n", "*4\r\n:3\r\n:5\r\n:4\r\n:7\r\n"} {
		q.Add(Answer{Reply: []byte(a)})
	}
	const want = "*2\r\n*2\r\n:4\r\n*2\r\n$9\r\nkey-count\r\n:7\r\n*2\r\n:3\r\n*2\r\n$9\r\nkey-count\r\n:5\r\n"
	if got := string(q.Reply(nil)); got != want {
		t.Errorf("the reply is %q, want %q", got, want)
	}
	for _, bad := range []string{":1\r\n", "*1\r\n:1\r\n", "*2\r\n:1\r\n", "*2\r\n:16384\r\n:1\r\n", "*2\r\n:1\r\n:-1\r\n", "*2\r\n:1\r\n$1\r\n1\r\n"} {
		m := &slotStats{}
		if m.Add(Answer{Reply: []byte(bad)}) == nil || len(m.all) > 0 {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestSlotsAskFew checks that only the owners of the slots are asked.
func TestSlotsAskFew(t *testing.T) {
	f := func(first, end int, id command.ID, args ...string) {
		t.Helper()
		call := &Call{Command: command.ByID(id)}
		for _, a := range args {
			call.Args = append(call.Args, []byte(a))
		}
		q, err := New(call)
		if err != nil || q.Rounds.First != first || q.Rounds.End != end {
			t.Errorf("%q asks about partitions %d to %d, %v, want %d to %d", args, q.Rounds.First, q.Rounds.End, err, first, end)
		}
	}
	f(1, 2, command.ClusterCountKeysInSlot, "CLUSTER", "COUNTKEYSINSLOT", "7")
	f(4095, 4096, command.ClusterGetKeysInSlot, "CLUSTER", "GETKEYSINSLOT", "16383", "1")
	f(1, 3, command.ClusterSlotStats, "CLUSTER", "SLOT-STATS", "SLOTSRANGE", "7", "8")
	f(0, 4096, command.ClusterSlotStats, "CLUSTER", "SLOT-STATS", "ORDERBY", "key-count")
}
