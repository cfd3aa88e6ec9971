package exporter

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

const (
	// restShare is how many times as long as a collection the rest behind it is, while clients have to
	// wait for the loops of this process.
	restShare = 9
	// longestCollection is the most of a collection that is rested for. What took longer was
	// interrupted.
	longestCollection = 20 * time.Millisecond
)

// collections takes one collection of a registry at a time: however many ask, clients come first.
type collections struct {
	prometheus.Gatherer
	turn     chan struct{}
	strained atomic.Pointer[func() bool] // whether clients have to wait for the loops; nil: never
}

func newCollections(of prometheus.Gatherer) *collections {
	return &collections{Gatherer: of, turn: make(chan struct{}, 1)}
}

// Gather collects all metrics, when it is its turn. Its caller bounds how many wait.
func (c *collections) Gather() ([]*dto.MetricFamily, error) {
	c.turn <- struct{}{}
	begun := time.Now()
	defer func() {
		end := func() { <-c.turn }
		if strained := c.strained.Load(); strained != nil && (*strained)() {
			time.AfterFunc(restShare*min(time.Since(begun), longestCollection), end)
			return
		}
		end()
	}()
	return c.Gatherer.Gather()
}
