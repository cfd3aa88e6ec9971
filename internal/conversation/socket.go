package conversation

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Socket is a Talker that talks to a server's address. It has one connection at a time.
type Socket struct {
	Addr string
	conn net.Conn
	buf  []byte // what was read last, before it is part of a reply
}

// Connect is Talker's. The connection before it is closed.
func (s *Socket) Connect(t *testing.T) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if s.conn != nil {
		s.conn.Close()
	}
	t.Cleanup(func() { conn.Close() })
	s.conn = conn
}

// Talk is Talker's.
func (s *Socket) Talk(t *testing.T, request [][]byte, expectClose bool) (reply []byte, closed bool) {
	t.Helper()
	if _, err := s.conn.Write(resp.AppendRequest(nil, request...)); err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	if err := s.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if expectClose {
		reply, err := io.ReadAll(s.conn)
		return reply, err == nil || errors.Is(err, syscall.ECONNRESET)
	}
	var scan resp.Scanner
	if s.buf == nil {
		s.buf = make([]byte, 64<<10)
	}
	for scan.Scan(reply) == resp.NeedMore {
		n, err := s.conn.Read(s.buf)
		reply = append(reply, s.buf[:n]...)
		if err != nil {
			return reply, true
		}
	}
	return reply, false
}

// Say is Talk for a request written as words of one line, see Words. The connection stays open.
func (s *Socket) Say(t *testing.T, request string) string {
	t.Helper()
	reply, _ := s.Talk(t, Words(t, request), false)
	return string(reply)
}
