package exporter

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

const (
	// restShare is how many times as long as a scrape the rest behind it is, while clients have to
	// wait for the loops of this process.
	restShare = 9
	// longestScrape is the most of a scrape that is rested for. What took longer was interrupted.
	longestScrape = 20 * time.Millisecond
)

// scrapes collects a registry for one scrape at a time: however many ask, clients come first.
type scrapes struct {
	prometheus.Gatherer
	turn     chan struct{}
	strained atomic.Pointer[func() bool] // whether clients have to wait for the loops; nil: never
}

func newScrapes(of prometheus.Gatherer) *scrapes {
	return &scrapes{Gatherer: of, turn: make(chan struct{}, 1)}
}

// Gather collects all metrics, when it is its turn. Its caller bounds how many wait.
func (s *scrapes) Gather() ([]*dto.MetricFamily, error) {
	s.turn <- struct{}{}
	begun := time.Now()
	defer func() {
		end := func() { <-s.turn }
		if strained := s.strained.Load(); strained != nil && (*strained)() {
			time.AfterFunc(restShare*min(time.Since(begun), longestScrape), end)
			return
		}
		end()
	}()
	return s.Gatherer.Gather()
}
