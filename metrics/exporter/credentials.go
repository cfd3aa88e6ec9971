package exporter

import "github.com/prometheus/client_golang/prometheus"

// Renewals counts how often a file of credentials was renewed, and how often its new content could
// not be used.
type Renewals interface {
	Stats() (renewed, failed int64)
}

// AddCredentials exports the renewals of the file that a flag names.
func (e *Exporter) AddCredentials(flag string, r Renewals) {
	add := func(result string, count func() int64) {
		e.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "dunlin_credentials_renewals_total",
			Help:        "Changes of a file of passwords or secrets that this process has taken over, or could not use.",
			ConstLabels: prometheus.Labels{"file": flag, "result": result},
		}, func() float64 { return float64(count()) }))
	}
	add("renewed", func() int64 { renewed, _ := r.Stats(); return renewed })
	add("failed", func() int64 { _, failed := r.Stats(); return failed })
}
