package harness

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Network gives every member a network namespace of its own, an address in it and a link to a
// bridge, so that any two members can be cut apart. What one then sends to the other goes to an
// Ethernet address that nobody has, and is lost without an error.
//
//	n1 [10.211.0.2]──┐
//	n2 [10.211.0.3]──┼── bridge [10.211.0.1], the test's clients
//	p1 [10.211.0.4]──┘
//
// The bridge is in the namespace of a second test process, which the first one starts (InNetwork).
// The kernel removes everything when that process ends.
type Network struct {
	hosts []*host
}

// host is the network namespace of one member.
type host struct {
	namespace *os.File
	ip        string
}

const (
	networkPrefix = "10.211.0."
	// networkEnv tells the second test process where the binary is.
	networkEnv = "DUNLIN_TEST_NETWORK"
	nobodysMAC = "02:00:00:00:de:ad"
)

// InNetwork runs the calling test again, in a second process with its own network, and returns the
// network there. In the first process it returns nil once the second has ended.
func InNetwork(t *testing.T) *Network {
	t.Helper()
	if os.Getenv(networkEnv) == "" {
		runInNetwork(t)
		return nil
	}
	for _, line := range []string{
		"link set lo up", "link add dunlin type bridge", "addr add " + networkPrefix + "1/24 dev dunlin", "link set dunlin up",
	} {
		if err := ip(line); err != nil {
			t.Fatal(err)
		}
	}
	return &Network{}
}

func runInNetwork(t *testing.T) {
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("missing: ip (Debian: apt-get install iproute2)")
	}
	args := []string{"-test.run=^" + t.Name() + "$", "-test.v", "-test.timeout=0"}
	flag.Visit(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), networkEnv+"="+Binary(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWUSER, Pdeathsig: syscall.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Skipf("no network namespaces here: %v", err)
	}
	t.Logf("in a network of its own:\n%s", out)
	if err != nil {
		t.Errorf("in a network of its own: %v", err)
	}
}

func ip(line string) error {
	out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", line, err, out)
	}
	return nil
}

// NewMember returns a member, not running yet, on a host of its own; on this host if n is nil.
func (n *Network) NewMember(t testing.TB, role, id string) *Member {
	t.Helper()
	m := NewMember(t, role, id)
	if n == nil {
		return m
	}
	h, err := n.newHost()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.namespace.Close() })
	m.host = h
	m.Addr, m.Gossip, m.Admin = h.ip+":6380", h.ip+":7946", h.ip+":9180"
	m.required = []string{"--insecure"}
	return m
}

func (n *Network) newHost() (*host, error) {
	h := &host{ip: fmt.Sprint(networkPrefix, len(n.hosts)+2)}
	if err := onThread(func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			h.namespace, err = os.Open("/proc/thread-self/ns/net")
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("cannot make a network namespace: %w", err)
	}
	n.hosts = append(n.hosts, h)
	link := fmt.Sprintf("host%d", len(n.hosts))
	inside := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), h.namespace.Fd())
	return h, errors.Join(
		ip("link add "+link+" type veth peer name eth0 netns "+inside),
		ip("link set "+link+" master dunlin up"),
		h.ip4("link set lo up"), h.ip4("addr add "+h.ip+"/24 dev eth0"), h.ip4("link set eth0 up"))
}

// onThread runs do, which may change the network namespace of its thread, and restores the
// namespace.
func onThread(do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer here.Close()
	err = do()
	if back := unix.Setns(int(here.Fd()), unix.CLONE_NEWNET); back != nil {
		panic("cannot return to the network namespace: " + back.Error())
	}
	return err
}

// start starts a process on the host; a nil host is this one. The thread must live on, because the
// process ends with the thread that started it (EndWithUs).
func (h *host) start(cmd *exec.Cmd) error {
	if h == nil {
		return cmd.Start()
	}
	return onThread(func() error {
		if err := unix.Setns(int(h.namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return cmd.Start()
	})
}

// ip4 runs the command ip on the host.
func (h *host) ip4(line string) error {
	var out strings.Builder
	cmd := exec.Command("ip", strings.Fields(line)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := h.start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("ip %s at %s: %w: %s", line, h.ip, err, out.String())
	}
	return nil
}

// Cut makes each side lose all that it sends to the other side, until Heal.
func Cut(t testing.TB, one, other []*Member) {
	t.Helper()
	eachPair(t, one, other, "neigh replace %s lladdr "+nobodysMAC+" dev eth0 nud permanent")
}

// Heal ends a Cut between the same two groups of members.
func Heal(t testing.TB, one, other []*Member) {
	t.Helper()
	eachPair(t, one, other, "neigh del %s dev eth0")
}

func eachPair(t testing.TB, one, other []*Member, line string) {
	t.Helper()
	for _, a := range one {
		for _, b := range other {
			if err := errors.Join(a.host.ip4(fmt.Sprintf(line, b.host.ip)), b.host.ip4(fmt.Sprintf(line, a.host.ip))); err != nil {
				t.Fatal(err)
			}
		}
	}
}
