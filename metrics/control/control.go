package control

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
)

// Member carries out an operator's orders. Neither method waits for what it starts.
type Member interface {
	// Drain makes the node hand over the partitions that it owns and follows or, with on false,
	// take part again.
	Drain(on bool) error
	// PauseRebalance pauses or resumes avoidable moves. Only the coordinator can.
	PauseRebalance(paused bool) error
}

// NoToken is the token of requests to a cluster without a secret. It proves nothing, but a web page
// cannot make a browser send it to another site.
const NoToken = "none"

var noTokens = NewTokens(NoToken)

// Control receives an operator's orders for the nodes of this process.
type Control struct {
	tokens *Tokens
	log    *slog.Logger

	mu    sync.Mutex
	nodes []node
}

type node struct {
	id     string
	member Member
}

// New returns a Control that obeys requests with one of the tokens; without any, requests from this
// machine with NoToken.
func New(tokens *Tokens, log *slog.Logger) *Control { return &Control{tokens: tokens, log: log} }

// Add registers a node, so that Control obeys orders to it.
func (c *Control) Add(id string, m Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = append(c.nodes, node{id, m})
}

// authorized reports whether a request may change something; if not, it answers the request. The
// token has a header of its own, which no page of another site can set.
func (c *Control) authorized(w http.ResponseWriter, r *http.Request) bool {
	tokens := c.tokens
	if len(tokens.All()) == 0 {
		tokens = noTokens
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() || !IsOwnSite(r.Host) {
			http.Error(w, "without a secret only this machine may send orders", http.StatusForbidden)
			return false
		}
	}
	// A browser sends a password by itself, also for a page of another site; a bearer's token only if
	// that site's script knows it.
	if _, _, basic := r.BasicAuth(); basic || !tokens.CarriedBy(r) {
		http.Error(w, "wrong token: give the cluster's secret", http.StatusUnauthorized)
		return false
	}
	return true
}

// IsOwnSite reports whether the host that a request names can only mean this machine. A name may
// belong to another site and resolve to this machine (DNS rebinding); the browser would then let
// that site's pages send any request here.
func IsOwnSite(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	return name == "localhost" || net.ParseIP(name) != nil
}

// Drain is POST /api/drain?member=ID&on=true|false.
func (c *Control) Drain(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("member")
	c.obey(w, r, "on", func(n node) bool { return n.id == id }, Member.Drain)
}

// Rebalance is POST /api/rebalance?paused=true|false. The coordinator must be in this process.
func (c *Control) Rebalance(w http.ResponseWriter, r *http.Request) {
	c.obey(w, r, "paused", func(node) bool { return true }, Member.PauseRebalance)
}

// obey reads the order from the request's parameter. The first matching node that can carry it out
// does so.
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
	failed := errors.New("no such node in this process")
	for _, n := range nodes {
		if !match(n) {
			continue
		}
		if failed = do(n.member, on); failed == nil {
			c.log.Info("operator's order", "path", r.URL.Path, "member", n.id, parameter, on)
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, "ok\n") // an error means that the client is gone
			return
		}
	}
	http.Error(w, failed.Error(), http.StatusConflict)
}
