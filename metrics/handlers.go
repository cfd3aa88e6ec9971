package metrics

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/dunlin-cache/dunlin/internal/netloop"
)

// healthz says whether this process works at all: its loops answer. It never
// asks about other members, or a platform that restarts unhealthy processes
// would restart a whole cluster because one member is gone.
func (a *Admin) healthz(w http.ResponseWriter, r *http.Request) {
	sick, err := a.health.get(r.Context())
	if err = cmp.Or(err, sick); err != nil {
		http.Error(w, fmt.Sprintf("event loops do not answer: %v", err), http.StatusServiceUnavailable)
		return
	}
	plain(w, "ok\n")
}

// pulse fails when a loop does not run.
func (a *Admin) pulse() error {
	a.mu.Lock()
	loops := a.loops
	a.mu.Unlock()
	if loops == nil {
		return nil
	}
	return loops.Each(func(*netloop.Loop) {})
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
		if !m.isReady() {
			missing = append(missing, m.source.ID+" is not ready")
		}
	}
	return strings.Join(missing, "\n")
}

// statusView is a Status, encoded when first asked for.
type statusView struct {
	all, members func() []byte
}

func (a *Admin) viewStatus() *statusView {
	s := a.Status()
	alone := s
	alone.Cluster = Cluster{Name: s.Cluster.Name, Peers: []Peer{}}
	return &statusView{
		all:     sync.OnceValue(func() []byte { return encode("  ", s) }),
		members: sync.OnceValue(func() []byte { return encode("  ", alone) }),
	}
}

// status is GET /api/status. With ?members it leaves the cluster out: who asks every
// member for its figures has got that from one.
func (a *Admin) status(w http.ResponseWriter, r *http.Request) {
	v, err := a.statuses.get(r.Context())
	switch {
	case err != nil: // the client is gone
	case r.URL.Query().Has("members"):
		sendJSON(w, v.members())
	default:
		sendJSON(w, v.all())
	}
}

func sendJSON(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // the client is gone: nothing to do about it
}

// encode makes JSON of our own types, which always have one.
func encode(indent string, what any) []byte {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetIndent("", indent)
	if err := e.Encode(what); err != nil {
		panic("BUG: " + err.Error())
	}
	return body.Bytes()
}

//go:embed page.html page.js page.css
var pageFiles embed.FS

var pageTemplate = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"bytes": BytesText, "ratio": RatioText, "count": countText,
	"whole": func(v float64) int64 { return int64(v + 0.5) }, "long": func(n int) int64 { return int64(n) },
}).ParseFS(pageFiles, "page.html"))

// page serves the page with the status as it is now in it; its script goes on from there.
func (a *Admin) page(w http.ResponseWriter, r *http.Request) {
	v, err := a.lives.get(r.Context())
	if err != nil {
		return // the client is gone
	}
	body, err := v.page()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	pageHeader(w)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // the client is gone: nothing to do about it
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
