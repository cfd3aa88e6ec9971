package exporter

import (
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/metrics/fake"
	"github.com/dunlin-cache/dunlin/proxy"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestDurations checks that both forms of a histogram count every observation in the right bucket.
func TestDurations(t *testing.T) {
	var d figures.Durations
	took := []time.Duration{1, 255, 256, 300, time.Microsecond, 700 * time.Microsecond, time.Second, time.Hour}
	for _, each := range took {
		d.Note(each)
	}
	c := newCollector(nil, func() (*figures.Durations, error) { return &d, nil }, table[figures.Durations]{
		latencies: []latency[figures.Durations]{{"dunlin_test_seconds", "help", nil}},
	})
	var m dto.Metric
	if err := newDual(c.descs[0], &d, time.Now(), "read").Write(&m); err != nil {
		t.Fatal(err)
	}
	h := m.Histogram
	if h.GetSampleCount() != uint64(len(took)) || math.Abs(h.GetSampleSum()-d.Sum().Seconds()) > 1e-9 {
		t.Errorf("%d observations of %v s, want %d of %v", h.GetSampleCount(), h.GetSampleSum(), len(took), d.Sum())
	}
	for _, b := range h.Bucket {
		want := uint64(0)
		for _, each := range took {
			if each.Seconds() <= b.GetUpperBound() {
				want++
			}
		}
		if b.GetCumulativeCount() != want {
			t.Errorf("%d took up to %v s, want %d", b.GetCumulativeCount(), b.GetUpperBound(), want)
		}
	}
	if len(h.Bucket) != len(bounds) || h.GetSchema() != nativeSchema || nativeCount(h) != int64(len(took)) {
		t.Errorf("%d classic buckets; native ones of schema %d hold %d", len(h.Bucket), h.GetSchema(), nativeCount(h))
	}
}

// nativeCount adds up the native buckets, each of which is given as the difference from the one
// before.
func nativeCount(h *dto.Histogram) (total int64) {
	count := int64(0)
	for _, delta := range h.PositiveDelta {
		count += delta
		total += count
	}
	return total
}

// TestPromtool checks a scrape with Prometheus's own linter.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool: Debian has it in the package prometheus")
	}
	_, text := scrape(t, everything(t))
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// TestNativeHistograms checks that scrapes in Prometheus's binary format have native histograms.
func TestNativeHistograms(t *testing.T) {
	e := everything(t)
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	const binary = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	req.Header.Set("Accept", binary)
	w := httptest.NewRecorder()
	e.Handler(slog.New(slog.NewTextHandler(t.Output(), nil))).ServeHTTP(w, req)
	if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "application/vnd.google.protobuf") {
		t.Errorf("the answer is %s, want %s", got, binary)
	}
	if w.Body.Len() == 0 {
		t.Error("the answer is empty")
	}
	families, err := e.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	native := map[string]int64{}
	for _, f := range families {
		for _, m := range f.Metric {
			if h := m.Histogram; h != nil && len(h.PositiveSpan) > 0 {
				native[f.GetName()] += nativeCount(h)
			}
		}
	}
	for _, name := range []string{"dunlin_node_command_duration_seconds", "dunlin_proxy_command_duration_seconds"} {
		if native[name] != 1 {
			t.Errorf("%d observations in the native form of %s, want 1", native[name], name)
		}
	}
}

// TestScrapeCost bounds the cost of scraping one node and one proxy, each with every series that it
// may have, in a cluster of thirty nodes, with four loops.
func TestScrapeCost(t *testing.T) {
	var commands [command.NumIDs]uint64
	for id := range commands {
		if command.ByID(command.ID(id)) != nil {
			commands[id] = 1
		}
	}
	var latency [command.NumFamilies]figures.Durations
	for i := range latency {
		for took := time.Nanosecond; took < time.Minute; took *= 2 {
			latency[i].Note(took)
		}
	}
	view, pipes, keys := fake.TwoNodes(), map[string]*proxy.NodeStats{}, []figures.KeyFigure(nil)
	for i := range 30 {
		id := fmt.Sprintf("dunlin-node-%d", i)
		m := ring.Member{ID: id, Boot: int64(i + 1), State: ring.Serving}
		view.Holds.Nodes = append(view.Holds.Nodes, m)
		view.Alive = append(view.Alive, m, ring.Member{ID: fmt.Sprintf("dunlin-proxy-%d", i),
			Role: ring.RoleProxy, State: ring.Serving})
		pipes[id] = &proxy.NodeStats{Open: 7, Inflight: 100}
	}
	for i := range 20 {
		keys = append(keys, figures.KeyFigure{Key: fmt.Sprintf("%0128d", i), N: int64(i)})
	}
	t.Run("node", func(t *testing.T) {
		n := &fake.Node{Up: true}
		n.Figures.Commands, n.Figures.Latency, n.Figures.HotKeys, n.Figures.BigKeys = commands, latency, keys, keys
		wantCheapScrape(t, func(e *Exporter) { e.AddNode(member("dunlin-node-1", 2, view), n) })
	})
	t.Run("proxy", func(t *testing.T) {
		p := &fake.Proxy{Up: true}
		p.Figures.Commands, p.Figures.Latency, p.Figures.Nodes = commands, latency, pipes
		wantCheapScrape(t, func(e *Exporter) { e.AddProxy(member("dunlin-proxy-1", 99, view), p) })
	})
}

func wantCheapScrape(t *testing.T, add func(*Exporter)) {
	t.Helper()
	e := New("test")
	g, err := netloop.NewGroup(netloop.Config{Loops: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	e.AddLoops(g)
	add(e)
	_, text := scrape(t, e)
	series := 0
	for line := range strings.Lines(text) {
		if line[0] != '#' {
			series++
		}
	}
	if series >= 2000 || series < 500 {
		t.Errorf("a scrape has %d series, want less than 2,000, and all that there may be", series)
	}
	if testing.Short() { // the race detector makes scrapes many times slower
		return
	}
	best := time.Hour
	for tries := 0; best > 5*time.Millisecond && tries < 200; tries++ { // other programs disturb
		begun := time.Now()
		scrape(t, e)
		best = min(best, time.Since(begun))
	}
	t.Logf("%d series in %v", series, best)
	if best > 5*time.Millisecond {
		t.Errorf("a scrape takes %v, want at most 5 ms", best)
	}
}
