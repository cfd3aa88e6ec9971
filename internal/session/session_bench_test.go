package session

import (
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
)

func BenchmarkSession(b *testing.B) {
	s := NewServer(Options{})
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
}
