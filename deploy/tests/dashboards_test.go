package tests

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type fields map[string]any

// source is the data source that panels query; Grafana's user chooses it.
var source = fields{"type": "prometheus", "uid": "${datasource}"}

// metricInQuery finds names of metrics: our own, and those of the process and Go collectors.
var metricInQuery = regexp.MustCompile(`\b(?:dunlin|process|go)_[a-z0-9_]+\{?`)

// ofCluster restricts a query to the members of the cluster that Grafana's user has chosen.
func ofCluster(query string) string {
	const cluster = `{namespace=~"$namespace", job="$job"`
	return metricInQuery.ReplaceAllStringFunc(query, func(metric string) string {
		if name, labels := strings.CutSuffix(metric, "{"); labels {
			return name + cluster + ", "
		}
		return metric + cluster + "}"
	})
}

// render makes the file that Grafana reads.
func (b *board) render(t *testing.T) []byte {
	t.Helper()
	var panels []fields
	var at grid
	for i, g := range b.graphs {
		p := g.panel()
		p["id"], p["gridPos"] = i+1, at.place(g.size())
		panels = append(panels, p)
	}
	uid := strings.TrimSuffix(b.file, ".json")
	if uid != "dunlin" {
		uid = "dunlin-" + uid
	}
	namespace := variable("namespace", "Namespace", "label_values(dunlin_table_epoch, namespace)")
	// Outside Kubernetes there is no namespace; "All" includes that too.
	maps.Copy(namespace, fields{"includeAll": true, "allValue": ".*", "current": fields{"text": "All", "value": "$__all"}})
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(fields{
		"uid": uid, "title": b.title, "tags": []string{"dunlin"}, "schemaVersion": 39,
		"refresh": "10s", "time": fields{"from": "now-1h", "to": "now"}, "panels": panels,
		"templating": fields{"list": []fields{
			{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
			namespace,
			variable("job", "Job", `label_values(dunlin_table_epoch{namespace=~"$namespace"}, job)`),
		}},
	}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// variable is a variable of a dashboard whose values Grafana looks up.
func variable(name, label, query string) fields {
	return fields{"name": name, "label": label, "type": "query", "datasource": source, "refresh": 1, "sort": 1,
		"definition": query, "query": fields{"query": query, "refId": name}}
}

// grid places panels from left to right, then in the next row.
type grid struct{ x, y, high int }

func (at *grid) place(width, height int) fields {
	if at.x+width > 24 {
		at.x, at.y, at.high = 0, at.y+at.high, 0
	}
	here := fields{"x": at.x, "y": at.y, "w": width, "h": height}
	at.x += width
	at.high = max(at.high, height)
	return here
}

func (g *graph) size() (width, height int) {
	switch width = g.look.width; {
	case g.look.kind == "row":
		return width, 1
	case g.look.kind == "stat":
		return width, 4
	case width == 0:
		return 12, 8
	default:
		return width, 8
	}
}

// panel returns a panel without its place.
func (g *graph) panel() fields {
	if g.look.kind == "row" {
		return fields{"type": "row", "title": g.title, "collapsed": false, "panels": []any{}}
	}
	var targets []fields
	for i, q := range g.queries {
		targets = append(targets, fields{"datasource": source, "expr": ofCluster(q[0]), "legendFormat": q[1], "refId": string(rune('A' + i))})
	}
	defaults := fields{"unit": g.unit, "min": 0}
	p := fields{"title": g.title, "description": g.look.help, "datasource": source, "targets": targets}
	config := fields{"defaults": defaults, "overrides": []any{}}
	p["fieldConfig"] = config
	if g.look.kind == "stat" {
		p["type"] = "stat"
		p["options"] = fields{"reduceOptions": fields{"calcs": []string{"lastNotNull"}}, "colorMode": "value", "graphMode": "none"}
		steps := []fields{{"color": "green", "value": nil}}
		if g.look.red != 0 {
			steps = append(steps, fields{"color": "red", "value": g.look.red})
		}
		defaults["thresholds"] = fields{"mode": "absolute", "steps": steps}
		return p
	}
	p["type"] = "timeseries"
	p["options"] = fields{"tooltip": fields{"mode": "multi", "sort": "desc"}}
	lines := fields{"lineWidth": 1, "showPoints": "never", "fillOpacity": 0}
	if g.unit == "percentunit" {
		lines["axisSoftMax"] = 1
	}
	if g.look.stack {
		lines["fillOpacity"], lines["stacking"] = 20, fields{"mode": "normal"}
	}
	if g.look.limit != "" {
		config["overrides"] = []fields{{
			"matcher": fields{"id": "byName", "options": g.look.limit},
			"properties": []fields{
				{"id": "custom.stacking", "value": fields{"mode": "none"}}, {"id": "custom.fillOpacity", "value": 0},
			},
		}}
	}
	defaults["custom"] = lines
	return p
}

func TestDashboardsAreGenerated(t *testing.T) {
	for _, b := range boards {
		file := "../grafana/" + b.file
		want := b.render(t)
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(readFile(t, file), want) {
			t.Errorf("%s is not what the tables say: run this test with -update", file)
		}
		if kustomization := string(readFile(t, "../grafana/kustomization.yaml")); !strings.Contains(kustomization, "- "+b.file+"\n") {
			t.Errorf("%s is not among the dashboards of the ConfigMap", b.file)
		}
	}
}

// TestOfCluster checks that every metric of a query is restricted to one cluster.
func TestOfCluster(t *testing.T) {
	f := func(query, want string) {
		t.Helper()
		if got := ofCluster(query); got != want {
			t.Errorf("%s became %s, want %s", query, got, want)
		}
	}
	const selector = `namespace=~"$namespace", job="$job"`
	f("sum(rate(dunlin_node_hits_total[1m])) / go_goroutines", `sum(rate(dunlin_node_hits_total{`+selector+`}[1m])) / go_goroutines{`+selector+`}`)
	f(`min(dunlin_members{role="node"})`, `min(dunlin_members{`+selector+`, role="node"})`)
}

// TestDashboardMetrics checks that a live cluster exports every metric that a panel shows. It needs
// no Prometheus.
func TestDashboardMetrics(t *testing.T) {
	used := map[string]string{} // metric: a panel that shows it
	for _, b := range boards {
		for _, g := range b.graphs {
			for _, q := range g.queries {
				for _, name := range metricInQuery.FindAllString(q[0], -1) {
					used[strings.TrimSuffix(name, "{")] = b.title + ", " + g.title
				}
			}
		}
	}
	scraped := metricsOf(scrapeLocal(t))
	// Figures of outstanding keys and sampled commands appear after some time.
	later := regexp.MustCompile(`_(hot|big)_key_|node_command_duration`)
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !scraped[name] && !later.MatchString(name) {
			t.Errorf("%q shows %s, which no member exports", used[name], name)
		}
	}
}
