package node

import (
	"fmt"
	"strings"
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
	fill, fills, again := set, 1000, 0 // again: after how many batches the values are filled again
	f := func(name string, batch int, line func(i int) string) {
		b.Run(name, func(b *testing.B) {
			n := startLeveled(b)
			var input []byte
			for i := range batch {
				input = resp.AppendRequest(input, words(b, line(i))...)
			}
			b.ReportAllocs()
			onLoop(b, n, func(cn *conn) {
				out := make([]byte, 0, 64<<10)
				refill := func() {
					for i := range fills {
						cn.Socket.SetOut(out[:0])
						cn.OnData(cn.Socket, resp.AppendRequest(nil, words(b, fill(i))...))
					}
				}
				refill()
				b.ResetTimer()
				before := threadTime()
				for done := range b.N / batch {
					if again > 0 && done%again == again-1 {
						b.StopTimer()
						pause := threadTime()
						refill()
						before += threadTime() - pause
						b.StartTimer()
					}
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
	always := func(s string) func(int) string { return func(int) string { return s } }
	again, fills = 2000, 1
	fill = always("DEL list")
	for _, verb := range []string{"LPUSH", "RPUSH"} {
		f(verb+"/big/batch64", 64, always(verb+" list "+value))
	}
	fills, again = 1000, 0
	for _, bytes := range []int{500, 1000, 2000, 4000} {
		n := bytes / (len(value) + 1)
		fill = func(i int) string { return fmt.Sprintf("RPUSH queue:%d", i%1000) + strings.Repeat(" "+value, n-1) }
		turns := -1
		f(fmt.Sprintf("queue/%d/batch64", bytes), 64, func(i int) string {
			if turns++; turns%2 == 0 {
				return fmt.Sprintf("RPUSH queue:%d %s", i/2*7919%1000, value)
			}
			return fmt.Sprintf("LPOP queue:%d", i/2*7919%1000)
		})
	}
	again = 2000
	fill = func(i int) string {
		if i == 0 {
			return "DEL list"
		}
		return "LPUSH list" + strings.Repeat(" "+value, 129)
	}
	f("LPOP/big/batch64", 64, always("LPOP list"))
	f("LRANGE/100/batch16", 16, always("LRANGE list 0 99"))
	f("LRANGE/600/batch16", 16, always("LRANGE list 0 599"))
	member := func(verb string) func(i int) string {
		return func(i int) string { return fmt.Sprintf("%s set element:%012d", verb, i*7919%100_000) }
	}
	fill, fills = member("SADD"), 100_000
	f("SADD/big/batch64", 64, member("SADD"))
	again = 1000
	f("SPOP/big/batch64", 64, always("SPOP set"))
}

// threadTime is the processor time that the calling thread has had, in nanoseconds.
func threadTime() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}
