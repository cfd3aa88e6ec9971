package tests

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// The dashboards of nodes, proxies and topology are generated from these tables: the
// overview, dunlin.json, is written by hand. After a change here:
//
//	cd deploy/tests && go test -run TestDashboardsAreGenerated -update-dashboards
var updateDashboards = flag.Bool("update-dashboards", false, "write the generated dashboards")

type board struct {
	file, title string
	graphs      []graph
}

// graph is a panel of lines; each query has the legend of its lines.
type graph struct {
	title, unit string
	queries     [][2]string
}

func quantiles(metric string) [][2]string {
	q := func(of string) string {
		return "histogram_quantile(" + of + ", sum by (le, family) (rate(" + metric + "_bucket[$__rate_interval])))"
	}
	return [][2]string{{q("0.5"), "p50 {{family}}"}, {q("0.99"), "p99 {{family}}"}}
}

func rateOf(metric, by string) [][2]string {
	return [][2]string{{"sum by (" + by + ") (rate(" + metric + "[$__rate_interval]))", "{{" + by + "}}"}}
}

func level(metric, by string) [][2]string { return [][2]string{{metric, "{{member}} {{" + by + "}}"}} }

var boards = []board{
	{"node.json", "Dunlin: nodes", []graph{
		{"Time to execute", "s", quantiles("dunlin_node_command_duration_seconds")},
		{"Commands", "ops", rateOf("dunlin_node_commands_total", "member")},
		{"Requests in one input", "short", [][2]string{{"sum by (member) (rate(dunlin_node_batch_requests_sum[$__rate_interval])) / " +
			"sum by (member) (rate(dunlin_node_batch_requests_count[$__rate_interval]))", "{{member}}"}}},
		{"Hit ratio", "percentunit", [][2]string{{"rate(dunlin_node_hits_total[$__rate_interval]) / " +
			"(rate(dunlin_node_hits_total[$__rate_interval]) + rate(dunlin_node_misses_total[$__rate_interval]))", "{{member}}"}}},
		{"Eviction age", "s", level("dunlin_node_eviction_age_seconds", "member")},
		{"Keys gone", "ops", append(rateOf("dunlin_node_evicted_keys_total", "member"), rateOf("dunlin_node_expired_keys_total", "member")...)},
		{"Memory by class", "bytes", [][2]string{{"sum by (class) (dunlin_node_memory_bytes)", "{{class}}"}}},
		{"Memory of the limit", "percentunit", [][2]string{{"dunlin_node_memory_used_bytes / dunlin_node_memory_limit_bytes", "{{member}}"}}},
		{"Hottest keys, uses a second", "ops", [][2]string{{"topk(5, dunlin_node_hot_key_uses_per_second)", "{{member}} {{rank}}"}}},
		{"Largest keys", "bytes", [][2]string{{"topk(5, dunlin_node_big_key_bytes)", "{{member}} {{rank}}"}}},
		{"Connections of the limit", "percentunit", [][2]string{{"dunlin_node_clients / dunlin_node_clients_limit", "{{member}}"}}},
		{"Error replies", "ops", rateOf("dunlin_node_errors_total", "member")},
	}},
	{"proxy.json", "Dunlin: proxies", []graph{
		{"Time from command to reply", "s", quantiles("dunlin_proxy_command_duration_seconds")},
		{"Commands", "ops", rateOf("dunlin_proxy_commands_total", "member")},
		{"Commands by name", "ops", [][2]string{{"topk(10, sum by (command) (rate(dunlin_proxy_commands_total[$__rate_interval])))", "{{command}}"}}},
		{"Requests in one batch", "short", [][2]string{{"sum by (member) (rate(dunlin_proxy_batch_requests_sum[$__rate_interval])) / " +
			"sum by (member) (rate(dunlin_proxy_batch_requests_count[$__rate_interval]))", "{{member}}"}}},
		{"Clients of the limit", "percentunit", [][2]string{{"dunlin_proxy_clients / dunlin_proxy_clients_limit", "{{member}}"}}},
		{"Open pipes by node", "short", level("dunlin_proxy_node_open_pipes", "node")},
		{"Pipes that cannot be opened, by node", "short", level("dunlin_proxy_node_failing_pipes", "node")},
		{"In flight by node", "short", level("dunlin_proxy_node_inflight_requests", "node")},
		{"Clients refused or closed", "ops", [][2]string{
			{"sum(rate(dunlin_proxy_rejected_clients_total[$__rate_interval]))", "too many"},
			{"sum(rate(dunlin_proxy_slow_clients_total[$__rate_interval]))", "slow"},
			{"sum(rate(dunlin_proxy_starved_clients_total[$__rate_interval]))", "no memory"},
			{"sum(rate(dunlin_proxy_auth_failures_total[$__rate_interval]))", "wrong passwords"}}},
		{"Held requests", "ops", [][2]string{
			{"sum(rate(dunlin_proxy_held_requests_total[$__rate_interval]))", "held"},
			{"sum(rate(dunlin_proxy_expired_requests_total[$__rate_interval]))", "in vain"},
			{"sum(rate(dunlin_proxy_node_refusals_total[$__rate_interval]))", "refused by nodes"}}},
	}},
	{"topology.json", "Dunlin: topology", []graph{
		{"Epoch by member", "short", level("dunlin_table_epoch", "instance")},
		{"Members by role, as each sees them", "short", level("dunlin_members", "role")},
		{"Partitions owned", "short", [][2]string{{"dunlin_partitions_owned > 0", "{{member}}"}}},
		{"Partitions waiting for their take-over", "short", level("dunlin_node_partitions_waiting", "instance")},
		{"Fenced nodes", "short", [][2]string{{"sum(dunlin_node_fenced)", "fenced"}}},
		{"Tables issued", "ops", rateOf("dunlin_tables_issued_total", "member")},
		{"Redirections", "ops", append(rateOf("dunlin_node_moved_total", "member"), rateOf("dunlin_node_waits_total", "member")...)},
		{"Gossip health, 0 is good", "short", level("dunlin_gossip_health_score", "instance")},
		{"Loops busy", "percentunit", [][2]string{{"rate(dunlin_loop_busy_seconds_total[$__rate_interval])", "{{instance}} {{loop}}"}}},
		{"Longest stall of a loop", "s", level("dunlin_loop_longest_stall_seconds", "loop")},
	}},
}

