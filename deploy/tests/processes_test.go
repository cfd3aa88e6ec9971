package tests

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestAsProcesses runs the pods of dev and production as processes of this machine, with their
// arguments, environment, settings and secrets as rendered. When their probes succeed, it stores
// and reads a key through a proxy. Only addresses and directories differ.
func TestAsProcesses(t *testing.T) {
	for _, overlay := range []string{"dev", "production"} {
		t.Run(overlay, func(t *testing.T) {
			m := load(t, overlay)
			if overlay == "production" {
				m.secrets = append(m.secrets, makeSecrets(t)...)
			}
			r, pods := startPods(t, m)
			converse(t, r.dial(t, pods[3]), r.password())
		})
	}
}

// startPods runs three nodes and, last, a proxy, until their probes succeed.
func startPods(t *testing.T, m *manifests) (*rig, []*pod) {
	t.Helper()
	r := &rig{m: m, root: t.TempDir(), network: fmt.Sprintf("127.%d.%d", 100+networks.Add(1), os.Getpid()%250)}
	var pods []*pod
	for n := range 3 {
		pods = append(pods, r.start(t, m.node(t), n))
	}
	pods = append(pods, r.start(t, m.proxy(t), 3))
	for _, p := range pods {
		p.waitProbes(t)
	}
	return r, pods
}

var networks atomic.Int32 // given to rigs so far

// makeSecrets runs the script that deploy/README.md tells operators to run.
func makeSecrets(t *testing.T) (all []*corev1.Secret) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed: no secrets for production")
	}
	text, err := exec.Command("../kubernetes/secrets").Output()
	if err != nil {
		t.Fatalf("cannot make secrets: %v", err)
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("cannot decode a secret: %v", err)
		}
		all = append(all, object.(*corev1.Secret))
	}
	for name, keys := range external["production"] {
		(&manifests{secrets: all}).wantSecret(t, "", name, keys...)
	}
	return all
}

// rig takes the place of the machine that runs pods: it gives them addresses and volumes.
type rig struct {
	m             *manifests
	root, network string
}

type pod struct {
	workload
	ip      string
	process *os.Process
	exited  chan struct{} // closed when the process has ended
}

// kill ends the pod as if its machine had failed.
func (p *pod) kill(t *testing.T) {
	t.Helper()
	if err := p.process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.exited
}

// address returns the address of one of the pod's ports.
func (p *pod) address(port intstr.IntOrString) string {
	return fmt.Sprintf("%s:%d", p.ip, containerPort(p.workload, port, corev1.ProtocolTCP))
}

func (r *rig) ip(n int) string { return fmt.Sprintf("%s.%d", r.network, n+1) }

func (r *rig) secret(name string) map[string][]byte {
	for _, s := range r.m.secrets {
		if s.Name == name {
			return s.Data
		}
	}
	return nil
}

func (r *rig) password() string { return string(r.secret("dunlin")["password"]) }

// start runs a pod of w, the n-th pod of the rig.
func (r *rig) start(t *testing.T, w workload, n int) *pod {
	t.Helper()
	p := &pod{workload: w, ip: r.ip(n), exited: make(chan struct{})}
	dir := filepath.Join(r.root, p.ip)
	local := strings.NewReplacer("/etc/dunlin", filepath.Join(dir, "etc/dunlin"))
	r.mount(t, w, dir, local)

	c := w.container()
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = local.Replace(r.value(t, e, p, n))
	}
	var args []string
	for _, a := range c.Args {
		for name, value := range env {
			a = strings.ReplaceAll(a, "$("+name+")", value)
		}
		if strings.Contains(a, "$(") {
			t.Errorf("%s: %s names a variable that is not set", w.name, a)
		}
		a = strings.ReplaceAll(a, "=0.0.0.0:", "="+p.ip+":")
		// The addresses that the name service would return, without that of the pod that asks.
		if peers, port, ok := strings.Cut(a, "--join=dunlin-node:"); ok && peers == "" {
			a = fmt.Sprintf("--join=%s:%s,%s:%s", r.ip(0), port, r.ip(1), port)
		}
		args = append(args, local.Replace(a))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, dunlin(t), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), "DUNLIN_LOG_LEVEL=warn")
	if args[0] == "node" {
		cmd.Env = append(cmd.Env, "DUNLIN_MEMORY=64mb")
	}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.process = cmd.Process
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // the error is our signal; waitProbes notices any other end
	}()
	t.Cleanup(func() {
		cancel()
		<-p.exited
	})
	return p
}

