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
	return StartServer(t, args...).Addr
}

// Server is a redis-server that can be killed and started again.
type Server struct {
	Addr string
	t    testing.TB
	args []string
	cmd  *exec.Cmd
}

// StartServer is Start for a server that the test kills and starts again.
func StartServer(t testing.TB, args ...string) *Server {
	t.Helper()
	addr, port := choosePort(t)
	s := &Server{Addr: addr, t: t, args: append([]string{
		"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no",
		"--dir", t.TempDir(),
	}, args...)}
	if slices.Contains(args, "--cluster-enabled") {
		// Otherwise its bus takes the port 10,000 above, which may be anybody's, and the server ends.
		_, bus := choosePort(t)
		s.args = append(s.args, "--cluster-port", bus)
	}
	t.Cleanup(s.Kill)
	s.Start()
	return s
}

// Start starts the process, with what it has kept on the disk if its arguments say so, and waits until it accepts.
func (s *Server) Start() {
	s.t.Helper()
	s.launch(s.args...)
	conn := s.dial(s.Addr)
	conn.Close()
}

// StartLoaded is Start for clients that must never read LOADING: nobody reaches the server before it has
// loaded what it has kept.
func (s *Server) StartLoaded() {
	s.t.Helper()
	hidden, port := choosePort(s.t)
	s.launch(append(slices.Clone(s.args), "--port", port)...)
	conn := s.dial(hidden)
	defer conn.Close()
	_, port, _ = net.SplitHostPort(s.Addr)
	for _, step := range []struct{ command, want string }{{"PING", "+PONG"}, {"CONFIG SET port " + port, "+OK"}} {
		said := ""
		for deadline := time.Now().Add(patience); said != step.want; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				s.t.Fatalf("redis-server answers %s with %q", step.command, said)
			}
			said = s.ask(conn, step.command)
		}
	}
}

// ask returns the line that answers a command.
func (s *Server) ask(conn net.Conn, command string) string {
	s.t.Helper()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		s.t.Fatalf("redis-server does not take %s: %v", command, err)
	}
	reply := make([]byte, 1<<10) // far more than the line has
	n, err := conn.Read(reply)
	if err != nil {
		s.t.Fatalf("redis-server does not answer %s: %v", command, err)
	}
	return strings.TrimSpace(string(reply[:n]))
}

func (s *Server) launch(args ...string) {
	s.t.Helper()
	s.cmd = exec.Command(find(s.t), args...)
	endWithUs(s.cmd)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("cannot start redis-server: %v", err)
	}
}

// dial waits until the server accepts.
func (s *Server) dial(addr string) net.Conn {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			return conn
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("redis-server does not accept: %v", err)
		}
	}
}

// Kill ends the process by SIGKILL and waits for its end.
func (s *Server) Kill() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
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
