package command

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// realServer starts the redis-server of this machine for one test and returns
// a connection to it. Without one the test is skipped.
func realServer(t *testing.T) *client {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed")
	}
	// The port is free a moment before the server takes it; losing it to
	// another process in between fails the test.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().(*net.TCPAddr)
	ln.Close()
	server := exec.Command(path, "--port", strconv.Itoa(addr.Port), "--bind", "127.0.0.1",
		"--save", "", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr.String())
		if err == nil {
			conn.SetDeadline(deadline.Add(10 * time.Second))
			t.Cleanup(func() { conn.Close() })
			return &client{t: t, conn: conn, in: bufio.NewReader(conn)}
		}
		if time.Now().After(deadline) {
			t.Fatalf("cannot reach redis-server: %v", err)
		}
	}
}

// client is as much of a RESP2 client as these tests need.
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
