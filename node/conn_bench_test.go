package node

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// onDataBench executes input on a connection's loop, without the socket.
type onDataBench struct {
	*testing.B
	// fill makes the values, in so many commands, and makes them anew after so many batches (0: never).
	fill         func(i int) string
	fills, again int
}

// run executes a line in batches: ns/op is per command.
func (b *onDataBench) run(name string, batch int, line func(i int) string) {
	fill, fills, again := b.fill, b.fills, b.again
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

// BenchmarkOnData has strings and collections, small and big.
func BenchmarkOnData(b *testing.B) {
	value := "0123456789012345678901234567890123456789012345678901234567890123"
	set := func(i int) string { return fmt.Sprintf("SET key:%012d %s", i*7919%1000, value) }
	get := func(i int) string { return fmt.Sprintf("GET key:%012d", i*7919%1000) }
	x := &onDataBench{B: b, fill: set, fills: 1000}
	f := x.run
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
		x.fill = field("HSET", value)
		f("HSET/"+kind+"/batch64", 64, x.fill)
		f("HGET/"+kind+"/batch64", 64, field("HGET", ""))
	}
	always := func(s string) func(int) string { return func(int) string { return s } }
	x.again, x.fills = 2000, 1
	x.fill = always("DEL list")
	for _, verb := range []string{"LPUSH", "RPUSH"} {
		f(verb+"/big/batch64", 64, always(verb+" list "+value))
	}
	x.fills, x.again = 1000, 0
	for _, bytes := range []int{500, 1000, 2000, 4000} {
		n := bytes / (len(value) + 1)
		x.fill = func(i int) string { return fmt.Sprintf("RPUSH queue:%d", i%1000) + strings.Repeat(" "+value, n-1) }
		turns := -1
		f(fmt.Sprintf("queue/%d/batch64", bytes), 64, func(i int) string {
			if turns++; turns%2 == 0 {
				return fmt.Sprintf("RPUSH queue:%d %s", i/2*7919%1000, value)
			}
			return fmt.Sprintf("LPOP queue:%d", i/2*7919%1000)
		})
	}
	x.again = 2000
	x.fill = func(i int) string {
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
	x.fill, x.fills = member("SADD"), 100_000
	f("SADD/big/batch64", 64, member("SADD"))
	x.again = 1000
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
