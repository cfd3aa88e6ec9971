package harness

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

// ReplyTimeout is how long a test waits for one reply. It is longer than ParkTime, so that a test
// can tell a hang from a late answer.
const ReplyTimeout = 10 * time.Second

// Wire is a raw connection. It sends exactly the bytes that the test passes, where a client library
// would repair, retry and reorder. It fails the test on errors, so only the test's goroutine may
// use it.
type Wire struct {
	T    testing.TB
	Conn net.Conn
	In   []byte // received and not yet returned
}

// DialWire connects to a server. The end of the test closes the connection.
func DialWire(t testing.TB, addr string) *Wire {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, ReplyTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &Wire{T: t, Conn: conn}
}

// Send writes b. The test fails if that does not succeed within ReplyTimeout.
func (w *Wire) Send(b []byte) {
	w.T.Helper()
	_ = w.Conn.SetWriteDeadline(time.Now().Add(ReplyTimeout))
	if _, err := w.Conn.Write(b); err != nil {
		w.T.Fatalf("cannot send: %v", err)
	}
}

// Read returns the next whole reply, or io.EOF if the connection was closed
// between two replies. A connection closed within one is another error.
func (w *Wire) Read() ([]byte, error) {
	_ = w.Conn.SetReadDeadline(time.Now().Add(ReplyTimeout))
	var s resp.Scanner
	for {
		switch s.Scan(w.In) {
		case resp.Done:
			reply := w.In[:s.Len():s.Len()]
			w.In = w.In[s.Len():]
			return reply, nil
		case resp.Malformed:
			return nil, fmt.Errorf("malformed reply %.100q", w.In)
		}
		had := len(w.In)
		var err error
		if w.In, err = readMore(w.Conn, w.In); err != nil && len(w.In) == had {
			if len(w.In) > 0 {
				return nil, fmt.Errorf("closed within a reply, after %.100q: %w", w.In, err)
			}
			return nil, err
		}
	}
}

// SendSome opens a connection, sends b without reading any reply, and closes the connection, by a
// reset if so asked. It ignores errors.
func SendSome(addr string, b []byte, reset bool) {
	conn, err := net.DialTimeout("tcp", addr, ReplyTimeout)
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

// Do sends a line, quoted as for redis-cli, as a request and returns the reply, or nil if the
// connection ended.
func (w *Wire) Do(line string) []byte {
	w.T.Helper()
	var p resp.Parser
	if p.Parse([]byte(line+"\r\n")) != resp.Done {
		w.T.Fatalf("cannot split %q: %s", line, p.Err())
	}
	return w.Ask(p.Args()...)
}

// Ask sends a request of any bytes and returns the reply, or nil if the connection ended.
func (w *Wire) Ask(args ...[]byte) []byte {
	w.T.Helper()
	w.Send(resp.AppendRequest(nil, args...))
	return w.Next()
}

// Next returns the next reply, or nil at the end of the connection. Any other error fails the test.
func (w *Wire) Next() []byte {
	w.T.Helper()
	reply, err := w.Read()
	if err != nil && err != io.EOF && !strings.Contains(err.Error(), "connection reset") {
		w.T.Fatal(err)
	}
	return reply
}

// Want sends a line as Do does. The test fails if the reply, as text, is not want.
func (w *Wire) Want(line, want string) {
	w.T.Helper()
	if got := conversation.Text(w.Do(line)); got != want {
		w.T.Errorf("%s answers\n%s\nwant\n%s", line, got, want)
	}
}

// Write is Send for a connection that may end at any time: it returns the error.
func (w *Wire) Write(b []byte) error {
	_ = w.Conn.SetWriteDeadline(time.Now().Add(ReplyTimeout))
	_, err := w.Conn.Write(b)
	return err
}
