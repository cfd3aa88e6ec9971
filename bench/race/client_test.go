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

// fakePeer answers SET and GET from a map, and CLUSTER INFO with text.
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
	v, found := f.keys[words[1]]
	if !found {
		return "$-1\r\n"
	}
	return fmt.Sprintf("$%d\r\n%s\r\n", len(v), v)
}

func readRequest(in *bufio.Reader) (words []string, err error) {
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

func TestFill(t *testing.T) {
	f := startFake(t)
	const keys = fillBatch + 500 // a whole batch and a part
	if err := fill(t.Context(), f.addr, keys); err != nil {
		t.Fatal(err)
	}
	last, found := f.keys["key:000000001499"]
	if len(f.keys) != keys || !found || len(last) != valueBytes {
		t.Errorf("%d keys were set, the last (%v) to %q: want %d with values of %d bytes", len(f.keys), found, last, keys, valueBytes)
	}
	f.fail = "-OOM command not allowed\r\n"
	if err := fill(t.Context(), f.addr, 1); err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("fill gave %v: want the error reply", err)
	}
	f.fail = "+QUEUED\r\n"
	if err := fill(t.Context(), f.addr, 1); err == nil || !strings.Contains(err.Error(), "QUEUED") {
		t.Errorf("fill gave %v: want an error about the reply QUEUED", err)
	}
}

func TestMissing(t *testing.T) {
	f := startFake(t)
	if err := fill(t.Context(), f.addr, 100); err != nil {
		t.Fatal(err)
	}
	look := func(wantGone int, wantErr string) {
		t.Helper()
		gone, asked, err := missing(t.Context(), f.addr, 100, 10)
		switch {
		case wantErr == "" && (gone != wantGone || asked != 10 || err != nil):
			t.Errorf("%d of %d are missing, %v: want %d of 10", gone, asked, err, wantGone)
		case wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)):
			t.Errorf("looking for keys gave %v: want an error with %q", err, wantErr)
		}
	}
	look(0, "")
	delete(f.keys, keyName(30))
	delete(f.keys, keyName(31)) // not looked at
	look(1, "")
	f.keys[keyName(0)] = "short"
	look(0, "has 5 bytes")
	f.fail = "-ERR no\r\n"
	look(0, "ERR no")
}

// TestDialEnds: a peer that never answers holds nobody beyond the context.
func TestDialEnds(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := fill(ctx, ln.Addr().String(), 1); err == nil {
		t.Error("filled a peer that does not answer")
	}
}
