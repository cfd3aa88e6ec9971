package command

import "testing"

// Names of a mixed load, so that branches are not simply learned.
var benchNames = request("get", "SET", "mget", "Expire", "incrby", "PEXPIREAT", "del", "hincrbyfloat")

func BenchmarkLookup(b *testing.B) {
	f := func(name string, names [][]byte) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				Lookup(names[i%len(names)])
				i++
			}
		})
	}
	f("GET", request("GET"))
	f("Mixed", benchNames)
	f("Longest", request("GEORADIUSBYMEMBER_RO"))
	f("Unknown", request("nosuchcommand"))
}

func BenchmarkResolve(b *testing.B) {
	f := func(name string, args ...string) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			req := request(args...)
			for b.Loop() {
				Resolve(nil, req)
			}
		})
	}
	f("GET", "get", "k")
	f("ClientSetInfo", "client", "setinfo", "LIB-NAME", "x")
}

func BenchmarkKeys(b *testing.B) {
	f := func(name string, args ...string) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			req := request(args...)
			c := Lookup(req[0])
			dst := make([]int, 0, 16)
			for b.Loop() {
				c.AppendKeys(dst, req)
			}
		})
	}
	f("GET", "get", "k")
	f("MGET3", "mget", "a", "b", "c")
	f("EVAL2", "eval", "s", "2", "a", "b")
}
