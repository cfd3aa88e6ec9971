package admin

import (
	"net"
	"net/http"

	"github.com/dunlin-cache/dunlin/metrics/control"
)

// guard lets requests for keys, clients' addresses and members through to serve. With tokens of
// readers, a request must carry one of these, or one of those who give orders. Without, it may come
// from any other machine; but a request that arrives at a loopback address must name that host.
// Otherwise a page of another site, whose name resolves to this machine, could have a browser here
// read the answer (DNS rebinding).
func (a *Admin) guard(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case len(a.opt.Readers.All()) > 0:
			if !a.opt.Readers.CarriedBy(r) && !a.opt.Orders.CarriedBy(r) {
				w.Header().Set("WWW-Authenticate", `Basic realm="Dunlin: any user, the admin token as password"`)
				http.Error(w, "this needs the admin token: as a bearer's, or as the password of any user", http.StatusUnauthorized)
				return
			}
		case arrivedAtLoopback(r) && !control.IsOwnSite(r.Host):
			http.Error(w, "ask for localhost or an IP address: this host name may belong to another site", http.StatusForbidden)
			return
		}
		serve(w, r)
	}
}

func arrivedAtLoopback(r *http.Request) bool {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}
