package session

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

func BenchmarkSession(b *testing.B) {
	table := tableOf("10.0.0.1:6380", "10.0.0.2:6380", "10.0.0.3:6380")
	for p := range table.Owner { // as ragged as a ring
		table.Owner[p] = uint16(p % 3)
	}
	s := NewServer(ServerOptions{Cluster: func() View { return View{Table: table, Self: "node-0"} }})
	run := func(name string, request ...string) {
		b.Run(name, func(b *testing.B) {
			st := s.NewState("127.0.0.1:50000", "127.0.0.1:6379", 0)
			var args [][]byte
			for _, word := range request {
				args = append(args, []byte(word))
			}
			c := command.Lookup(args[0])
			dst := make([]byte, 0, 1<<20)
			b.ReportAllocs()
			for b.Loop() {
				s.Do(st, c, args, dst)
			}
		})
	}
	run("Ping", "PING")
	run("Hello", "HELLO", "3")
	run("ClientInfo", "CLIENT", "INFO")
	run("Command", "COMMAND")
	run("ClusterSlots", "CLUSTER", "SLOTS")
	b.Run("Info", func(b *testing.B) {
		dst := make([]byte, 0, 1<<20)
		b.ReportAllocs()
		for b.Loop() {
			s.AppendInfo(dst, resp.RESP3, nil, Info{})
		}
	})
}
