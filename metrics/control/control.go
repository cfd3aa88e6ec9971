package control

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
)

// Member obeys an operator. Neither call waits for what it starts.
type Member interface {
	// Drain has the node hand over what it owns and follows, or take part again.
	Drain(on bool) error
	// PauseRebalance stops what moves without need, or lets it go on. Only the
	// coordinator can.
	PauseRebalance(paused bool) error
}

// NoToken is the token of requests to a cluster that has no secret. It proves nothing,
// but a web page cannot make a browser send it to another site.
const NoToken = "none"

// Control takes an operator's orders for the nodes of this process.
type Control struct {
	token string
	log   *slog.Logger

	mu    sync.Mutex
	nodes []node
}

type node struct {
	id     string
	member Member
}

// New returns a Control that obeys requests with the token; "": those from this machine, with
// NoToken.
func New(token string, log *slog.Logger) *Control { return &Control{token: token, log: log} }

// Add has orders to a node obeyed.
func (c *Control) Add(id string, m Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = append(c.nodes, node{id, m})
}

// authorized answers a request that may not change anything, and reports false then.
// The token goes in a header of its own: no page of another site can set one.
func (c *Control) authorized(w http.ResponseWriter, r *http.Request) bool {
	want := c.token
	if want == "" {
		want = NoToken
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() || !isOwnSite(r.Host) {
			http.Error(w, "without a secret this may be asked from this machine only", http.StatusForbidden)
			return false
		}
	}
	given := r.Header.Get("Authorization")
	if subtle.ConstantTimeCompare([]byte(given), []byte("Bearer "+want)) != 1 {
		http.Error(w, "wrong token: it follows from the cluster's secret", http.StatusUnauthorized)
		return false
	}
	return true
}

// isOwnSite reports whether the host that a request names means this machine by itself. A
// name may be another site's that resolves to us (DNS rebinding), whose pages a browser
// then lets send us what they like.
func isOwnSite(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	return name == "localhost" || net.ParseIP(name) != nil
}

// Drain is POST /api/drain?member=ID&on=true|false.
func (c *Control) Drain(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("member")
	c.obey(w, r, "on", func(n node) bool { return n.id == id }, Member.Drain)
}

// Rebalance is POST /api/rebalance?paused=true|false. Any node of this process will do
// if it is the coordinator.
func (c *Control) Rebalance(w http.ResponseWriter, r *http.Request) {
	c.obey(w, r, "paused", func(node) bool { return true }, Member.PauseRebalance)
}

// obey has the first of the nodes that match and can do what the request's parameter says.
func (c *Control) obey(w http.ResponseWriter, r *http.Request, parameter string,
	match func(node) bool, do func(Member, bool) error) {
	if !c.authorized(w, r) {
		return
	}
	on, err := strconv.ParseBool(r.URL.Query().Get(parameter))
	if err != nil {
		http.Error(w, parameter+" is neither true nor false", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	nodes := c.nodes[:len(c.nodes):len(c.nodes)]
	c.mu.Unlock()
	failed := fmt.Errorf("no such node here")
	for _, n := range nodes {
		if !match(n) {
			continue
		}
		if failed = do(n.member, on); failed == nil {
			c.log.Info("operator's order", "path", r.URL.Path, "member", n.id, parameter, on)
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, "ok\n") // the client is gone: nothing to do about it
			return
		}
	}
	http.Error(w, failed.Error(), http.StatusConflict)
}
