package deploy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const base = "kubernetes/base"

// manifests are all objects of the base, by kind.
type manifests struct {
	services  []service
	workloads []workload
}

// TestKubernetesFiles checks the files as they are written, so that it needs
// nothing installed.
func TestKubernetesFiles(t *testing.T) {
	var k struct {
		APIVersion string   `yaml:"apiVersion"`
		Kind       string   `yaml:"kind"`
		Resources  []string `yaml:"resources"`
		Images     []struct {
			Name   string `yaml:"name"`
			NewTag string `yaml:"newTag"`
		} `yaml:"images"`
	}
	decodeStrict(t, readFile(t, filepath.Join(base, "kustomization.yaml")), &k)

	var all []byte
	for _, r := range k.Resources {
		all = append(append(all, readFile(t, filepath.Join(base, r))...), "\n---\n"...)
	}
	checkManifests(t, decodeManifests(t, all))

	files, err := filepath.Glob(filepath.Join(base, "*.yaml"))
	if err != nil || len(files) != len(k.Resources)+1 {
		t.Errorf("%s has the files %v (%v), but only %v are resources", base, files, err, k.Resources)
	}
}

// TestKubernetesRendered checks what kustomize makes of the files.
func TestKubernetesRendered(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("kubectl is not installed: the manifests are decoded but not rendered")
	}
	out, err := exec.Command("kubectl", "kustomize", base).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("cannot render: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("cannot render: %v", err)
	}
	m := decodeManifests(t, out)
	checkManifests(t, m)
	for _, w := range m.workloads {
		if image := w.Spec.Template.Spec.Containers[0].Image; !strings.Contains(image, ":") {
			t.Errorf("%s: image %q has no tag", w.Metadata.Name, image)
		}
	}
}

func decodeManifests(t *testing.T, text []byte) manifests {
	t.Helper()
	var m manifests
	for dec := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var doc yaml.Node
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("cannot decode manifests: %v", err)
		}
		if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
			continue // nothing between two separators
		}
		object, err := yaml.Marshal(&doc)
		if err != nil {
			t.Fatal(err)
		}
		var head meta
		if err := yaml.Unmarshal(object, &head); err != nil {
			t.Fatalf("cannot decode object: %v", err)
		}
		switch head.APIVersion + " " + head.Kind {
		case "v1 Service":
			var s service
			decodeStrict(t, object, &s)
			m.services = append(m.services, s)
		case "apps/v1 Deployment", "apps/v1 StatefulSet":
			var w workload
			decodeStrict(t, object, &w)
			m.workloads = append(m.workloads, w)
		default:
			t.Errorf("object %s %s %q has no strict type in this test", head.APIVersion, head.Kind, head.Metadata.Name)
		}
	}
	if len(m.services) != 2 || len(m.workloads) != 2 {
		t.Fatalf("%d services and %d workloads, want 2 and 2", len(m.services), len(m.workloads))
	}
	return m
}

func checkManifests(t *testing.T, m manifests) {
	t.Helper()
	for _, s := range m.services {
		checkService(t, s, m.workloads)
	}
	for _, w := range m.workloads {
		checkWorkload(t, w, m.services)
		pod := w.Spec.Template.Spec
		if len(pod.Containers) != 1 {
			t.Fatalf("%s: %d containers, want 1", w.Metadata.Name, len(pod.Containers))
		}
		checkSecurity(t, w.Metadata.Name, pod)
		checkProbes(t, w.Metadata.Name, pod)
		checkArguments(t, w.Metadata.Name, pod, m.services)
	}
}

func TestMemoryFits(t *testing.T) {
	for text, want := range map[string]float64{"1Gi": 1 << 30, "256Mi": 256 << 20, "1.5gb": 3 << 29, "512kib": 512 << 10} {
		if got := sizeOf(t, text); got != want {
			t.Errorf("%s is %v bytes, want %v", text, got, want)
		}
	}
}

// checkService: the service selects pods of exactly one workload, and names
// ports that they have.
func checkService(t *testing.T, s service, workloads []workload) {
	t.Helper()
	name := s.Metadata.Name
	selected := 0
	for _, w := range workloads {
		if !isSubset(s.Spec.Selector, w.Spec.Template.Metadata.Labels) {
			continue
		}
		selected++
		for _, p := range s.Spec.Ports {
			if portNumber(w, p.TargetPort, p.Protocol) == 0 {
				t.Errorf("service %s: port %s goes to %s/%s, which %s does not have",
					name, p.Name, p.TargetPort, p.Protocol, w.Metadata.Name)
			}
		}
	}
	if selected != 1 {
		t.Errorf("service %s selects the pods of %d workloads, want 1", name, selected)
	}
	if s.Spec.ClusterIP == "None" && !s.Spec.PublishNotReadyAddresses {
		t.Errorf("service %s: pods that start together could not find each other", name)
	}
}

