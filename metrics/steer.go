package metrics

import (
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
)

// Steer obeys an operator. Neither call waits for what it starts.
type Steer interface {
	// Drain has the node hand over what it owns and follows, or take part again.
	Drain(on bool) error
	// PauseRebalance stops what moves without need, or lets it go on. Only the
	// coordinator can.
	PauseRebalance(paused bool) error
}

// NoToken is the token of requests to a cluster that has no secret. It proves nothing,
// but a web page cannot make a browser send it to another site.
const NoToken = "none"

// authorized answers a request that may not change anything, and reports false then.
// The token goes in a header of its own: no page of another site can set one.
func (a *Admin) authorized(w http.ResponseWriter, r *http.Request) bool {
	want := a.opt.Token
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

// drain is POST /api/drain?member=ID&on=true|false.
func (a *Admin) drain(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("member")
	a.steer(w, r, "on", func(m *member) bool { return m.source.ID == id }, Steer.Drain)
}

// rebalance is POST /api/rebalance?paused=true|false. Any node of this process will do
// if it is the coordinator.
func (a *Admin) rebalance(w http.ResponseWriter, r *http.Request) {
	a.steer(w, r, "paused", func(*member) bool { return true }, Steer.PauseRebalance)
}

// steer has the first of the members that match and obey do what the request's
// parameter says.
func (a *Admin) steer(w http.ResponseWriter, r *http.Request, parameter string,
	match func(*member) bool, do func(Steer, bool) error) {
	if !a.authorized(w, r) {
		return
	}
	on, err := strconv.ParseBool(r.URL.Query().Get(parameter))
	if err != nil {
		http.Error(w, parameter+" is neither true nor false", http.StatusBadRequest)
		return
	}
	failed := fmt.Errorf("no such node here")
	for _, m := range a.list() {
		if m.source.Steer == nil || !match(m) {
			continue
		}
		if failed = do(m.source.Steer, on); failed == nil {
			a.opt.Log.Info("operator's order", "path", r.URL.Path, "member", m.source.ID, parameter, on)
			plain(w, "ok\n")
			return
		}
	}
	http.Error(w, failed.Error(), http.StatusConflict)
}
