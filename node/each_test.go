package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// each sends a DUNLIN EACH and returns the partitions covered and the reply inside.
func (c *client) each(wanted *ring.PartitionSet, line string) (covered ring.PartitionSet, inner []byte) {
	c.t.Helper()
	args := append([][]byte{[]byte("DUNLIN"), []byte("EACH"), wanted[:]}, words(c.t, line)...)
	c.sendArgs(args...)
	reply := c.read()
	n, header, ok := resp.DecodeArray(reply)
	if !ok || n != 2 {
		c.t.Fatalf("EACH %s answers %.100q, want two elements", line, reply)
	}
	var s resp.Scanner
	s.Scan(reply[header:])
	bitmap, _ := resp.DecodeBulk(reply[header : header+s.Len()])
	if len(bitmap) != len(covered) {
		c.t.Fatalf("EACH %s covers %d bytes of partitions", line, len(bitmap))
	}
	return ring.PartitionSet(bitmap), reply[header+s.Len():]
}

func inText(reply []byte) string {
	text := conversation.Text(reply)
	return text
}

func TestEach(t *testing.T) {
	n := startBare(t)
	v := sharedView(n, "theirs")
	v.Standing[partitionOf("soon")] = ownership.Gained
	setView(n, v)
	c := openPipeTo(t, n, 1, 0, "large", 1, 2)
	c.want("MSET a 1 b 2 c 3", "OK")

	covered, reply := c.each(&allPartitions, "DBSIZE")
	if got := inText(reply); got != "(integer) 3" {
		t.Errorf("DBSIZE of all is %s", got)
	}
	want := allPartitions
	want.Remove(partitionOf("theirs"))
	want.Remove(partitionOf("soon"))
	if covered != want {
		t.Error("DBSIZE does not cover exactly what is served")
	}

	var some ring.PartitionSet
	some.Add(partitionOf("a"))
	some.Add(partitionOf("c"))
	some.Add(partitionOf("theirs"))
	covered, reply = c.each(&some, "KEYS *")
	if got := conversation.Sorted(inText(reply)); got != "\"a\"\n\"c\"" {
		t.Errorf("KEYS of two partitions is %s", got)
	}
	some.Remove(partitionOf("theirs"))
	if covered != some {
		t.Error("KEYS does not cover exactly what is wanted and served")
	}
	if _, reply = c.each(&some, "FLUSHALL"); inText(reply) != "OK" {
		t.Errorf("FLUSHALL answers %s", inText(reply))
	}
	c.want("MGET a b c", "1) (nil)\n2) \"2\"\n3) (nil)")

	c.sendArgs([]byte("DUNLIN"), []byte("EACH"), allPartitions[:], []byte("GET"), []byte("b"))
	if got := c.next(); !strings.HasPrefix(got, "(error) ERR") {
		t.Errorf("EACH GET answers %s, want an error", got)
	}
	c.want("DUNLIN EACH short DBSIZE", "(error) ERR partitions must be a bitmap of 512 bytes")
	for line, want := range map[string]string{
		"SCAN x": "(error) ERR invalid cursor", "SCAN 0 COUNT 0": "(error) ERR syntax error",
		"FLUSHALL NOW": "(error) ERR syntax error", "NOSUCH 1": "(error) ERR unknown command",
		"DBSIZE 1": "(error) ERR wrong number of arguments for 'dbsize' command",
	} {
		c.sendArgs(append([][]byte{[]byte("DUNLIN"), []byte("EACH"), allPartitions[:]}, words(t, line)...)...)
		if got := c.next(); !strings.HasPrefix(got, want) {
			t.Errorf("EACH %s answers %s, want %s", line, got, want)
		}
	}
}

func TestEachWhileFenced(t *testing.T) {
	n := startNode(t)
	source := &fakeSource{table: n.view.Load().Table, confirm: make(chan *ring.Table)}
	n.SetAgent(source)
	n.Fence("test")
	c := openPipeTo(t, n, 1, 0, "large", 1, 2)
	for _, line := range []string{"DBSIZE", "KEYS *", "SCAN 0"} {
		if covered, _ := c.each(&allPartitions, line); covered != (ring.PartitionSet{}) {
			t.Errorf("EACH %s covers partitions while fenced", line)
		}
	}
}

func TestEachInfo(t *testing.T) {
	n := startNode(t)
	c := openPipeTo(t, n, 1, 0, "large", 1, 2)
	c.want("MSET a 1 b 2", "OK")
	c.want("GET a", `"1"`)
	c.want("GET missing", "(nil)")
	_, reply := c.each(&allPartitions, "INFO")
	got, ok := figures.DecodeCounters(reply)
	if !ok {
		t.Fatalf("EACH INFO answers %.100q", reply)
	}
	if got.Keys != 2 || got.Hits != 1 || got.Misses != 1 || got.MaxMemory != 64<<20 || got.UsedMemory == 0 {
		t.Errorf("counters are %+v", got)
	}
}

// TestEachScan walks everything in steps, as a proxy does.
func TestEachScan(t *testing.T) {
	n := startNode(t)
	c := openPipeTo(t, n, 1, 0, "large", 1, 2)
	want := fill(c, 500)
	for _, count := range []int{1, 7, 100, 10_000} {
		var got []string
		cursor, steps := "0", 0
		for ; cursor != "-1"; steps++ {
			_, reply := c.each(&allPartitions, fmt.Sprintf("SCAN %s COUNT %d", cursor, count))
			lines := strings.Split(inText(reply), "\n")
			cursor = strings.TrimPrefix(lines[0], "1) (integer) ")
			for _, l := range lines[1:] {
				if l != "2) (empty array)" {
					got = append(got, conversation.Unnumbered(l))
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("COUNT %d: %d keys in %d steps, want the %d each once", count, len(got), steps, len(want))
		}
		if count == 10_000 && steps != 1 {
			t.Errorf("one COUNT for everything took %d steps", steps)
		}
	}
}

// fill stores n keys and returns them, quoted and sorted.
func fill(c *client, n int) (keys []string) {
	c.t.Helper()
	for i := range n {
		key := fmt.Sprintf("key:%d", i)
		c.want("SET "+key+" v", "OK")
		keys = append(keys, conversation.Quote([]byte(key)))
	}
	slices.Sort(keys)
	return keys
}

// TestScan walks a client's cursor while keys come and go: those that stay are
// found, each once.
func TestScan(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	want := fill(c, 300)
	seen := map[string]int{}
	cursor := "0"
	for step := 0; ; step++ {
		lines := strings.Split(c.do("SCAN "+cursor+" COUNT 20 MATCH key:*"), "\n")
		cursor = strings.Trim(strings.TrimPrefix(lines[0], "1) "), `"`)
		for _, l := range lines[1:] {
			seen[conversation.Unnumbered(l)]++
		}
		if cursor == "0" {
			break
		}
		c.do(fmt.Sprintf("SET other:%d v", step))
		c.do(fmt.Sprintf("DEL other:%d", step-3))
	}
	for _, key := range want {
		if seen[key] != 1 {
			t.Errorf("%s was found %d times", key, seen[key])
		}
	}
	// A cursor from nowhere ends the walk instead of failing.
	c.want("SCAN 18446744073709551615", "1) \"0\"\n2) (empty array)")
}
