package metrics

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

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dunlin-cache/dunlin/internal/netloop"
)

// Options are the settings of an Admin.
type Options struct {
	Version string // shown in the status and in dunlin_build_info
	Cluster string // the cluster's name
	Pprof   bool   // serve /debug/pprof
	// Token is what a request that changes something must bring; "": such requests are
	// taken from this machine only.
	Token string
	Log   *slog.Logger
}

// Admin is the admin HTTP server of one process. It answers from the moment of
// Listen, before there are members: a process that starts slowly is alive and
// not ready.
type Admin struct {
	opt      Options
	listener net.Listener
	http     http.Server
	registry *prometheus.Registry
	done     sync.WaitGroup  // the goroutines
	ctx      context.Context // ends with Close
	stop     context.CancelFunc
	rounds   rounds

	// What is read is made once for all who ask at one time.
	health   shared[error]
	statuses shared[*statusView]
	lives    shared[*liveView]

	mu       sync.Mutex
	members  []*member
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
		listener: listener,
		registry: prometheus.NewRegistry(),
		rounds:   rounds{pause: roundPause},
	}
	a.ctx, a.stop = context.WithCancel(context.Background())
	a.health = shared[error]{pause: collectPause, make: a.pulse}
	a.statuses = shared[*statusView]{pause: collectPause, make: a.viewStatus}
	a.lives = shared[*liveView]{pause: collectPause, make: a.viewLive}
	a.registry.MustRegister(
		buildInfo(opt.Version),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	// Every phase of a request has a bound, so that a client that stops
	// reading or writing holds a goroutine for seconds, not for ever. Profiles
	// take 30 s by default, hence the longer write time.
	a.http = http.Server{
		Handler:           a.routes(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(opt.Log.Handler(), slog.LevelDebug),
	}
	a.done.Go(a.serve)
	a.done.Go(a.keepHistory)
	return a, nil
}

// Addr is the address that Listen bound.
func (a *Admin) Addr() string { return a.listener.Addr().String() }

// Drain makes /readyz answer 503 from now on, so that load balancers stop
// sending new clients while the process answers the ones that it has.
func (a *Admin) Drain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.draining = true
}

// Close stops serving; requests under way may end until ctx does.
func (a *Admin) Close(ctx context.Context) error {
	a.rounds.mu.Lock() // lest one begins when the last goroutine has ended
	a.stop()
	a.rounds.mu.Unlock()
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
	page, status := make(readers, mostReaders), make(readers, mostReaders)
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{
		// One member that cannot be read must not hide the others.
		ErrorHandling:       promhttp.ContinueOnError,
		ErrorLog:            slog.NewLogLogger(a.opt.Log.Handler(), slog.LevelWarn),
		MaxRequestsInFlight: 4,
		EnableOpenMetrics:   true,
	}))
	mux.HandleFunc("GET /healthz", a.healthz)
	mux.HandleFunc("GET /readyz", a.readyz)
	mux.HandleFunc("GET /api/status", status.limit(a.status))
	mux.HandleFunc("POST /api/drain", a.drain)
	mux.HandleFunc("POST /api/rebalance", a.rebalance)
	mux.HandleFunc("GET /api/live", page.limit(a.serveLive))
	mux.HandleFunc("GET /{$}", page.limit(a.page))
	mux.HandleFunc("GET /page.js", pageFile)
	mux.HandleFunc("GET /page.css", pageFile)
	if a.opt.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// buildInfo is the usual constant 1 whose labels say what runs.
func buildInfo(version string) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "dunlin_build_info",
		Help:        "Constant 1, labelled with the version of this binary.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	info.Set(1)
	return info
}
