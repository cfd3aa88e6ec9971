package control

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// obedient records its orders, or fails.
type obedient struct {
	orders []string
	err    error
}

func (f *obedient) Drain(on bool) error              { return f.note("drain", on) }
func (f *obedient) PauseRebalance(paused bool) error { return f.note("pause", paused) }

func (f *obedient) note(what string, on bool) error {
	if f.err == nil {
		if !on {
			what = "no " + what
		}
		f.orders = append(f.orders, what)
	}
	return f.err
}

func newControl(t *testing.T, token string) *Control {
	tokens := NewTokens()
	if token != "" {
		tokens.Set([]string{"another", token})
	}
	return New(tokens, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

// post returns the status and the body of the answer to a request from an address to a host.
func post(c *Control, path, token, remote, host string) (int, string) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/drain", c.Drain)
	mux.HandleFunc("POST /api/rebalance", c.Rebalance)
	r := httptest.NewRequest(http.MethodPost, path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.RemoteAddr, r.Host = remote, host
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestOrders(t *testing.T) {
	c := newControl(t, "sesame")
	one, two := &obedient{err: errors.New("the coordinator is elsewhere")}, &obedient{}
	c.Add("n1", one)
	c.Add("n2", two)
	check := func(path, token string, status int, text string) {
		t.Helper()
		got, body := post(c, path, token, "127.0.0.1:4000", "127.0.0.1:9180")
		if got != status || !strings.Contains(body, text) {
			t.Errorf("POST %s with token %q = %d %q, want %d with %q", path, token, got, body, status, text)
		}
	}
	check("/api/drain?member=n2&on=true", "", 401, "wrong token")
	check("/api/drain?member=n2&on=true", "open", 401, "wrong token")
	check("/api/drain?member=n2&on=true", NoToken, 401, "wrong token")
	check("/api/drain?member=n2&on=perhaps", "sesame", 400, "neither")
	check("/api/drain?member=n3&on=true", "sesame", 409, "no such node in this process")
	check("/api/drain?member=n1&on=true", "sesame", 409, "elsewhere")
	if len(two.orders) > 0 {
		t.Fatalf("obeyed %q", two.orders)
	}
	check("/api/drain?member=n2&on=true", "sesame", 200, "ok")
	check("/api/drain?member=n2&on=false", "sesame", 200, "ok")
	check("/api/rebalance?paused=true", "sesame", 200, "ok") // the node that can obeys
	check("/api/rebalance?paused=false", "sesame", 200, "ok")
	if got := strings.Join(two.orders, ", "); got != "drain, no drain, pause, no pause" {
		t.Errorf("obeyed %q", got)
	}
}

// TestOrdersWithoutSecret checks that, without a secret, orders must come from this machine and
// have a header that a web page cannot set.
func TestOrdersWithoutSecret(t *testing.T) {
	c := newControl(t, "")
	c.Add("n1", &obedient{})
	from := func(remote, host string) int {
		status, _ := post(c, "/api/drain?member=n1&on=true", NoToken, remote, host)
		return status
	}
	if status, _ := post(c, "/api/drain?member=n1&on=true", "", "127.0.0.1:4000",
		"127.0.0.1:9180"); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d, want 401", status)
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
