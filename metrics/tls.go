package metrics

import "github.com/prometheus/client_golang/prometheus"

// Handshakes counts those of TLS connections that others opened.
type Handshakes interface {
	Stats() (accepted, failed int64)
}

// AddTLS exports the handshakes with whoever connects: "clients" or "members".
func (a *Admin) AddTLS(with string, h Handshakes) {
	add := func(result string, count func() int64) {
		a.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "dunlin_tls_handshakes_total",
			Help:        "TLS handshakes with clients or members that connected.",
			ConstLabels: prometheus.Labels{"with": with, "result": result},
		}, func() float64 { return float64(count()) }))
	}
	add("accepted", func() int64 { accepted, _ := h.Stats(); return accepted })
	add("failed", func() int64 { _, failed := h.Stats(); return failed })
}
