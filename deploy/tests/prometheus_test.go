package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDashboardQueries has a real Prometheus scrape a real cluster under load, and asks it
// every query of every dashboard: each must return data.
func TestDashboardQueries(t *testing.T) {
	clients, admin := startLocal(t)
	target := strings.TrimPrefix(admin, "http://")
	prometheus := startPrometheus(t, target)
	native := startPrometheus(t, target, "--enable-feature=native-histograms")
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		keepBusy(ctx, clients)
	}()
	defer func() { stop(); <-stopped }()

	pending := map[string]string{} // query: a panel of it
	for _, file := range []string{"dunlin.json", "node.json", "proxy.json", "topology.json"} {
		for name, queries := range expressions(t, "../grafana/"+file) {
			for _, q := range queries {
				pending[strings.ReplaceAll(q, "$__rate_interval", "10s")] = name
			}
		}
	}
	// What nothing happened to does not show yet: a key is big after a walk of ten seconds.
	for deadline := time.Now().Add(time.Minute); len(pending) > 0 && time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		for q := range pending {
			if returnsData(ctx, t, prometheus, q) {
				delete(pending, q)
			}
		}
	}
	// Who has Prometheus take native histograms gets those, without classic buckets.
	const p99 = `histogram_quantile(0.99, sum by (family) (rate(dunlin_proxy_command_duration_seconds[10s]))) > 0`
	for deadline := time.Now().Add(time.Minute); !returnsData(ctx, t, native, p99); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no data of a native histogram for %s", p99)
		}
	}
	for q, name := range pending {
		t.Errorf("%s: no data for %s", name, q)
	}
	wantCheapScrapes(t, prometheus)
}

// wantCheapScrapes: as Prometheus has seen them, of four members in one process.
func wantCheapScrapes(t *testing.T, prometheus string) {
	t.Helper()
	if returnsData(t.Context(), t, prometheus, "scrape_samples_scraped >= 2000") {
		t.Error("a scrape has 2,000 series or more")
	}
}

// startPrometheus scrapes an address every second and returns its own.
func startPrometheus(t *testing.T, target string, flags ...string) string {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("no prometheus: Debian has it in the package of that name")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: dunlin\n    static_configs:\n      - targets: [%q]\n", target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	cmd := exec.Command(program, append(flags, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=warn")...)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return address
}

// returnsData asks Prometheus, which may not have started yet.
func returnsData(ctx context.Context, t *testing.T, prometheus, query string) bool {
	t.Helper()
	status, body := get(ctx, "http://"+prometheus+"/api/v1/query?query="+url.QueryEscape(query))
	if status == http.StatusBadRequest {
		t.Fatalf("Prometheus does not understand %s: %s", query, body)
	}
	var answer struct {
		Data struct{ Result []any }
	}
	return status == http.StatusOK && json.Unmarshal([]byte(body), &answer) == nil && len(answer.Data.Result) > 0
}

// keepBusy reads and writes keys until ctx ends, some again and again.
func keepBusy(ctx context.Context, clients string) {
	conn, err := net.Dial("tcp", clients)
	if err != nil {
		return // the queries will lack data
	}
	defer conn.Close()
	const batch = 100
	reply := make([]byte, batch*len("+OK\r\n$1\r\nv\r\n$-1\r\n"))
	for ctx.Err() == nil {
		requests := strings.Repeat("SET busy v\r\nGET busy\r\nGET nothing\r\n", batch)
		if _, err := io.WriteString(conn, requests); err != nil {
			return
		}
		if _, err := io.ReadFull(conn, reply); err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond) // leaves the machine to others
	}
}
