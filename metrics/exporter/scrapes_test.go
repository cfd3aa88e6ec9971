package exporter

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// TestScrapesRest: one scrape at a time, and while loops are strained none for nine times as
// long behind each.
func TestScrapesRest(t *testing.T) {
	for _, c := range []struct {
		name        string
		strained    bool
		took, three time.Duration // three: what three take that begin at once
	}{
		{name: "calm", took: time.Millisecond, three: 3 * time.Millisecond},
		{name: "strained", strained: true, took: time.Millisecond, three: 21 * time.Millisecond},
		{name: "interrupted", strained: true, took: time.Second, three: 3*time.Second + 2*9*longestScrape},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := newScrapes(prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
					time.Sleep(c.took)
					return nil, nil
				}))
				strained := func() bool { return c.strained }
				all.strained.Store(&strained)
				begun := time.Now()
				var asking sync.WaitGroup
				for range 3 {
					asking.Go(func() {
						if _, err := all.Gather(); err != nil {
							t.Error(err)
						}
					})
				}
				asking.Wait()
				if got := time.Since(begun); got != c.three {
					t.Errorf("three scrapes take %v, want %v", got, c.three)
				}
				time.Sleep(time.Second) // the last rest ends
			})
		})
	}
}

// TestLogOfScrapes: a scraper that leaves is nothing to log, what cannot be gathered is.
func TestLogOfScrapes(t *testing.T) {
	var text bytes.Buffer
	l := scrapeLog{slog.New(slog.NewTextHandler(&text, nil))}
	l.Println("error encoding and sending metric family:", fmt.Errorf("write: %w", &net.OpError{Op: "write", Err: syscall.EPIPE}))
	if text.Len() > 0 {
		t.Errorf("a client that leaves: %s", &text)
	}
	l.Println("error gathering metrics:", errors.New("two of a name"))
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `level=WARN msg="error gathering metrics: two of a name"`) {
		t.Errorf("an error: %s", got)
	}
}
