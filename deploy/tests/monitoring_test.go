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

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// scrapeFile is the part of Prometheus's configuration that we use.
type scrapeFile struct {
	Global struct {
		ScrapeInterval string `yaml:"scrape_interval"`
		ScrapeTimeout  string `yaml:"scrape_timeout"`
	} `yaml:"global"`
	RuleFiles     []string `yaml:"rule_files"`
	ScrapeConfigs []struct {
		JobName       string `yaml:"job_name"`
		StaticConfigs []struct {
			Targets []string `yaml:"targets"`
		} `yaml:"static_configs"`
		KubernetesSDConfigs []struct {
			Role string `yaml:"role"`
		} `yaml:"kubernetes_sd_configs"`
		RelabelConfigs []struct {
			SourceLabels []string `yaml:"source_labels"`
			Regex        string   `yaml:"regex"`
			Action       string   `yaml:"action"`
			TargetLabel  string   `yaml:"target_label"`
		} `yaml:"relabel_configs"`
	} `yaml:"scrape_configs"`
}

// TestPrometheusLocal: the target is where `dunlin local` serves by default.
func TestPrometheusLocal(t *testing.T) {
	var f scrapeFile
	decodeStrict(t, readFile(t, "../prometheus/prometheus.yml"), &f)
	if len(f.ScrapeConfigs) != 1 || f.ScrapeConfigs[0].JobName != "dunlin" {
		t.Fatalf("scrape configurations %+v, want one for job dunlin", f.ScrapeConfigs)
	}
	targets := f.ScrapeConfigs[0].StaticConfigs[0].Targets
	if len(targets) != 1 || targets[0] != "127.0.0.1:9180" {
		t.Errorf("targets %v, want the default admin address", targets)
	}
}

// TestPrometheusKubernetes: what is kept are our pods' admin ports.
func TestPrometheusKubernetes(t *testing.T) {
	var f scrapeFile
	decodeStrict(t, readFile(t, "../prometheus/kubernetes.yml"), &f)
	keep := map[string]string{}
	for _, r := range f.ScrapeConfigs[0].RelabelConfigs {
		if r.Action == "keep" {
			keep[r.SourceLabels[0]] = r.Regex
		}
	}
	for _, w := range load(t, "dev").workloads {
		if got := w.template.Labels["app.kubernetes.io/name"]; got != keep["__meta_kubernetes_pod_label_app_kubernetes_io_name"] {
			t.Errorf("pods of %s are named %q, which is not kept by %v", w.name, got, keep)
		}
		port := intstr.FromString(keep["__meta_kubernetes_pod_container_port_name"])
		if containerPort(w, port, corev1.ProtocolTCP) == 0 {
			t.Errorf("pods of %s have no port that is kept by %v", w.name, keep)
		}
	}
}

type panel struct {
	ID      int    `json:"id"`
	Type    string `json:"type"`
	Title   string `json:"title"`
	GridPos struct{ X, Y, W, H int }
	Targets []struct {
		Expr       string `json:"expr"`
		RefID      string `json:"refId"`
		Datasource struct {
			UID string `json:"uid"`
		} `json:"datasource"`
	} `json:"targets"`
}

// metricInExpr finds names of metrics: our own, and those of the process and Go
// collectors.
var metricInExpr = regexp.MustCompile(`\b(?:dunlin|process|go)_[a-z0-9_]+`)

// TestDashboard checks the dashboard against a scrape of a live cluster: every
// metric that a panel shows must be there.
func TestDashboard(t *testing.T) {
	var d struct {
		Title         string
		SchemaVersion int
		Panels        []panel
	}
	if err := json.Unmarshal(readFile(t, "../grafana/dunlin.json"), &d); err != nil {
		t.Fatalf("cannot decode dashboard: %v", err)
	}
	used := map[string]string{} // metric: a panel that shows it
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("panel %q: id %d is used twice", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q is wider than the grid", p.Title)
		}
		for _, target := range p.Targets {
			names := metricInExpr.FindAllString(target.Expr, -1)
			if len(names) == 0 {
				t.Errorf("panel %q: %q shows no metric", p.Title, target.Expr)
			}
			if n := strings.Count(target.Expr, "(") - strings.Count(target.Expr, ")"); n != 0 {
				t.Errorf("panel %q: %q has unbalanced parentheses", p.Title, target.Expr)
			}
			for _, name := range names {
				used[name] = p.Title
			}
		}
	}
	if len(used) < 10 {
		t.Fatalf("the dashboard shows only %d metrics", len(used))
	}

	scraped := metricsOf(scrapeLocal(t))
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !scraped[name] {
			t.Errorf("panel %q shows %s, which no member exports", used[name], name)
		}
	}
}

// metricsOf returns the names in the text of a scrape.
func metricsOf(scrape string) map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(scrape) {
		if end := strings.IndexAny(line, "{ "); end > 0 && line[0] != '#' {
			names[line[:end]] = true
		}
	}
	return names
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decodeStrict(t *testing.T, text []byte, into any) {
	t.Helper()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(into); err != nil {
		t.Fatalf("cannot decode %T: %v", into, err)
	}
}