func checkWorkload(t *testing.T, w workload, services []service) {
	t.Helper()
	name, labels := w.Metadata.Name, w.Spec.Template.Metadata.Labels
	if len(w.Spec.Selector.MatchLabels) == 0 || !isSubset(w.Spec.Selector.MatchLabels, labels) {
		t.Errorf("%s: selector %v does not match its pods' labels %v", name, w.Spec.Selector.MatchLabels, labels)
	}
	for _, c := range w.Spec.Template.Spec.TopologySpreadConstraints {
		if !isSubset(c.LabelSelector.MatchLabels, labels) {
			t.Errorf("%s: spread constraint %v does not match its pods' labels %v", name, c.LabelSelector.MatchLabels, labels)
		}
	}
	if w.Kind != "StatefulSet" {
		return
	}
	if w.Spec.PodManagementPolicy != "Parallel" {
		t.Errorf("%s: pods start one after another, but need each other to be ready", name)
	}
	headless := func(s service) bool { return s.Metadata.Name == w.Spec.ServiceName && s.Spec.ClusterIP == "None" }
	if !slices.ContainsFunc(services, headless) {
		t.Errorf("%s: serviceName %q is not a headless service", name, w.Spec.ServiceName)
	}
}

// checkSecurity holds pods to Kubernetes's restricted standard, and a little more.
func checkSecurity(t *testing.T, name string, pod podSpec) {
	t.Helper()
	isFalse := func(b *bool) bool { return b != nil && !*b }
	c := pod.Containers[0]
	for what, ok := range map[string]bool{
		"runAsNonRoot":                       pod.SecurityContext.RunAsNonRoot && pod.SecurityContext.RunAsUser > 0,
		"seccompProfile RuntimeDefault":      pod.SecurityContext.SeccompProfile.Type == "RuntimeDefault",
		"allowPrivilegeEscalation: false":    isFalse(c.SecurityContext.AllowPrivilegeEscalation),
		"capabilities: drop ALL":             slices.Equal(c.SecurityContext.Capabilities.Drop, []string{"ALL"}),
		"readOnlyRootFilesystem":             c.SecurityContext.ReadOnlyRootFilesystem,
		"automountServiceAccountToken false": isFalse(pod.AutomountServiceAccountToken),
		"enableServiceLinks false":           isFalse(pod.EnableServiceLinks),
		"a memory limit":                     c.Resources.Limits["memory"] != "" && c.Resources.Limits["memory"] == c.Resources.Requests["memory"],
		"no CPU limit":                       c.Resources.Limits["cpu"] == "",
	} {
		if !ok {
			t.Errorf("%s: want %s", name, what)
		}
	}
}

func checkProbes(t *testing.T, name string, pod podSpec) {
	t.Helper()
	c := pod.Containers[0]
	for _, p := range []struct {
		kind, path string
		probe
	}{
		{"startup", "/healthz", c.StartupProbe},
		{"liveness", "/healthz", c.LivenessProbe},
		{"readiness", "/readyz", c.ReadinessProbe},
	} {
		if p.HTTPGet.Path != p.path || p.HTTPGet.Port != "admin" || p.PeriodSeconds == 0 || p.FailureThreshold == 0 {
			t.Errorf("%s: %s probe is %+v, want %s on the admin port", name, p.kind, p.probe, p.path)
		}
	}
	// A stop takes the sleep before it and 20 s of ours at most, after a node's
	// --drain-timeout of 25 s; then comes a kill.
	stop := c.Lifecycle.PreStop.Sleep.Seconds + 20
	if c.Args[0] == "node" {
		stop += 25
	}
	if grace := pod.TerminationGracePeriodSeconds; grace < stop+5 {
		t.Errorf("%s: %d s of grace are too few for an orderly stop", name, grace)
	}
}

