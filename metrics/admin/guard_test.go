package admin

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlin-cache/dunlin/metrics/control"
	"github.com/dunlin-cache/dunlin/metrics/fake"
	"github.com/dunlin-cache/dunlin/metrics/status"
)

// shown and open are the paths that show keys, addresses or members, and those for scrapers.
var (
	shown = []string{"/", "/api/live", "/api/status", "/debug/pprof/", "/debug/pprof/heap"}
	open  = []string{"/metrics", "/healthz", "/readyz"}
)

// ask returns the status of a GET, which change may change before.
func ask(t *testing.T, a *Admin, path string, change func(*http.Request)) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.Addr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	change(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// TestOtherSites checks that a host name which may be another site's is answered at a loopback
// address with what scrapers read only.
func TestOtherSites(t *testing.T) {
	a := newAdmin(t, Options{Pprof: true})
	a.AddProxy(source("p", 3, fake.TwoNodes()), &fake.Proxy{Up: true})
	f := func(host string, paths []string, want int) {
		t.Helper()
		for _, path := range paths {
			if got := ask(t, a, path, func(r *http.Request) { r.Host = host }); got != want {
				t.Errorf("GET %s of %s = %d, want %d", path, host, got, want)
			}
		}
	}
	f("evil.example:9180", shown, 403)
	f("evil.example:9180", open, 200)
	f("localhost:9180", shown, 200)
	f("[::1]:9180", shown, 200)
	f("127.0.0.1:9180", append([]string{"/page.js"}, shown...), 200)
}

// TestAdminToken checks what needs the token, and in which forms it is accepted.
func TestAdminToken(t *testing.T) {
	tokens := control.NewTokens("first", "second")
	a := newAdmin(t, Options{Pprof: true, Readers: tokens, Orders: control.NewTokens("order")})
	a.AddProxy(source("p", 3, fake.TwoNodes()), &fake.Proxy{Up: true})
	f := func(change func(*http.Request), want int) {
		t.Helper()
		for _, path := range shown {
			if got := ask(t, a, path, change); got != want {
				t.Errorf("GET %s = %d, want %d", path, got, want)
			}
		}
		for _, path := range open {
			if got := ask(t, a, path, change); got != 200 {
				t.Errorf("GET %s = %d, want 200", path, got)
			}
		}
	}
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	f(func(*http.Request) {}, 401)
	f(bearer("wrong"), 401)
	f(bearer(""), 401)
	f(bearer("first"), 200)
	f(bearer("second"), 200)
	f(bearer("order"), 200)
	f(func(r *http.Request) { r.SetBasicAuth("me", "first") }, 200)
	f(func(r *http.Request) { r.SetBasicAuth("first", "me") }, 401)
	f(func(r *http.Request) { bearer("first")(r); r.Host = "cache.example" }, 200)

	if _, err := status.ReadStatus(t.Context(), a.Addr()); err == nil || !strings.Contains(err.Error(), "--admin-token-file") {
		t.Errorf("without the token: %v", err)
	}
	if _, err := status.ReadStatus(status.WithToken(t.Context(), "second"), a.Addr()); err != nil {
		t.Error(err)
	}
}

// TestProfilesShowNoPassword checks that no page shows the arguments of the process.
func TestProfilesShowNoPassword(t *testing.T) {
	a := newAdmin(t, Options{Pprof: true})
	if got, body := get(t, a, "/debug/pprof/cmdline"); got != 404 {
		t.Errorf("GET /debug/pprof/cmdline = %d %q", got, body)
	}
}

// TestConnectionsAreBounded checks that open connections which ask nothing leave the port answering.
func TestConnectionsAreBounded(t *testing.T) {
	a := newAdmin(t, Options{})
	var first net.Conn
	for i := range shareConnections + 100 {
		c, err := net.Dial("tcp", a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i == 0 {
			first = c
		}
	}
	if got, _ := get(t, a, "/metrics"); got != 200 {
		t.Errorf("GET /metrics = %d", got)
	}
	_ = first.SetReadDeadline(time.Now().Add(3 * time.Second)) // less than a request's headers may take
	if _, err := first.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest connection is open: %v", err)
	}
	if n := a.listener.(bounded).open.Len(); n > shareConnections {
		t.Errorf("%d connections are open", n)
	}
}

// TestAnsweredConnectionsStay checks that a connection whose request is being answered is not displaced
// by any number of connections that arrive meanwhile.
func TestAnsweredConnectionsStay(t *testing.T) {
	a := newAdmin(t, Options{})
	n := &gatedNode{gate: make(chan struct{})}
	open := sync.OnceFunc(func() { close(n.gate) })
	defer open()
	a.AddNode(source("n1", 1, fake.TwoNodes()), n, nil)
	code := make(chan int)
	go func() {
		resp, err := http.Get("http://" + a.Addr() + "/metrics")
		if err != nil {
			t.Error(err)
			code <- 0
			return
		}
		resp.Body.Close()
		code <- resp.StatusCode
	}()
	for deadline := time.Now().Add(10 * time.Second); n.asked.Load() == 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the node is not asked")
		}
	}
	var last net.Conn
	for range 2 * shareConnections {
		c, err := net.Dial("tcp", a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		last = c
	}
	// The last one is accepted when it is answered.
	_ = last.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(last, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(last, make([]byte, 12)); err != nil {
		t.Fatal(err)
	}
	open()
	if got := <-code; got != http.StatusOK {
		t.Errorf("GET /metrics = %d", got)
	}
}

// TestAnswerIsCountedUntilSent checks that a connection counts as answered while its reply is on
// the way, although the handler has returned.
func TestAnswerIsCountedUntilSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		conns := make(chan net.Conn, 1)
		conns <- ours
		b := newBounded(pipes{conns})
		server := http.Server{
			Handler:     counting(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })),
			ConnContext: withConnection,
			ConnState:   uncount,
		}
		go func() { _ = server.Serve(b) }()
		want := func(open, answered int) {
			t.Helper()
			synctest.Wait()
			if b.open.Len() != open || b.answered.Len() != answered {
				t.Errorf("%d connections are open, %d answered, want %d and %d", b.open.Len(), b.answered.Len(), open, answered)
			}
		}
		want(1, 0)
		if _, err := io.WriteString(theirs, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		want(0, 1) // nobody reads
		resp, err := http.ReadResponse(bufio.NewReader(theirs), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		want(1, 0)
		theirs.Close()
		close(conns)
		server.Close()
	})
}
