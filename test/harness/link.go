package harness

import (
	"fmt"
	"net"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

const (
	HoldTime = 5 * time.Second // for which a proxy holds a command, at most
	// AnswerTime is the longest that any command may take: the hold, and what it
	// takes to see that a node is silent; the rest is for a busy machine.
	AnswerTime = HoldTime + 5*time.Second
)

// Link is a connection that sees every byte. It fails with errors, since it is used
// by goroutines that may not end the test.
type Link struct {
	Conn net.Conn
	In   []byte
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

// Receive returns the next reply, valid until the next call.
func (l *Link) Receive(deadline time.Time) ([]byte, error) {
	_ = l.Conn.SetReadDeadline(deadline)
	var scan resp.Scanner
	piece := make([]byte, 16<<10)
	for {
		switch scan.Scan(l.In) {
		case resp.Done:
			reply := l.In[:scan.Len():scan.Len()]
			l.In = l.In[scan.Len():]
			return reply, nil
		case resp.Malformed:
			return nil, fmt.Errorf("malformed reply %.80q", l.In)
		}
		n, err := l.Conn.Read(piece)
		if l.In = append(l.In, piece[:n]...); err != nil && n == 0 {
			return nil, err
		}
	}
}
