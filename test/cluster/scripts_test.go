package cluster

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestScripts: through a proxy a script that was sent once is known wherever its keys are, in transactions and in
// pipelines too, and SCRIPT concerns all nodes.
func TestScripts(t *testing.T) {
	t.Parallel()
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 3, Proxies: 2, NodeFlags: []string{"--copies", "1"}})
	addr := c.Proxy(0).Addr
	for _, p := range c.ByRole("proxy") {
		harness.AwaitLevel(t, p.Addr)
	}
	w := harness.DialWire(t, addr)
	w.Send([]byte("SCRIPT LOAD \"return {redis.call('INCR', KEYS[1]), ARGV[1]}\"\r\n"))
	sha := strings.Fields(string(w.Next()))[1]
	other := harness.DialWire(t, c.Proxy(1).Addr)
	other.Want("SCRIPT EXISTS "+sha, "1) (integer) 1")
	const keys = 60
	var input strings.Builder
	for i := range keys {
		fmt.Fprintf(&input, "EVALSHA %s 1 key:%d a\r\nGET key:%d\r\n", sha, i, i)
	}
	w.Send([]byte(input.String()))
	for range keys {
		if script, get := string(w.Next()), string(w.Next()); script != "*2\r\n:1\r\n$1\r\na\r\n" || get != "$1\r\n1\r\n" {
			t.Fatalf("EVALSHA and GET answer %q, %q", script, get)
		}
	}
	// EVAL tells one node; the proxy knows the script for all of them.
	const body = "return redis.call('GET', KEYS[1])"
	w.Want(`EVAL "`+body+`" 1 key:0`, `"1"`)
	w.Send([]byte(`EVAL "return redis.sha1hex(ARGV[1])" 0 "` + body + "\"\r\n"))
	name := strings.Fields(string(w.Next()))[1]
	for i := range keys {
		w.Want(fmt.Sprintf("EVALSHA %s 1 key:%d", name, i), `"1"`)
		w.Send([]byte(fmt.Sprintf("MULTI\r\nEVALSHA_RO %s 1 key:%d\r\nINCR key:%d\r\nEXEC\r\n", name, i, i)))
		for _, want := range []string{"+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "*2\r\n$1\r\n1\r\n:2\r\n"} {
			if got := string(w.Next()); got != want {
				t.Fatalf("the transaction answers %q, want %q", got, want)
			}
		}
	}
	w.Want("SCRIPT FLUSH", "OK")
	w.Want("SCRIPT EXISTS "+sha+" "+name, "1) (integer) 0\n2) (integer) 0")
	w.Want("EVALSHA "+sha+" 1 key:0 a", "(error) NOSCRIPT No matching script. Please use EVAL.")
	w.Want(`EVAL "return redis.call('GET', KEYS[1])" 2 key:0 key:1`, "(error) CROSSSLOT Keys in request don't hash to the same slot")
	w.Want("SCRIPT KILL", "(error) NOTBUSY No scripts in execution right now.")

	// Whoever leaves takes a script that has written nothing along: its partition is free again.
	gone, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(gone, "PING\r\nEVAL \"while true do redis.call('GET', KEYS[1]) end\" 1 key:1\r\n")
	if _, err := gone.Read(make([]byte, 7)); err != nil {
		t.Fatal(err)
	}
	if err := gone.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	gone.Close()
	deadline := time.Now().Add(20 * time.Second)
	for w.Send([]byte("INCR key:1\r\n")); ; w.Send([]byte("INCR key:1\r\n")) {
		if got := string(w.Next()); got == ":3\r\n" {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("INCR answers %q", got)
		}
	}
}
