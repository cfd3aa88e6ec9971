package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The harness runs real processes: the binary is built once per test run, and
// every member is a `dunlin node` or `dunlin proxy` on ports of its own.
//
//	c := startCluster(t, 3, 1)      // three nodes n1 n2 n3, a proxy p1, all ready
//	c.proxy(0).addr                 // where clients connect
//	c.node(1).kill()                // SIGKILL; stop and cont are SIGSTOP and SIGCONT
//	c.node(1).start()               // the same id, ports and flags again
//	c.converge(3 * time.Second)     // all running members show one epoch
//
// Everything ends with the test, also when the test process itself is killed.
// What a member logged is shown when its test fails; a race or a panic that a
// member reports fails the test.

const (
	// readyTimeout is for a process to be ready, on a machine busy with other tests.
	readyTimeout = 30 * time.Second
	// pollInterval is how often a condition is looked at again.
	pollInterval = 10 * time.Millisecond
	// shownLog is how much of a log's end a failed test shows.
	shownLog = 8 << 10
)

// startOptions are the differences between clusters; the zero value has none.
type startOptions struct {
	nodes, proxies int
	flags          []string        // for every member
	nodeFlags      []string        // for nodes only
	env            []string        // in addition to an environment without DUNLIN_*
	relayed        bool            // others reach the nodes through relays
	network        *network        // of the members' own; nil: the loopback interface
	clocks         []time.Duration // of the members, nodes first: by how much they are off
}

type cluster struct {
	t       testing.TB
	members []*member // nodes, then proxies
}

// startCluster starts members that all know each other's addresses, and waits
// until they are ready and agree. flags go to all of them.
func startCluster(t testing.TB, nodes, proxies int, flags ...string) *cluster {
	t.Helper()
	return startClusterWith(t, startOptions{nodes: nodes, proxies: proxies, flags: flags})
}

func startClusterWith(t testing.TB, o startOptions) *cluster {
	t.Helper()
	c := &cluster{t: t}
	for i := range o.nodes {
		c.members = append(c.members, o.network.newMember(t, "node", fmt.Sprintf("n%d", i+1)))
	}
	for i := range o.proxies {
		c.members = append(c.members, o.network.newMember(t, "proxy", fmt.Sprintf("p%d", i+1)))
	}
	if o.relayed {
		for _, m := range c.byRole("node") {
			m.relay = relayed(t, m)
			_, port, _ := net.SplitHostPort(m.gossip)
			m.gossip = net.JoinHostPort(relayHost, port)
		}
	}
	var join []string
	for _, m := range c.members {
		join = append(join, m.gossip)
	}
	for i, off := range o.clocks {
		c.members[i].clock = off
	}
	for _, m := range c.members {
		m.flags = append([]string{"--join", strings.Join(join, ",")}, o.flags...)
		if m.role == "node" && o.relayed {
			m.flags = append(m.flags, "--advertise", relayHost)
		}
		if m.role == "node" {
			m.flags = append(m.flags, "--memory", "128mb") // unless nodeFlags say otherwise
			m.flags = append(m.flags, o.nodeFlags...)
		}
		m.env = o.env
		m.launch()
	}
	c.waitReady()
	c.converge(readyTimeout)
	return c
}

// node and proxy return the i-th of each, from 0.
func (c *cluster) node(i int) *member  { return c.byRole("node")[i] }
func (c *cluster) proxy(i int) *member { return c.byRole("proxy")[i] }

func (c *cluster) byRole(role string) (found []*member) {
	for _, m := range c.members {
		if m.role == role {
			found = append(found, m)
		}
	}
	return found
}

// waitReady waits until all running members are ready.
func (c *cluster) waitReady() {
	c.t.Helper()
	for _, m := range c.members {
		if m.running() {
			m.waitReady()
		}
	}
}

// epochs asks every running member, stopped ones not among them, for the epoch
// of its table. A member that does not answer within a second has epoch 0.
func (c *cluster) epochs() map[string]uint64 {
	all := map[string]uint64{}
	for _, m := range c.members {
		if m.running() && !m.stopped {
			s, _ := m.status()
			all[m.id] = s.Cluster.Epoch
		}
	}
	return all
}

