package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/metrics/control"
	"github.com/dunlin-cache/dunlin/metrics/exporter"
	"github.com/dunlin-cache/dunlin/metrics/page"
	"github.com/dunlin-cache/dunlin/metrics/status"
)

// Options are the settings of an Admin.
type Options struct {
	Version string // shown in the status and in dunlin_build_info
	Cluster string // the cluster's name
	Pprof   bool   // serve /debug/pprof
	// Orders authorize a request that changes something; none: only this machine may send such
	// requests.
	Orders *control.Tokens
	// Readers authorize a request for keys, clients' addresses and members, as Orders do; none:
	// such requests need no token. Questions to other members carry the first.
	Readers *control.Tokens
	Log     *slog.Logger
}

// Admin is the admin HTTP server of one process. It answers from the moment of Listen, before there
// are members: a process that starts slowly is alive and not ready.
type Admin struct {
	opt      Options
	listener net.Listener
	http     http.Server
	done     sync.WaitGroup  // the goroutines
	ctx      context.Context // ends with Close
	stop     context.CancelFunc

	exporter *exporter.Exporter
	local    *status.Local
	page     *page.Page
	control  *control.Control

	mu       sync.Mutex
	loops    *netloop.Group // nil until SetLoops
	draining bool
}

// Listen binds addr and starts to serve.
func Listen(addr string, opt Options) (*Admin, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for admin HTTP: %w", err)
	}
	a := &Admin{
		opt:      opt,
		listener: newBounded(listener),
		exporter: exporter.New(opt.Version),
		local:    status.NewLocal(opt.Version, opt.Cluster, opt.Log),
		control:  control.New(opt.Orders, opt.Log),
	}
	a.ctx, a.stop = context.WithCancel(context.Background())
	a.page = page.New(a.ctx, a.local, opt.Readers.First)
	// Every phase of a request has a bound, so that a client that stops reading or writing occupies
	// a goroutine for seconds, not for ever. Profiles take 30 s by default, hence the longer write
	// time.
	a.http = http.Server{
		Handler:           counting(a.routes()),
		ConnContext:       withConnection,
		ConnState:         uncount,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(opt.Log.Handler(), slog.LevelDebug),
	}
	a.done.Go(a.serve)
	a.done.Go(func() { a.local.KeepHistory(a.ctx) })
	return a, nil
}

// Source describes a member of this process to the admin server.
type Source struct {
	ID   string
	Boot int64  // ring.Member.Boot
	Addr string // as advertised
	View status.View
	// NotReady returns why the member is not ready, as far as its agent knows, or "".
	NotReady func() string
	// Gossip reads the counters of the member's gossip agent.
	Gossip func() exporter.Gossip
}

func (s Source) status() status.Source {
	return status.Source{ID: s.ID, Boot: s.Boot, Addr: s.Addr, View: s.View, NotReady: s.NotReady}
}

func (s Source) exported() exporter.Member {
	return exporter.Member{ID: s.ID, Boot: s.Boot, View: s.View, Gossip: s.Gossip}
}

// AddNode makes the server show a node. steer carries out an operator's orders to the node; nil:
// orders are refused.
func (a *Admin) AddNode(s Source, n status.Node, steer control.Member) {
	a.exporter.AddNode(s.exported(), n)
	a.local.AddNode(s.status(), n)
	if steer != nil {
		a.control.Add(s.ID, steer)
	}
}

// AddProxy makes the server show a proxy.
func (a *Admin) AddProxy(s Source, p status.Proxy) {
	a.exporter.AddProxy(s.exported(), p)
	a.local.AddProxy(s.status(), p)
}

// AddTLS exports the handshakes with connecting "clients" or "members".
func (a *Admin) AddTLS(with string, h exporter.Handshakes) { a.exporter.AddTLS(with, h) }

// AddCredentials exports how often a file of credentials was renewed.
func (a *Admin) AddCredentials(flag string, f exporter.Renewals) { a.exporter.AddCredentials(flag, f) }

// SetLoops makes the server watch the loops of this process: it exports their counters, and
// /healthz checks that they run.
func (a *Admin) SetLoops(g *netloop.Group) {
	a.mu.Lock()
	a.loops = g
	a.mu.Unlock()
	a.exporter.AddLoops(g)
}

// Addr returns the address that Listen bound.
func (a *Admin) Addr() string { return a.listener.Addr().String() }

// Drain makes /readyz answer 503 from now on, so that load balancers send no new clients while the
// process finishes the requests of those that it has.
func (a *Admin) Drain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.draining = true
}

// Close stops serving. Requests in progress may continue until ctx ends.
func (a *Admin) Close(ctx context.Context) error {
	a.stop()
	err := a.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, a.http.Close())
	}
	a.done.Wait()
	return err
}

func (a *Admin) serve() {
	if err := a.http.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
		a.opt.Log.Error("admin HTTP ended", "err", err)
	}
}

func (a *Admin) routes() http.Handler {
	mux := http.NewServeMux()
	looking, asked := make(readers, mostReaders), make(readers, mostReaders)
	mux.Handle("GET /metrics", a.exporter.Handler(a.opt.Log))
	mux.HandleFunc("GET /healthz", a.healthz)
	mux.HandleFunc("GET /readyz", a.readyz)
	mux.HandleFunc("GET /api/status", a.guard(asked.limit(a.local.ServeHTTP)))
	mux.HandleFunc("POST /api/drain", a.control.Drain)
	mux.HandleFunc("POST /api/rebalance", a.control.Rebalance)
	mux.HandleFunc("GET /api/live", a.guard(looking.limit(a.page.ServeLive)))
	mux.HandleFunc("GET /{$}", a.guard(looking.limit(a.page.Serve)))
	mux.HandleFunc("GET /page.js", page.ServeFile)
	mux.HandleFunc("GET /page.css", page.ServeFile)
	if a.opt.Pprof {
		// Without cmdline, which would show a password among the arguments.
		mux.HandleFunc("GET /debug/pprof/", a.guard(pprof.Index))
		mux.HandleFunc("GET /debug/pprof/profile", a.guard(pprof.Profile))
		mux.HandleFunc("GET /debug/pprof/symbol", a.guard(pprof.Symbol))
		mux.HandleFunc("GET /debug/pprof/trace", a.guard(pprof.Trace))
	}
	return mux
}
