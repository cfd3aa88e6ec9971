package admin

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/metrics/exporter"
	"github.com/dunlin-cache/dunlin/metrics/fake"
)

func newAdmin(t *testing.T, opt Options) *Admin {
	t.Helper()
	opt.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	opt.Version, opt.Cluster = "test", "herd"
	a, err := Listen("127.0.0.1:0", opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := a.Close(ctx); err != nil {
			t.Errorf("cannot close: %v", err)
		}
	})
	return a
}

func source(id string, boot int64, v *fake.View) Source {
	return Source{ID: id, Boot: boot, Addr: "10.9.9.9:6379", View: v, Gossip: func() exporter.Gossip { return exporter.Gossip{} }}
}

func get(t *testing.T, a *Admin, path string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + a.Addr() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestReadiness(t *testing.T) {
	a := newAdmin(t, Options{})
	want := func(status int, text string) {
		t.Helper()
		got, body := get(t, a, "/readyz")
		if got != status || !strings.Contains(body, text) {
			t.Errorf("GET /readyz = %d %q, want %d with %q", got, body, status, text)
		}
	}
	want(503, "starting")
	p := &fake.Proxy{}
	a.AddProxy(source("p", 3, fake.TwoNodes()), p)
	want(503, "p is not ready")
	p.Up = true
	want(200, "ready")
	q := source("q", 4, fake.TwoNodes())
	q.NotReady = func() string { return "it has no table yet" }
	a.AddProxy(q, p)
	want(503, "q is not ready: it has no table yet\n")
	a.Drain()
	want(503, "stopping")
	if status, _ := get(t, a, "/healthz"); status != 200 {
		t.Errorf("GET /healthz while stopping = %d, want 200: a stop is no reason to be killed", status)
	}
}

func TestHealthNeedsLoops(t *testing.T) {
	a := newAdmin(t, Options{})
	g, err := netloop.NewGroup(netloop.Config{Loops: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	a.SetLoops(g)
	if status, body := get(t, a, "/healthz"); status != 200 {
		t.Fatalf("GET /healthz = %d %q, want 200", status, body)
	}
	release := make(chan struct{})
	g.Loops()[0].Post(func() { <-release })
	status, body := get(t, a, "/healthz")
	close(release)
	if status != 503 {
		t.Errorf("GET /healthz with a loop that hangs = %d %q, want 503", status, body)
	}
}

func TestPage(t *testing.T) {
	a := newAdmin(t, Options{})
	f := func(path string, want int) {
		t.Helper()
		if got, _ := get(t, a, path); got != want {
			t.Errorf("GET %s = %d, want %d", path, got, want)
		}
	}
	f("/", 200)
	f("/page.js", 200)
	f("/page.css", 200)
	f("/nothing", 404)
	f("/debug/pprof/", 404)
	f("/metrics", 200)
	f("/api/status", 200)
	f("/api/live", 200)
	f("/api/drain", 405) // an order must be a POST
	f("/api/rebalance", 405)

	_, body := get(t, a, "/")
	for _, link := range []string{"metrics", "healthz", "readyz", "api/status"} {
		if !strings.Contains(body, `href="`+link+`"`) {
			t.Errorf("the page does not link to %s", link)
		}
	}
	if strings.Contains(body, "http://") || strings.Contains(body, "https://") {
		t.Error("the page uses something from outside")
	}
}

func TestPprofBehindItsFlag(t *testing.T) {
	a := newAdmin(t, Options{Pprof: true})
	if got, _ := get(t, a, "/debug/pprof/"); got != 200 {
		t.Errorf("GET /debug/pprof/ = %d, want 200", got)
	}
}