func (r *rig) value(t *testing.T, e corev1.EnvVar, p *pod, n int) string {
	t.Helper()
	switch from := e.ValueFrom; {
	case from == nil:
		return e.Value
	case from.SecretKeyRef != nil:
		return string(r.secret(from.SecretKeyRef.Name)[from.SecretKeyRef.Key])
	default:
		fields := map[string]string{
			"metadata.name":      fmt.Sprintf("%s-%d", p.name, n),
			"metadata.namespace": p.namespace,
			"status.podIP":       p.ip,
		}
		value, ok := fields[from.FieldRef.FieldPath]
		if !ok {
			t.Fatalf("%s: variable %s is of %s, which this test does not know", p.name, e.Name, from.FieldRef.FieldPath)
		}
		return value
	}
}

// mount writes the volumes of a pod of w under dir.
func (r *rig) mount(t *testing.T, w workload, dir string, local *strings.Replacer) {
	t.Helper()
	for _, mount := range w.container().VolumeMounts {
		at := filepath.Join(dir, mount.MountPath)
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range r.files(w, mount.Name) {
			if err := os.WriteFile(path.Join(at, file), []byte(local.Replace(string(text))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (r *rig) files(w workload, volume string) map[string][]byte {
	files := map[string][]byte{}
	for _, v := range w.template.Spec.Volumes {
		switch {
		case v.Name != volume:
		case v.ConfigMap != nil:
			for name, text := range r.m.config(v.ConfigMap.Name).Data {
				files[name] = []byte(text)
			}
		case len(v.Secret.Items) > 0:
			for _, item := range v.Secret.Items {
				files[item.Path] = r.secret(v.Secret.SecretName)[item.Key]
			}
		default:
			files = r.secret(v.Secret.SecretName)
		}
	}
	return files
}

// waitProbes sends the kubelet's probes until all have succeeded.
func (p *pod) waitProbes(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := p.container()
	for kind, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe,
		"liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		url := "http://" + p.address(probe.HTTPGet.Port) + probe.HTTPGet.Path
		for {
			status, body := get(ctx, url)
			if status == 200 {
				break
			}
			select {
			case <-p.exited:
				t.Fatalf("%s at %s has ended", p.name, p.ip)
			case <-ctx.Done():
				t.Fatalf("%s: %s probe: %d %s", p.name, kind, status, body)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

// clients returns the address to which the Service sends clients of a proxy's pod.
func (r *rig) clients(p *pod) (address string) {
	for _, s := range r.m.services {
		if s.Spec.ClusterIP != corev1.ClusterIPNone {
			address = p.address(s.Spec.Ports[0].TargetPort)
		}
	}
	return address
}

// dial connects to a proxy's pod, by TLS if the overlay has a certificate.
func (r *rig) dial(t *testing.T, p *pod) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", r.clients(p), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if files := r.secret("dunlin-tls"); files != nil {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(files["ca.crt"])
		c = tls.Client(c, &tls.Config{RootCAs: roots, ServerName: "dunlin.dunlin.svc"})
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// converse stores a key and reads it.
func converse(t *testing.T, c net.Conn, password string) {
	t.Helper()
	request, want := "SET greeting hello\r\nGET greeting\r\n", "+OK\r\n$5\r\nhello\r\n"
	if password != "" {
		request, want = "PING\r\nAUTH "+password+"\r\n"+request, "-NOAUTH Authentication required.\r\n+OK\r\n"+want
	}
	exchange(t, c, request, want)
}

// exchange sends a request and wants exactly these replies.
func exchange(t *testing.T, c net.Conn, request, want string) {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Errorf("replies %q, %v, want %q", got[:n], err, want)
	}
}

// TestStops checks that a pod's grace period is longer than its stop may take.
func TestStops(t *testing.T) {
	// Seconds for the drain, and the least that must remain for the rest of a stop.
	const drain, rest = 25, 10
	everyCluster(t, func(t *testing.T, m *manifests) {
		for _, w := range m.workloads {
			before := int64(0)
			if l := w.container().Lifecycle; l != nil {
				before = l.PreStop.Sleep.Seconds
			}
			if w.deployment != nil && before == 0 {
				t.Errorf("%s: the proxy stops accepting before the Service knows that it goes", w.name)
			}
			if grace := *w.template.Spec.TerminationGracePeriodSeconds; grace < before+drain+rest {
				t.Errorf("%s: %d s of grace are too few for an orderly stop", w.name, grace)
			}
		}
	})
}

// TestProbes checks that liveness does not depend on other members, and that readiness does.
func TestProbes(t *testing.T) {
	everyCluster(t, func(t *testing.T, m *manifests) {
		for _, w := range m.workloads {
			c := w.container()
			for path, probes := range map[string][]*corev1.Probe{"/healthz": {c.StartupProbe, c.LivenessProbe}, "/readyz": {c.ReadinessProbe}} {
				for _, p := range probes {
					if p.HTTPGet.Path != path || p.HTTPGet.Port.StrVal != "admin" {
						t.Errorf("%s: a probe asks %s:%s, want admin:%s",
							w.name, p.HTTPGet.Port.String(), p.HTTPGet.Path, path)
					}
				}
			}
		}
	})
}
