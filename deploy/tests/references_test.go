package tests

import (
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// external lists, by overlay, the secrets that must exist before it is applied, with their keys.
var external = map[string]map[string][]string{
	"production": {
		"dunlin":             {"cluster", "password"},
		"dunlin-tls":         {"tls.crt", "tls.key"},
		"dunlin-cluster-tls": {"tls.crt", "tls.key", "ca.crt"},
	},
}

// TestServices checks that a service selects the pods of one workload, and names ports that they
// have.
func TestServices(t *testing.T) {
	everyCluster(t, func(t *testing.T, m *manifests) {
		if len(m.services) != 2 {
			t.Fatalf("%d services, want 2", len(m.services))
		}
		for _, s := range m.services {
			w := m.only(t, "service "+s.Name, s.Namespace, labels.SelectorFromSet(s.Spec.Selector))
			for _, p := range s.Spec.Ports {
				if containerPort(w, p.TargetPort, p.Protocol) != p.Port {
					t.Errorf("service %s: port %s goes to %s/%s, which is no port %d of %s",
						s.Name, p.Name, p.TargetPort.String(), p.Protocol, p.Port, w.name)
				}
			}
			if s.Spec.ClusterIP == corev1.ClusterIPNone && !s.Spec.PublishNotReadyAddresses {
				t.Errorf("service %s: pods that start together could not find each other", s.Name)
			}
		}
	})
}

func TestWorkloads(t *testing.T) {
	everyCluster(t, func(t *testing.T, m *manifests) {
		for _, w := range m.workloads {
			pods := labels.Set(w.template.Labels)
			if s := selector(t, w.selector); s.Empty() || !s.Matches(pods) {
				t.Errorf("%s: selector %v does not match its pods' labels %v", w.name, s, pods)
			}
			if len(w.template.Spec.TopologySpreadConstraints) == 0 {
				t.Errorf("%s: its pods may all be on one machine", w.name)
			}
			for _, c := range w.template.Spec.TopologySpreadConstraints {
				if !selector(t, c.LabelSelector).Matches(pods) {
					t.Errorf("%s: spread over %s counts other pods", w.name, c.TopologyKey)
				}
				// An update starts new proxies before it stops old ones. Without this label the new
				// ones would be spread around the old ones.
				if w.deployment != nil && !slices.Contains(c.MatchLabelKeys, appsv1.DefaultDeploymentUniqueLabelKey) {
					t.Errorf("%s: spread over %s counts pods that an update replaces", w.name, c.TopologyKey)
				}
			}
		}
		set := m.node(t).set
		if set == nil || set.Spec.PodManagementPolicy != "Parallel" {
			t.Fatal("nodes are not a StatefulSet that starts all at once")
		}
		if !slices.ContainsFunc(m.services, func(s *corev1.Service) bool {
			return s.Name == set.Spec.ServiceName && s.Spec.ClusterIP == corev1.ClusterIPNone
		}) {
			t.Errorf("serviceName %q is not a headless service", set.Spec.ServiceName)
		}
		if d := m.proxy(t).deployment; d == nil || d.Spec.Strategy.RollingUpdate.MaxUnavailable.String() != "0" {
			t.Error("proxies are not a Deployment that starts new pods before it stops old ones")
		}
	})
}

// TestVolumes checks that everything exists that pods mount or read from ConfigMaps and Secrets.
func TestVolumes(t *testing.T) {
	for _, overlay := range clusters {
		t.Run(overlay, func(t *testing.T) {
			m := load(t, overlay)
			for _, w := range m.workloads {
				mounted := map[string]bool{}
				for _, mount := range w.container().VolumeMounts {
					mounted[mount.Name] = true
				}
				for _, v := range w.template.Spec.Volumes {
					if !mounted[v.Name] {
						t.Errorf("%s: volume %s is not mounted", w.name, v.Name)
					}
					switch {
					case v.ConfigMap != nil:
						if m.config(v.ConfigMap.Name) == nil {
							t.Errorf("%s: there is no ConfigMap %s", w.name, v.ConfigMap.Name)
						}
					case v.Secret != nil:
						var keys []string
						for _, item := range v.Secret.Items {
							keys = append(keys, item.Key)
						}
						m.wantSecret(t, overlay, v.Secret.SecretName, keys...)
					default:
						t.Errorf("%s: volume %s is of a kind that no test checks", w.name, v.Name)
					}
				}
				for _, e := range w.container().Env {
					if from := e.ValueFrom; from != nil && from.SecretKeyRef != nil {
						m.wantSecret(t, overlay, from.SecretKeyRef.Name, from.SecretKeyRef.Key)
					}
				}
			}
		})
	}
}

func (m *manifests) config(name string) *corev1.ConfigMap {
	for _, c := range m.configs {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (m *manifests) wantSecret(t *testing.T, overlay, name string, keys ...string) {
	t.Helper()
	has, ok := external[overlay][name]
	for _, s := range m.secrets {
		if s.Name == name {
			ok = true
			for key := range s.Data {
				has = append(has, key)
			}
		}
	}
	if !ok {
		t.Errorf("there is no Secret %s, and no word that it must be made", name)
	}
	for _, key := range keys {
		if !slices.Contains(has, key) {
			t.Errorf("Secret %s has the keys %v, want %s", name, has, key)
		}
	}
}

// TestSettingsRoll checks that changed settings get another ConfigMap, so that pods are replaced.
func TestSettingsRoll(t *testing.T) {
	dev, production := load(t, "dev"), load(t, "production")
	if len(dev.configs) != 1 || len(production.configs) != 1 || dev.configs[0].Name == production.configs[0].Name {
		t.Fatalf("ConfigMaps %v and %v, want one each, their names a hash", dev.configs, production.configs)
	}
}

// TestBudgets checks that every workload of production has a disruption budget that selects its
// pods and no others, and that allows a machine to be drained.
func TestBudgets(t *testing.T) {
	m := load(t, "production")
	covered := map[string]bool{}
	for _, b := range m.budgets {
		w := m.only(t, "budget "+b.Name, b.Namespace, selector(t, b.Spec.Selector))
		covered[w.name] = true
		if b.Spec.MaxUnavailable != nil && b.Spec.MaxUnavailable.String() == "0" {
			t.Errorf("budget %s lets no pod go", b.Name)
		}
	}
	if len(covered) != len(m.workloads) {
		t.Errorf("budgets for %v, want one for each of %d workloads", covered, len(m.workloads))
	}
}

// TestScaling checks that the autoscaler scales only the proxies, by what they request, and that
// nothing else sets their number.
func TestScaling(t *testing.T) {
	m := load(t, "production")
	if len(m.scalers) != 1 {
		t.Fatalf("%d autoscalers, want 1", len(m.scalers))
	}
	s, proxy := m.scalers[0], m.proxy(t)
	if target := s.Spec.ScaleTargetRef; target.Kind != proxy.kind || target.Name != proxy.name ||
		target.APIVersion != "apps/v1" {
		t.Errorf("the autoscaler's target is %+v, want %s", target, proxy.name)
	}
	if proxy.replicas != nil {
		t.Errorf("applying the manifests sets %d proxies, whatever the autoscaler found", *proxy.replicas)
	}
	if *s.Spec.MinReplicas < 2 || s.Spec.MaxReplicas <= *s.Spec.MinReplicas {
		t.Errorf("%d to %d proxies", *s.Spec.MinReplicas, s.Spec.MaxReplicas)
	}
	var settings struct{ Loops float64 }
	if err := yaml.Unmarshal([]byte(m.configs[0].Data["dunlin.yaml"]), &settings); err != nil {
		t.Fatal(err)
	}
	// Loops bound the processor time that a proxy uses, and the autoscaler ignores deviations of a
	// tenth from its target.
	c := proxy.container()
	acts := 1.1 * float64(*s.Spec.Metrics[0].Resource.Target.AverageUtilization) / 100 * c.Resources.Requests.Cpu().AsApproximateFloat64()
	if acts > 0.9*settings.Loops {
		t.Errorf("the autoscaler acts when %.2f processors are used, and %v loops can use no more", acts, settings.Loops)
	}
}

// TestMachines checks that a machine that fails takes only one node of production with it.
func TestMachines(t *testing.T) {
	node := load(t, "production").node(t)
	if a := node.template.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, apart := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if apart.TopologyKey == corev1.LabelHostname &&
				selector(t, apart.LabelSelector).Matches(labels.Set(node.template.Labels)) {
				return
			}
		}
	}
	t.Error("two nodes may be on one machine")
}

// only returns the only workload whose pods a selector selects.
func (m *manifests) only(t *testing.T, what, namespace string, s labels.Selector) (found workload) {
	t.Helper()
	n := 0
	for _, w := range m.workloads {
		if w.namespace == namespace && s.Matches(labels.Set(w.template.Labels)) {
			found = w
			n++
		}
	}
	if n != 1 {
		t.Fatalf("%s selects the pods of %d workloads, want 1", what, n)
	}
	return found
}

func selector(t *testing.T, s *metav1.LabelSelector) labels.Selector {
	t.Helper()
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// containerPort returns the number of a pod's port; 0 if it has none.
func containerPort(w workload, name intstr.IntOrString, protocol corev1.Protocol) int32 {
	for _, p := range w.container().Ports {
		if p.Protocol == protocol && (p.Name == name.StrVal || p.ContainerPort == name.IntVal) {
			return p.ContainerPort
		}
	}
	return 0
}
