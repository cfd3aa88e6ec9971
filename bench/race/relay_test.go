package main

import (
	"io"
	"net"
	"testing"
	"time"
)

// A relay passes on all bytes, in both directions, and the end of either side.
func TestRelay(t *testing.T) {
	server, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() { // answers twice what it hears
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 5)
				for {
					if _, err := io.ReadFull(c, b); err != nil {
						return
					}
					_, _ = c.Write(append(b, b...))
				}
			}()
		}
	}()
	at := freeAddr()
	leaveTimeWait(t, at)
	go func() { t.Error(runRelay(at, server.Addr().String())) }() // ends with the process
	dial := func() net.Conn {
		for deadline := time.Now().Add(readyLimit); ; {
			c, err := net.Dial("tcp4", at)
			if err == nil {
				return c
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
	for range 3 {
		a, b := dial(), dial()
		for range 3 {
			for _, c := range []net.Conn{a, b} {
				if _, err := c.Write([]byte("hello")); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, 10)
				if _, err := io.ReadFull(c, got); err != nil || string(got) != "hellohello" {
					t.Fatalf("got %q, %v", got, err)
				}
			}
		}
		_ = a.(*net.TCPConn).CloseWrite()
		if n, err := a.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("after the end: %d bytes, %v", n, err)
		}
		a.Close()
		b.Close()
	}
}

// leaveTimeWait leaves a connection in TIME_WAIT at an address, as a server does that
// listened there before.
func leaveTimeWait(t *testing.T, addr string) {
	t.Helper()
	listener, err := net.Listen("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server.Close() // who closes first keeps the address
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Fatal(err)
	}
}
