package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/dunlin-cache/dunlin/internal/freeport"
)

const composeFile = "../docker/compose.yml"

type compose struct {
	Services map[string]struct {
		Volumes []string `yaml:"volumes"`
	} `yaml:"services"`
}

// TestComposeFiles checks that mounted files exist and Prometheus scrapes every member.
func TestComposeFiles(t *testing.T) {
	var c compose
	if err := yaml.Unmarshal(readFile(t, composeFile), &c); err != nil {
		t.Fatal(err)
	}
	members := map[string]bool{}
	for name, s := range c.Services {
		if strings.HasPrefix(name, "node-") || strings.HasPrefix(name, "proxy-") {
			members[name+":9180"] = true
		}
		for _, v := range s.Volumes {
			file, _, _ := strings.Cut(v, ":")
			if _, err := os.Stat(filepath.Join("../docker", file)); err != nil {
				t.Errorf("%s mounts %s: %v", name, file, err)
			}
		}
	}
	var p scrapeFile
	decodeStrict(t, readFile(t, "../docker/prometheus.yml"), &p)
	for _, target := range p.ScrapeConfigs[0].StaticConfigs[0].Targets {
		if !members[target] {
			t.Errorf("Prometheus scrapes %s, which is no member", target)
		}
		delete(members, target)
	}
	if len(members) > 0 {
		t.Errorf("Prometheus does not scrape %v", members)
	}
}

// TestCompose starts the members of compose.yml from the image that `make image` builds, stores a
// key through one proxy and reads it through the other. Then it kills a node, and the others serve
// everything. It does not fetch the images of Prometheus and Grafana.
func TestCompose(t *testing.T) {
	if testing.Short() {
		t.Skip("builds an image and starts containers")
	}
	d := startDocker(t)
	d.run(t, "make", "-C", top, "image", "IMAGE=dunlin:test")
	ports := freePorts(t, 3)
	d.env = append(d.env, "IMAGE=dunlin:test", "PORT="+ports[0], "PORT_2="+ports[1], "ADMIN_PORT="+ports[2])
	t.Cleanup(func() { d.compose(t, "down", "--timeout", "30") })
	d.compose(t, "up", "-d", "node-1", "node-2", "node-3", "proxy-1", "proxy-2")

	d.waitNodes(t, ports[2], 3)
	talk(t, ports[0], "SET greeting hello\r\n", "+OK\r\n")
	talk(t, ports[1], "GET greeting\r\n", "$5\r\nhello\r\n")
	d.compose(t, "kill", "node-2")
	d.waitNodes(t, ports[2], 2)
	talk(t, ports[0], "SET greeting again\r\n", "+OK\r\n")
	talk(t, ports[1], "GET greeting\r\n", "$5\r\nagain\r\n")
}

// docker is a Docker engine and the way to reach it.
type docker struct {
	env     []string
	command []string // compose
}

// startDocker finds a running engine or starts one. Without one it skips the test.
func startDocker(t *testing.T) *docker {
	t.Helper()
	d := &docker{env: os.Environ()}
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skip("skipped: no docker (Debian: apt-get install docker.io docker-compose)")
	}
	if exec.Command("docker", "compose", "version").Run() == nil {
		d.command = []string{"docker", "compose"}
	} else if _, err := exec.LookPath("docker-compose"); err == nil {
		d.command = []string{"docker-compose"}
	} else {
		t.Skip("skipped: docker has no compose (Debian: apt-get install docker-compose)")
	}
	if exec.Command("docker", "info").Run() == nil {
		return d
	}
	if _, err := exec.LookPath("dockerd"); err != nil || os.Geteuid() != 0 {
		t.Skipf("skipped: no Docker engine runs, and none can be started by user %d (%v)", os.Geteuid(), err)
	}
	dir, err := os.MkdirTemp("", "dunlin-docker")
	if err != nil {
		t.Fatal(err)
	}
	host := "unix://" + filepath.Join(dir, "socket")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	engine := exec.Command("dockerd", "-H", host, "--data-root", filepath.Join(dir, "data"),
		"--exec-root", filepath.Join(dir, "run"), "--pidfile", filepath.Join(dir, "pid"))
	engine.Stdout, engine.Stderr = log, log
	if err := engine.Start(); err != nil {
		t.Skipf("skipped: the Docker engine does not start: %v", err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = engine.Wait() }()
	t.Cleanup(func() {
		_ = engine.Process.Signal(syscall.SIGTERM)
		<-ended
		log.Close()
		os.RemoveAll(dir)
	})
	d.env = append(d.env, "DOCKER_HOST="+host)
	for deadline := time.Now().Add(time.Minute); d.cmd("docker", "info").Run() != nil; time.Sleep(100 * time.Millisecond) {
		select {
		case <-ended:
			t.Skipf("skipped: the Docker engine ended: %s", lastLine(t, log.Name()))
		default:
		}
		if time.Now().After(deadline) {
			t.Skipf("skipped: the Docker engine does not answer: %s", lastLine(t, log.Name()))
		}
	}
	return d
}

func lastLine(t *testing.T, file string) string {
	lines := strings.Split(strings.TrimSpace(string(readFile(t, file))), "\n")
	return lines[len(lines)-1]
}

func (d *docker) cmd(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Env = d.env
	return c
}

func (d *docker) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := d.cmd(name, args...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, complaints.String())
	}
	return string(out)
}

func (d *docker) compose(t *testing.T, args ...string) string {
	t.Helper()
	all := append(append([]string{}, d.command[1:]...), "-p", fmt.Sprintf("dunlin-test-%d", os.Getpid()), "-f", composeFile)
	return d.run(t, d.command[0], append(all, args...)...)
}

// waitNodes waits until a proxy is ready and knows exactly n nodes, each with the memory limit that
// follows from its container's.
func (d *docker) waitNodes(t *testing.T, port string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		status, body := get(ctx, "http://127.0.0.1:"+port+"/readyz")
		if status == 200 {
			var report struct {
				Members []struct {
					Role      string
					Ready     bool
					MemoryMax int64 `json:"memory_max_bytes"`
				}
			}
			text := d.compose(t, "exec", "-T", "proxy-1", "/dunlin", "status", "--json")
			if err := json.Unmarshal([]byte(text), &report); err != nil {
				t.Fatalf("cannot read status: %v\n%s", err, text)
			}
			ready := 0
			for _, m := range report.Members {
				if m.Role == "node" && m.Ready {
					ready++
					if m.MemoryMax != 384<<20 {
						t.Errorf("a node in a container of 512 MiB has a limit of %d bytes", m.MemoryMax)
					}
				}
			}
			if ready == n && len(report.Members) == n+2 {
				return
			}
			body = text
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not %d nodes: %s\n%s", n, body, d.compose(t, "logs", "--tail", "20"))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func talk(t *testing.T, port, request, want string) {
	t.Helper()
	c, err := net.DialTimeout("tcp", "127.0.0.1:"+port, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	exchange(t, c, request, want)
}

// freePorts returns ports that no other test process gets.
func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	for range n {
		port, err := freeport.Choose()
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, strconv.Itoa(port))
	}
	return ports
}
