package metrics

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// healthz says whether this process works at all: its loops answer. It never
// asks about other members, or a platform that restarts unhealthy processes
// would restart a whole cluster because one member is gone.
func (a *Admin) healthz(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	loops := a.loops
	a.mu.Unlock()
	if loops != nil {
		if err := pulse(loops); err != nil {
			http.Error(w, fmt.Sprintf("event loops do not answer: %v", err), http.StatusServiceUnavailable)
			return
		}
	}
	plain(w, "ok\n")
}

// readyz says whether clients should come here.
func (a *Admin) readyz(w http.ResponseWriter, _ *http.Request) {
	if missing := a.notReady(); missing != "" {
		http.Error(w, missing, http.StatusServiceUnavailable)
		return
	}
	plain(w, "ready\n")
}

// notReady names what is missing, or returns "".
func (a *Admin) notReady() string {
	a.mu.Lock()
	draining := a.draining
	a.mu.Unlock()
	members := a.list()
	switch {
	case draining:
		return "stopping"
	case len(members) == 0:
		return "starting"
	}
	var missing []string
	for _, m := range members {
		if !m.ready() {
			missing = append(missing, m.source.ID+" is not ready")
		}
	}
	return strings.Join(missing, "\n")
}

func (a *Admin) status(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(a.Status()); err != nil {
		a.opt.Log.Debug("cannot send status", "err", err)
	}
}

//go:embed page.html page.js
var pageFiles embed.FS

// page serves the start page and its script from the binary. The policy allows
// nothing from elsewhere and no inline code: member ids come from the network
// and must never become script.
func page(w http.ResponseWriter, r *http.Request) {
	name := "page.html"
	if r.URL.Path == "/page.js" {
		name = "page.js"
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeFileFS(w, r, pageFiles, name)
}

func plain(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text) // the client is gone: nothing to do about it
}