// converge waits until all running members show the same table, with exactly the
// running nodes as owners of all partitions. It returns the table's epoch.
func (c *cluster) converge(within time.Duration) uint64 {
	c.t.Helper()
	epoch, why := uint64(0), ""
	eventually(c.t, within, "members agree", func() bool {
		epoch, why = c.agreed()
		return why == ""
	}, func() string { return why })
	return epoch
}

// agreed says why members do not agree, or returns "" and the epoch.
func (c *cluster) agreed() (epoch uint64, why string) {
	var nodes []string
	for _, m := range c.byRole("node") {
		if m.running() && !m.stopped {
			nodes = append(nodes, m.id)
		}
	}
	for _, m := range c.members {
		if !m.running() || m.stopped {
			continue
		}
		s, err := m.status()
		if err != nil {
			return 0, fmt.Sprintf("%s: %v", m.id, err)
		}
		if epoch == 0 {
			epoch = s.Cluster.Epoch
		}
		if owners := s.owners(); s.Cluster.Epoch != epoch || epoch == 0 || !slices.Equal(owners, nodes) {
			return 0, fmt.Sprintf("%s shows epoch %d with owners %v; epoch %d with owners %v is expected",
				m.id, s.Cluster.Epoch, owners, epoch, nodes)
		}
	}
	return epoch, ""
}

// member is a process of the cluster, or the place of one that has ended.
type member struct {
	t                           testing.TB
	role, id                    string
	addr, gossip, admin, logged string // logged is the log's file name
	flags, env                  []string
	required                    []string // flags that its place asks for
	stopped                     bool     // by SIGSTOP
	relay                       *relay
	host                        *host         // nil: this one
	clock                       time.Duration // by how much it is off, on this host; see startAt

	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone and waited for
}

func newMember(t testing.TB, role, id string) *member {
	return &member{t: t, role: role, id: id, addr: freeAddr(t), gossip: freeAddr(t), admin: freeAddr(t),
		logged: filepath.Join(t.TempDir(), id+".log")}
}

// start starts the process (again) and waits until it is ready.
func (m *member) start() {
	m.t.Helper()
	m.launch()
	m.waitReady()
}

// launch starts the process without waiting for it.
func (m *member) launch() {
	m.t.Helper()
	args := append([]string{m.role, "--id", m.id, "--listen", m.addr, "--gossip", m.gossip, "--admin", m.admin}, m.required...)
	args = append(args, m.flags...)
	m.run(args...)
}

// run starts the binary with any arguments, in the place of this member.
func (m *member) run(args ...string) {
	m.t.Helper()
	if m.running() {
		m.t.Fatalf("BUG: %s runs already", m.id)
	}
	log, err := os.OpenFile(m.logged, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.t.Fatal(err)
	}
	defer log.Close() // the process has its own descriptor
	cmd := exec.Command(binary(m.t), args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(cleanEnviron(), m.env...)
	endWithUs(cmd)
	start := m.host.start
	if m.clock != 0 {
		start = func(cmd *exec.Cmd) error { return startAt(cmd, m.clock) }
	}
	if err := start(cmd); errors.Is(err, errNoClock) {
		m.t.Skipf("the clock of a process cannot be set: %v", err)
	} else if err != nil {
		m.t.Fatalf("cannot start %s: %v", m.id, err)
	}
	first := m.cmd == nil
	m.cmd, m.exited, m.stopped = cmd, make(chan struct{}), false
	go func(exited chan struct{}) {
		_ = cmd.Wait() // its state is in cmd.ProcessState
		close(exited)
	}(m.exited)
	if first {
		m.t.Cleanup(m.cleanup)
	}
}

// endWithUs has the kernel end a process when this one dies, whatever the reason.
func endWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

func (m *member) cleanup() {
	m.kill()
	log, _ := os.ReadFile(m.logged)
	for _, bad := range []string{"WARNING: DATA RACE", "panic:", "fatal error:", "panic on event loop"} {
		if strings.Contains(string(log), bad) {
			m.t.Errorf("%s reports %q", m.id, bad)
		}
	}
	if m.t.Failed() {
		m.t.Logf("end of the log of %s:\n%s", m.id, log[max(0, len(log)-shownLog):])
	}
}

// running says whether the process exists; a stopped one does.
func (m *member) running() bool {
	if m.cmd == nil {
		return false
	}
	select {
	case <-m.exited:
		return false
	default:
		return true
	}
}

func (m *member) signal(s syscall.Signal) {
	m.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		m.t.Fatalf("cannot send %v to %s: %v", s, m.id, err)
	}
}

