package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node"
	"github.com/dunlin-cache/dunlin/proxy"
	"github.com/dunlin-cache/dunlin/ring"
)

// fakeProxy answers with what a test sets.
type fakeProxy struct {
	stats proxy.Stats
	err   error
	ready bool
}

func (f *fakeProxy) Stats() (proxy.Stats, error) { return f.stats, f.err }
func (f *fakeProxy) Ready() bool                 { return f.ready }

type fakeNode struct {
	stats   node.Stats
	serving bool
}

func (f *fakeNode) Stats() (node.Stats, error) { return f.stats, nil }
func (f *fakeNode) Serving() bool              { return f.serving }
func (f *fakeNode) Slow(int) []figures.SlowRequest {
	return []figures.SlowRequest{{At: time.Unix(1700000000, 0), Took: 12 * time.Millisecond, Words: []string{"KEYS", "*"}, Client: "bob"}}
}

type fakeView struct {
	table   *ring.Table
	members []ring.Member
}

func (f *fakeView) Table() *ring.Table     { return f.table }
func (f *fakeView) Members() []ring.Member { return f.members }

func newAdmin(t *testing.T, opt Options) *Admin {
	t.Helper()
	opt.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	opt.Version, opt.Cluster = "test", "herd"
	a, err := Listen("127.0.0.1:0", opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := a.Close(ctx); err != nil {
			t.Errorf("cannot close: %v", err)
		}
	})
	return a
}

// twoNodes is a table of two nodes that own every other partition.
func twoNodes() *fakeView {
	t := &ring.Table{Epoch: 7, Issuer: "n1@1", Nodes: []ring.Member{{ID: "n1", Boot: 1}, {ID: "n2", Boot: 2}}}
	for p := range t.Owner {
		t.Owner[p] = uint16(p % 2)
		t.Follower[p] = ring.NoNode
	}
	return &fakeView{table: t, members: []ring.Member{
		{ID: "n1", Boot: 1, State: ring.Serving, Addr: "10.0.0.1:6380", Admin: "10.0.0.1:9180", Epoch: 7},
		{ID: "n2", Boot: 2, State: ring.Leaving, Addr: "10.0.0.2:6380", Epoch: 6},
		{ID: "p", Boot: 3, Role: ring.RoleProxy, State: ring.Serving},
	}}
}

func source(id string, boot int64, v View) Source {
	return Source{ID: id, Boot: boot, Addr: "10.9.9.9:6379", View: v, Gossip: func() Gossip { return Gossip{Issued: 5} }}
}

func get(t *testing.T, a *Admin, path string) (int, string) {
	t.Helper()
	return ask(t, a, http.MethodGet, path, "")
}

