package node

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// BenchmarkOnData executes input on a connection's loop, without the socket: ns/op
// is per command.
func BenchmarkOnData(b *testing.B) {
	value := "0123456789012345678901234567890123456789012345678901234567890123"
	set := func(i int) string { return fmt.Sprintf("SET key:%012d %s", i*7919%1000, value) }
	get := func(i int) string { return fmt.Sprintf("GET key:%012d", i*7919%1000) }
	fill := set
	f := func(name string, batch int, line func(i int) string) {
		b.Run(name, func(b *testing.B) {
			n := startLeveled(b)
			var input []byte
			for i := range batch {
				input = resp.AppendRequest(input, words(b, line(i))...)
			}
			b.ReportAllocs()
			onLoop(b, n, func(cn *conn) {
				for i := range 1000 {
					cn.OnData(cn.Socket, resp.AppendRequest(nil, words(b, fill(i))...))
				}
				out := make([]byte, 0, 64<<10)
				b.ResetTimer()
				before := threadTime()
				for range b.N / batch {
					cn.Socket.SetOut(out[:0])
					cn.OnData(cn.Socket, input)
				}
				b.ReportMetric(float64(threadTime()-before)/float64(b.N), "cpu-ns/op")
			})
		})
	}
	f("SET/batch1", 1, set)
	f("SET/batch16", 16, set)
	f("GET/batch16", 16, get)
	f("GET/batch1", 1, get)
	f("SET/batch64", 64, set)
	f("GET/batch64", 64, get)
	for _, kind := range []string{"big", "packed"} {
		field := func(verb, value string) func(i int) string {
			return func(i int) string {
				if kind == "big" {
					return fmt.Sprintf("%s hash field:%06d %s", verb, i*7919%1000, value)
				}
				return fmt.Sprintf("%s hash:%06d field:%d %s", verb, i*7919%1000/8, i%8, value)
			}
		}
		fill = field("HSET", value)
		f("HSET/"+kind+"/batch64", 64, fill)
		f("HGET/"+kind+"/batch64", 64, field("HGET", ""))
	}
}

// threadTime is the processor time that the calling thread has had, in nanoseconds.
func threadTime() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}
