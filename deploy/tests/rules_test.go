package tests

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	rulesFile     = "../prometheus/rules.yml"
	rulesTestFile = "../prometheus/rules_test.yml"
	operatorRules = overlays + "monitoring/rules.yaml"
)

var update = flag.Bool("update", false, "write what is made from other files: dashboards, the operator's rules")

type ruleFile struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Record      string            `yaml:"record"`
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

func readRules(t *testing.T) (f ruleFile) {
	t.Helper()
	decodeStrict(t, readFile(t, rulesFile), &f)
	return f
}

func TestPromtool(t *testing.T) {
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("promtool is not installed: the rules are not tested")
	}
	// This does not check kubernetes.yml: Debian's Prometheus is built without Kubernetes.
	for _, args := range [][]string{
		{"check", "rules", rulesFile},
		{"test", "rules", rulesTestFile},
		{"check", "config", "../prometheus/prometheus.yml"},
	} {
		if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// TestAlerts checks that every alert is tested, is explained in the runbook and says how urgent it
// is, and that the runbook explains no others.
func TestAlerts(t *testing.T) {
	tests, runbook := string(readFile(t, rulesTestFile)), string(readFile(t, "../RUNBOOK.md"))
	alerts := 0
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			alerts++
			if !strings.Contains(tests, "\n      - alertname: "+r.Alert+"\n") {
				t.Errorf("%s: no test has it fire", r.Alert)
			}
			if !strings.Contains(tests, "{alertname: "+r.Alert+", eval_time:") {
				t.Errorf("%s: no test has it quiet", r.Alert)
			}
			if !strings.Contains(runbook, "\n### "+r.Alert+"\n") {
				t.Errorf("%s: the runbook has no section for it", r.Alert)
			}
			if s := r.Labels["severity"]; s != "page" && s != "ticket" {
				t.Errorf("%s: severity %q, want page or ticket", r.Alert, s)
			}
			if !strings.HasSuffix(r.Annotations["runbook_url"], "/RUNBOOK.md#"+strings.ToLower(r.Alert)) || r.Annotations["summary"] == "" {
				t.Errorf("%s: annotations %v", r.Alert, r.Annotations)
			}
		}
	}
	if sections := strings.Count(runbook, "\n### "); sections != alerts || alerts == 0 {
		t.Errorf("%d sections of the runbook for %d alerts", sections, alerts)
	}
}

// TestRuleMetrics checks that a live cluster exports, or a rule records, every metric that rules
// use.
func TestRuleMetrics(t *testing.T) {
	has := metricsOf(scrapeLocal(t))
	recorded := map[string]bool{}
	name := regexp.MustCompile(`\b(?:dunlin|process)[:_][a-z0-9_:]+`)
	label := regexp.MustCompile(`"[^"]*"`)
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			recorded[r.Record] = true
			for _, m := range name.FindAllString(label.ReplaceAllString(r.Expr, ""), -1) {
				if !has[m] && !recorded[m] {
					t.Errorf("%s%s reads %s, which no member exports", r.Record, r.Alert, m)
				}
			}
		}
	}
}

// TestOperatorRules checks that the operator's object contains the same rules.
func TestOperatorRules(t *testing.T) {
	var want bytes.Buffer
	want.WriteString("# Made from deploy/prometheus/rules.yml: go test -run TestOperatorRules -update (in deploy/tests).\n" +
		"apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: dunlin\n  labels:\n    app.kubernetes.io/name: dunlin\nspec:\n")
	_, groups, _ := strings.Cut(string(readFile(t, rulesFile)), "\ngroups:\n")
	for line := range strings.Lines("groups:\n" + groups) {
		if line != "\n" {
			want.WriteString("  ")
		}
		want.WriteString(line)
	}
	if *update {
		if err := os.WriteFile(operatorRules, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(readFile(t, operatorRules), want.Bytes()) {
		t.Errorf("%s is not what %s gives: run this test with -update", operatorRules, rulesFile)
	}
}

// TestMonitoring checks that the operator's objects find our pods, and that Grafana finds every
// dashboard.
func TestMonitoring(t *testing.T) {
	m, cluster := load(t, "monitoring"), load(t, "production")
	if len(m.podMonitors) != 1 || len(m.rules) != 1 || len(m.configs) != 1 {
		t.Fatalf("%d PodMonitors, %d PrometheusRules, %d ConfigMaps, want one each",
			len(m.podMonitors), len(m.rules), len(m.configs))
	}
	p := m.podMonitors[0].Spec
	for _, w := range cluster.workloads {
		cluster.wantScraped(t, w, selector(t, &p.Selector), *p.PodMetricsEndpoints[0].Port)
	}
	for _, r := range p.PodMetricsEndpoints[0].RelabelConfigs {
		if r.Action == "" {
			t.Errorf("relabeling %v leaves its action to the API server, which writes it down: never what was applied", r.TargetLabel)
		}
	}
	if len(m.rules[0].Spec.Groups) != len(readRules(t).Groups) {
		t.Error("the operator's rules have other groups")
	}
	dashboards := m.configs[0]
	if dashboards.Labels["grafana_dashboard"] != "1" {
		t.Errorf("the dashboards' labels are %v", dashboards.Labels)
	}
	files, err := os.ReadDir("../grafana")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".json") && dashboards.Data[f.Name()] == "" {
			t.Errorf("dashboard %s is not in the ConfigMap (deploy/grafana/kustomization.yaml)", f.Name())
		}
	}
}

// wantScraped checks that s selects the pods of w, and that their port of that name is the admin
// port, as in the annotations of the other variant.
func (m *manifests) wantScraped(t *testing.T, w workload, s labels.Selector, port string) {
	t.Helper()
	number := containerPort(w, intstr.FromString(port), corev1.ProtocolTCP)
	if !s.Matches(labels.Set(w.template.Labels)) || number == 0 {
		t.Errorf("pods of %s are not scraped at port %s", w.name, port)
	}
	for _, annotated := range load(t, "annotated").workloads {
		a := annotated.template.Annotations
		if a["prometheus.io/scrape"] != "true" ||
			a["prometheus.io/port"] != strconv.Itoa(int(number)) || a["prometheus.io/path"] != "/metrics" {
			t.Errorf("pods of %s are annotated %v", annotated.name, a)
		}
	}
}
