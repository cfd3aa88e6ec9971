package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakePeer stores keys, and answers CLUSTER INFO with a text.
type fakePeer struct {
	addr string

	mu   sync.Mutex
	keys map[string]string
	info string
	fail string // a reply to everything, when set
}

func startFake(t *testing.T) *fakePeer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakePeer{addr: ln.Addr().String(), keys: map[string]string{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { f.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		serving.Wait()
	})
	return f
}

func (f *fakePeer) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		words, err := readRequest(in)
		if err != nil {
			return
		}
		if _, err := io.WriteString(conn, f.answer(words)); err != nil {
			return
		}
	}
}

func (f *fakePeer) answer(words []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.fail != "":
		return f.fail
	case words[0] == "SET":
		f.keys[words[1]] = words[2]
		return "+OK\r\n"
	case words[0] == "CLUSTER":
		return fmt.Sprintf("$%d\r\n%s\r\n", len(f.info), f.info)
	}
	return "-ERR unknown command\r\n"
}

func readRequest(in *bufio.Reader) (words []string, err error) {
	if first, err := in.Peek(1); err != nil || first[0] != '*' { // inline
		line, err := in.ReadString('\n')
		return strings.Fields(line), err
	}
	number := func(sign string) int {
		line, bad := in.ReadString('\n')
		n, bad2 := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), sign))
		if bad != nil || bad2 != nil {
			err = io.ErrUnexpectedEOF
		}
		return n
	}
	for range number("*") {
		word := make([]byte, number("$")+2)
		if _, bad := io.ReadFull(in, word); bad != nil || err != nil {
			return nil, io.ErrUnexpectedEOF
		}
		words = append(words, string(word[:len(word)-2]))
	}
	return words, err
}

func TestAsk(t *testing.T) {
	f := startFake(t)
	f.info = "cluster_state:ok\r\n"
	if got, err := ask(t.Context(), f.addr, "CLUSTER INFO"); err != nil || got != f.info {
		t.Errorf("CLUSTER INFO is %q, %v: want %q", got, err, f.info)
	}
	for _, bad := range []string{"-ERR unknown command\r\n", "$-1\r\n", "$99999\r\n", "+OK\r\n"} {
		f.fail = bad
		if got, err := ask(t.Context(), f.addr, "CLUSTER INFO"); err == nil ||
			!strings.Contains(err.Error(), strings.TrimSpace(bad)) {
			t.Errorf("CLUSTER INFO is %q, %v, of a server that answers %q: want an error that says so", got, err, bad)
		}
	}
}

// TestAskEnds checks that ask ends with its context if a peer never answers.
func TestAskEnds(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := ask(ctx, ln.Addr().String(), "CLUSTER INFO"); err == nil {
		t.Error("a peer that does not answer was asked")
	}
}
