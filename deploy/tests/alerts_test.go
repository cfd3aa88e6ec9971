package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestKilledNode runs a real Prometheus with our rules against three nodes and a proxy under load.
// At first no alert fires. Then one node is killed: the alerts for that fire, and clear when the
// node is back. Meanwhile no unrelated alert fires.
func TestKilledNode(t *testing.T) {
	needPrometheus(t)
	m := load(t, "dev")
	t.Parallel() // the test waits most of the time
	r, pods := startPods(t, m)
	var targets []string
	for _, p := range pods {
		targets = append(targets, p.address(intstr.FromString("admin")))
	}
	p := startPrometheus(t, scraping{targets: targets, rules: []string{hastyRules(t)}})
	work(t, r.clients(pods[3]))
	p.awaitQuiet(t)

	pods[1].kill(t)
	p.awaitFiring(t, "DunlinMemberDown", targets[1]+" answers no scrape")
	p.awaitFiring(t, "DunlinMembersFewer", "2 nodes are alive, fewer than there should be")

	pods[1] = r.start(t, m.node(t), 1)
	pods[1].waitProbes(t)
	p.awaitQuiet(t)
	may := firesInCrash(t)
	for _, fired := range p.query(t, `max by (alertname, instance) (max_over_time(ALERTS{alertstate="firing"}[10m]))`) {
		if name := fired["alertname"]; !may[name] || name == "DunlinMemberDown" && fired["instance"] != targets[1] {
			t.Errorf("%v fired, which is unrelated to node %s", fired, targets[1])
		}
	}
}

// lasting is how long a condition must last before a hasty rule fires.
const lasting = 3 * time.Second

// hastyRules returns a file with our rules, in which every "for" is lasting.
func hastyRules(t *testing.T) (file string) {
	t.Helper()
	hasty := regexp.MustCompile(`(?m)^( +for:) .*$`).ReplaceAll(readFile(t, rulesFile),
		fmt.Appendf(nil, "${1} %v", lasting))
	file = filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, hasty, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// firesInCrash returns the alerts that a crash may cause: the two about the crash itself, those
// about states that last for seconds, for which the shipped rules wait longer, and those about
// effects that clients may notice.
func firesInCrash(t *testing.T) map[string]bool {
	t.Helper()
	may := map[string]bool{}
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			switch g.Name {
			case "dunlin-availability":
				may[r.Alert] = true
			case "dunlin-members", "dunlin-copies":
				may[r.Alert] = r.For != ""
			}
		}
	}
	return may
}

// alert is an alert that fires or is pending.
type alert struct {
	State       string
	Labels      map[string]string
	Annotations struct{ Summary string }
}

func (p prometheus) alerts(t *testing.T) []alert {
	t.Helper()
	var answer struct{ Alerts []alert }
	p.ask(t, "alerts", &answer)
	return answer.Alerts
}

// slowMachine is an alert that fires if the test's machine is busy, whatever the cluster does.
const slowMachine = "DunlinLatencyHigh"

// awaitQuiet waits until all members are scraped, and no alert has fired or been pending for longer
// than a pending alert takes to fire.
func (p prometheus) awaitQuiet(t *testing.T) {
	t.Helper()
	var loud []alert
	quiet := time.Now()
	for deadline := quiet.Add(time.Minute); time.Since(quiet) < lasting+time.Second; time.Sleep(100 * time.Millisecond) {
		now := slices.DeleteFunc(p.alerts(t), func(a alert) bool { return a.Labels["alertname"] == slowMachine })
		if len(now) > 0 || !p.returnsData(t, "count(up == 1) == 4 and sum(dunlin:commands:rate5m) > 0") {
			loud, quiet = now, time.Now()
		}
		if time.Now().After(deadline) {
			t.Fatalf("not all members are scraped, or there are alerts: %+v", loud)
		}
	}
}

// awaitFiring waits until an alert fires with this summary.
func (p prometheus) awaitFiring(t *testing.T, name, summary string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		now := p.alerts(t)
		for _, a := range now {
			if a.State == "firing" && a.Labels["alertname"] == name && a.Annotations.Summary == summary {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not fire with %q; present alerts: %+v", name, summary, now)
		}
	}
}
