package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/freeport"
	"github.com/dunlin-cache/dunlin/metrics/status"
)

// TestMain lets the test binary stand in for dunlin: with this variable it runs
// main, so that tests can start, signal and wait for real processes.
const actAsDunlin = "DUNLIN_TEST_ACT_AS_DUNLIN"

func TestMain(m *testing.M) {
	if os.Getenv(actAsDunlin) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// child is a running dunlin process.
type child struct {
	*exec.Cmd
	t      *testing.T
	admin  string
	output *bufio.Reader // of stdout
	log    bytes.Buffer  // of stderr, once done is closed
	done   chan struct{} // closed when it has ended
}

// startChild runs dunlin with an admin address of its own.
func startChild(t *testing.T, args ...string) *child {
	t.Helper()
	c := &child{t: t, admin: freeAddress(t), done: make(chan struct{})}
	c.Cmd = exec.Command(os.Args[0], append(args, "--admin", c.admin, "--log-level=warn")...)
	c.Env = append(os.Environ(), actAsDunlin+"=1")
	c.Stderr = io.MultiWriter(t.Output(), &c.log)
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.output = bufio.NewReader(stdout)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.Wait() // the exit code is in ProcessState
		close(c.done)
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill() // usually ended long ago
		<-c.done
	})
	return c
}

// stop sends a signal and returns the exit code.
func (c *child) stop(signal syscall.Signal) int {
	c.t.Helper()
	if err := c.Process.Signal(signal); err != nil {
		c.t.Fatalf("cannot send %v: %v", signal, err)
	}
	return c.exitCode()
}

func (c *child) exitCode() int {
	c.t.Helper()
	select {
	case <-c.done:
		return c.ProcessState.ExitCode()
	case <-time.After(30 * time.Second):
		c.t.Fatal("dunlin does not end")
		return -1
	}
}

func (c *child) waitReady() {
	c.t.Helper()
	eventually(c.t, "ready", func() error {
		select {
		case <-c.done:
			c.t.Fatal("dunlin has ended")
		default:
		}
		resp, err := http.Get("http://" + c.admin + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(resp.Body)
			return fmt.Errorf("%s", text)
		}
		return nil
	})
}

// eventually polls until check succeeds.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not %s in time: %v", what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// freeAddress returns a loopback address that no other test process gets.
func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := freeport.Choose()
	if err != nil {
		t.Fatal(err)
	}
	return freeport.Loopback(port)
}

// clients reads the client address from what `dunlin local` prints.
func (c *child) clients() string {
	c.t.Helper()
	for {
		line, err := c.output.ReadString('\n')
		if err != nil {
			c.t.Fatalf("dunlin local printed no client address: %v", err)
		}
		if f := strings.Fields(line); len(f) == 2 && f[0] == "clients" {
			return f[1]
		}
	}
}

// ask sends commands (inline) on a connection of their own and returns the
// reply lines.
func ask(t *testing.T, address string, lines int, commands string) []string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, commands); err != nil {
		t.Fatal(err)
	}
	var replies []string
	for r := bufio.NewReader(conn); len(replies) < lines; {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("replies to %q: %q, then %v", commands, replies, err)
		}
		replies = append(replies, strings.TrimRight(line, "\r\n"))
	}
	return replies
}

func statusOf(t *testing.T, admin string, flags ...string) status.Report {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), append([]string{"status", "--json", "--admin", admin}, flags...), &out, &errs); code != 0 {
		t.Fatalf("dunlin status --json: exit code %d, %s", code, errs.String())
	}
	var r status.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("cannot decode %s: %v", out.String(), err)
	}
	return r
}