type fields map[string]any

// render makes the file that Grafana reads: two graphs in a row.
func (b *board) render(t *testing.T) []byte {
	t.Helper()
	source := fields{"type": "prometheus", "uid": "${datasource}"}
	var panels []fields
	for i, g := range b.graphs {
		var targets []fields
		for q, query := range g.queries {
			targets = append(targets, fields{"datasource": source, "expr": query[0], "legendFormat": query[1], "refId": string(rune('A' + q))})
		}
		panels = append(panels, fields{
			"id": i + 1, "type": "timeseries", "title": g.title, "datasource": source, "targets": targets,
			"gridPos":     fields{"x": 12 * (i % 2), "y": 8 * (i / 2), "w": 12, "h": 8},
			"fieldConfig": fields{"defaults": fields{"unit": g.unit, "min": 0}, "overrides": []any{}},
		})
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(fields{
		"uid": strings.TrimSuffix("dunlin-"+b.file, ".json"), "title": b.title, "tags": []string{"dunlin"},
		"schemaVersion": 39, "refresh": "10s", "time": fields{"from": "now-30m", "to": "now"}, "panels": panels,
		"templating": fields{"list": []fields{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}}},
	}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestDashboardsAreGenerated(t *testing.T) {
	for _, b := range boards {
		file := "../grafana/" + b.file
		want := b.render(t)
		if *updateDashboards {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(readFile(t, file), want) {
			t.Errorf("%s is not what the tables say: %s", file, "go test -run TestDashboardsAreGenerated -update-dashboards")
		}
		if kustomization := string(readFile(t, "../grafana/kustomization.yaml")); !strings.Contains(kustomization, "- "+b.file+"\n") {
			t.Errorf("%s is not among the dashboards of the ConfigMap", b.file)
		}
	}
}

// expressions returns every query of a dashboard's file, by panel.
func expressions(t *testing.T, file string) map[string][]string {
	t.Helper()
	var d struct{ Panels []panel }
	if err := json.Unmarshal(readFile(t, file), &d); err != nil {
		t.Fatalf("cannot decode %s: %v", file, err)
	}
	all := map[string][]string{}
	for i, p := range d.Panels {
		for _, target := range p.Targets {
			name := fmt.Sprintf("%s, panel %d, %s", file, i, p.Title)
			all[name] = append(all[name], target.Expr)
		}
	}
	return all
}
