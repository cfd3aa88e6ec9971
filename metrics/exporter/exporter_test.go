package exporter

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/metrics/fake"
	"github.com/dunlin-cache/dunlin/node"
	"github.com/dunlin-cache/dunlin/proxy"
	"github.com/dunlin-cache/dunlin/ring"
)

// member returns a member of the cluster of two nodes.
func member(id string, boot int64, v View) Member {
	return Member{ID: id, Boot: boot, View: v, Gossip: func() Gossip { return Gossip{Issued: 5} }}
}

// scrape returns the status and the body of the answer to a scrape.
func scrape(t *testing.T, e *Exporter) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	e.Handler(slog.New(slog.NewTextHandler(t.Output(), nil))).ServeHTTP(w,
		httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Code, w.Body.String()
}

// TestMetricsLint checks every metric against Prometheus's naming rules.
func TestMetricsLint(t *testing.T) {
	e := everything(t)
	problems, err := testutil.GatherAndLint(e.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	families, err := e.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		name := f.GetName()
		if !strings.HasPrefix(name, "dunlin_") && !strings.HasPrefix(name, "go_") &&
			!strings.HasPrefix(name, "process_") {
			t.Errorf("%s has not our prefix", name)
		}
	}
}

func TestMetricsText(t *testing.T) {
	e := everything(t)
	status, body := scrape(t, e)
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
		`dunlin_node_cross_slot_retries_total{member="n1"} 3`,
		`dunlin_node_keys{member="n1"} 123`,
		`dunlin_node_memory_bytes{class="index",member="n1"} 64`,
		`dunlin_partitions_owned{member="n1"} 2048`,
		`dunlin_node_hot_key_uses_per_second{member="n1",rank="2"} 10`,
		`dunlin_node_big_key_bytes{member="n1",rank="1"} 1.048576e+06`,
		`dunlin_node_pinned_database_keys{database="8",member="n1"} 5`,
		`dunlin_node_pinned_database_bytes{database="8",member="n1"} 700`,
		`dunlin_node_pinned_database_share{database="8",member="n1"} 0.25`,
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

// TestMetricsOfBrokenMember checks that a member that cannot be read does not hide the others.
func TestMetricsOfBrokenMember(t *testing.T) {
	e := New("test")
	e.AddProxy(member("good", 3, fake.TwoNodes()), &fake.Proxy{Up: true})
	e.AddProxy(member("bad", 4, fake.TwoNodes()), &fake.Proxy{Up: true, Err: errors.New("a loop hangs")})
	_, body := scrape(t, e)
	if !strings.Contains(body, `dunlin_proxy_clients{member="good"}`) {
		t.Error("the metrics of the member that answers are missing")
	}
	if strings.Contains(body, `dunlin_proxy_clients{member="bad"}`) {
		t.Error("there are metrics of the member that does not answer")
	}
}

// everything returns an exporter with one source of each kind, and with values for all labelled
// counters.
func everything(t *testing.T) *Exporter {
	t.Helper()
	e := New("test")
	g, err := netloop.NewGroup(netloop.Config{Loops: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	e.AddLoops(g)
	p := &fake.Proxy{Up: true}
	p.Figures.Commands[command.ClientSetName] = 2
	p.Figures.Clients, p.Figures.MaxClients, p.Figures.AuthFailed = 9, 10, 1
	p.Figures.Latency[command.FamilyRead].Note(time.Millisecond)
	p.Figures.Nodes = map[string]*proxy.NodeStats{"n1": {Open: 2, Failing: 1, Inflight: 30}}
	p.Figures.BatchSizes[2], p.Figures.BatchRequests = 4, 11
	e.AddProxy(member("p", 3, fake.TwoNodes()), p)
	n := &fake.Node{Up: true}
	n.Figures.Commands[command.Get] = 6
	n.Figures.Retries = 3
	n.Figures.Requests, n.Figures.Hits, n.Figures.Keys, n.Figures.Engine.Index = 8, 4, 123, 64
	n.Figures.HotKeys = []figures.KeyFigure{{Key: "hot", N: 1000}, {Key: "warm", N: 10}}
	n.Figures.Pinned = []node.PinnedStats{{Database: 8, Partition: 2056, Keys: 5, Bytes: 700, Share: 0.25}}
	n.Figures.BigKeys = []figures.KeyFigure{{Key: "big", N: 1 << 20}}
	n.Figures.Latency[command.FamilyHeavy].Note(time.Microsecond)
	n.Figures.BatchSizes[1], n.Figures.BatchSizes[2], n.Figures.BatchSizes[12] = 2, 3, 1
	e.AddNode(member("n1", 1, fake.TwoNodes()), n)
	return e
}

type handshakes struct{ accepted, failed int64 }

func (h *handshakes) Stats() (accepted, failed int64) { return h.accepted, h.failed }
func (h *handshakes) CertificateEnd() time.Time       { return time.Unix(1_900_000_000, 0) }

func TestHandshakes(t *testing.T) {
	e := New("test")
	h := &handshakes{3, 1}
	e.AddTLS("members", h)
	h.failed++
	_, text := scrape(t, e)
	if want := "dunlin_tls_certificate_expiry_timestamp_seconds{with=\"members\"} 1.9e+09\n"; !strings.Contains(text, want) {
		t.Errorf("no %s in the metrics", want)
	}
	for _, want := range []string{`{result="accepted",with="members"} 3`, `{result="failed",with="members"} 2`} {
		if !strings.Contains(text, "dunlin_tls_handshakes_total"+want+"\n") {
			t.Errorf("no handshakes %s in the metrics", want)
		}
	}
}

// TestCopiesAndMoves checks the metrics that an operator watches while nodes come and go.
func TestCopiesAndMoves(t *testing.T) {
	v := fake.TwoNodes()
	v.Holds.Follower[0], v.Holds.Follower[1], v.Holds.Follower[3] = 1, 0, 0
	v.Holds.Moves = []ring.Move{{Partition: 4, From: 0, To: 1}}
	v.Holds.Paused = true
	e := New("test")
	e.AddNode(member("n1", 1, v), &fake.Node{})
	_, text := scrape(t, e)
	for _, want := range []string{
		`dunlin_partitions_followed{member="n1"} 3`, `dunlin_partitions_moving{member="n1"} 1`,
		`dunlin_rebalance_paused{member="n1"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}
