package fake

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/metrics/status"
	"github.com/dunlin-cache/dunlin/node"
	"github.com/dunlin-cache/dunlin/ring"
)

// NewLocal returns a Local of the cluster "herd" without members, which logs to the test.
func NewLocal(t testing.TB) *status.Local {
	return status.NewLocal("test", "herd", slog.New(slog.NewTextHandler(t.Output(), nil)))
}

// Source returns a member with the id and boot that sees v.
func Source(id string, boot int64, v status.View) status.Source {
	return status.Source{ID: id, Boot: boot, Addr: "10.9.9.9:6379", View: v}
}

// Serve answers GET /api/status of a Local until the test ends, and returns its host:port.
func Serve(t testing.TB, l *status.Local) (addr string) {
	mux := http.NewServeMux()
	mux.Handle("GET /api/status", l)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// TwoProcesses starts two processes of a cluster of six members: p and n1 are in the first, whose
// address is returned, and n2 is in the second. n3 does not answer, at n4's address there is
// another process, and n5 has no address.
func TwoProcesses(t testing.TB) (first *status.Local, addr string) {
	t.Helper()
	first, second := NewLocal(t), NewLocal(t)
	addr = Serve(t, first)
	other := Serve(t, second)
	v := TwoNodes()
	v.Alive = []ring.Member{
		{ID: "n1", Boot: 1, Admin: addr},
		{ID: "n2", Boot: 2, Admin: other},
		{ID: "n3", Boot: 3, Admin: "127.0.0.1:1"},
		{ID: "n4", Boot: 4, Admin: other},
		{ID: "n5", Boot: 5},
		{ID: "p", Boot: 9, Role: ring.RoleProxy, Admin: addr},
	}
	add := func(l *status.Local, id string, boot int64, keys int64, pinned uint8, hot ...figures.KeyFigure) {
		n := &Node{Up: true}
		n.Figures.Keys, n.Figures.HotKeys = keys, hot
		n.Figures.Pinned = []node.PinnedStats{{Database: pinned, Keys: keys}}
		l.AddNode(Source(id, boot, v), n)
	}
	first.AddProxy(Source("p", 9, v), &Proxy{Up: true})
	add(first, "n1", 1, 11, 9, figures.KeyFigure{Key: "a", N: 50}, figures.KeyFigure{Key: "b", N: 20})
	add(second, "n2", 2, 22, 8, figures.KeyFigure{Key: "b", N: 30}, figures.KeyFigure{Key: "c", Database: 8, N: 10})
	return first, addr
}
