package metrics

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/proxy"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestDurations: both forms of a histogram have every observation, in a bucket that holds it.
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

// nativeCount adds up the native buckets, each given as the difference to the one before.
func nativeCount(h *dto.Histogram) (total int64) {
	count := int64(0)
	for _, delta := range h.PositiveDelta {
		count += delta
		total += count
	}
	return total
}

// TestPromtool has Prometheus's own linter read a scrape.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool: Debian has it in the package prometheus")
	}
	_, text := get(t, everything(t), "/metrics")
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// TestNativeHistograms: who asks for Prometheus's binary format gets them.
func TestNativeHistograms(t *testing.T) {
	a := everything(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.Addr()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	const binary = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	req.Header.Set("Accept", binary)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, "application/vnd.google.protobuf") {
		t.Errorf("the answer is %s, want %s", got, binary)
	}
	if body, err := io.ReadAll(resp.Body); err != nil || len(body) == 0 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	families, err := a.registry.Gather()
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

// TestScrapeCost: scrapes of one node and of one proxy, each with every series that it may have, in a cluster of thirty
// nodes, with four loops.
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
	view, pipes, keys := twoNodes(), map[string]*proxy.NodeStats{}, []figures.KeyFigure(nil)
	for i := range 30 {
		id := fmt.Sprintf("dunlin-node-%d", i)
		m := ring.Member{ID: id, Boot: int64(i + 1), State: ring.Serving}
		view.table.Nodes = append(view.table.Nodes, m)
		view.members = append(view.members, m, ring.Member{ID: fmt.Sprintf("dunlin-proxy-%d", i), Role: ring.RoleProxy, State: ring.Serving})
		pipes[id] = &proxy.NodeStats{Open: 7, Inflight: 100}
	}
	for i := range 20 {
		keys = append(keys, figures.KeyFigure{Key: fmt.Sprintf("%0128d", i), N: int64(i)})
	}
	t.Run("node", func(t *testing.T) {
		n := &fakeNode{serving: true}
		n.stats.Commands, n.stats.Latency, n.stats.HotKeys, n.stats.BigKeys = commands, latency, keys, keys
		wantCheapScrape(t, func(a *Admin) { a.AddNode(source("dunlin-node-1", 2, view), n) })
	})
	t.Run("proxy", func(t *testing.T) {
		p := &fakeProxy{ready: true}
		p.stats.Commands, p.stats.Latency, p.stats.Nodes = commands, latency, pipes
		wantCheapScrape(t, func(a *Admin) { a.AddProxy(source("dunlin-proxy-1", 99, view), p) })
	})
}

func wantCheapScrape(t *testing.T, add func(*Admin)) {
	t.Helper()
	a := newAdmin(t, Options{})
	g, err := netloop.NewGroup(netloop.Config{Loops: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	a.SetLoops(g)
	add(a)
	_, text := get(t, a, "/metrics")
	series := 0
	for line := range strings.Lines(text) {
		if line[0] != '#' {
			series++
		}
	}
	if series >= 2000 || series < 500 {
		t.Errorf("a scrape has %d series, want less than 2,000, and all that there may be", series)
	}
	if testing.Short() { // the race detector makes it many times slower
		return
	}
	best := time.Hour
	for tries := 0; best > 5*time.Millisecond && tries < 200; tries++ { // others run on this machine
		begun := time.Now()
		get(t, a, "/metrics")
		best = min(best, time.Since(begun))
	}
	t.Logf("%d series in %v", series, best)
	if best > 5*time.Millisecond {
		t.Errorf("a scrape takes %v, want at most 5 ms", best)
	}
}
