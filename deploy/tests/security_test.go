package tests

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// TestRestricted asks the API server's own code whether it would admit the pods into a namespace
// that enforces the restricted profile.
func TestRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	verdict := func(meta *metav1.ObjectMeta, spec *corev1.PodSpec) policy.AggregateCheckResult {
		return policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, meta, spec))
	}
	everyCluster(t, func(t *testing.T, m *manifests) {
		for _, w := range m.workloads {
			if v := verdict(&w.template.ObjectMeta, &w.template.Spec); !v.Allowed {
				t.Errorf("%s: not admitted: %s", w.name, v.ForbiddenDetail())
			}
		}
		for _, n := range m.namespaces {
			if got := n.Labels[api.EnforceLevelLabel]; got != string(api.LevelRestricted) {
				t.Errorf("namespace %s enforces %q, want restricted", n.Name, got)
			}
		}
		node := m.node(t).template.Spec
		spec := node.DeepCopy()
		spec.Containers[0].SecurityContext.Capabilities = nil
		if verdict(&metav1.ObjectMeta{}, spec).Allowed {
			t.Error("a pod that keeps its capabilities was admitted: this test proves nothing")
		}
	})
}

// TestHardened checks what the restricted profile leaves open.
func TestHardened(t *testing.T) {
	isFalse := func(b *bool) bool { return b != nil && !*b }
	everyCluster(t, func(t *testing.T, m *manifests) {
		if len(m.accounts) != 1 || !isFalse(m.accounts[0].AutomountServiceAccountToken) {
			t.Errorf("service accounts %v, want one that mounts no token", m.accounts)
		}
		for _, w := range m.workloads {
			pod, c := w.template.Spec, w.container()
			limit := c.Resources.Limits[corev1.ResourceMemory]
			for what, ok := range map[string]bool{
				"an account of its own":         len(m.accounts) == 1 && pod.ServiceAccountName == m.accounts[0].Name,
				"no token":                      isFalse(pod.AutomountServiceAccountToken),
				"no service links":              isFalse(pod.EnableServiceLinks),
				"a read-only root file system":  c.SecurityContext.ReadOnlyRootFilesystem != nil && *c.SecurityContext.ReadOnlyRootFilesystem,
				"the user of the image":         *pod.SecurityContext.RunAsUser == imageUser && *pod.SecurityContext.FSGroup == imageUser,
				"a memory limit, all requested": !limit.IsZero() && limit.Cmp(c.Resources.Requests[corev1.ResourceMemory]) == 0,
				"a request of processors":       !c.Resources.Requests.Cpu().IsZero(),
				// A throttled member looks dead to the others.
				"no limit of processors":    c.Resources.Limits.Cpu().IsZero(),
				"room for the least engine": limit.Cmp(resource.MustParse("128Mi")) > 0,
			} {
				if !ok {
					t.Errorf("%s: want %s", w.name, what)
				}
			}
		}
	})
}
