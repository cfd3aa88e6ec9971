package resp

import (
	"bytes"
	"fmt"
	"testing"
)

// repeated returns copies of one message, as one read of a pipelining connection would.
func repeated(message []byte, times int) []byte { return bytes.Repeat(message, times) }

func benchmarkParser(b *testing.B, name string, args ...string) {
	b.Run(name, func(b *testing.B) {
		var list [][]byte
		for _, a := range args {
			list = append(list, []byte(a))
		}
		request := AppendRequest(nil, list...)
		batch := repeated(request, max(1, 16<<10/len(request)))
		var p Parser
		p.SetLimits(DefaultLimits)
		b.SetBytes(int64(len(request)))
		b.ReportAllocs()
		b.ResetTimer()
		rest := batch
		for range b.N {
			if p.Parse(rest) != Done {
				b.Fatal("not done")
			}
			if rest = rest[p.Len():]; len(rest) == 0 {
				rest = batch
			}
		}
	})
}

func BenchmarkParser(b *testing.B) {
	benchmarkParser(b, "PING", "PING")
	benchmarkParser(b, "GET/key=16", "GET", "key:000000000001")
	benchmarkParser(b, "SET/value=64", "SET", "key:000000000001", string(make([]byte, 64)))
	benchmarkParser(b, "SET/value=1024", "SET", "key:000000000001", string(make([]byte, 1024)))
	keys := []string{"MGET"}
	for i := range 100 {
		keys = append(keys, fmt.Sprintf("key:%012d", i))
	}
	benchmarkParser(b, "MGET/keys=100", keys...)
}

// BenchmarkParserOneByte: its cost is per byte that arrives alone: a resumption each.
func BenchmarkParserOneByte(b *testing.B) {
	request := AppendRequest(nil, []byte("SET"), []byte("key:000000000001"), make([]byte, 64))
	var p Parser
	b.ReportAllocs()
	for n := 0; n < b.N; {
		for i := 1; i <= len(request); i++ {
			p.Parse(request[:i])
			n++
		}
	}
}

func benchmarkScanner(b *testing.B, name string, reply []byte) {
	b.Run(name, func(b *testing.B) {
		batch := repeated(reply, max(1, 16<<10/len(reply)))
		var s Scanner
		b.SetBytes(int64(len(reply)))
		b.ReportAllocs()
		b.ResetTimer()
		rest := batch
		for range b.N {
			if s.Scan(rest) != Done {
				b.Fatal("not done")
			}
			if rest = rest[s.Len():]; len(rest) == 0 {
				rest = batch
			}
		}
	})
}

func BenchmarkScanner(b *testing.B) {
	benchmarkScanner(b, "OK", []byte("+OK\r\n"))
	benchmarkScanner(b, "Int", []byte(":12345\r\n"))
	benchmarkScanner(b, "Null", []byte("$-1\r\n"))
	benchmarkScanner(b, "Bulk/value=3", AppendBulk(nil, []byte("abc")))
	benchmarkScanner(b, "Bulk/value=64", AppendBulk(nil, make([]byte, 64)))
	benchmarkScanner(b, "Bulk/value=1024", AppendBulk(nil, make([]byte, 1024)))
	array := AppendArray(nil, 100)
	for range 100 {
		array = AppendBulk(array, make([]byte, 16))
	}
	benchmarkScanner(b, "Array/bulks=100", array)
	wrongType := "WRONGTYPE Operation against a key holding the wrong kind of value"
	benchmarkScanner(b, "Error", AppendError(nil, wrongType))
}

func BenchmarkEncode(b *testing.B) {
	buf := make([]byte, 0, 4096)
	value := make([]byte, 64)
	key := []byte("key:000000000001")
	get := []byte("GET")
	cases := map[string]func(){
		"Int":      func() { buf = AppendInt(buf[:0], 12345) },
		"Bulk/64":  func() { buf = AppendBulk(buf[:0], value) },
		"Request":  func() { buf = AppendRequest(buf[:0], get, key) },
		"Simple":   func() { buf = AppendSimple(buf[:0], "OK") },
		"ParseInt": func() { ParseInt(key[4:]) },
	}
	for name, f := range cases {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				f()
			}
		})
	}
}
