package tests

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const overlays = "../kubernetes/overlays/"

// clusters are the overlays that run a cluster.
var clusters = []string{"dev", "annotated", "production"}

// manifests has all objects of an overlay, as the API server would read them.
type manifests struct {
	namespaces  []*corev1.Namespace
	accounts    []*corev1.ServiceAccount
	services    []*corev1.Service
	configs     []*corev1.ConfigMap
	secrets     []*corev1.Secret
	workloads   []workload
	budgets     []*policyv1.PodDisruptionBudget
	scalers     []*autoscalingv2.HorizontalPodAutoscaler
	policies    []*networkingv1.NetworkPolicy
	podMonitors []*monitoringv1.PodMonitor
	rules       []*monitoringv1.PrometheusRule
}

// workload has what a Deployment and a StatefulSet have in common.
type workload struct {
	kind, name, namespace string
	replicas              *int32
	selector              *metav1.LabelSelector
	template              corev1.PodTemplateSpec
	set                   *appsv1.StatefulSet // nil for a Deployment
	deployment            *appsv1.Deployment  // nil for a StatefulSet
}

func (w workload) container() corev1.Container { return w.template.Spec.Containers[0] }

// decoder reads Kubernetes's own types and refuses fields that they do not have.
var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme,
		autoscalingv2.AddToScheme, monitoringv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

var rendered = map[string][]byte{} // by overlay; kept, because rendering takes longer than checking

// render does what `kubectl apply -k` does before it talks to a cluster.
func render(t *testing.T, overlay string) []byte {
	t.Helper()
	if text := rendered[overlay]; text != nil {
		return text
	}
	k := krusty.MakeKustomizer(krusty.MakeDefaultOptions())
	objects, err := k.Run(filesys.MakeFsOnDisk(), filepath.Join(overlays, overlay))
	if err != nil {
		t.Fatalf("cannot render %s: %v", overlay, err)
	}
	text, err := objects.AsYaml()
	if err != nil {
		t.Fatalf("cannot render %s: %v", overlay, err)
	}
	rendered[overlay] = text
	return text
}

func load(t *testing.T, overlay string) *manifests {
	t.Helper()
	m := &manifests{}
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(render(t, overlay))))
	for {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return m
		}
		if err != nil {
			t.Fatalf("%s: cannot split documents: %v", overlay, err)
		}
		object, kind, err := decoder.Decode(text, nil, nil)
		if err != nil {
			t.Fatalf("%s: cannot decode %v: %v\n%s", overlay, kind, err, text)
		}
		if !m.add(object) {
			t.Errorf("%s: objects of kind %v are not checked by any test", overlay, kind)
		}
	}
}

// add adds an object to the list of its kind. It returns false if there is no such list.
func (m *manifests) add(object runtime.Object) bool {
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		m.workloads = append(m.workloads, workload{"StatefulSet", o.Name, o.Namespace, o.Spec.Replicas,
			o.Spec.Selector, o.Spec.Template, o, nil})
		return true
	case *appsv1.Deployment:
		m.workloads = append(m.workloads, workload{"Deployment", o.Name, o.Namespace, o.Spec.Replicas,
			o.Spec.Selector, o.Spec.Template, nil, o})
		return true
	}
	return keep(&m.namespaces, object) || keep(&m.accounts, object) || keep(&m.services, object) ||
		keep(&m.configs, object) || keep(&m.secrets, object) || keep(&m.budgets, object) || keep(&m.scalers, object) ||
		keep(&m.policies, object) || keep(&m.podMonitors, object) || keep(&m.rules, object)
}

// keep appends an object to a list if it is of the list's type.
func keep[T runtime.Object](list *[]T, object runtime.Object) bool {
	o, ok := object.(T)
	if ok {
		*list = append(*list, o)
	}
	return ok
}

// node and proxy return the workload of a role.
func (m *manifests) node(t *testing.T) workload  { return m.workload(t, "node") }
func (m *manifests) proxy(t *testing.T) workload { return m.workload(t, "proxy") }

func (m *manifests) workload(t *testing.T, role string) workload {
	t.Helper()
	for _, w := range m.workloads {
		if w.template.Labels["app.kubernetes.io/component"] == role {
			if n := len(w.template.Spec.Containers); n != 1 {
				t.Fatalf("%s has %d containers, want 1", w.name, n)
			}
			return w
		}
	}
	t.Fatalf("there is no workload of %s pods", role)
	return workload{}
}

// TestStrict checks that a misspelt field is an error: all tests here rely on that.
func TestStrict(t *testing.T) {
	const object = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {publishNotReadyAddress: true}\n"
	if _, _, err := decoder.Decode([]byte(object), nil, nil); !runtime.IsStrictDecodingError(err) {
		t.Errorf("a misspelt field gave %v, want a strict decoding error", err)
	}
}

// everyCluster runs a check on each overlay that runs a cluster.
func everyCluster(t *testing.T, check func(t *testing.T, m *manifests)) {
	t.Helper()
	for _, overlay := range clusters {
		t.Run(overlay, func(t *testing.T) { check(t, load(t, overlay)) })
	}
}

// TestOverlays checks that the tests know every directory of overlays.
func TestOverlays(t *testing.T) {
	found, err := filepath.Glob(overlays + "*")
	if err != nil || len(found) != len(clusters)+1 {
		t.Errorf("overlays %v (%v), want %v and monitoring", found, err, clusters)
	}
}
