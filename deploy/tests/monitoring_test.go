package tests

import (
	"bytes"
	"os"
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
		Evaluation     string `yaml:"evaluation_interval"`
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

// TestPrometheusLocal checks that the target is the address at which `dunlin local` serves by
// default.
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

// TestPrometheusKubernetes checks that the rules keep our pods' admin ports and nothing else.
func TestPrometheusKubernetes(t *testing.T) {
	var f scrapeFile
	decodeStrict(t, readFile(t, "../prometheus/kubernetes.yml"), &f)
	keep, drop := map[string]string{}, map[string]string{}
	for _, r := range f.ScrapeConfigs[0].RelabelConfigs {
		switch r.Action {
		case "keep":
			keep[r.SourceLabels[0]] = r.Regex
		case "drop":
			drop[r.SourceLabels[0]] = r.Regex
		}
	}
	if got := drop["__meta_kubernetes_pod_phase"]; got != "Failed|Succeeded" {
		t.Errorf("pods in the phases %q are not scraped, want those that have ended", got)
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

// metricsOf returns the names in the text of a scrape, and those of native histograms, which
// are not in the text.
func metricsOf(scrape string) map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(scrape) {
		if f := strings.Fields(line); len(f) == 4 && f[1] == "TYPE" && f[3] == "histogram" {
			names[f[2]] = true
		}
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
