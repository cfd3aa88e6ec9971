package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	// fillBatch is how many requests fill has outstanding.
	fillBatch = 1000
	// fillLimit bounds filling one peer, and looking at its keys.
	fillLimit = 2 * time.Minute
	// askLimit is for one request to a peer that may not be ready.
	askLimit = time.Second
)

// client speaks as much of the protocol as it takes to fill a peer and to see
// that it answers rightly. It is slow and simple; redis-benchmark measures.
type client struct {
	conn net.Conn
	in   *bufio.Reader
	out  *bufio.Writer
	stop func() bool // ends the watch for the context's end
}

// dial connects for at most limit in all; the end of ctx breaks the connection.
func dial(ctx context.Context, addr string, limit time.Duration) (*client, error) {
	conn, err := (&net.Dialer{Timeout: limit}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err // says what and where
	}
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, fmt.Errorf("cannot limit the time of %s: %w", addr, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return &client{conn: conn, in: bufio.NewReader(conn), out: bufio.NewWriterSize(conn, 256<<10), stop: stop}, nil
}

func (c *client) close() {
	c.stop()
	_ = c.conn.Close() // nothing is outstanding that anybody waits for
}

// send queues a request; reply sends what is queued.
func (c *client) send(words ...string) {
	fmt.Fprintf(c.out, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(c.out, "$%d\r\n%s\r\n", len(w), w)
	}
}

// reply reads one reply: a bulk's payload, or the line behind its sign. Of an
// array it reads the count only; the elements are the next replies. The null bulk
// is found false, an error is an error.
func (c *client) reply() (text string, found bool, err error) {
	if err := c.out.Flush(); err != nil {
		return "", false, err
	}
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", false, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	switch {
	case line == "" || line[0] == '-':
		return "", false, fmt.Errorf("error reply %q", line)
	case line[0] != '$':
		return line[1:], true, nil
	}
	n, err := strconv.Atoi(line[1:])
	if err != nil || n < 0 {
		return "", false, err
	}
	payload := make([]byte, n+len("\r\n"))
	_, err = io.ReadFull(c.in, payload)
	return string(payload[:n]), true, err
}

// ask sends one request over a connection of its own.
func ask(ctx context.Context, addr string, words ...string) (string, error) {
	c, err := dial(ctx, addr, askLimit)
	if err != nil {
		return "", err
	}
	defer c.close()
	c.send(words...)
	text, _, err := c.reply()
	return text, err
}

// keyName is the n-th of redis-benchmark's keys: what it makes of keyWord.
func keyName(n int) string { return fmt.Sprintf("key:%012d", n) }

var value = string(bytes.Repeat([]byte{'x'}, valueBytes))

// fill sets all keys, so that every GET of the race finds its key.
func fill(ctx context.Context, addr string, keys int) error {
	c, err := dial(ctx, addr, fillLimit)
	if err != nil {
		return err
	}
	defer c.close()
	for first := 0; first < keys; first += fillBatch {
		after := min(first+fillBatch, keys)
		for k := first; k < after; k++ {
			c.send("SET", keyName(k), value)
		}
		for k := first; k < after; k++ {
			if text, _, err := c.reply(); err != nil || text != "OK" {
				return fmt.Errorf("cannot set %s: got %q, %w", keyName(k), text, err)
			}
		}
	}
	return nil
}

// missing asks for every step-th key, and counts those that are gone. Whatever
// loses keys answers faster than it should: a GET that misses sends no value.
func missing(ctx context.Context, addr string, keys, step int) (gone, asked int, err error) {
	c, err := dial(ctx, addr, fillLimit)
	if err != nil {
		return 0, 0, err
	}
	defer c.close()
	for k := 0; k < keys; k += step {
		c.send("GET", keyName(k))
		text, found, err := c.reply()
		switch {
		case err != nil:
			return gone, asked, fmt.Errorf("cannot get %s: %w", keyName(k), err)
		case found && len(text) != valueBytes:
			return gone, asked, fmt.Errorf("%s has %d bytes: want %d", keyName(k), len(text), valueBytes)
		case !found:
			gone++
		}
		asked++
	}
	return gone, asked, nil
}
