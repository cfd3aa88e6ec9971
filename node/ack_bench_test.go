package node

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// BenchmarkAck acknowledges what is pending in a group, of which there are 200,000 entries: the oldest ones
// first, as consumers do, or in any order. It executes 16 commands at a time, without the socket; cpu-ns is
// of an entry.
func BenchmarkAck(b *testing.B) {
	for _, random := range []bool{false, true} {
		for _, atOnce := range []int{1, 10} {
			for _, consumers := range []int{1, 10} {
				b.Run(fmt.Sprintf("random=%t/ids=%d/consumers=%d", random, atOnce, consumers), func(b *testing.B) {
					benchAck(b, random, atOnce, consumers)
				})
			}
		}
	}
}

func benchAck(b *testing.B, random bool, atOnce, consumers int) {
	const entries, pipeline = 200_000, 16
	n := startLeveled(b, func(c *Config) { c.Memory = 256 << 20 })
	order := make([]int, entries)
	for i := range order {
		order[i] = i
	}
	if random {
		order = rand.New(rand.NewPCG(1, 1)).Perm(entries)
	}
	var batches [][]byte
	for at := 0; at+pipeline*atOnce <= entries; at += pipeline * atOnce {
		var batch []byte
		for i := 0; i < pipeline; i++ {
			args := words(b, "XACK stream group")
			for _, e := range order[at+i*atOnce : at+(i+1)*atOnce] {
				args = append(args, benchEntryID(e))
			}
			batch = resp.AppendRequest(batch, args...)
		}
		batches = append(batches, batch)
	}
	onLoop(b, n, func(cn *conn) {
		out := make([]byte, 0, 64<<10)
		do := func(input []byte) {
			cn.Socket.SetOut(out[:0])
			cn.OnData(cn.Socket, input)
		}
		var took int64
		for done := 0; done < b.N; {
			b.StopTimer()
			fillAck(b, do, entries, consumers)
			b.StartTimer()
			begun := threadTime()
			for i := 0; i < len(batches) && done < b.N; i++ {
				do(batches[i])
				done += pipeline * atOnce
			}
			took += threadTime() - begun
		}
		b.ReportMetric(float64(took)/float64(b.N), "cpu-ns/op")
	})
}

func benchEntryID(i int) []byte { return fmt.Appendf(nil, "%d-%d", 1_700_000_000_000+i/3, i%3) }

// fillAck makes a stream all of whose entries are pending, of consumers in turns.
func fillAck(b *testing.B, do func(input []byte), entries, consumers int) {
	const atOnce = 50
	line := func(s string) { do(resp.AppendRequest(nil, words(b, s)...)) }
	line("DEL stream")
	line("XGROUP CREATE stream group 0 MKSTREAM")
	for i := 0; i < entries; i += atOnce {
		for e := range atOnce {
			line(fmt.Sprintf("XADD stream %s sensor %d", benchEntryID(i+e), i+e))
		}
		line(fmt.Sprintf("XREADGROUP GROUP group consumer-%d COUNT %d STREAMS stream >", i/atOnce%consumers, atOnce))
	}
}
