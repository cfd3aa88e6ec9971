package exporter

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dunlin-cache/dunlin/ring"
)

// Exporter has the collectors of one process. Any goroutine may call its methods.
type Exporter struct {
	registry *prometheus.Registry
	scrapes  *scrapes // of registry
}

// New returns an Exporter of the process itself: its version, the Go runtime, and what the
// operating system counts.
func New(version string) *Exporter {
	e := &Exporter{registry: prometheus.NewRegistry()}
	e.scrapes = newScrapes(e.registry)
	e.registry.MustRegister(
		buildInfo(version),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return e
}

// View is what a member knows about its cluster.
type View interface {
	Table() *ring.Table // immutable; nil: none yet
	Members() []ring.Member
}

// Gossip has the counters of a gossip agent since its start, and its present Health. It is a type
// of its own so that this package does not depend on ring/gossip.
type Gossip struct {
	Health                                                             int // 0: good
	Rejoins, Fetches, FetchErrors, Issued, Healed, Rejected, Strangers uint64
}

// Member identifies a member of this process, and provides what it knows about others.
type Member struct {
	ID     string
	Boot   int64 // ring.Member.Boot
	View   View
	Gossip func() Gossip
}

func (m Member) label() prometheus.Labels { return prometheus.Labels{"member": m.ID} }

func (e *Exporter) add(m Member, own prometheus.Collector) {
	e.registry.MustRegister(own, newViewCollector(m))
}

// Handler answers scrapes, of which four may wait at a time.
func (e *Exporter) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(e.scrapes, promhttp.HandlerOpts{
		// One member that cannot be read must not hide the others.
		ErrorHandling:       promhttp.ContinueOnError,
		ErrorLog:            scrapeLog{log},
		MaxRequestsInFlight: 4,
		EnableOpenMetrics:   true,
	})
}

// scrapeLog logs what goes wrong in scrapes.
type scrapeLog struct{ log *slog.Logger }

// Println logs a line, unless it says that the client has left: that would be a line for each family of metrics.
func (l scrapeLog) Println(words ...any) {
	for _, w := range words {
		var broken *net.OpError
		if err, ok := w.(error); ok && errors.As(err, &broken) {
			return
		}
	}
	l.log.Warn(strings.TrimSpace(fmt.Sprintln(words...)))
}

// buildInfo returns the usual constant 1 whose labels name the version.
func buildInfo(version string) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "dunlin_build_info",
		Help:        "Constant 1, labelled with the version of this binary.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	info.Set(1)
	return info
}
