package metrics

import "github.com/prometheus/client_golang/prometheus"

// metric is one row of a role's table of metrics: its name, and how to read it
// from the snapshot S that a scrape took. A counter's name ends in _total, which
// the lint test checks.
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

// labelled is a metric with one label, whose values a snapshot lists. each calls
// emit once for a label value.
type labelled[S any] struct {
	name  string
	help  string
	kind  prometheus.ValueType
	label string
	each  func(s *S, emit func(label string, value float64))
}

// collector is a prometheus.Collector over one snapshot a scrape. One snapshot,
// so that figures that belong together (hits and misses) are of one moment.
type collector[S any] struct {
	read     func() (*S, error)
	metrics  []metric[S]
	labelled []labelled[S]
	descs    []*prometheus.Desc // of metrics, then of labelled
}

func newCollector[S any](labels prometheus.Labels, read func() (*S, error), metrics []metric[S], lab []labelled[S]) *collector[S] {
	c := &collector[S]{read: read, metrics: metrics, labelled: lab}
	for _, m := range metrics {
		c.descs = append(c.descs, prometheus.NewDesc(m.name, m.help, nil, labels))
	}
	for _, m := range lab {
		c.descs = append(c.descs, prometheus.NewDesc(m.name, m.help, []string{m.label}, labels))
	}
	return c
}

// Describe and Collect make a *collector a prometheus.Collector.
func (c *collector[S]) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

// Collect reports a snapshot that cannot be taken (a loop hangs) as an invalid
// metric: the scrape then fails loudly for this member and keeps the others.
func (c *collector[S]) Collect(out chan<- prometheus.Metric) {
	s, err := c.read()
	if err != nil {
		out <- prometheus.NewInvalidMetric(c.descs[0], err)
		return
	}
	for i, m := range c.metrics {
		out <- prometheus.MustNewConstMetric(c.descs[i], m.kind, m.get(s))
	}
	for i, m := range c.labelled {
		desc := c.descs[len(c.metrics)+i]
		m.each(s, func(label string, value float64) {
			out <- prometheus.MustNewConstMetric(desc, m.kind, value, label)
		})
	}
}
