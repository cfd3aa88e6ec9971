package tests

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// top is the directory of the module that the binary is built from.
const top = "../.."

var binary string // path of the binary that the tests built

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "dunlin")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "dunlin")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// build makes the binary once, when the first test wants it.
var build = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "build", "-trimpath", "-o", binary, "./cmd/dunlin")
	cmd.Dir, cmd.Env = top, append(os.Environ(), "CGO_ENABLED=0") // as `make build` has it, which has compiled it
	out, err := cmd.CombinedOutput()
	return string(out), err
})

func dunlin(t *testing.T) string {
	t.Helper()
	if out, err := build(); err != nil {
		t.Fatalf("cannot build dunlin: %v\n%s", err, out)
	}
	return binary
}

var scraped string // what scrapeLocal returned

// scrapeLocal runs `dunlin local` with some traffic and returns what one
// Prometheus scrape reads.
func scrapeLocal(t *testing.T) string {
	t.Helper()
	if scraped != "" {
		return scraped
	}
	clients, admin := startLocal(t)
	traffic(t, clients)
	status, body := get(t.Context(), admin+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("GET /metrics: %d %s", status, body)
	}
	scraped = body
	return body
}

// startLocal runs `dunlin local` until the test ends, and returns its addresses.
func startLocal(t *testing.T) (clients, admin string) {
	t.Helper()
	program := dunlin(t) // built before the timeout starts
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	args := []string{"local", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0", "--memory=64mb", "--log-level=warn",
		"--pinned-databases=9"}
	cmd := exec.CommandContext(ctx, program, append(args, clusterTLS(t)...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // the error is our signal
	})

	for lines := bufio.NewScanner(stdout); admin == "" && lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) == 2 && f[0] == "clients" {
			clients = f[1]
		} else if len(f) == 2 && f[0] == "admin" {
			admin = f[1]
		}
	}
	if clients == "" || admin == "" {
		t.Fatal("dunlin local did not print its addresses")
	}
	await(ctx, t, admin+"/readyz", "")
	await(ctx, t, admin+"/metrics", "dunlin_node_pinned_database_") // it is pinned when all members are there
	return clients, admin
}

// await asks until the answer is OK and has a text.
func await(ctx context.Context, t *testing.T, url, text string) {
	t.Helper()
	for {
		status, body := get(ctx, url)
		if status == http.StatusOK && strings.Contains(body, text) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s answers %d and not %q: %s", url, status, text, body)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// traffic sends commands so that every counter with a label for the command appears.
func traffic(t *testing.T, clients string) {
	t.Helper()
	c, err := net.DialTimeout("tcp", clients, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	const want = "+OK\r\n$5\r\nhello\r\n$-1\r\n"
	if _, err := io.WriteString(c, "SET greeting hello\r\nGET greeting\r\nGET nothing\r\n"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("replies %q, %v, want %q", got, err, want)
	}
}

// get returns status 0 and the error's text when there is no answer.
func get(ctx context.Context, url string) (status int, body string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err.Error()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// clusterTLS returns the arguments with which members use TLS, so that they export its metrics.
func clusterTLS(t *testing.T) (args []string) {
	t.Helper()
	dir := t.TempDir()
	for _, s := range makeSecrets(t) {
		if s.Name != "dunlin-cluster-tls" {
			continue
		}
		for flag, key := range map[string]string{"cert": "tls.crt", "key": "tls.key", "ca": "ca.crt"} {
			file := filepath.Join(dir, key)
			if err := os.WriteFile(file, s.Data[key], 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, "--cluster-tls-"+flag+"="+file)
		}
	}
	return args
}
