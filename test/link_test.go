package test

import (
	"fmt"
	"net"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

const (
	holdTime = 5 * time.Second // for which a proxy holds a command, at most
	// answerTime is the longest that any command may take: the hold, and what it
	// takes to see that a node is silent; the rest is for a busy machine.
	answerTime = holdTime + 5*time.Second
)

// link is a connection that sees every byte. It fails with errors, since it is used
// by goroutines that may not end the test.
type link struct {
	conn net.Conn
	in   []byte
}

func dialLink(addr string) (*link, error) {
	conn, err := net.DialTimeout("tcp", addr, answerTime)
	if err != nil {
		return nil, err
	}
	return &link{conn: conn}, nil
}

func (l *link) send(b []byte) error {
	_ = l.conn.SetWriteDeadline(time.Now().Add(answerTime))
	_, err := l.conn.Write(b)
	return err
}

// receive returns the next reply, valid until the next call.
func (l *link) receive(deadline time.Time) ([]byte, error) {
	_ = l.conn.SetReadDeadline(deadline)
	var scan resp.Scanner
	piece := make([]byte, 16<<10)
	for {
		switch scan.Scan(l.in) {
		case resp.Done:
			reply := l.in[:scan.Len():scan.Len()]
			l.in = l.in[scan.Len():]
			return reply, nil
		case resp.Malformed:
			return nil, fmt.Errorf("malformed reply %.80q", l.in)
		}
		n, err := l.conn.Read(piece)
		if l.in = append(l.in, piece[:n]...); err != nil && n == 0 {
			return nil, err
		}
	}
}
