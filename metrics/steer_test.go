package metrics

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/ring"
)

// fakeSteer notes what it is told.
type fakeSteer struct {
	orders []string
	err    error
}

func (f *fakeSteer) Drain(on bool) error              { return f.note("drain", on) }
func (f *fakeSteer) PauseRebalance(paused bool) error { return f.note("pause", paused) }

func (f *fakeSteer) note(what string, on bool) error {
	if f.err == nil {
		if !on {
			what = "no " + what
		}
		f.orders = append(f.orders, what)
	}
	return f.err
}

func post(t *testing.T, a *Admin, path, token string) (int, string) {
	t.Helper()
	return ask(t, a, http.MethodPost, path, token)
}

func TestSteering(t *testing.T) {
	a := newAdmin(t, Options{Token: "sesame"})
	one, two := &fakeSteer{err: errors.New("the coordinator is elsewhere")}, &fakeSteer{}
	for i, s := range []*fakeSteer{one, two} {
		src := source([]string{"n1", "n2"}[i], 1, twoNodes())
		src.Steer = s
		a.AddNode(src, &fakeNode{})
	}
	check := func(path, token string, status int, text string) {
		t.Helper()
		got, body := post(t, a, path, token)
		if got != status || !strings.Contains(body, text) {
			t.Errorf("POST %s with token %q = %d %q, want %d with %q", path, token, got, body, status, text)
		}
	}
	check("/api/drain?member=n2&on=true", "", 401, "wrong token")
	check("/api/drain?member=n2&on=true", "open", 401, "wrong token")
	check("/api/drain?member=n2&on=true", NoToken, 401, "wrong token")
	check("/api/drain?member=n2&on=perhaps", "sesame", 400, "neither")
	check("/api/drain?member=n3&on=true", "sesame", 409, "no such node")
	check("/api/drain?member=n1&on=true", "sesame", 409, "elsewhere")
	if len(two.orders) > 0 {
		t.Fatalf("obeyed %q", two.orders)
	}
	check("/api/drain?member=n2&on=true", "sesame", 200, "ok")
	check("/api/drain?member=n2&on=false", "sesame", 200, "ok")
	check("/api/rebalance?paused=true", "sesame", 200, "ok") // by the one that can
	check("/api/rebalance?paused=false", "sesame", 200, "ok")
	if got := strings.Join(two.orders, ", "); got != "drain, no drain, pause, no pause" {
		t.Errorf("obeyed %q", got)
	}
	if status, _ := get(t, a, "/api/drain?member=n2&on=true"); status != http.StatusMethodNotAllowed {
		t.Errorf("GET /api/drain = %d, want it refused", status)
	}
}

// TestSteeringWithoutSecret: from this machine, with a header that a web page cannot
// set.
func TestSteeringWithoutSecret(t *testing.T) {
	a := newAdmin(t, Options{})
	src := source("n1", 1, twoNodes())
	src.Steer = &fakeSteer{}
	a.AddNode(src, &fakeNode{})
	if status, _ := post(t, a, "/api/drain?member=n1&on=true", ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d, want 401", status)
	}
	if status, body := post(t, a, "/api/drain?member=n1&on=true", NoToken); status != http.StatusOK {
		t.Errorf("from this machine: %d %q, want 200", status, body)
	}
	from := func(remote, host string) int {
		r := httptest.NewRequest(http.MethodPost, "/api/drain?member=n1&on=true", nil)
		r.Header.Set("Authorization", "Bearer "+NoToken)
		r.RemoteAddr, r.Host = remote, host
		w := httptest.NewRecorder()
		a.routes().ServeHTTP(w, r)
		return w.Code
	}
	if got := from("192.0.2.1:4000", "192.0.2.9:9180"); got != http.StatusForbidden {
		t.Errorf("from another machine: %d, want 403", got)
	}
	if got := from("127.0.0.1:4000", "evil.example:9180"); got != http.StatusForbidden {
		t.Errorf("from a page of a site whose name resolves to this machine: %d, want 403", got)
	}
	for _, host := range []string{"127.0.0.1:9180", "[::1]:9180", "localhost:9180", "127.0.0.1"} {
		if got := from("127.0.0.1:4000", host); got != http.StatusOK {
			t.Errorf("asked as %s: %d, want 200", host, got)
		}
	}
}

// TestStatusShowsCopiesAndMoves: what an operator watches while nodes come and go.
func TestStatusShowsCopiesAndMoves(t *testing.T) {
	v := twoNodes()
	v.table.Follower[0], v.table.Follower[1], v.table.Follower[3] = 1, 0, 0
	v.table.Moves = []ring.Move{{Partition: 4, From: 0, To: 1}}
	v.table.Paused = true
	a := newAdmin(t, Options{})
	a.AddNode(source("n1", 1, v), &fakeNode{})
	s := a.Status()
	c := s.Cluster
	if c.Followed != 3 || c.Moves != 1 || !c.Paused || c.Coordinator != "n1" || c.Peers[1].Follows != 1 || s.Members[0].Follows != 2 {
		t.Errorf("status is %+v, member %+v", c, s.Members[0])
	}
	_, text := get(t, a, "/metrics")
	for _, want := range []string{
		`dunlin_partitions_followed{member="n1"} 3`, `dunlin_partitions_moving{member="n1"} 1`,
		`dunlin_rebalance_paused{member="n1"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}
