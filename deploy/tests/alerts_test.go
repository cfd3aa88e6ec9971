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

// TestKilledNode has a real Prometheus with our rules watch three nodes and a proxy under
// load. Nothing fires. One node is killed: the alerts for that fire, and clear when it is
// back. In between nothing fires that has nothing to do with it.
func TestKilledNode(t *testing.T) {
	needPrometheus(t)
	m := load(t, "dev")
	t.Parallel() // it waits most of the time
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
			t.Errorf("%v fired, which has nothing to do with node %s", fired, targets[1])
		}
	}
}

// lasting is for how long what hasty rules tell of must last.
const lasting = 3 * time.Second

// hastyRules is a copy of our rules in which that is less than a minute.
func hastyRules(t *testing.T) (file string) {
	t.Helper()
	hasty := regexp.MustCompile(`(?m)^( +for:) .*$`).ReplaceAll(readFile(t, rulesFile), fmt.Appendf(nil, "${1} %v", lasting))
	file = filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, hasty, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// firesInCrash are the alerts that a crash may cause: besides the two for it those of what it
// brings for seconds, which the rules as shipped wait out, and what clients may notice.
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

// alert is one that fires, or is about to.
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

// slowMachine fires where the test's machine is busy, whatever the cluster does.
const slowMachine = "DunlinLatencyHigh"

// awaitQuiet waits until all members are scraped, and no alert has fired or been about to for
// longer than one would take from the second to the first.
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
			t.Fatalf("%s does not fire with %q; what there is: %+v", name, summary, now)
		}
	}
}