func TestLocal(t *testing.T) {
	c := startChild(t, "local", "--listen=127.0.0.1:0", "--memory=64mb", "--nodes=2", "--copies=1")
	clients := c.clients()
	c.waitReady()
	if got := ask(t, clients, 3, "SET k v\r\nGET k\r\n"); strings.Join(got, " ") != "+OK $1 v" {
		t.Errorf("replies %q", got)
	}

	var r status.Report
	eventually(t, "on one table", func() error {
		r = statusOf(t, c.admin)
		for _, m := range r.Members {
			if !m.Ready || m.Epoch != r.Cluster.Epoch {
				return fmt.Errorf("member %+v is not ready, or not in epoch %d", m, r.Cluster.Epoch)
			}
		}
		return nil
	})
	partitions, keys := 0, int64(0)
	for _, m := range r.Members {
		partitions += m.Partitions
		keys += m.Keys
	}
	if len(r.Members) != 3 || len(r.Unreachable) != 0 || partitions != 4096 || keys != 1 {
		t.Errorf("%d members, %d unreachable, %d partitions, %d keys, want 3, 0, 4096, 1",
			len(r.Members), len(r.Unreachable), partitions, keys)
	}
	if code := c.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code after SIGTERM %d, want 0", code)
	}
}

// TestLocalEndsInPeace: a whole cluster that ends warns of nothing, though its nodes end one after
// the other.
func TestLocalEndsInPeace(t *testing.T) {
	c := startChild(t, "local", "--listen=127.0.0.1:0", "--memory=64mb", "--nodes=3")
	c.clients()
	c.waitReady()
	eventually(t, "copied", func() error {
		if r := statusOf(t, c.admin); r.Cluster.Followed != 4096 || r.Cluster.Moves > 0 {
			return fmt.Errorf("%d partitions have followers, and %d move", r.Cluster.Followed, r.Cluster.Moves)
		}
		return nil
	})
	if code := c.stop(syscall.SIGINT); code != 0 || c.log.Len() > 0 {
		t.Errorf("exit code %d, want 0; it says %s", code, c.log.String())
	}
}

// TestClusterWithSecret runs the roles as processes of their own.
func TestClusterWithSecret(t *testing.T) {
	secret := writeFile(t, "a secret of enough bytes\n")
	token := "--admin-token-file=" + writeFile(t, "a token for readers\n")
	common := []string{token, "--secret-file", secret, "--requirepass", "open sesame"}
	gossip, nodeAddr, proxyAddr := freeAddress(t), freeAddress(t), freeAddress(t)
	n := startChild(t, append(common, "node", "--id=n1", "--listen", nodeAddr, "--gossip", gossip, "--memory=64mb")...)
	p := startChild(t, append(common, "proxy", "--listen", proxyAddr, "--gossip=127.0.0.1:0", "--join", gossip)...)
	n.waitReady()
	p.waitReady()

	got := ask(t, proxyAddr, 4, "GET k\r\nAUTH \"open sesame\"\r\nSET k v\r\nSTRLEN k\r\n")
	want := []string{"-NOAUTH Authentication required.", "+OK", "+OK", ":1"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("replies %q, want %q", got, want)
	}

	// Status asked at the proxy finds the node's figures at the node's own address.
	r := statusOf(t, p.admin, token)
	if len(r.Members) != 2 || r.Members[0].ID != "n1" || r.Members[0].Keys != 1 || r.Members[0].Partitions != 4096 {
		t.Errorf("members %+v, unreachable %+v", r.Members, r.Unreachable)
	}

	var errs bytes.Buffer
	if code := run(t.Context(), []string{"status", "--admin", p.admin}, io.Discard, &errs); code == 0 || !strings.Contains(errs.String(), "--admin-token-file") {
		t.Errorf("status without the token: exit code %d, %s", code, errs.String())
	}
	if code := run(t.Context(), []string{"rebalance", "--pause", "--admin", p.admin, "--secret-file", secret}, io.Discard, &errs); code != 0 {
		t.Errorf("an order with the secret alone: %s", errs.String())
	}

	// A member without the secret stays alone.
	other := startChild(t, "proxy", "--listen=127.0.0.1:0", "--id=stranger", "--gossip=127.0.0.1:0", "--join", gossip)
	eventually(t, "listening", func() error {
		resp, err := http.Get("http://" + other.admin + "/healthz")
		if err == nil {
			resp.Body.Close()
		}
		return err
	})
	if r := statusOf(t, n.admin, token); len(r.Cluster.Peers) != 2 {
		t.Errorf("peers %+v: a stranger was let in", r.Cluster.Peers)
	}

	for _, c := range []*child{p, n, other} {
		if code := c.stop(syscall.SIGINT); code != 0 {
			t.Errorf("exit code after SIGINT %d, want 0", code)
		}
	}
}