// kill ends the process at once, by SIGKILL, if it runs.
func (m *member) kill() {
	if m.running() {
		_ = m.cmd.Process.Kill() // it may have ended just now
		<-m.exited
	}
}

// stop freezes the process: its sockets stay open and nothing answers.
func (m *member) stop() {
	m.t.Helper()
	m.signal(syscall.SIGSTOP)
	m.stopped = true
	for deadline := time.Now().Add(readyTimeout); !m.frozen(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatalf("%s does not stop", m.id)
		}
	}
}

// frozen says whether all threads of the process have stopped: on a busy machine, the last one does so a little later.
func (m *member) frozen() bool {
	states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", m.cmd.Process.Pid))
	if err != nil || len(states) == 0 {
		return false
	}
	for _, path := range states {
		text, err := os.ReadFile(path)
		if after := bytes.LastIndexByte(text, ')'); err == nil && (after < 0 || !bytes.HasPrefix(text[after:], []byte(") T"))) {
			return false
		}
	}
	return true
}

// cont lets a frozen process go on.
func (m *member) cont() {
	m.t.Helper()
	m.signal(syscall.SIGCONT)
	m.stopped = false
}

// term asks the process to end in order, waits for it, and returns how long it
// took. Another exit code than 0 fails the test.
func (m *member) term(within time.Duration) time.Duration {
	m.t.Helper()
	begin := time.Now()
	m.signal(syscall.SIGTERM)
	select {
	case <-m.exited:
	case <-time.After(within):
		m.t.Fatalf("%s still runs %v after SIGTERM", m.id, within)
	}
	if code := m.cmd.ProcessState.ExitCode(); code != 0 {
		m.t.Errorf("%s ended with exit code %d after SIGTERM", m.id, code)
	}
	return time.Since(begin)
}

func (m *member) waitReady() {
	m.t.Helper()
	last := "nothing asked yet"
	eventually(m.t, readyTimeout, m.id+" is ready", func() bool {
		if !m.running() {
			m.t.Fatalf("%s has ended instead of getting ready", m.id)
		}
		body, err := get(m.admin, "/readyz")
		last = fmt.Sprintf("%q, %v", body, err)
		return err == nil
	}, func() string { return last })
}

// status is what the tests read of /api/status. The names are the wire's: the
// struct of package metrics is not used, so that renaming a field there fails here.
type status struct {
	Cluster struct {
		Name       string
		Epoch      uint64
		Partitions int
		Peers      []struct {
			ID, Role, State, Addr, Admin string
			Epoch                        uint64
			Partitions                   int
		}
	}
	Members []memberStatus
}

type memberStatus struct {
	ID, Role   string
	Ready      bool
	Epoch      uint64
	Partitions int
	Keys       int64
	MemoryMax  int64 `json:"memory_max_bytes"`
	Hits       uint64
	Misses     uint64
	Clients    int
	Commands   uint64
}

// owners returns the ids of the nodes that own partitions, sorted; nil while
// some partition has no alive owner.
func (s *status) owners() (ids []string) {
	owned := 0
	for _, p := range s.Cluster.Peers {
		if owned += p.Partitions; p.Partitions > 0 {
			ids = append(ids, p.ID)
		}
	}
	if owned != 4096 {
		return nil
	}
	slices.Sort(ids)
	return ids
}

func (m *member) status() (s status, err error) {
	body, err := get(m.admin, "/api/status")
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	return s, err
}

// get fetches a path of an admin address; anything but status 200 is an error.
func get(admin, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return body, err
}

// eventually looks at a condition until it holds; after the deadline the test
// fails, and says with why what it saw last.
func eventually(t testing.TB, within time.Duration, what string, holds func() bool, why ...func() string) {
	t.Helper()
	for deadline := time.Now().Add(within); !holds(); time.Sleep(pollInterval) {
		if time.Now().After(deadline) {
			last := ""
			for _, f := range why {
				last += "; last: " + f()
			}
			t.Fatalf("waited %v in vain: %s%s", within, what, last)
		}
	}
}

// resident is the memory that the system says a process has.
func resident(t *testing.T, m *member) int64 {
	t.Helper()
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", m.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// sleepUpTo is how long a fault lasts.
func sleepUpTo(d time.Duration, rng *rand.Rand) { time.Sleep(time.Duration(rng.Int64N(int64(d)))) }
