package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// askLimit bounds one request to a peer that may not be ready.
	askLimit = time.Second
	// maxAnswer is the most bytes that ask reads.
	maxAnswer = 1 << 16
)

// ask sends one inline command, whose answer is a text, over a connection of its own.
func ask(ctx context.Context, addr, command string) (string, error) {
	conn, err := (&net.Dialer{Timeout: askLimit}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err // the error says what failed, and where
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := conn.SetDeadline(time.Now().Add(askLimit)); err != nil {
		return "", fmt.Errorf("cannot limit the time of %s: %w", addr, err)
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		return "", fmt.Errorf("cannot ask %s: %w", addr, err)
	}
	in := bufio.NewReader(io.LimitReader(conn, maxAnswer))
	line, err := in.ReadString('\n')
	var length int
	if _, bad := fmt.Sscanf(line, "$%d\r\n", &length); err != nil || bad != nil || length < 0 || length > maxAnswer {
		return "", fmt.Errorf("%s answers %s with %q: want a text", addr, command, line)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(in, text); err != nil {
		return "", fmt.Errorf("cannot read what %s answers: %w", addr, err)
	}
	return string(text), nil
}
