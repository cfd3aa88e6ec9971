package page

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"net/http"
	"path"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/metrics/status"
)

const (
	// askTime is how long other processes have to answer. A reader waits that long for a process
	// that is silent but not yet declared dead.
	askTime = time.Second
	// Others are asked at most every askPause, plus peerPause for each member: a process asks at
	// most 50 others a second, however many readers its page has.
	askPause  = time.Second
	peerPause = 20 * time.Millisecond
)

// Page serves the live page of one process. Any goroutine may call its methods.
type Page struct {
	local *status.Local
	ctx   context.Context // ends the questions to others
	token func() string   // of the questions to others, "": none
	pause time.Duration   // askPause, except in tests

	mu     sync.Mutex // locked while others are asked
	report *status.Report
	next   time.Time // when others may be asked again
}

// New returns the page of a process's members. Its questions to other processes end with ctx, and
// carry what token returns, if that is not "".
func New(ctx context.Context, local *status.Local, token func() string) *Page {
	return &Page{local: local, ctx: ctx, token: token, pause: askPause}
}

// others returns the last answers of the cluster's members. s is what this process knows without
// asking.
func (p *Page) others(s *status.Status) *status.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.report == nil || !time.Now().Before(p.next) {
		ctx, cancel := context.WithTimeout(status.WithToken(p.ctx, p.token()), askTime)
		defer cancel()
		p.report = s.Report(ctx)
		p.next = time.Now().Add(p.pause + time.Duration(len(s.Cluster.Peers))*peerPause)
	}
	return p.report
}

//go:embed page.html page.js page.css
var files embed.FS

var pageTemplate = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"bytes": status.BytesText, "ratio": status.RatioText, "count": status.CountText,
	"whole": func(v float64) int64 { return int64(v + 0.5) }, "long": func(n int) int64 { return int64(n) },
}).ParseFS(files, "page.html"))

// Serve answers GET / with the page, which contains the present status. The page's script then
// keeps it up to date.
func (p *Page) Serve(w http.ResponseWriter, _ *http.Request) {
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, p.live()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	secure(w)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body.Bytes()) // an error means that the client is gone
}

// ServeLive answers GET /api/live?table=NAME. NAME is the table whose owners the reader has.
func (p *Page) ServeLive(w http.ResponseWriter, r *http.Request) {
	l := p.live()
	if l.Table != "" && l.Table == r.URL.Query().Get("table") {
		l.Owners = nil
	}
	status.SendJSON(w, "", l)
}

// ServeFile serves the files of the page, by the last part of the path.
func ServeFile(w http.ResponseWriter, r *http.Request) {
	secure(w)
	http.ServeFileFS(w, r, files, path.Base(r.URL.Path))
}

// secure allows nothing from elsewhere and no inline code: member ids come from the network, keys
// from clients, and must never become script.
func secure(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src data:; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
}
