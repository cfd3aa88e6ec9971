package exporter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Handshakes counts the handshakes of incoming TLS connections, and knows until when the
// certificate shown to them is valid.
type Handshakes interface {
	Stats() (accepted, failed int64)
	CertificateEnd() time.Time
}

// AddTLS exports the handshakes with connecting "clients" or "members".
func (e *Exporter) AddTLS(with string, h Handshakes) {
	add := func(result string, count func() int64) {
		e.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "dunlin_tls_handshakes_total",
			Help:        "TLS handshakes with clients or members that connected.",
			ConstLabels: prometheus.Labels{"with": with, "result": result},
		}, func() float64 { return float64(count()) }))
	}
	add("accepted", func() int64 { accepted, _ := h.Stats(); return accepted })
	add("failed", func() int64 { _, failed := h.Stats(); return failed })
	e.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "dunlin_tls_certificate_expiry_timestamp_seconds",
		Help:        "End of the validity of the certificate in use, in Unix seconds.",
		ConstLabels: prometheus.Labels{"with": with},
	}, func() float64 { return float64(h.CertificateEnd().Unix()) }))
}
