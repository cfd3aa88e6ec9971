package tests

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestDashboardQueries runs a real Prometheus that scrapes a real cluster under load, and sends it
// every query of every dashboard: each must return data. Then it does the same with a Prometheus
// that scrapes native histograms, and so no classic ones.
func TestDashboardQueries(t *testing.T) {
	needPrometheus(t)
	t.Parallel() // the test waits most of the time
	clients, admin := startLocal(t)
	target := strings.TrimPrefix(admin, "http://")
	classic := startPrometheus(t, scraping{targets: []string{target}})
	native := startPrometheus(t, scraping{targets: []string{target},
		flags: []string{"--enable-feature=native-histograms"}})
	work(t, clients)

	queries := map[string]string{} // query: a panel of it
	for _, b := range boards {
		for _, g := range b.graphs {
			for _, q := range g.queries {
				queries[forTests.Replace(ofCluster(q[0]))] = b.title + ", " + g.title
			}
		}
	}
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			if strings.Contains(r.Record, "duration") {
				queries[r.Expr] = r.Record
			}
		}
	}
	classic.wantData(t, queries)
	native.wantData(t, queries)
	if native.returnsData(t, "dunlin_proxy_command_duration_seconds_bucket") {
		t.Error("there are classic buckets where native histograms are scraped: this test proves nothing")
	}
	if classic.returnsData(t, "scrape_samples_scraped >= 2000") { // by four members in one process
		t.Error("a scrape has 2,000 series or more")
	}
}

// forTests replaces Grafana's variables by values for the tests' cluster.
var forTests = strings.NewReplacer("$__rate_interval", "10s", "$namespace", ".*", "$job", "dunlin")

// prometheus is the address of a running Prometheus.
type prometheus string

// scraping describes what a Prometheus scrapes and evaluates.
type scraping struct {
	targets []string
	rules   []string // files
	flags   []string
}

func needPrometheus(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("skipped: no prometheus (Debian: apt-get install prometheus)")
	}
}

// startPrometheus runs a Prometheus that scrapes every second, until the test ends.
func startPrometheus(t *testing.T, s scraping) prometheus {
	t.Helper()
	// JSON is YAML.
	config, err := json.Marshal(map[string]any{
		"global":     map[string]string{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "500ms"},
		"rule_files": s.rules,
		"scrape_configs": []any{map[string]any{
			"job_name": "dunlin", "static_configs": []any{map[string]any{"targets": s.targets}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + freePorts(t, 1)[0]
	cmd := exec.Command("prometheus", slices.Concat(s.flags, []string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address, "--log.level=warn",
	})...)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // an error means that it has ended already
		_ = cmd.Wait()
	})
	return prometheus(address)
}

// wantData asks until each query has returned data. Some metrics have none at first: the walk that
// finds big keys takes ten seconds.
func (p prometheus) wantData(t *testing.T, queries map[string]string) {
	t.Helper()
	pending := maps.Clone(queries)
	for deadline := time.Now().Add(time.Minute); len(pending) > 0 &&
		time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		maps.DeleteFunc(pending, func(q, _ string) bool { return p.returnsData(t, q) })
	}
	for q, of := range pending {
		t.Errorf("%s: no data for %s", of, q)
	}
}

// returnsData reports whether a query has a result.
func (p prometheus) returnsData(t *testing.T, query string) bool {
	t.Helper()
	return len(p.query(t, query)) > 0
}

// query returns the labels of each result. There are no results before Prometheus has started.
func (p prometheus) query(t *testing.T, query string) (found []map[string]string) {
	t.Helper()
	var answer struct {
		Result []struct{ Metric map[string]string }
	}
	p.ask(t, "query?query="+url.QueryEscape(query), &answer)
	for _, r := range answer.Result {
		found = append(found, r.Metric)
	}
	return found
}

// ask decodes the data of an answer. It leaves data alone if Prometheus does not answer yet.
func (p prometheus) ask(t *testing.T, what string, data any) {
	t.Helper()
	status, body := get(t.Context(), "http://"+string(p)+"/api/v1/"+what)
	if status == http.StatusBadRequest || status == http.StatusUnprocessableEntity {
		t.Fatalf("Prometheus cannot answer %s: %s", what, body)
	}
	if status != http.StatusOK {
		return
	}
	if err := json.Unmarshal([]byte(body), &struct{ Data any }{data}); err != nil {
		t.Fatalf("Prometheus answers %s with %s: %v", what, body, err)
	}
}

// work runs a client that reads and writes keys until the test ends, some of them again and again.
func work(t *testing.T, clients string) {
	t.Helper()
	conn, err := net.Dial("tcp", clients)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		keepBusy(ctx, conn)
	}()
	t.Cleanup(func() {
		stop()
		conn.Close() // ends a wait for replies
		<-stopped
	})
}

// keepBusy works until ctx ends or the connection breaks.
func keepBusy(ctx context.Context, conn net.Conn) {
	const batch = 100
	requests := strings.Repeat("SET busy v\r\nGET busy\r\nGET nothing\r\n", batch)
	for replies := bufio.NewReader(conn); ctx.Err() == nil; {
		if _, err := io.WriteString(conn, requests); err != nil {
			return
		}
		for range 3 * batch {
			line, err := replies.ReadString('\n')
			if err == nil && line[0] == '$' && line != "$-1\r\n" {
				_, err = replies.ReadString('\n') // the value
			}
			if err != nil {
				return
			}
		}
		time.Sleep(10 * time.Millisecond) // leaves the processor to others
	}
}