// TestStopCutsNoReply: a client that sends one batch after the other sees whole
// replies to whole batches, and then the end of the connection.
func TestStopCutsNoReply(t *testing.T) {
	t.Run("node", func(t *testing.T) {
		listen := freeAddress(t)
		c := startChild(t, "node", "--listen", listen, "--gossip=127.0.0.1:0", "--memory=64mb")
		stopUnderLoad(t, c, listen)
	})
	t.Run("proxy", func(t *testing.T) {
		c := startChild(t, "local", "--listen=127.0.0.1:0", "--nodes=1", "--memory=64mb")
		stopUnderLoad(t, c, c.clients())
	})
}

func stopUnderLoad(t *testing.T, c *child, address string) {
	t.Helper()
	c.waitReady()
	value := strings.Repeat("x", 1000)
	if got := ask(t, address, 1, "SET k "+value+"\r\n"); got[0] != "+OK" {
		t.Fatalf("SET: %q", got)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	const batch, stopAt = 100, 20
	requests := []byte(strings.Repeat("GET k\r\n", batch))
	want := strings.Repeat("$1000\r\n"+value+"\r\n", batch)
	got := make([]byte, len(want))
	for i := 0; ; i++ {
		if i == stopAt {
			if err := c.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := conn.Write(requests); err != nil && i > stopAt {
			break
		}
		n, err := io.ReadFull(conn, got)
		if err != nil && n == 0 && i >= stopAt {
			break
		}
		if err != nil || string(got) != want {
			t.Fatalf("batch %d has %d of %d bytes, %v: %.80q", i, n, len(want), err, got[:n])
		}
	}
	if code := c.exitCode(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestSecondSignalQuits: a client in the middle of a request holds up an orderly
// stop; an operator who does not want to wait asks again.
func TestSecondSignalQuits(t *testing.T) {
	listen := freeAddress(t)
	c := startChild(t, "node", "--listen", listen, "--gossip=127.0.0.1:0", "--memory=64mb")
	c.waitReady()
	conn, err := net.Dial("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "PING\r\n*2\r\n$4\r\nEC"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "+PONG\r\n" {
		t.Fatalf("PING: %q, %v", line, err)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "stopping", func() error {
		resp, err := http.Get("http://" + c.admin + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if text, _ := io.ReadAll(resp.Body); !strings.Contains(string(text), "stopping") {
			return fmt.Errorf("/readyz says %q", text)
		}
		return nil
	})
	if err := c.Process.Signal(syscall.SIGTERM); err != nil { // still the same request
		t.Fatal(err)
	}
	time.Sleep(sameRequest + 100*time.Millisecond)
	begin := time.Now()
	if code := c.stop(syscall.SIGTERM); code != 1 {
		t.Errorf("exit code after the second request %d, want 1", code)
	}
	if took := time.Since(begin); took > stopTime/2 {
		t.Errorf("the second request took %v", took)
	}
}

func TestStartRefusals(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		code := run(ctx, args, &out, &errs)
		if code != 1 || !strings.Contains(errs.String(), want) {
			t.Errorf("dunlin %s: exit code %d, %q, want 1 with %q", strings.Join(args, " "), code, errs.String(), want)
		}
		if strings.Contains(errs.String(), "Usage:") {
			t.Errorf("dunlin %s: the error is buried under the usage text", strings.Join(args, " "))
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	busy := taken.Addr().String()

	f("--insecure", "node", "--listen=0.0.0.0:0")
	f("cannot read --secret-file", "node", "--secret-file", filepath.Join(t.TempDir(), "nothing"))
	f("--admin chooses another", "proxy", "--admin", busy)
	f("--listen chooses another", "proxy", "--admin=127.0.0.1:0", "--listen", busy)
	f("--listen chooses another", "node", "--admin=127.0.0.1:0", "--listen", busy)
	f("--gossip chooses another", "proxy", "--admin=127.0.0.1:0", "--listen=127.0.0.1:0", "--gossip", busy)
	f("unknown command", "prxy")
	f("unknown flag", "node", "--nodes=2")
}
