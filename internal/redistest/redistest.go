// Package redistest starts a real redis-server for tests, to prove what they expect of our own.
package redistest

import (
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/freeport"
)

// patience is for a server to accept, on a machine busy with other tests.
const patience = 30 * time.Second

// Start starts a server that ends with the test, on a free port of the loopback, and returns its
// address. It stores nothing on a disk. args are more of its arguments. Where there is no
// redis-server the test is skipped.
func Start(t testing.TB, args ...string) (addr string) {
	t.Helper()
	path := find(t)
	addr, port := choosePort(t)
	cmd := exec.Command(path, append([]string{
		"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no",
		"--dir", t.TempDir(),
	}, args...)...)
	if slices.Contains(args, "--cluster-enabled") {
		// Otherwise its bus takes the port 10,000 above, which may be anybody's, and the server ends.
		_, bus := choosePort(t)
		cmd.Args = append(cmd.Args, "--cluster-port", bus)
	}
	endWithUs(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatalf("cannot start redis-server: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return addr
		}
		if time.Now().After(deadline) {
			t.Fatalf("redis-server does not accept: %v", err)
		}
	}
}

func choosePort(t testing.TB) (addr, port string) {
	t.Helper()
	number, err := freeport.Choose()
	if err != nil {
		t.Fatal(err)
	}
	return freeport.Loopback(number), strconv.Itoa(number)
}

// Want skips the test unless the version of redis-server begins with prefix.
func Want(t testing.TB, prefix string) {
	t.Helper()
	if version := Version(t); !strings.HasPrefix(version, prefix) {
		t.Skipf("redis-server is of version %q, want %s to compare with", version, prefix)
	}
}

// Version is that of the program, "7.0.15". Unlike INFO it needs no password.
func Version(t testing.TB) string {
	t.Helper()
	out, err := exec.Command(find(t), "--version").Output()
	if err != nil {
		t.Fatalf("cannot ask redis-server for its version: %v", err)
	}
	_, rest, _ := strings.Cut(string(out), " v=")
	version, _, _ := strings.Cut(rest, " ")
	return version
}

func find(t testing.TB) (path string) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed: expectations are not compared with the original")
	}
	return path
}
