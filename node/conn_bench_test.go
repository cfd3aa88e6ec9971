package node

import (
	"fmt"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// BenchmarkOnData executes input on a connection's loop, without the socket: ns/op
// is per command.
func BenchmarkOnData(b *testing.B) {
	value := "0123456789012345678901234567890123456789012345678901234567890123"
	f := func(name string, batch int, line func(i int) string) {
		b.Run(name, func(b *testing.B) {
			n := startNode(b)
			var input []byte
			for i := range batch {
				input = resp.AppendRequest(input, words(b, line(i))...)
			}
			b.ReportAllocs()
			onLoop(b, n, func(cn *conn) {
				out := make([]byte, 0, 64<<10)
				b.ResetTimer()
				for range b.N / batch {
					cn.socket.SetOut(out[:0])
					cn.OnData(cn.socket, input)
				}
			})
		})
	}
	set := func(i int) string { return fmt.Sprintf("SET key:%012d %s", i*7919%1000, value) }
	get := func(i int) string { return fmt.Sprintf("GET key:%012d", i*7919%1000) }
	f("SET/batch1", 1, set)
	f("GET/batch1", 1, get)
	f("SET/batch64", 64, set)
	f("GET/batch64", 64, get)
}
