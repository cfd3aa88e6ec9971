package command

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/redistest"
)

// realServer starts the redis-server of this machine for one test and returns
// a connection to it. Without one the test is skipped.
func realServer(t *testing.T) *client {
	t.Helper()
	conn, err := net.Dial("tcp", redistest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	t.Cleanup(func() { conn.Close() })
	return &client{t: t, conn: conn, in: bufio.NewReader(conn)}
}

// client is the part of a RESP2 client that these tests need.
type client struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// replyError is an error reply, without its '-'.
type replyError string

// do sends one command and returns its reply: string, replyError, int, nil or
// []any.
func (c *client) do(args ...string) any {
	c.t.Helper()
	req := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		req = fmt.Appendf(req, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := c.conn.Write(req); err != nil {
		c.t.Fatal(err)
	}
	return c.read()
}

func (c *client) read() any {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	if err != nil {
		c.t.Fatalf("cannot read reply: %v", err)
	}
	kind, rest := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return rest
	case '-':
		return replyError(rest)
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		c.t.Fatalf("reply line %q: %v", line, err)
	}
	switch {
	case kind == ':':
		return n
	case n < 0:
		return nil
	case kind == '$':
		b := make([]byte, n+2)
		if _, err := io.ReadFull(c.in, b); err != nil {
			c.t.Fatal(err)
		}
		return string(b[:n])
	}
	list := make([]any, n)
	for i := range list {
		list[i] = c.read()
	}
	return list
}
