package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// talk is a connection that sends any command in pipelines and reads the replies without keeping them.
// Package load knows only strings, and is faster.
type talk struct {
	conn net.Conn
	in   *bufio.Reader
	out  *bufio.Writer
	line []byte
}

const (
	// talkAhead is how many commands a talk sends before it reads their replies.
	talkAhead = 64
	// talkLimit bounds the wait for the replies of one pipeline.
	talkLimit = 30 * time.Second
)

func dialTalk(ctx context.Context, addr string) (*talk, error) {
	conn, err := (&net.Dialer{Timeout: askLimit}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err // the error says what failed, and where
	}
	return &talk{conn: conn, in: bufio.NewReaderSize(conn, 256<<10), out: bufio.NewWriterSize(conn, 256<<10)}, nil
}

func (t *talk) close() { _ = t.conn.Close() }

// send buffers a command; an error shows when it is flushed.
func (t *talk) send(words ...string) {
	t.head('*', len(words))
	for _, word := range words {
		t.head('$', len(word))
		_, _ = t.out.WriteString(word)
		_, _ = t.out.WriteString("\r\n")
	}
}

func (t *talk) head(kind byte, n int) {
	t.line = append(strconv.AppendInt(append(t.line[:0], kind), int64(n), 10), "\r\n"...)
	_, _ = t.out.Write(t.line)
}

// do executes one command and returns its reply: the text of a string, else the first line.
func (t *talk) do(words ...string) (string, error) {
	t.send(words...)
	if err := t.flush(); err != nil {
		return "", err
	}
	return t.reply(true)
}

func (t *talk) flush() error {
	if err := t.conn.SetDeadline(time.Now().Add(talkLimit)); err != nil {
		return err
	}
	return t.out.Flush()
}

// reply reads one reply. An error reply is an error. keep: the caller wants the text of a bulk string.
func (t *talk) reply(keep bool) (text string, err error) {
	line, err := t.in.ReadSlice('\n')
	if err != nil || len(line) < 3 {
		return "", errors.Join(err, errors.New("cannot read a reply"))
	}
	kind, line := line[0], line[1:len(line)-2]
	switch kind {
	case '+', ':':
		return string(line), nil
	case '-':
		return "", errors.New(string(line))
	}
	n, err := strconv.Atoi(string(line))
	switch {
	case err != nil:
		return "", fmt.Errorf("%c%s is not the beginning of a reply", kind, line)
	case kind == '*':
		for range max(n, 0) {
			if _, err := t.reply(false); err != nil {
				return "", err
			}
		}
		return "", nil
	case kind != '$':
		return "", fmt.Errorf("%c%s is not the beginning of a reply", kind, line)
	case n < 0:
		return "", nil
	case !keep:
		_, err = t.in.Discard(n + 2)
		return "", err
	}
	body := make([]byte, n+2)
	_, err = io.ReadFull(t.in, body)
	return string(body[:n]), err
}

// run executes commands until command returns none, ctx ends or, if the limit is not 0, it is over. It
// returns how many.
func (t *talk) run(ctx context.Context, limit time.Duration, command func(i int) []string) (done int, err error) {
	for begin := time.Now(); limit == 0 || time.Since(begin) < limit; {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		sent := 0
		for ; sent < talkAhead; sent++ {
			words := command(done + sent)
			if words == nil {
				break
			}
			t.send(words...)
		}
		if sent == 0 {
			break
		}
		if err := t.flush(); err != nil {
			return done, err
		}
		for range sent {
			if _, err := t.reply(false); err != nil {
				return done, err
			}
		}
		done += sent
	}
	return done, nil
}
