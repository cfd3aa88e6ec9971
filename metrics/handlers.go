package metrics

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"path"
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

// status is GET /api/status. With ?members it leaves the cluster out: who asks every
// member for its figures has got that from one.
func (a *Admin) status(w http.ResponseWriter, r *http.Request) {
	s := a.Status()
	if r.URL.Query().Has("members") {
		s.Cluster = Cluster{Name: s.Cluster.Name, Peers: []Peer{}}
	}
	a.sendJSON(w, "  ", s)
}

func (a *Admin) sendJSON(w http.ResponseWriter, indent string, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	e := json.NewEncoder(w)
	e.SetIndent("", indent)
	if err := e.Encode(what); err != nil {
		a.opt.Log.Debug("cannot send status", "err", err)
	}
}

//go:embed page.html page.js page.css
var pageFiles embed.FS

var pageTemplate = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"bytes": BytesText, "ratio": RatioText,
}).ParseFS(pageFiles, "page.html"))

// page serves the page with the status as it is now in it; its script goes on from there.
func (a *Admin) page(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, a.live(r.Context(), "")); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	pageHeader(w)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body.Bytes()) // the client is gone: nothing to do about it
}

// pageFile serves what the page is made of from the binary.
func pageFile(w http.ResponseWriter, r *http.Request) {
	pageHeader(w)
	http.ServeFileFS(w, r, pageFiles, path.Base(r.URL.Path))
}

// pageHeader allows nothing from elsewhere and no inline code: member ids come from
// the network, keys from clients, and must never become script.
func pageHeader(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src data:; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
}

func plain(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text) // the client is gone: nothing to do about it
}
