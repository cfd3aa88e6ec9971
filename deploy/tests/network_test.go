package tests

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// end is one side of a connection: a pod, or something else without labels.
type end struct{ namespace, pod labels.Set }

// TestNetwork decides like a network plugin which connections the policies of production let pass:
// all that the cluster needs, and no others.
func TestNetwork(t *testing.T) {
	m := load(t, "production")
	ours := labels.Set{corev1.LabelMetadataName: m.namespaces[0].Name}
	node := end{ours, m.node(t).template.Labels}
	proxy := end{ours, m.proxy(t).template.Labels}
	client := end{labels.Set{corev1.LabelMetadataName: "shop", "dunlin-client": "true"}, labels.Set{"app": "shop"}}
	stranger := end{labels.Set{corev1.LabelMetadataName: "other"}, labels.Set{"app": "other"}}
	liar := end{stranger.namespace, node.pod}
	prometheus := end{labels.Set{corev1.LabelMetadataName: "monitoring"}, labels.Set{"app": "prometheus"}}
	dns := end{labels.Set{corev1.LabelMetadataName: "kube-system"}, labels.Set{"k8s-app": "kube-dns"}}
	stray := end{ours, labels.Set{"app": "debug"}}
	var machine end // the kubelet's machine, with a name server on it

	const tcp, udp = corev1.ProtocolTCP, corev1.ProtocolUDP
	for _, c := range []struct {
		what     string
		from, to end
		protocol corev1.Protocol
		port     int32
		want     bool
	}{
		{"a client at a proxy", client, proxy, tcp, 6379, true},
		{"a client at a node", client, node, tcp, 6380, false},
		{"a client at gossip", client, node, tcp, 7946, false},
		{"a client at a proxy's admin port", client, proxy, tcp, 9180, false},
		{"a stranger at a proxy", stranger, proxy, tcp, 6379, false},
		{"a pod elsewhere with a node's labels at a node", liar, node, tcp, 6380, false},
		{"a pod elsewhere with a node's labels at gossip", liar, node, udp, 7946, false},
		{"a pod of our namespace that is not ours at a node", stray, node, tcp, 6380, false},
		{"a pod of our namespace that is not ours at gossip", stray, proxy, udp, 7946, false},
		{"a pod of our namespace that is not ours at a proxy", stray, proxy, tcp, 6379, false},
		{"a pod of our namespace that is not ours at an admin port", stray, node, tcp, 9180, false},
		{"a proxy at a node", proxy, node, tcp, 6380, true},
		{"a node at a node", node, node, tcp, 6380, true},
		{"a node at a proxy", node, proxy, tcp, 6379, false},
		{"gossip, node to proxy, TCP", node, proxy, tcp, 7946, true},
		{"gossip, node to proxy, UDP", node, proxy, udp, 7946, true},
		{"gossip, proxy to node, TCP", proxy, node, tcp, 7946, true},
		{"gossip, proxy to node, UDP", proxy, node, udp, 7946, true},
		{"gossip, node to node, UDP", node, node, udp, 7946, true},
		{"gossip, proxy to proxy, TCP", proxy, proxy, tcp, 7946, true},
		{"gossip, proxy to proxy, UDP", proxy, proxy, udp, 7946, true},
		{"Prometheus at a node", prometheus, node, tcp, 9180, true},
		{"Prometheus at a proxy", prometheus, proxy, tcp, 9180, true},
		{"Prometheus at a node's data", prometheus, node, tcp, 6380, false},
		{"status, asked in a proxy's pod of a node", proxy, node, tcp, 9180, true},
		{"status, asked in a node's pod of a proxy", node, proxy, tcp, 9180, true},
		{"a name looked up by a node", node, dns, udp, 53, true},
		{"a long name looked up by a proxy", proxy, dns, tcp, 53, true},
		{"a name looked up by a node at its machine", node, machine, udp, 53, true},
		{"a node at its machine's kubelet", node, machine, tcp, 10250, false},
		{"a node at a pod elsewhere with a node's labels", node, liar, tcp, 6380, false},
		{"a proxy at a pod of our namespace that is not ours", proxy, stray, tcp, 6380, false},
		{"a node at anything else", node, stranger, tcp, 443, false},
		{"a proxy at anything else", proxy, stranger, tcp, 443, false},
	} {
		if got := m.passes(t, c.from, c.to, c.protocol, c.port); got != c.want {
			t.Errorf("%s (%s/%d): passes %v, want %v", c.what, c.protocol, c.port, got, c.want)
		}
	}
	for _, p := range m.policies {
		s := selector(t, &p.Spec.PodSelector)
		if !s.Matches(node.pod) && !s.Matches(proxy.pod) {
			t.Errorf("policy %s selects none of our pods", p.Name)
		}
	}
}

// passes reports whether both ends let a connection pass. An end that a policy selects lets pass
// only what one of its policies names.
func (m *manifests) passes(t *testing.T, from, to end, protocol corev1.Protocol, port int32) bool {
	out, in := !m.selects(t, from, networkingv1.PolicyTypeEgress), !m.selects(t, to, networkingv1.PolicyTypeIngress)
	for _, p := range m.policies {
		if m.covers(t, p, from) {
			for _, rule := range p.Spec.Egress {
				out = out || m.names(t, rule.To, p.Namespace, to) && hasPort(rule.Ports, protocol, port)
			}
		}
		if m.covers(t, p, to) {
			for _, rule := range p.Spec.Ingress {
				in = in || m.names(t, rule.From, p.Namespace, from) && hasPort(rule.Ports, protocol, port)
			}
		}
	}
	return out && in
}

func (m *manifests) selects(t *testing.T, e end, kind networkingv1.PolicyType) bool {
	for _, p := range m.policies {
		for _, k := range p.Spec.PolicyTypes {
			if k == kind && m.covers(t, p, e) {
				return true
			}
		}
	}
	return false
}

func (m *manifests) covers(t *testing.T, p *networkingv1.NetworkPolicy, e end) bool {
	return e.namespace[corev1.LabelMetadataName] == p.Namespace && selector(t, &p.Spec.PodSelector).Matches(e.pod)
}

// names reports whether the peers of a policy in namespace include e. No peers means all.
func (m *manifests) names(t *testing.T, peers []networkingv1.NetworkPolicyPeer, namespace string, e end) bool {
	for _, p := range peers {
		near := e.namespace[corev1.LabelMetadataName] == namespace
		if p.NamespaceSelector != nil {
			near = selector(t, p.NamespaceSelector).Matches(e.namespace)
		}
		if near && (p.PodSelector == nil || selector(t, p.PodSelector).Matches(e.pod)) {
			return true
		}
	}
	return len(peers) == 0
}

func hasPort(ports []networkingv1.NetworkPolicyPort, protocol corev1.Protocol, port int32) bool {
	for _, p := range ports {
		if *p.Protocol == protocol && p.Port.IntVal == port {
			return true
		}
	}
	return false
}