// ask returns the status and the body of the answer to a request; token: "" for none.
func ask(t *testing.T, a *Admin, method, path, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+a.Addr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestReadiness(t *testing.T) {
	a := newAdmin(t, Options{})
	want := func(status int, text string) {
		t.Helper()
		got, body := get(t, a, "/readyz")
		if got != status || !strings.Contains(body, text) {
			t.Errorf("GET /readyz = %d %q, want %d with %q", got, body, status, text)
		}
	}
	want(503, "starting")
	p := &fakeProxy{}
	a.AddProxy(source("p", 3, twoNodes()), p)
	want(503, "p is not ready")
	p.ready = true
	want(200, "ready")
	a.Drain()
	want(503, "stopping")
	if status, _ := get(t, a, "/healthz"); status != 200 {
		t.Errorf("GET /healthz while stopping = %d, want 200: a stop is no reason to be killed", status)
	}
}

func TestHealthNeedsLoops(t *testing.T) {
	a := newAdmin(t, Options{})
	g, err := netloop.NewGroup(netloop.Config{Loops: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	a.SetLoops(g)
	if status, body := get(t, a, "/healthz"); status != 200 {
		t.Fatalf("GET /healthz = %d %q, want 200", status, body)
	}
	release := make(chan struct{})
	g.Loops()[0].Post(func() { <-release })
	status, body := get(t, a, "/healthz")
	close(release)
	if status != 503 {
		t.Errorf("GET /healthz with a loop that hangs = %d %q, want 503", status, body)
	}
}

func TestStatus(t *testing.T) {
	a := newAdmin(t, Options{})
	p := &fakeProxy{ready: true}
	p.stats.Commands[command.Get] = 3
	p.stats.Commands[command.Set] = 4
	p.stats.Clients = 2
	a.AddProxy(source("p", 3, twoNodes()), p)

	_, body := get(t, a, "/api/status")
	var s Status
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		t.Fatalf("cannot decode %q: %v", body, err)
	}
	if c := s.Cluster; c.Name != "herd" || c.Epoch != 7 || c.Issuer != "n1@1" || c.Partitions != 4096 || len(c.Peers) != 3 {
		t.Errorf("cluster %+v", c)
	}
	wantPeer := Peer{ID: "n2", Boot: 2, Role: "node", State: "leaving", Epoch: 6, Addr: "10.0.0.2:6380", Partitions: 2048}
	if s.Cluster.Peers[1] != wantPeer {
		t.Errorf("peer %+v, want %+v", s.Cluster.Peers[1], wantPeer)
	}
	m := s.Members[0]
	if m.UptimeSeconds <= 0 {
		t.Errorf("uptime %v s", m.UptimeSeconds)
	}
	m.UptimeSeconds = 0
	want := Member{ID: "p", Boot: 3, Role: "proxy", Addr: "10.9.9.9:6379", Ready: true, Epoch: 7,
		Clients: 2, Commands: 7, RecentSeconds: 1, CommandsPerSecond: 7}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("member %+v, want %+v", m, want)
	}
}

// TestStatusBeforeTheFirstTable: lists are lists, not null, and nothing panics.
func TestStatusBeforeTheFirstTable(t *testing.T) {
	a := newAdmin(t, Options{})
	if _, body := get(t, a, "/api/status"); !strings.Contains(body, `"members": []`) || !strings.Contains(body, `"peers": []`) {
		t.Errorf("status of an empty process: %s", body)
	}
	a.AddProxy(source("p", 3, &fakeView{}), &fakeProxy{})
	if _, body := get(t, a, "/api/status"); !strings.Contains(body, `"epoch": 0`) || !strings.Contains(body, `"peers": []`) {
		t.Errorf("status without a table: %s", body)
	}
}

// TestMetricsLint holds every metric to Prometheus's naming rules.
func TestMetricsLint(t *testing.T) {
	a := everything(t)
	problems, err := testutil.GatherAndLint(a.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	families, err := a.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		name := f.GetName()
		if !strings.HasPrefix(name, "dunlin_") && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("%s has not our prefix", name)
		}
	}
}

func TestMetricsText(t *testing.T) {
	a := everything(t)
	status, body := get(t, a, "/metrics")
	if status != 200 {
		t.Fatalf("GET /metrics = %d %s", status, body)
	}
	for _, want := range []string{
		`dunlin_build_info{version="test"} 1`,
		`dunlin_proxy_commands_total{command="client|setname",member="p"} 2`,
		`dunlin_proxy_clients{member="p"} 9`,
		`dunlin_proxy_clients_limit{member="p"} 10`,
		`dunlin_proxy_auth_failures_total{member="p"} 1`,
		`dunlin_proxy_node_open_pipes{member="p",node="n1"} 2`,
		`dunlin_proxy_node_failing_pipes{member="p",node="n1"} 1`,
		`dunlin_proxy_node_inflight_requests{member="p",node="n1"} 30`,
		`dunlin_proxy_batch_requests_bucket{member="p",le="3"} 4`,
		`dunlin_proxy_batch_requests_sum{member="p"} 11`,
		`dunlin_proxy_command_duration_seconds_count{family="read",member="p"} 1`,
		`dunlin_node_command_duration_seconds_bucket{family="heavy",member="n1",le="1.023e-06"} 1`,
		`dunlin_node_command_duration_seconds_bucket{family="heavy",member="n1",le="5.11e-07"} 0`,
		`dunlin_table_epoch{member="p"} 7`,
		`dunlin_tables_issued_total{member="p"} 5`,
		`dunlin_members{member="p",role="node"} 2`,
		`dunlin_members{member="p",role="proxy"} 1`,
		`dunlin_loop_connections{loop="0"} 0`,
		`dunlin_node_commands_total{command="get",member="n1"} 6`,
		`dunlin_node_keys{member="n1"} 123`,
		`dunlin_node_memory_bytes{class="index",member="n1"} 64`,
		`dunlin_partitions_owned{member="n1"} 2048`,
		`dunlin_node_hot_key_uses_per_second{member="n1",rank="2"} 10`,
		`dunlin_node_big_key_bytes{member="n1",rank="1"} 1.048576e+06`,
		`dunlin_node_batch_requests_bucket{member="n1",le="0"} 0`,
		`dunlin_node_batch_requests_bucket{member="n1",le="1"} 2`,
		`dunlin_node_batch_requests_bucket{member="n1",le="3"} 5`,
		`dunlin_node_batch_requests_bucket{member="n1",le="2047"} 5`,
		`dunlin_node_batch_requests_bucket{member="n1",le="+Inf"} 6`,
		`dunlin_node_batch_requests_sum{member="n1"} 8`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("GET /metrics has not %s", want)
		}
	}
}

