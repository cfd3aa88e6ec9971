package netloop

import (
	"io"
	"net"
	"testing"
	"time"
)

// echo sends back what it gets.
type echo struct{}

func (echo) OnData(c *Conn, in []byte) int {
	c.SetOut(append(c.Out(), in...))
	return len(in)
}

func (echo) OnClose(*Conn, error) {}

func TestEcho(t *testing.T) {
	g, err := NewGroup(Config{Loops: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ln, err := g.Listen("127.0.0.1:0", func(*Conn) Handler { return echo{} })
	if err != nil {
		t.Fatal(err)
	}
	nc, err := net.DialTimeout("tcp", ln.Addr(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for range 3 {
		if _, err := nc.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 5)
		if _, err := io.ReadFull(nc, got); err != nil || string(got) != "hello" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}
