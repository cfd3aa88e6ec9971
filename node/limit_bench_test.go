package node

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkLimit writes twice the limit in collections and strings that change size and kind, and shows
// which share of the limit is live data then: records, parts of big values and indexes. An operation is
// a command, of 25 elements on average.
//
//	go test -run '^$' -bench Limit -benchtime 1x ./node
func BenchmarkLimit(b *testing.B) {
	for _, mb := range []int64{96, 192, 512} {
		b.Run(fmt.Sprint(mb), func(b *testing.B) {
			for b.Loop() {
				limitRun(b, mb<<20)
			}
		})
	}
}

// limitRun is one run. Its commands are the same each time.
func limitRun(b *testing.B, memory int64) {
	n := startLeveled(b, func(c *Config) { c.Memory, c.Shards = memory, 0 })
	c := dial(b, n.Addr())
	r := rand.New(rand.NewPCG(1, uint64(memory)))
	commands, pending := 0, 0
	least, longest := 1, 1000 // bytes of an element, which change with time
	for written := int64(0); written < 2*memory; commands++ {
		if commands%2000 == 0 {
			least = 1 << r.IntN(8)
			longest = least << r.IntN(4)
		}
		size, elements := least+r.IntN(longest), 1+r.IntN(50)
		if r.IntN(50) == 0 {
			elements *= 20
		}
		args := limitCommand(r, elements, size)
		for _, arg := range args {
			written += int64(len(arg))
		}
		c.sendArgs(args...)
		if pending++; pending == 20 {
			for ; pending > 0; pending-- {
				c.read()
			}
		}
	}
	for ; pending > 0; pending-- {
		c.read()
	}
	st := n.engine.Stats()
	b.ReportMetric(float64(st.Values+st.Parts+st.Index)/float64(st.Max-st.Fixed-st.Outside), "live")
	b.ReportMetric(float64(st.Slack)/(1<<20), "slack-MB")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(commands), "ns/command")
	if err := n.Close(); err != nil {
		b.Error(err)
	}
}

// limitCommand returns a command that gives a random key a few elements of any size up to twice size,
// or now and then deletes it.
func limitCommand(r *rand.Rand, elements, size int) [][]byte {
	kind := r.IntN(6)
	key := fmt.Appendf(nil, "%c%d", "hlszkk"[kind], r.IntN(20_000))
	element := func() []byte {
		b := make([]byte, 1+r.IntN(2*size))
		for i := range min(len(b), 8) {
			b[i] = byte('a' + r.IntN(26))
		}
		return b
	}
	if r.IntN(20) == 0 {
		return [][]byte{[]byte("DEL"), key}
	}
	if kind >= 4 {
		return [][]byte{[]byte("SET"), key, make([]byte, 1+r.IntN(elements*size))}
	}
	args := [][]byte{[]byte([]string{"HSET", "RPUSH", "SADD", "ZADD"}[kind]), key}
	for range elements {
		switch kind {
		case 0:
			args = append(args, element(), element())
		case 3:
			args = append(args, fmt.Append(nil, r.IntN(1000)), element())
		default:
			args = append(args, element())
		}
	}
	return args
}
