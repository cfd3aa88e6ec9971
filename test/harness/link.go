package harness

import (
	"fmt"
	"net"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

const (
	// ParkTime is the longest time for which a proxy parks a command.
	ParkTime = 5 * time.Second
	// AnswerTime is the longest time that any command may take: the parking, the time to notice that a
	// node is silent, and a margin for a busy machine.
	AnswerTime = ParkTime + 5*time.Second
)

// Link is a raw connection for goroutines other than the test's own. These must not call FailNow,
// so a Link returns errors.
type Link struct {
	Conn net.Conn
	In   []byte // received, and not yet returned
}

// DialLink connects to a server.
func DialLink(addr string) (*Link, error) {
	conn, err := net.DialTimeout("tcp", addr, AnswerTime)
	if err != nil {
		return nil, err
	}
	return &Link{Conn: conn}, nil
}

// Send writes b, within AnswerTime.
func (l *Link) Send(b []byte) error {
	_ = l.Conn.SetWriteDeadline(time.Now().Add(AnswerTime))
	_, err := l.Conn.Write(b)
	return err
}

// Receive returns the next reply, which is valid until the next call. After the deadline it returns
// an error.
func (l *Link) Receive(deadline time.Time) ([]byte, error) {
	_ = l.Conn.SetReadDeadline(deadline)
	var scan resp.Scanner
	for {
		switch scan.Scan(l.In) {
		case resp.Done:
			reply := l.In[:scan.Len():scan.Len()]
			l.In = l.In[scan.Len():]
			return reply, nil
		case resp.Malformed:
			return nil, fmt.Errorf("malformed reply %.80q", l.In)
		}
		had := len(l.In)
		var err error
		if l.In, err = readMore(l.Conn, l.In); err != nil && len(l.In) == had {
			return nil, err
		}
	}
}

// readMore appends to in what a connection has received. Replies that were cut from the front of in stay as they
// are. It allocates memory for many replies at once: a test reads a million of them.
func readMore(conn net.Conn, in []byte) ([]byte, error) {
	if cap(in)-len(in) < 4<<10 {
		in = append(make([]byte, 0, 2*len(in)+32<<10), in...)
	}
	n, err := conn.Read(in[len(in):cap(in)])
	return in[:len(in)+n], err
}