// TestMetricsOfBrokenMember: one that cannot be read must not hide the others.
func TestMetricsOfBrokenMember(t *testing.T) {
	a := newAdmin(t, Options{})
	a.AddProxy(source("good", 3, twoNodes()), &fakeProxy{ready: true})
	a.AddProxy(source("bad", 4, twoNodes()), &fakeProxy{ready: true, err: errors.New("a loop hangs")})
	_, body := get(t, a, "/metrics")
	if !strings.Contains(body, `dunlin_proxy_clients{member="good"}`) {
		t.Error("the metrics of the member that answers are missing")
	}
	if strings.Contains(body, `dunlin_proxy_clients{member="bad"}`) {
		t.Error("there are metrics of the member that does not answer")
	}
	if a.Status().Members[1].Ready {
		t.Error("a member that does not answer is ready")
	}
}

func TestPage(t *testing.T) {
	a := newAdmin(t, Options{})
	f := func(path string, want int) {
		t.Helper()
		if got, _ := get(t, a, path); got != want {
			t.Errorf("GET %s = %d, want %d", path, got, want)
		}
	}
	f("/", 200)
	f("/page.js", 200)
	f("/page.css", 200)
	f("/nothing", 404)
	f("/debug/pprof/", 404)

	_, body := get(t, a, "/")
	for _, link := range []string{"metrics", "healthz", "readyz", "api/status"} {
		if !strings.Contains(body, `href="`+link+`"`) {
			t.Errorf("the page does not link to %s", link)
		}
	}
	if strings.Contains(body, "http://") || strings.Contains(body, "https://") {
		t.Error("the page uses something from outside")
	}
}

func TestPprofBehindItsFlag(t *testing.T) {
	a := newAdmin(t, Options{Pprof: true})
	if got, _ := get(t, a, "/debug/pprof/"); got != 200 {
		t.Errorf("GET /debug/pprof/ = %d, want 200", got)
	}
}

// everything is an admin server with one of each kind of source, whose counters
// with labels all show.
func everything(t *testing.T) *Admin {
	t.Helper()
	a := newAdmin(t, Options{})
	g, err := netloop.NewGroup(netloop.Config{Loops: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	a.SetLoops(g)
	p := &fakeProxy{ready: true}
	p.stats.Commands[command.ClientSetName] = 2
	p.stats.Clients, p.stats.MaxClients, p.stats.AuthFailed = 9, 10, 1
	p.stats.Latency[command.FamilyRead].Note(time.Millisecond)
	p.stats.Nodes = map[string]*proxy.NodeStats{"n1": {Open: 2, Failing: 1, Inflight: 30}}
	p.stats.BatchSizes[2], p.stats.BatchRequests = 4, 11
	a.AddProxy(source("p", 3, twoNodes()), p)
	n := &fakeNode{serving: true}
	n.stats.Commands[command.Get] = 6
	n.stats.Requests, n.stats.Hits, n.stats.Keys, n.stats.Engine.Index = 8, 4, 123, 64
	n.stats.HotKeys = []figures.KeyFigure{{Key: "hot", N: 1000}, {Key: "warm", N: 10}}
	n.stats.BigKeys = []figures.KeyFigure{{Key: "big", N: 1 << 20}}
	n.stats.Latency[command.FamilyHeavy].Note(time.Microsecond)
	n.stats.BatchSizes[1], n.stats.BatchSizes[2], n.stats.BatchSizes[12] = 2, 3, 1
	a.AddNode(source("n1", 1, twoNodes()), n)
	return a
}

type handshakes struct{ accepted, failed int64 }

func (h *handshakes) Stats() (accepted, failed int64) { return h.accepted, h.failed }
func (h *handshakes) CertificateEnd() time.Time       { return time.Unix(1_900_000_000, 0) }

func TestHandshakes(t *testing.T) {
	a := newAdmin(t, Options{})
	h := &handshakes{3, 1}
	a.AddTLS("members", h)
	h.failed++
	_, text := get(t, a, "/metrics")
	if want := "dunlin_tls_certificate_expiry_timestamp_seconds{with=\"members\"} 1.9e+09\n"; !strings.Contains(text, want) {
		t.Errorf("no %s in the metrics", want)
	}
	for _, want := range []string{`{result="accepted",with="members"} 3`, `{result="failed",with="members"} 2`} {
		if !strings.Contains(text, "dunlin_tls_handshakes_total"+want+"\n") {
			t.Errorf("no handshakes %s in the metrics", want)
		}
	}
}
