package test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// replyTimeout is for how long a test waits for one reply. It is above the 5 s for
// which a proxy holds a command, so that a hang and a late answer can be told apart.
const replyTimeout = 10 * time.Second

// wire is a plain connection: what it sends and receives is exactly what the
// test says, where a client library would repair, retry and reorder.
type wire struct {
	t    testing.TB
	conn net.Conn
	in   []byte // received and not yet returned
}

func dialWire(t testing.TB, addr string) *wire {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, replyTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &wire{t: t, conn: conn}
}

func (w *wire) send(b []byte) {
	w.t.Helper()
	_ = w.conn.SetWriteDeadline(time.Now().Add(replyTimeout))
	if _, err := w.conn.Write(b); err != nil {
		w.t.Fatalf("cannot send: %v", err)
	}
}

// read returns the next whole reply, or io.EOF if the connection was closed
// between two replies. A connection closed within one is another error.
func (w *wire) read() ([]byte, error) {
	_ = w.conn.SetReadDeadline(time.Now().Add(replyTimeout))
	var s resp.Scanner
	piece := make([]byte, 64<<10)
	for {
		switch s.Scan(w.in) {
		case resp.Done:
			reply := w.in[:s.Len():s.Len()]
			w.in = w.in[s.Len():]
			return reply, nil
		case resp.Malformed:
			return nil, fmt.Errorf("malformed reply %.100q", w.in)
		}
		n, err := w.conn.Read(piece)
		w.in = append(w.in, piece[:n]...)
		if err != nil && n == 0 {
			if len(w.in) > 0 {
				return nil, fmt.Errorf("closed within a reply, after %.100q: %w", w.in, err)
			}
			return nil, err
		}
	}
}

// sendSome opens a connection, sends b without reading any reply, and hangs up: in
// order, or by a reset.
func sendSome(addr string, b []byte, reset bool) {
	conn, err := net.DialTimeout("tcp", addr, replyTimeout)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = conn.Write(b) // the server may have stopped reading
	if reset {
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
}

// do sends a request line in redis-cli's quoting.
func (w *wire) do(line string) []byte {
	w.t.Helper()
	var p resp.Parser
	if p.Parse([]byte(line+"\r\n")) != resp.Done {
		w.t.Fatalf("cannot split %q: %s", line, p.Err())
	}
	w.send(resp.AppendRequest(nil, p.Args()...))
	return w.next()
}

// next is read for tests that know what comes; nil stands for the end.
func (w *wire) next() []byte {
	w.t.Helper()
	reply, err := w.read()
	if err != nil && err != io.EOF && !strings.Contains(err.Error(), "connection reset") {
		w.t.Fatal(err)
	}
	return reply
}

// want sends a line and compares its reply as text.
func (w *wire) want(line, want string) {
	w.t.Helper()
	if got := conversation.Text(w.do(line)); got != want {
		w.t.Errorf("%s answers\n%s\nwant\n%s", line, got, want)
	}
}

// write is send for where the end may come at any time.
func (w *wire) write(b []byte) error {
	_ = w.conn.SetWriteDeadline(time.Now().Add(replyTimeout))
	_, err := w.conn.Write(b)
	return err
}
