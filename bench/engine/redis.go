package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// redisReadyLimit is how long redis-server may take to answer after its start, on a busy machine.
const redisReadyLimit = 30 * time.Second

// redisServer is a running redis-server that listens on a socket in a directory of its own.
type redisServer struct {
	cmd    *exec.Cmd
	dir    string
	socket string
}

// startRedis starts redis-server without persistence and with further arguments.
func startRedis(arguments ...string) (*redisServer, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		if path = "/usr/sbin/redis-server"; !exists(path) { // not on every user's PATH
			return nil, errors.New("missing: redis-server (Debian: apt-get install redis-server)")
		}
	}
	dir, err := os.MkdirTemp("", "dunlin-bench-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a directory for redis-server: %w", err)
	}
	r := &redisServer{dir: dir, socket: filepath.Join(dir, "redis")}
	r.cmd = exec.Command(path, append([]string{"--port", "0", "--unixsocket", r.socket, "--dir", dir,
		"--save", "", "--appendonly", "no"}, arguments...)...)
	r.cmd.SysProcAttr = ownGroup()
	if err := r.cmd.Start(); err != nil {
		_ = os.RemoveAll(dir) // empty
		return nil, fmt.Errorf("cannot start redis-server: %w", err)
	}
	if err := r.waitReady(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *redisServer) waitReady() error {
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		c, err := r.dial()
		if err == nil {
			_, err = c.do("PING")
			c.close()
		}
		if err == nil || time.Since(begin) > redisReadyLimit {
			return err
		}
	}
}

func (r *redisServer) pid() int { return r.cmd.Process.Pid }

func (r *redisServer) close() {
	_ = r.cmd.Process.Kill() // an error means that it has ended already
	_ = r.cmd.Wait()         // the error is the kill
	if err := os.RemoveAll(r.dir); err != nil {
		fmt.Fprintln(os.Stderr, "cannot remove redis-server's files:", err)
	}
}

// redisClient is a connection to a redis-server. Commands are pipelined: send any number, flush,
// then receive as many replies.
type redisClient struct {
	conn net.Conn
	r    *bufio.Reader
	w    *bufio.Writer
	buf  []byte // of a reply, or of a number to send
}

func (r *redisServer) dial() (*redisClient, error) {
	conn, err := net.Dial("unix", r.socket)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to redis-server: %w", err)
	}
	return &redisClient{conn: conn, r: bufio.NewReaderSize(conn, 64<<10), w: bufio.NewWriterSize(conn, 64<<10)}, nil
}

func (c *redisClient) close() { _ = c.conn.Close() }

// send buffers a command; an error of the connection shows at flush.
func (c *redisClient) send(args ...[]byte) {
	c.head('*', len(args))
	for _, a := range args {
		c.head('$', len(a))
		_, _ = c.w.Write(a)
		_, _ = c.w.WriteString("\r\n")
	}
}

func (c *redisClient) head(kind byte, n int) {
	c.buf = append(strconv.AppendInt(append(c.buf[:0], kind), int64(n), 10), "\r\n"...)
	_, _ = c.w.Write(c.buf)
}

func (c *redisClient) flush() error { return c.w.Flush() }

// receive returns the next reply: the text of a simple string, the digits of an integer, or a bulk
// string; nil if there is none. It is valid until the next call.
func (c *redisClient) receive() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("cannot read redis-server's reply: %w", err)
	}
	kind, text := line[0], bytes.TrimRight(line[1:], "\r\n")
	switch kind {
	case '+', ':':
		c.buf = append(c.buf[:0], text...)
		return c.buf, nil
	case '$':
		n, err := strconv.Atoi(string(text))
		if n < 0 || err != nil {
			return nil, err
		}
		c.buf = slices.Grow(c.buf[:0], n+2)[:n+2]
		if _, err := io.ReadFull(c.r, c.buf); err != nil {
			return nil, fmt.Errorf("cannot read redis-server's reply: %w", err)
		}
		return c.buf[:n], nil
	default:
		return nil, fmt.Errorf("redis-server answers %q", line)
	}
}

// do sends one command and returns its reply.
func (c *redisClient) do(words ...string) (string, error) {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	c.send(args...)
	if err := c.flush(); err != nil {
		return "", fmt.Errorf("cannot write to redis-server: %w", err)
	}
	reply, err := c.receive()
	return string(reply), err
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// pipeline sends n commands, many at a time. A reply that is an error is an error.
func (c *redisClient) pipeline(n int, send func(i int)) error {
	const atOnce = 256
	for i := 0; i < n; i += atOnce {
		count := min(atOnce, n-i)
		for k := range count {
			send(i + k)
		}
		if err := c.flush(); err != nil {
			return fmt.Errorf("cannot write to redis-server: %w", err)
		}
		for range count {
			if _, err := c.receive(); err != nil {
				return err
			}
		}
	}
	return nil
}

// usedMemory returns the memory that redis-server counts towards its limit.
func (c *redisClient) usedMemory() (int64, error) {
	info, err := c.do("INFO", "memory")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(info, "\r\nused_memory:")
	digits, _, _ := strings.Cut(rest, "\r\n")
	return strconv.ParseInt(digits, 10, 64)
}
