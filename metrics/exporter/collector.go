package exporter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dunlin-cache/dunlin/internal/command"
)

// metric is one row of a role's table of metrics: its name, and how to read it from the snapshot S
// that a scrape took. A counter's name ends in _total, which the lint test checks.
type metric[S any] struct {
	name string
	help string
	kind prometheus.ValueType
	get  func(*S) float64
}

func counter[S any](name, help string, get func(*S) float64) metric[S] {
	return metric[S]{name, help, prometheus.CounterValue, get}
}

func gauge[S any](name, help string, get func(*S) float64) metric[S] {
	return metric[S]{name, help, prometheus.GaugeValue, get}
}

// labelled is a metric with one label, whose values the snapshot lists. each calls emit once for
// each label value.
type labelled[S any] struct {
	name  string
	help  string
	kind  prometheus.ValueType
	label string
	each  func(s *S, emit func(label string, value float64))
}

// histogram is a distribution of which a snapshot has the counts.
type histogram[S any] struct {
	name string
	help string
	// get returns the number of observations, their sum, and for each upper bound the number of
	// observations not above it.
	get func(*S) (count uint64, sum float64, upTo map[float64]uint64)
}

// table lists the metrics of a role.
type table[S any] struct {
	metrics    []metric[S]
	labelled   []labelled[S]
	histograms []histogram[S]
	latencies  []latency[S]
}

// collector is a prometheus.Collector that takes one snapshot for each scrape, so that related
// figures (hits and misses) belong to one moment.
type collector[S any] struct {
	read  func() (*S, error)
	table table[S]
	descs []*prometheus.Desc // of the table's metrics, labelled ones, histograms, then latencies
	since time.Time
}

func newCollector[S any](labels prometheus.Labels, read func() (*S, error), t table[S]) *collector[S] {
	c := &collector[S]{read: read, table: t, since: time.Now()}
	for _, m := range t.metrics {
		c.descs = append(c.descs, prometheus.NewDesc(m.name, m.help, nil, labels))
	}
	for _, m := range t.labelled {
		c.descs = append(c.descs, prometheus.NewDesc(m.name, m.help, []string{m.label}, labels))
	}
	for _, m := range t.histograms {
		c.descs = append(c.descs, prometheus.NewDesc(m.name, m.help, nil, labels))
	}
	for _, m := range t.latencies {
		c.descs = append(c.descs, prometheus.NewDesc(m.name, m.help, []string{"family"}, labels))
	}
	return c
}

// Describe and Collect make a *collector a prometheus.Collector.
func (c *collector[S]) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

// Collect reports a snapshot that cannot be taken (a loop hangs) as an invalid metric: the scrape
// then fails visibly for this member and keeps the others.
func (c *collector[S]) Collect(out chan<- prometheus.Metric) {
	s, err := c.read()
	if err != nil {
		out <- prometheus.NewInvalidMetric(c.descs[0], err)
		return
	}
	descs := c.descs
	next := func() (d *prometheus.Desc) {
		d, descs = descs[0], descs[1:]
		return d
	}
	for _, m := range c.table.metrics {
		out <- prometheus.MustNewConstMetric(next(), m.kind, m.get(s))
	}
	for _, m := range c.table.labelled {
		desc := next()
		m.each(s, func(label string, value float64) {
			out <- prometheus.MustNewConstMetric(desc, m.kind, value, label)
		})
	}
	for _, m := range c.table.histograms {
		count, sum, upTo := m.get(s)
		out <- prometheus.MustNewConstHistogram(next(), count, sum, upTo)
	}
	for _, m := range c.table.latencies {
		desc, all := next(), m.get(s)
		for family := range all {
			if d := &all[family]; d.Count > 0 {
				out <- newDual(desc, d, c.since, command.Family(family).String())
			}
		}
	}
}
