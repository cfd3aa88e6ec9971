package node

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/hyperloglogs"
)

// TestSketchesAsInRedis makes the same random additions and merges here and in a real redis-server,
// and compares replies and whole values: sparse, dense, and on the way from one to the other.
func TestSketchesAsInRedis(t *testing.T) {
	forOneClient(t)
	real, ours := dial(t, redistest.Start(t)), dial(t, startNode(t).Addr())
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	sizes := []int{1, 10, 100, 1000, 5000}
	steps := 400
	if testing.Short() {
		steps = 120
	}
	for i := range steps {
		a, b, c := random.IntN(6), random.IntN(6), random.IntN(6)
		line := fmt.Sprintf("PFMERGE {h}%d {h}%d {h}%d", a, b, c)
		switch random.IntN(8) {
		case 0:
			line = fmt.Sprintf("DEL {h}%d {h}%d", a, b)
		case 1:
		case 2:
			line = fmt.Sprintf("PFCOUNT {h}%d", a)
		case 3:
			line = fmt.Sprintf("PFCOUNT {h}%d {h}%d", b, c)
		default:
			var elements strings.Builder
			for range random.IntN(sizes[random.IntN(len(sizes))]) {
				fmt.Fprintf(&elements, " %d", random.IntN(20_000))
			}
			line = fmt.Sprintf("PFADD {h}%d%s", a, elements.String())
		}
		for _, line := range []string{line, fmt.Sprintf("GET {h}%d", a)} {
			ours.send(line)
			real.send(line)
			if got, want := ours.read(), real.read(); !bytes.Equal(got, want) {
				t.Fatalf("seed %d, step %d: %.60s answers\n%.200q\nwant\n%.200q", seed, i, line, got, want)
			}
		}
	}
}

// TestBrokenSketches: whatever is stored in the place of a HyperLogLog, every command answers, and
// an error changes nothing.
func TestBrokenSketches(t *testing.T) {
	c := dial(t, startNode(t).Addr())
	random := rand.New(rand.NewPCG(1, 1))
	c.send("PFADD {h}good a b c d e f g h i j k l m n o p q r s t u v w x y z")
	c.read()
	c.send("GET {h}good")
	good, _ := resp.DecodeBulk(c.read())
	for range 200 {
		broken := bytes.Clone(good)
		for range 1 + random.IntN(4) {
			at := random.IntN(len(broken))
			switch random.IntN(3) {
			case 0:
				broken[at] = byte(random.Uint32())
			case 1:
				broken = append(broken[:at], broken[min(at+1+random.IntN(3), len(broken)):]...)
			case 2:
				broken = append(broken, broken[at:min(at+random.IntN(20), len(broken))]...)
			}
			if len(broken) == 0 {
				broken = append(broken, 'H')
			}
		}
		for _, line := range []string{"PFADD {h}bad more and more", "PFMERGE {h}bad {h}good", "PFMERGE {h}to {h}bad", "PFCOUNT {h}bad",
			"PFCOUNT {h}bad {h}good"} {
			c.sendArgs([]byte("SET"), []byte("{h}bad"), broken)
			c.send(line)
			c.send("GET {h}bad")
			c.read()
			reply := string(c.read())
			after, _ := resp.DecodeBulk(c.read())
			if reply[0] != '-' {
				continue
			}
			if reply != "-"+hyperloglogs.ErrCorruptSketch+"\r\n" && reply != "-"+hyperloglogs.ErrNoSketch+"\r\n" || !bytes.Equal(after, broken) {
				t.Fatalf("%s on %q answers %q and leaves %q", line, broken, reply, after)
			}
		}
	}
}

// TestLongSketches: a string that begins like a HyperLogLog, but is far too long, is not looked
// through.
func TestLongSketches(t *testing.T) {
	c := dial(t, startNode(t).Addr())
	long := append([]byte("HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80"), make([]byte, 5<<20)...)
	for _, line := range []string{"PFADD {h}long x", "PFCOUNT {h}long", "PFCOUNT {h}long {h}b", "PFMERGE {h}long", "PFMERGE {h}b {h}long"} {
		c.sendArgs([]byte("SET"), []byte("{h}long"), long)
		c.next()
		c.want(line, "(error) "+hyperloglogs.ErrCorruptSketch)
	}
	c.want("STRLEN {h}long", fmt.Sprintf("(integer) %d", len(long)))
	c.want("PFMERGE {h}b"+strings.Repeat(" {h}a", hyperloglogs.MaxUnion), "(error) "+hyperloglogs.ErrUnionTooLarge)
	c.want("PFCOUNT"+strings.Repeat(" {h}a", hyperloglogs.MaxUnion), "(integer) 0")
}

// TestWatchedSketches: what changes a HyperLogLog in its place is a change to those who watch it,
// and what does not is none.
func TestWatchedSketches(t *testing.T) {
	n := startNode(t)
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	elements := ""
	for i := range 4000 {
		elements += fmt.Sprintf(" %d", i)
	}
	c.want("PFADD h"+elements, "(integer) 1")
	c.want("STRLEN h", "(integer) 12304") // dense
	for _, said := range [][2]string{{"PFADD h 1", "1) OK"}, {"PFADD h new", "(nil)"}, {"PFCOUNT h", "(nil)"}, {"PFCOUNT h", "1) OK"}, {"PFMERGE h h", "(nil)"}} {
		c.want("WATCH h", "OK")
		other.do(said[0])
		c.want("MULTI", "OK")
		c.want("SET {h}k v", "QUEUED")
		if got := c.do("EXEC"); got != said[1] {
			t.Errorf("after %s EXEC answers %s, want %s", said[0], got, said[1])
		}
	}
}