// checkArguments: the binary has these flags, they name the ports that the pod
// declares, and variables and files that they mention are there.
func checkArguments(t *testing.T, name string, pod podSpec, services []service) {
	t.Helper()
	c := pod.Containers[0]
	real := flagsOf(t, c.Args[0])
	given := map[string]string{}
	for _, a := range c.Args[1:] {
		flag, value, _ := strings.Cut(a, "=")
		if !slices.Contains(real, flag) {
			t.Errorf("%s: dunlin %s has no flag %s", name, c.Args[0], flag)
		}
		given[flag] = value
		if variable, ok := strings.CutPrefix(value, "$("); ok && !hasVariable(c, strings.TrimSuffix(variable, ")")) {
			t.Errorf("%s: %s names a variable that is not set", name, a)
		}
	}
	for flag, ports := range map[string][]string{
		"--listen": {"redis/TCP", "data/TCP"}, "--gossip": {"gossip/TCP", "gossip-udp/UDP"}, "--admin": {"admin/TCP"},
	} {
		checkPorts(t, name, c, flag+"="+given[flag], ports)
	}
	checkMemory(t, name, given["--memory"], c.Resources.Limits["memory"])
	checkJoin(t, name, given["--join"], services)
	checkSecretFile(t, name, given["--secret-file"], pod)
}

// checkMemory: a node's limit is left to follow from the container's, or fits into it:
// the process may use 1.1 times as much, and the kernel needs some for its sockets.
func checkMemory(t *testing.T, name, flag, limit string) {
	t.Helper()
	if flag == "" {
		return
	}
	if memory, container := sizeOf(t, flag), sizeOf(t, limit); memory > container*4/5 {
		t.Errorf("%s: --memory=%s does not fit into a container of %s", name, flag, limit)
	}
}

// sizeOf reads a size as Kubernetes writes it (1Gi) or as our flags take it (1gb).
func sizeOf(t *testing.T, text string) (bytes float64) {
	t.Helper()
	digits := strings.TrimRight(strings.ToLower(text), "kmgib")
	n, err := strconv.ParseFloat(digits, 64)
	unit, known := map[string]float64{"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}[strings.TrimRight(strings.ToLower(text[len(digits):]), "ib")]
	if err != nil || !known {
		t.Fatalf("%q is not a size", text)
	}
	return n * unit
}

// checkPorts: each of ports that the container declares is the one in argument.
func checkPorts(t *testing.T, name string, c container, argument string, ports []string) {
	t.Helper()
	_, text, err := net.SplitHostPort(argument[strings.Index(argument, "=")+1:])
	number, err2 := strconv.Atoi(text)
	if err != nil || err2 != nil {
		t.Errorf("%s: %s is not an address with a port", name, argument)
	}
	declared := 0
	for _, p := range c.Ports {
		if slices.Contains(ports, p.Name+"/"+p.Protocol) {
			declared++
			if p.ContainerPort != number {
				t.Errorf("%s: port %s is %d, but the argument %s", name, p.Name, p.ContainerPort, argument)
			}
		}
	}
	if declared == 0 {
		t.Errorf("%s: no port is declared for %s", name, argument)
	}
}

func checkJoin(t *testing.T, name, join string, services []service) {
	t.Helper()
	host, port, err := net.SplitHostPort(join)
	if err != nil {
		t.Errorf("%s: --join=%s: %v", name, join, err)
	}
	for _, s := range services {
		if s.Metadata.Name != host || s.Spec.ClusterIP != "None" {
			continue
		}
		found := map[string]bool{}
		for _, p := range s.Spec.Ports {
			if strconv.Itoa(p.Port) == port {
				found[p.Protocol] = true
			}
		}
		if !found["TCP"] || !found["UDP"] {
			t.Errorf("%s: service %s has port %s for %v, want TCP and UDP", name, host, port, found)
		}
		return
	}
	t.Errorf("%s: --join=%s names no headless service", name, join)
}

func checkSecretFile(t *testing.T, name, file string, pod podSpec) {
	t.Helper()
	for _, mount := range pod.Containers[0].VolumeMounts {
		for _, v := range pod.Volumes {
			for _, item := range v.Secret.Items {
				if v.Name == mount.Name && path.Join(mount.MountPath, item.Path) == file {
					return
				}
			}
		}
	}
	t.Errorf("%s: no secret is mounted at --secret-file=%s", name, file)
}

func hasVariable(c container, variable string) bool {
	for _, e := range c.Env {
		if e.Name == variable && e.ValueFrom.FieldRef.FieldPath != "" {
			return true
		}
	}
	return false
}

// portNumber returns the number of a pod's named port; 0 if it has none.
func portNumber(w workload, name, protocol string) int {
	for _, p := range w.Spec.Template.Spec.Containers[0].Ports {
		if p.Name == name && p.Protocol == protocol {
			return p.ContainerPort
		}
	}
	return 0
}

func isSubset(part, whole map[string]string) bool {
	for k, v := range part {
		if whole[k] != v {
			return false
		}
	}
	return true
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
